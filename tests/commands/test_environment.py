"""The environment of tests: what is let through, what is re-rooted, what is recorded, what is hinted at."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.config.settings import RunnerSettings
from commands.effects.environment import (
    child_environment,
    is_credential,
    missing_variable_hint,
    recorded_environment,
)

PRIVATE = {
    "HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
}  # fmt: skip


@pytest.fixture
def places(tmp_path):
    """The four directories of a side, by the names of the arguments."""
    return {name: tmp_path / name for name in ("tree", "checkout", "home", "temporary")}


@pytest.fixture
def child(places):
    """Makes the environment of a child from a parent's, with settings given by name."""
    for place in places.values():
        place.mkdir()

    def make(parent, *, import_paths=(), extra=None, **settings):
        return child_environment(
            parent, RunnerSettings(**settings), **places, import_paths=import_paths, extra=extra or {}
        )

    return make


class TestWhatIsLetThrough:
    def test_the_list_is_let_through_and_nothing_else(self, child):
        listed = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "LC_TIME": "de", "TZ": "UTC", "VIRTUAL_ENV": "/v"}
        other = {"GIT_DIR": "x", "AWS_REGION": "x", "PYTEST_ADDOPTS": "-x", "LCX": "x", "LANGUAGE": "x", "CI": "1"}

        environment = child({**listed, **other})

        assert {name: environment[name] for name in listed} == listed
        assert set(environment) == set(listed) | PRIVATE

    def test_home_and_temporary_files_are_private(self, child, places):
        environment = child({"HOME": "/users/me", "TMPDIR": "/temporary", "XDG_CONFIG_HOME": "/users/me/.config"})

        assert environment["HOME"] == str(places["home"])
        assert {environment[name] for name in ("TMPDIR", "TEMP", "TMP")} == {str(places["temporary"])}
        for name in PRIVATE - {"TMPDIR", "TEMP", "TMP"}:
            assert environment[name].startswith(str(places["home"]))

    def test_names_and_beginnings_can_be_passed(self, child):
        parent = {"DJANGO_DEBUG": "1", "DJANGO": "x", "REGION": "eu", "REGIONAL": "x"}

        environment = child(parent, pass_environment=("DJANGO_*", "REGION", "ABSENT"))

        assert {name for name in environment if name not in PRIVATE} == {"DJANGO_DEBUG", "REGION"}

    def test_a_credential_is_passed_by_its_name_and_never_by_a_beginning(self, child):
        parent = {"AWS_REGION": "eu", "AWS_SECRET_ACCESS_KEY": "s", "AWS_PROFILE": "p", "API_TOKEN": "t"}

        by_beginning = child(parent, pass_environment=("AWS_*",))
        by_name = child(parent, pass_environment=("AWS_*", "API_TOKEN"))

        assert set(by_beginning) - PRIVATE == {"AWS_REGION"}
        assert set(by_name) - PRIVATE == {"AWS_REGION", "API_TOKEN"}

    def test_passing_does_not_give_up_the_private_directories_but_setting_them_does(self, child, places):
        parent = {"HOME": "/users/me", "XDG_CONFIG_HOME": "/users/me/.config", "XDG_OTHER": "1"}

        passed = child(parent, pass_environment=("HOME", "XDG_*"))
        configured = child(parent, set_environment={"HOME": "/users/tests"})

        assert passed["HOME"] == str(places["home"])
        assert passed["XDG_CONFIG_HOME"].startswith(str(places["home"]))
        assert passed["XDG_OTHER"] == "1"
        assert configured["HOME"] == "/users/tests"

    def test_configured_values_win_over_passed_ones_and_our_own_win_over_both(self, child):
        environment = child(
            {"A": "parent", "B": "parent"},
            pass_environment=("A", "B"),
            set_environment={"B": "configured", "C": "configured"},
            extra={"C": "ours"},
        )

        assert [environment[name] for name in "ABC"] == ["parent", "configured", "ours"]

    @pytest.mark.real
    def test_a_real_child_sees_exactly_this(self, child):
        environment = child({"PATH": os.environ["PATH"], "SECRET": "x"}, set_environment={"GREETING": "grüß\ngott"})
        program = "import os, json; print(json.dumps(dict(os.environ)))"

        shown = subprocess.run(
            [sys.executable, "-I", "-c", program], env=environment, capture_output=True, check=True, timeout=60
        ).stdout

        seen = json.loads(shown)
        # The interpreter itself may settle the encoding of a plain C locale.
        seen.pop("LC_CTYPE", None)
        assert seen == environment


class TestPythonPath:
    def test_entries_in_the_checkout_become_those_of_the_tree_and_lost_ones_go(self, child, places, tmp_path):
        (places["tree"] / "src").mkdir()
        for name in ("src", "only-in-checkout"):
            (places["checkout"] / name).mkdir()
        given = [
            str(places["checkout"] / "src"), str(places["checkout"] / "only-in-checkout"), "/opt/library",
            f"{places['checkout']}-other", str(places["checkout"]), "src", "../library",
        ]  # fmt: skip

        entries = child({"PYTHONPATH": os.pathsep.join(given)})["PYTHONPATH"].split(os.pathsep)

        assert entries == [
            str(places["tree"] / "src"), "/opt/library", f"{places['checkout']}-other", str(places["tree"]),
            str(places["checkout"] / "../library"),
        ]  # fmt: skip

    def test_a_link_into_the_checkout_is_recognised(self, child, places, tmp_path):
        (places["tree"] / "src").mkdir()
        (places["checkout"] / "src").mkdir()
        (tmp_path / "link").symlink_to(places["checkout"])

        assert child({"PYTHONPATH": f"{tmp_path}/link/src"})["PYTHONPATH"] == str(places["tree"] / "src")

    def test_an_empty_entry_is_the_tree_and_an_empty_variable_is_none(self, child, places):
        assert child({"PYTHONPATH": f"/opt{os.pathsep}"})["PYTHONPATH"] == f"/opt{os.pathsep}{places['tree']}"
        assert "PYTHONPATH" not in child({"PYTHONPATH": ""})

    def test_import_paths_come_first_in_their_order(self, child, places):
        environment = child({"PYTHONPATH": "/opt"}, import_paths=("src", "lib", "/plugin"))

        assert environment["PYTHONPATH"].split(os.pathsep) == [
            str(places["tree"] / "src"), str(places["tree"] / "lib"), "/plugin", "/opt",
        ]  # fmt: skip

    def test_a_configured_value_takes_the_place_of_the_inherited_one(self, child, places):
        (places["tree"] / "lib").mkdir()

        environment = child({"PYTHONPATH": "/opt"}, import_paths=("src",), set_environment={"PYTHONPATH": "lib"})

        assert environment["PYTHONPATH"].split(os.pathsep) == [
            str(places["tree"] / "src"), str(places["tree"] / "lib"),
        ]  # fmt: skip


class TestCredentials:
    @pytest.mark.parametrize(
        "name",
        [
            "API_KEY", "apikey", "GITHUB_TOKEN", "SECRET", "PGPASSWORD", "DB_PASSWD", "GOOGLE_APPLICATION_CREDENTIALS",
            "SESSION_COOKIE", "AWS_PROFILE", "TOKEN_FILE", "SIGNING_KEY_B64", "KEY_FILE_PATH", "PRIVATE_KEY_ID",
            "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "CREDENTIAL_JSON", "TOKEN_NAME_BASE64",
        ],
    )  # fmt: skip
    def test_these_names_are_of_credentials(self, name):
        assert is_credential(name)

    @pytest.mark.parametrize(
        "name", ["AWS_REGION", "KEYBOARD", "TOKENIZERS_PARALLELISM", "DATABASE_HOST", "USER_ID", "PROFILE_RATE", ""]
    )
    def test_these_are_not(self, name):
        assert not is_credential(name)

    @given(st.text(max_size=200))
    def test_any_name_followed_by_a_credential_word_is_one(self, beginning):
        assert is_credential(f"{beginning}_TOKEN")


class TestRecorded:
    def test_places_of_the_run_become_names_and_the_order_is_fixed(self, places):
        tree, home, temporary = places["tree"], places["home"], places["temporary"]
        child = {
            "PYTHONPATH": f"{tree}/src:/opt:{tree}-other:{tree}", "HOME": str(home), "TMPDIR": str(temporary),
            "LEDGER_TREE": str(tree), "API_TOKEN": "hush", "A": f"--root={tree} x{tree}",
        }  # fmt: skip

        recorded = recorded_environment(child, tree=tree, home=home, temporary=temporary)

        assert list(recorded.items()) == [
            ("A", f"--root={{tree}} x{tree}"), ("API_TOKEN", "(set)"), ("HOME", "{home}"),
            ("PYTHONPATH", f"{{tree}}/src:/opt:{tree}-other:{{tree}}"), ("TMPDIR", "{temporary}"),
        ]  # fmt: skip

    def test_two_runs_in_different_places_record_the_same(self, child, places, tmp_path):
        def recorded(name):
            here = {key: tmp_path / name / key for key in places}
            (here["tree"] / "src").mkdir(parents=True)
            environment = child_environment(
                {"PATH": "/bin"}, RunnerSettings(), **here, import_paths=("src",), extra={"LEDGER_TREE": name}
            )
            del here["checkout"]
            return recorded_environment(environment, **here)

        assert recorded("one") == recorded("two")


class TestHint:
    @pytest.mark.parametrize(
        "message",
        [
            "KeyError: 'DATABASE_URL'",
            'E   KeyError: "DATABASE_URL"',
            "assert os.environ['DATABASE_URL']",
            'os.environ.get("DATABASE_URL") is None',
            "os.getenv('DATABASE_URL')",
            "Set the DATABASE_URL environment variable.",
            "the 'DATABASE_URL' environment variable is not set",
            "missing environment variable: `DATABASE_URL`",
            "KeyError: 'name'\nduring handling: KeyError: 'DATABASE_URL'",
        ],
    )
    def test_a_variable_that_was_not_passed_is_named_with_the_setting_and_without_its_value(self, message):
        hint = missing_variable_hint(message, {"DATABASE_URL": "hush", "PATH": "/"}, {"PATH": "/"})

        assert 'pass_environment = ["DATABASE_URL"]' in hint
        assert "hush" not in hint

    @pytest.mark.parametrize(
        ("message", "parent", "child"),
        [
            ("KeyError: 'DATABASE_URL'", {}, {}),
            ("KeyError: 'DATABASE_URL'", {"DATABASE_URL": "x"}, {"DATABASE_URL": "x"}),
            ("KeyError: 'database_url'", {"DATABASE_URL": "x"}, {}),
            ("DATABASE_URL is wrong", {"DATABASE_URL": "x"}, {}),
            ("", {"DATABASE_URL": "x"}, {}),
        ],
    )
    def test_otherwise_there_is_no_hint(self, message, parent, child):
        assert missing_variable_hint(message, parent, child) is None

    @given(st.text(max_size=400))
    def test_no_message_breaks_it(self, message):
        assert missing_variable_hint(message, {}, {}) is None
