"""Every key of the configuration has a meaning, and the file that `ledger init` writes has every key."""

import re
import tomllib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from commands.config.keys import RULES, TABLES
from commands.config.load import usable_processors
from commands.config.settings import (
    CommandSettings,
    MuteSettings,
    NotifySettings,
    ReleaseSettings,
    RunnerSettings,
    Settings,
)
from commands.config.template import template
from commands.config.together import foreign_keys
from ledger.events import GatePolicy, MachinePolicy, PlanPolicy, QuestionPolicy

DEFAULTS = Settings(gate=GatePolicy(parallel=usable_processors(), rerun="on"))

OF_COMMAND = foreign_keys(RunnerSettings())


class TestKeys:
    def test_every_setting_is_a_key_with_a_meaning_and_every_key_is_a_setting(self):
        top = {field.name for field in msgspec.structs.fields(Settings)} - set(TABLES)
        kinds = {
            "gate": GatePolicy, "plan": PlanPolicy, "machine": MachinePolicy, "mutes": MuteSettings,
            "questions": QuestionPolicy, "notify": NotifySettings, "release": ReleaseSettings,
            "runner": CommandSettings,
        }  # fmt: skip
        inner = {f"{table}.{field.name}" for table in TABLES for field in msgspec.structs.fields(kinds[table])}

        # Two are tables of their own, which a run keeps as part of its policy, and one is the program's own version.
        assert set(RULES) == top | inner - {"gate.plan", "gate.machine", "gate.retry"}
        assert all(rule.meaning.endswith(".") and rule.allowed for rule in RULES.values())

    def test_the_value_of_every_key_can_be_asked_for(self, load):
        loaded = load({"gate.rounds": 7, "project": "demo"})

        assert {key: loaded.value(key) for key in RULES}["gate.rounds"] == 7
        assert loaded.value("project") == "demo"
        assert loaded.value("runner.python") == ""


class TestTemplate:
    def test_what_init_writes_loads_and_changes_nothing_but_the_name(self, load, write):
        write(template(RunnerSettings(), "demo", ["pytest.ini is there"]))

        loaded = load()

        assert loaded.settings == msgspec.structs.replace(DEFAULTS, project="demo")
        assert loaded.origin("runner.runner").startswith("file ledger.toml:")
        assert loaded.origin("gate.rounds") == "default"

    def test_what_is_commented_out_is_every_key_with_its_default(self, load, write):
        text = re.sub(r"^# (\w+ = )", r"\1", template(RunnerSettings(), "", []), flags=re.MULTILINE)
        write(text)

        loaded = load()

        assert loaded.settings == Settings()
        assert all(loaded.origin(key).startswith("file ledger.toml:") for key in RULES if key not in OF_COMMAND)

    def test_every_key_is_explained_and_the_lines_are_short(self):
        text = template(RunnerSettings(), "demo", ["why"])

        unwrapped = text.replace("\n# ", " ")
        rules = [rule for key, rule in RULES.items() if key not in OF_COMMAND]
        assert all(rule.meaning in unwrapped and rule.allowed in unwrapped for rule in rules)
        assert max(map(len, text.splitlines())) <= 100
        assert "# why\n" in text

    @given(st.text(max_size=40), st.text(max_size=40))
    def test_no_name_and_no_reason_breaks_the_file(self, name, reason):
        document = tomllib.loads(template(RunnerSettings(), name, [reason]))

        assert document["runner"] == {"runner": "pytest"}
        assert all(kept == "?" or kept == given for kept, given in zip(document["project"], name, strict=True))
