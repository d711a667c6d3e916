"""The settings of the command runner: what they may hold, and what goes together."""

from pathlib import Path

import msgspec
import pytest

from commands.config.load import load_settings
from commands.config.settings import CommandSettings, RunnerSettings, decode_runner
from commands.config.sources import ConfigInvalid
from commands.config.template import template
from commands.runners.detect import recognised
from ledger.errors import EvidenceDamaged
from ledger.tables import encode_document

COMMAND = 'runner = "command"\ncommand = ["run", "{targets}"]\n'
LEAST = f'[runner]\n{COMMAND}targets = ["*.js"]\n'


def load(tmp_path: Path, text: str) -> RunnerSettings:
    """The settings of the runner from this text alone."""
    (tmp_path / "ledger.toml").write_text(text, "utf-8")
    return load_settings(tmp_path, {}, environment={}, user_directory=tmp_path / "nowhere").settings.runner


def test_every_key_is_read(tmp_path: Path) -> None:
    text = f"""
        [runner]
        {COMMAND}
        list = ["show"]
        report = "reports/*.xml"
        dialect = "surefire"
        profile = "surefire-reruns/1"
        exit_codes = {{ 0 = "passed", 3 = "failed" }}
        version = ["run", "-v"]
        links = {{ "a/b" = "{{cache}}/b" }}
        prepare = [["get"]]
        lock = ["lock"]
        import_paths = ["src"]
        pass_environment = ["CI"]
        set_environment = {{ A = "{{report}}" }}
    """
    assert load(tmp_path, text) == CommandSettings(
        command=("run", "{targets}"), list=("show",), report="reports/*.xml", dialect="surefire",
        profile="surefire-reruns/1", exit_codes={"0": "passed", "3": "failed"}, version=("run", "-v"),
        links={"a/b": "{cache}/b"}, prepare=(("get",),), lock=("lock",), import_paths=("src",),
        pass_environment=("CI",), set_environment={"A": "{report}"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[runner]\nrunner = "command"\ntargets = ["*"]\n',
            'file ledger.toml:2: runner = "command" needs `runner.comm',
        ),
        (f"[runner]\n{COMMAND}", "needs either `runner.targets` or `runner.list`"),
        (LEAST + 'list = ["show"]\n', 'file ledger.toml:5: runner = "command" needs either'),
        (LEAST + 'python = "python3"\n', 'file ledger.toml:5: `runner.python` is not a key of runner = "command"'),
        (LEAST + 'arguments = ["-x"]\n', "`runner.arguments` is not a key"),
        ('[runner]\ndialect = "bun"\n', '`runner.dialect` is not a key of runner = "pytest"'),
        (
            LEAST + 'report = "a"\nreport_in_tree = "b"\n',
            "`runner.report` and `runner.report_in_tree` exclude each other",
        ),
        (LEAST + 'report_in_tree = "b"\n[gate]\nparallel = 2\n', "file ledger.toml:7: `gate.parallel` has to be 1"),
        (LEAST + '[gate]\nbaseline = "on-failure"\n', 'file ledger.toml:6: `gate.baseline` has to be "always"'),
        (LEAST + 'dialect = "klingon"\n', "`runner.dialect` is 'klingon'; allowed: the name of a dialect"),
        (LEAST + 'profile = "none/1"\n', "`runner.profile` is 'none/1'"),
        (LEAST + 'exit_codes = { 0 = "perhaps" }\n', "`runner.exit_codes` is a table"),
        (LEAST + 'exit_codes = { 256 = "failed" }\n', "`runner.exit_codes` is a table"),
        (LEAST + 'exit_codes = { x = "failed" }\n', "`runner.exit_codes` is a table"),
        (LEAST + 'links = { "../x" = "y" }\n', "`runner.links` is a table"),
        (LEAST + 'links = { x = "" }\n', "`runner.links` is a table"),
        (LEAST + 'report = "/tmp/*.xml"\n', "`runner.report` is '/tmp/*.xml'"),
        (LEAST + 'report = "../*.xml"\n', "`runner.report` is '../*.xml'"),
        (LEAST + 'report = "a**.xml"\n', "`runner.report` is 'a**.xml'"),
        (LEAST + 'report_in_tree = "a/../../b"\n', "`runner.report_in_tree` is"),
        (LEAST + 'version = [""]\n', "`runner.version` is"),
        (LEAST.replace('["*.js"]', '["../*.js"]'), "`runner.targets` is"),
        (LEAST.replace('"{targets}"]', '"x"]'), "`runner.command` is"),
        (LEAST.replace('"{targets}"]', '"{targets}", "{targets}"]'), "`runner.command` is"),
        (LEAST.replace('"run", "{targets}"]', '"{targets}"]'), "`runner.command` is"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load(tmp_path, text)
    assert told in refused.value.message


@pytest.mark.parametrize("settings", [RunnerSettings(), CommandSettings(command=("run", "{targets}"), version=("v",))])
def test_the_settings_of_a_run_are_found_again_in_its_evidence(settings: RunnerSettings) -> None:
    assert decode_runner(encode_document(settings)) == settings


def test_settings_of_a_runner_that_nobody_knows_are_damaged_evidence() -> None:
    with pytest.raises(EvidenceDamaged):
        decode_runner(msgspec.json.encode({"runner": "magic"}))


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"package.json": '{"devDependencies": {"vitest": "3"}}', "go.mod": ""}, "vitest"),
        ({"package.json": '{"dependencies": {"vitest": "3"}}', "package-lock.json": ""}, "vitest"),
        ({"package.json": '{"dependencies": {"left-pad": "1"}}', "bun.lock": ""}, "bun"),
        ({"bun.lockb": ""}, "bun"),
        ({"go.mod": "", "go.sum": ""}, "gotestsum"),
        ({"go.mod": "", "pytest.ini": ""}, "pytest"),
        ({"package.json": "[1]"}, ""),
        ({"package.json": '{"devDependencies": ["vitest"]}'}, ""),
        ({"package.json": "{"}, ""),
        ({}, ""),
    ],
)
def test_a_runner_is_recognised_by_its_files_and_what_init_writes_is_its_settings(
    tmp_path: Path, files: dict[str, str], name: str
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    found = recognised(tmp_path)
    assert (found.name if found else "") == name
    if found:
        assert load(tmp_path, template(found.settings, "demo", [found.reason])) == found.settings


def test_only_the_keys_of_the_runner_are_written() -> None:
    written = template(CommandSettings(command=("run", "{targets}"), targets=("*.js",)), "demo", [])
    assert ("# report = " in written, "python = " in written) == (True, False)
    assert "command = " not in template(RunnerSettings(), "demo", [])
