"""The configuration: where values come from, what is refused and how, and the file that `ledger init` writes."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.config.keys import RULES
from commands.config.load import StoreUnsupported, load_settings, store_location, usable_processors
from commands.config.settings import (
    MuteSettings,
    NotifySettings,
    ReleaseSettings,
    RunnerSettings,
    Settings,
)
from commands.config.sources import ConfigInvalid, from_file
from commands.config.together import foreign_keys
from ledger.events import GatePolicy, MachinePolicy, PlanPolicy, QuestionPolicy
from ledger.steps import Step

DEFAULTS = Settings(gate=GatePolicy(parallel=usable_processors(), rerun="on"))

OF_COMMAND = foreign_keys(RunnerSettings())


EVERY_KEY = """
    project = "demo"
    store = "/ledger"
    work = "/work"
    questions = { intake_max = 2, planning_max = 3, execution_max = 0, deadline_minutes = 35791 }
    notify = { hooks = [["notify-send", "a run waits"], ["./tell"]] }
    step = [{ name = "check", run = ["true"] }]
    [release]
    remote = "up"
    main = "trunk"
    attempts_max = 2
    may_waive = ["a"]
    may_approve = ["b"]
    separate_duties = true
    autoheal = false
    [gate]
    baseline = "on-failure"
    rounds = 9
    shards = 9
    parallel = 9
    flaky = "block"
    time_limit_seconds = "1.5h"
    idle_limit_seconds = "90s"
    memory_limit_bytes = "2GiB"
    rerun = "off"
    [runner]
    runner = "pytest"
    python = "python3.12"
    arguments = ["-p", "no:randomly"]
    paths = ["tests"]
    prepare = [["python3", "-m", "venv", "{cache}"],
               ["{cache}/bin/pip", "install", "{tree}"]]
    lock = ["requirements.txt"]
    import_paths = ["src"]
    first_party = ["demo"]
    pass_environment = ["DJANGO_*", "CI"]
    may_change = ["*.snap"]
    [runner.set_environment]
    python = "3"
    [plan]
    budget_bytes = "3GiB"
    target_seconds = "10m"
    heavy_percent = 80
    spawn_targets = ["tests/test_spawn.py"]
    spawn_shards = 2
    deadline_floor_seconds = 60
    deadline_percent = 300
    split_seconds = "2m"
    durations_file = ".test_durations"
    [machine]
    reservation_bytes = "1GiB"
    headroom_percent = 200
    start_wait_seconds = "1h"
    [mutes]
    count_max = 7
    days_max = 14
    passes = 3
"""
"""A file with every key, none of them at its default."""


class TestPrecedence:
    def test_without_any_source_everything_is_its_default(self, load):
        loaded = load()

        assert loaded.settings == DEFAULTS
        assert {loaded.origin(key) for key in RULES} == {"default"}

    def test_flag_before_variable_before_repository_before_user(self, load, write, tmp_path):
        write("[gate]\nrounds = 5\nshards = 5\nparallel = 5\n\n\nidle_limit_seconds = 5\n", "user")
        write("[gate]\n# why\nrounds = 4\nshards = 4\nparallel = 4\n")

        loaded = load({"gate.rounds": 2, "gate.shards": None}, LEDGER_GATE_ROUNDS="3", LEDGER_GATE_SHARDS="3")

        gate = loaded.settings.gate
        assert (gate.rounds, gate.shards, gate.parallel, gate.idle_limit_seconds) == (2, 3, 4, 5.0)
        assert [loaded.origin(f"gate.{key}") for key in ("rounds", "shards", "parallel", "flaky")] == [
            "flag", "environment LEDGER_GATE_SHARDS", "file ledger.toml:5", "default",
        ]  # fmt: skip
        assert loaded.origin("gate.idle_limit_seconds") == f"user file {tmp_path / 'user' / 'config.toml'}:7"

    def test_every_key_can_be_set_in_the_file_and_is_found_again(self, load, write):
        write(EVERY_KEY)

        loaded = load()

        assert loaded.settings == Settings(
            project="demo",
            store="/ledger",
            work="/work",
            gate=GatePolicy(
                baseline="on-failure", rounds=9, shards=9, parallel=9, flaky="block", time_limit_seconds=5400.0,
                idle_limit_seconds=90.0, memory_limit_bytes=2 * 1024**3, rerun="off",
            ),
            plan=PlanPolicy(
                budget_bytes=3 * 1024**3, target_seconds=600.0, heavy_percent=80,
                spawn_targets=("tests/test_spawn.py",),
                spawn_shards=2, deadline_floor_seconds=60.0, deadline_percent=300, split_seconds=120.0,
                durations_file=".test_durations",
            ),
            machine=MachinePolicy(reservation_bytes=1024**3, headroom_percent=200, start_wait_seconds=3600.0),
            mutes=MuteSettings(count_max=7, days_max=14, passes=3),
            questions=QuestionPolicy(intake_max=2, planning_max=3, execution_max=0, deadline_minutes=35791),
            notify=NotifySettings(hooks=(("notify-send", "a run waits"), ("./tell",))),
            release=ReleaseSettings(
                remote="up", main="trunk", attempts_max=2, may_waive=("a",), may_approve=("b",), separate_duties=True,
                autoheal=False,
            ),
            step=(Step(name="check", run=("true",)),),
            runner=RunnerSettings(
                python="python3.12", arguments=("-p", "no:randomly"), paths=("tests",),
                prepare=(("python3", "-m", "venv", "{cache}"), ("{cache}/bin/pip", "install", "{tree}")),
                lock=("requirements.txt",), import_paths=("src",), first_party=("demo",),
                pass_environment=("DJANGO_*", "CI"), set_environment={"python": "3"},
                may_change=("*.snap",),
            ),
        )  # fmt: skip
        assert all(loaded.origin(key).startswith("file ledger.toml:") for key in RULES if key not in OF_COMMAND)

    def test_a_table_of_pyproject_is_the_same(self, load, write):
        write('[project]\nname = "x"\nrounds = 7\n[tool.ledger]\nproject = "y"\n[tool.ledger.gate]\nrounds = 4\n',
              "pyproject.toml")  # fmt: skip

        loaded = load()

        assert (loaded.settings.project, loaded.settings.gate.rounds) == ("y", 4)
        assert loaded.origin("gate.rounds") == "file pyproject.toml:7"

    def test_a_pyproject_that_is_not_about_us_does_not_matter_even_if_it_is_broken(self, load, write):
        write("[tool.other]\nkey = = 3\n", "pyproject.toml")

        assert load().settings == DEFAULTS

    def test_a_mention_of_us_elsewhere_in_pyproject_is_not_our_table(self, load, write):
        write('[tool.other]\nuses = "release-ledger"\n', "pyproject.toml")

        assert load().settings == DEFAULTS

    def test_both_files_together_are_refused(self, load, write, project):
        write("[gate]\n")
        write("[tool.ledger]\n", "pyproject.toml")

        with pytest.raises(ConfigInvalid, match="both") as refusal:
            load()

        assert str(project) in refusal.value.message

    def test_an_empty_variable_counts_as_not_set(self, load):
        assert load(LEDGER_STORE="", LEDGER_GATE_ROUNDS="").settings == DEFAULTS

    def test_relative_paths_start_where_they_were_written(self, load, write, project, tmp_path, monkeypatch):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        monkeypatch.setenv("HOME", "/users/me")
        write('store = "../kept"\nwork = "~/work"\n')

        from_files = load().settings
        from_variables = load(LEDGER_STORE="here", LEDGER_WORK="/abs/x").settings
        from_flag = load({"store": "./flag"}).settings

        assert (from_files.store, from_files.work) == (str(tmp_path / "kept"), "/users/me/work")
        assert (from_variables.store, from_variables.work) == (str(tmp_path / "elsewhere" / "here"), "/abs/x")
        assert from_flag.store == str(tmp_path / "elsewhere" / "flag")

    def test_parallel_is_by_default_what_this_process_may_use(self, load):
        assert load().settings.gate.parallel == len(os.sched_getaffinity(0))


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("[gate]\nround = 3\n", "file ledger.toml:2: unknown key `gate.round`; did you mean `gate.rounds`?"),
            ("idle-limit = 3\n", "file ledger.toml:1: unknown key `idle-limit`"),
            ("[gate]\nidle-limit-seconds = 3\n", "did you mean `gate.idle_limit_seconds`?"),
            ("\n\n[steps]\na = 1\n", "file ledger.toml:3: unknown key `steps`"),
            ("[gate]\n\nrounds = 0\n", "file ledger.toml:3: `gate.rounds` is 0; allowed: a whole number from 1 to 100"),
            ("gate.rounds = -1\n", "ledger.toml:1: `gate.rounds` is -1"),
            ("gate.rounds = true\n", "`gate.rounds` is True"),
            ("gate.rounds = 2.5\n", "`gate.rounds` is 2.5"),
            ("gate.rounds = []\n", "`gate.rounds` is []"),
            ("gate.parallel = 0\n", "`gate.parallel` is 0; allowed: a whole number from 1 to 1024"),
            ("gate.shards = -1\n", "`gate.shards` is -1"),
            ('gate.baseline = "never"\n', '`gate.baseline` is \'never\'; allowed: "always" or "on-failure"'),
            ('gate.flaky = ""\n', '`gate.flaky` is \'\'; allowed: "warn" or "block"'),
            ('gate.time_limit_seconds = "10 parsecs"\n', "`gate.time_limit_seconds` is '10 parsecs'; allowed: seconds"),
            ("gate.time_limit_seconds = -1\n", "is -1; allowed"),
            ("gate.time_limit_seconds = nan\n", "is nan; allowed"),
            ("gate.idle_limit_seconds = inf\n", "is inf; allowed"),
            ('gate.memory_limit_bytes = "2GB"\n', "is '2GB'; allowed: bytes, or a size such as"),
            (f"gate.memory_limit_bytes = {10**30}\n", "allowed: bytes"),
            ("gate = 3\n", "file ledger.toml:1: `gate` is 3; allowed: a table"),
            ("[[gate]]\n", "`gate` is [{}]; allowed: a table"),
            ('runner = "pytest"\n', "`runner` is 'pytest'; allowed: a table"),
            ('[runner]\nrunner = "nose"\n', "`runner.runner` is 'nose'; allowed: \"pytest\""),
            ('[runner]\narguments = "-x"\n', "`runner.arguments` is '-x'; allowed: a list of texts"),
            ('[runner]\narguments = ["a\\u0000b"]\n', "allowed: a list of texts"),
            ('[runner]\nprepare = ["make"]\n', "allowed: a list of commands"),
            ("[runner]\nprepare = [[]]\n", "allowed: a list of commands"),
            ('[runner]\nprepare = [["", "x"]]\n', "allowed: a list of commands"),
            ('[runner]\npaths = ["/etc"]\n', "`runner.paths` is ['/etc']; allowed: a list of paths inside"),
            ('[runner]\nlock = ["a/../../b"]\n', "allowed: a list of paths inside"),
            ('[runner]\nimport_paths = [""]\n', "allowed: a list of paths inside"),
            ('[runner]\nfirst_party = ["my-package"]\n', "allowed: a list of module names"),
            ('[runner]\npass_environment = ["*"]\n', "allowed: a list of names of variables"),
            ('[runner]\npass_environment = ["A*B"]\n', "allowed: a list of names of variables"),
            ('[runner]\nset_environment = {"A=B" = "secret"}\n', "`runner.set_environment` is a table; allowed"),
            ("[runner]\n[runner.set_environment]\nA = 1\n", "ledger.toml:2: `runner.set_environment` is a table"),
            ('project = "a\\nb"\n', "`project` is 'a\\nb'; allowed: one line of text"),
            ("project = 2026-01-31\n", "allowed: one line of text"),
            ("store = {}\n", "`store` is a table; allowed: a path"),
        ],
    )
    def test_a_bad_value_is_told_with_its_place_and_what_is_allowed(self, load, write, text, told):
        write(text)

        with pytest.raises(ConfigInvalid) as refusal:
            load()

        assert told in refusal.value.message
        assert (refusal.value.code, refusal.value.exit_code) == ("config-invalid", 2)
        assert refusal.value.hint
        assert "secret" not in refusal.value.message

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("[gate]\nrounds = = 3\n", "file ledger.toml:2:10: broken TOML"),
            ("[gate\n", "file ledger.toml:1:6: broken TOML"),
            ("a = 1\na = 2\n", "file ledger.toml:2:6: broken TOML"),
            ('a = """never closed\n\n', "file ledger.toml:3: broken TOML"),
            ("a = " + "[" * 100_000, "file ledger.toml:1: broken TOML"),
            ("a = " + "9" * 10_000, "file ledger.toml:1: broken TOML"),
            (b"a = 1\nb = '\xff'\n", "file ledger.toml:2: the file is not UTF-8"),
            ("\0", "file ledger.toml:1:1: broken TOML"),
        ],
    )
    def test_a_broken_file_is_told_with_line_and_column(self, load, write, text, told):
        write(text)

        with pytest.raises(ConfigInvalid) as refusal:
            load()

        assert refusal.value.message.startswith(told)

    def test_a_file_that_cannot_be_read_is_told(self, load, project):
        (project / "ledger.toml").mkdir()

        with pytest.raises(ConfigInvalid, match=r"file ledger\.toml: cannot be read"):
            load()

    def test_a_table_of_pyproject_that_is_none_is_told(self, load, write):
        write("[tool]\nledger = 3\n", "pyproject.toml")

        with pytest.raises(ConfigInvalid, match=r"file pyproject\.toml:2: `tool\.ledger` is 3; allowed: a table"):
            load()

    @pytest.mark.parametrize(
        ("variables", "told"),
        [
            ({"LEDGER_GATE_ROUNDS": "many"}, "environment LEDGER_GATE_ROUNDS: `gate.rounds` is 'many'; allowed"),
            ({"LEDGER_GATE_ROUNDS": "0"}, "environment LEDGER_GATE_ROUNDS: `gate.rounds` is '0'; allowed"),
            ({"LEDGER_GATE_ROUND": "3"}, "unknown variable; did you mean `LEDGER_GATE_ROUNDS`?"),
            ({"LEDGER_GATE_MEMORY_LIMIT_BYTES": "1e9"}, "is '1e9'; allowed: bytes"),
        ],
    )
    def test_a_bad_variable_is_told_by_its_name(self, load, variables, told):
        with pytest.raises(ConfigInvalid) as refusal:
            load(**variables)

        assert told in refusal.value.message

    def test_a_bad_flag_is_told_as_such(self, load):
        with pytest.raises(ConfigInvalid, match=r"flag: `gate\.rounds` is 0"):
            load({"gate.rounds": 0})

    def test_a_bad_value_is_told_even_where_a_better_source_hides_it(self, load, write):
        write("gate.rounds = 0\n")

        with pytest.raises(ConfigInvalid):
            load({"gate.rounds": 3})

    @pytest.mark.parametrize("name", ["LEDGER_RECORD_DIRECTORY", "LEDGER_ATTEMPT", "LEDGER_RUNNER_PYTHON"])
    def test_other_variables_are_no_settings(self, load, name):
        assert load(**{name: "x"}).settings == DEFAULTS


class TestValues:
    @pytest.mark.parametrize(
        ("written", "seconds"),
        [("600", 600.0), ('"600"', 600.0), ('"10m"', 600.0), ('"1.5 h"', 5400.0), ('"250ms"', 0.25), ('"1d"', 86400.0),
         ("0", 0.0), ("0.5", 0.5)],
    )  # fmt: skip
    def test_times(self, load, write, written, seconds):
        write(f"gate.time_limit_seconds = {written}\n")

        assert load().settings.gate.time_limit_seconds == seconds

    @pytest.mark.parametrize(
        ("written", "size"),
        [("1024", 1024), ('"1024"', 1024), ('"2GiB"', 2 * 2**30), ('"1.5 MiB"', 3 * 2**19), ('"7B"', 7), ("0", 0)],
    )
    def test_sizes(self, load, write, written, size):
        write(f"gate.memory_limit_bytes = {written}\n")

        assert load().settings.gate.memory_limit_bytes == size

    @given(st.text(max_size=30), st.sampled_from(["TIME_LIMIT_SECONDS", "MEMORY_LIMIT_BYTES", "ROUNDS", "FLAKY"]))
    def test_any_text_of_a_variable_is_a_valid_value_or_refused(self, text, key):
        name, nowhere = f"LEDGER_GATE_{key}", Path("/nonexistent")
        try:
            loaded = load_settings(nowhere, {}, environment={name: text}, user_directory=nowhere)
        except ConfigInvalid as refusal:
            told = refusal.message
        else:
            gate = loaded.settings.gate
            valid = gate.rounds >= 1 and gate.time_limit_seconds >= 0 and gate.memory_limit_bytes >= 0
            told = name if valid else ""
        assert name in told


class TestLines:
    def test_a_key_is_found_on_its_own_line_whatever_else_names_it(self, write, project):
        lines = [
            "# rounds = 1",
            "[runner]",
            'arguments = ["""',
            "[gate]",
            'rounds = 2 """, # rounds',
            '"rounds = 4"]',
            "[gate] # rounds",
            "shards = 1",
            '  "rounds"  = 3 # rounds',
            "parallel = 1 # rounds",
            "[runner.set_environment]",
            "rounds = '5'",
        ]
        write("\n".join(lines))

        source = from_file(project / "ledger.toml", "f")

        assert source.values["gate.rounds"] == 3
        assert source.origin("gate.rounds") == "f:9"
        assert source.origin("runner.set_environment") == "f:11"

    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    @pytest.mark.parametrize(
        "text",
        ["#\n#\ngate.rounds = 3\n", "#\n#\ngate = { rounds = 3 }\n", "[gate]\n#\nrounds = 3", "#\n#\ngate . rounds=3"],
    )
    def test_every_way_to_write_it_is_found(self, write, project, text, ending):
        write(text.replace("\n", ending))

        assert from_file(project / "ledger.toml", "f").origin("gate.rounds") == "f:3"

    def test_a_key_that_is_written_with_escapes_is_told_by_its_file_alone(self, write, project):
        write('[gate]\n"r\\u006funds" = 3\n')

        assert from_file(project / "ledger.toml", "f").origin("gate.rounds") == "f"

    @given(
        names=st.lists(st.sampled_from(["rounds", "shards", "parallel"]), min_size=1, unique=True),
        fill=st.lists(st.sampled_from(["", "# rounds = 1", "#[gate]", "  # shards"]), max_size=4),
    )
    def test_any_order_and_any_comments_lead_to_the_line(self, tmp_path_factory, names, fill):
        lines = [*fill, "[gate]"]
        for name in names:
            lines += [*fill, f"{name} = 7 # rounds shards parallel"]
        file = tmp_path_factory.getbasetemp() / "lines.toml"
        file.write_text("\n".join(lines))

        source = from_file(file, "f")

        for name in names:
            assert lines[int(source.origin(f"gate.{name}").removeprefix("f:")) - 1].startswith(f"{name} =")


class TestStore:
    @pytest.fixture
    def repository_directory(self, tmp_path):
        return SimpleNamespace(common_directory=tmp_path / ".git")

    def test_by_default_it_is_in_the_git_directory_that_all_worktrees_share(self, repository_directory, tmp_path):
        assert store_location(Settings(), repository_directory) == tmp_path / ".git" / "ledger"

    def test_another_place_can_be_configured(self, repository_directory):
        assert store_location(Settings(store="/srv/ledger"), repository_directory) == Path("/srv/ledger")

    @pytest.mark.parametrize("url", ["postgresql://host/db", "postgres://host/db", "postgresql+psycopg://host/db"])
    def test_postgresql_is_said_to_come_later(self, load, repository_directory, url):
        with pytest.raises(StoreUnsupported, match="PostgreSQL") as refusal:
            store_location(load({"store": url}).settings, repository_directory)

        assert (refusal.value.code, refusal.value.exit_code) == ("store-unsupported", 2)
        assert "later" in refusal.value.message
        assert "host" not in refusal.value.message

    def test_any_other_address_is_unknown(self, load, repository_directory):
        with pytest.raises(StoreUnsupported, match="mysql://x"):
            store_location(load(LEDGER_STORE="mysql://x").settings, repository_directory)
