"""Each exit code is a promise: at least one real way to each of those that a gate can end with."""

import ast
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from commands.cli import show
from commands.cli.exits import MEANING, ExitCode
from commands.wiring import LEDGER_FILE
from tests.commands.cli.conftest import CALC, SETTINGS, TESTS, Ask, Histories
from tests.rules.sources import PRODUCT_ROOMS, python_sources
from tests.support.cli import Project

pytestmark = pytest.mark.real


@pytest.fixture
def copied(history: Histories, tmp_path: Path) -> Path:
    """A copy of the ledger of the gate that failed, to be damaged; `--store` leads to it."""
    project, _ = history("failed")
    return project.copy_store(tmp_path / "copy")


def change(store: Path, statement: str) -> None:
    """Change a ledger's file behind the program's back."""
    connection = sqlite3.connect(store / LEDGER_FILE)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("passed", ExitCode.PASSED),
        ("failed", ExitCode.FAILED),
        ("unmeasured", ExitCode.UNMEASURED),
        ("empty", ExitCode.UNMEASURED),
        ("stopped", ExitCode.INTERRUPTED),
    ],
)
def test_a_gate_ends_with_the_code_of_its_verdict(name: str, code: ExitCode, history: Histories) -> None:
    _, answer = history(name)
    assert answer.code == code


@pytest.mark.parametrize("name", ["passed", "failed", "unmeasured", "empty", "stopped", "interrupted"])
def test_looking_at_a_run_is_no_failure_whatever_became_of_it(name: str, history: Histories, ask: Ask) -> None:
    project, _ = history(name)
    assert ask(project, "status").code == ExitCode.PASSED
    assert ask(project, "log").code == ExitCode.PASSED


def test_resuming_a_run_that_owes_nothing_answers_with_its_verdict(history: Histories, ask: Ask) -> None:
    project, _ = history("passed")
    answer = ask(project, "resume", "--from", "gate", "--json")
    assert answer.code == ExitCode.PASSED
    assert json.loads(answer.out)["resumes"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["gate", "--nonsense"],
        ["gate", "one", "two"],
        ["resume"],
        ["why"],
        ["gate", "no-such-ref"],
        ["gate", "--baseline", "no-such-ref"],
        ["status", "no-such-run"],
        ["why", "no_such_test"],
        ["why", "test_"],
        ["status", "--store", "no-such-directory"],
        ["explain", "no-such-code"],
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_understood_ends_with_two(arguments: list[str], history: Histories, ask: Ask) -> None:
    project, _ = history("passed")
    answer = ask(project, *arguments)
    assert (answer.code, answer.out) == (ExitCode.USAGE, "")
    assert answer.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["gate", "--baseline", "HEAD"], "equal-commits"),
        (["resume", "--from", "no-such-step"], "step-unknown"),
        (["resume", "--from", "no-such-step", "--dry-run"], "step-unknown"),
        (["init"], "already-initialized"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_rule_that_says_no_ends_with_four(arguments: list[str], error: str, history: Histories, ask: Ask) -> None:
    project, _ = history("passed")
    before = (project.store / LEDGER_FILE).read_bytes()
    answer = ask(project, *arguments)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, error)
    assert (project.store / LEDGER_FILE).read_bytes() == before


def test_the_ledger_of_another_project_is_refused(history: Histories, copied: Path, ask: Ask) -> None:
    project, _ = history("passed")
    answer = ask(project, "gate", "--store", str(copied))
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "ledger-foreign")
    assert "'project'" in answer.err
    assert str(copied) in answer.err


def test_a_ledger_of_a_newer_format_can_be_read_and_is_not_written(history: Histories, copied: Path, ask: Ask) -> None:
    project, _ = history("failed")
    change(copied, "PRAGMA user_version = 99")
    assert ask(project, "status", "--store", str(copied)).code == ExitCode.PASSED
    answer = ask(project, "gate", "--store", str(copied))
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "ledger-newer")
    assert "99" in answer.err


def test_a_flipped_byte_ends_with_seven_and_names_the_place(history: Histories, copied: Path, ask: Ask) -> None:
    project, _ = history("failed")
    change(copied, "UPDATE events SET payload = replace(payload, 'HEAD', 'HEAP') WHERE tag = 'run-started'")
    for command in (["status"], ["log"], ["why", "x"], ["stop"], ["resume", "--from", "gate"]):
        answer = ask(project, *command, "--store", str(copied))
        assert (answer.code, answer.error_code) == (ExitCode.INTEGRITY, "ledger-damaged"), command
        assert "#1 @2" in answer.err


def test_a_log_shows_what_is_sound_before_the_damage(history: Histories, copied: Path, ask: Ask) -> None:
    project, _ = history("failed")
    change(copied, "UPDATE events SET payload = replace(payload, 'gate', 'gat3') WHERE tag = 'step-started'")
    answer = ask(project, "log", "--store", str(copied))
    assert answer.code == ExitCode.INTEGRITY
    assert [line.split()[5] for line in answer.out.splitlines()] == ["run-started", "driver-started"]


def test_a_file_that_is_no_ledger_ends_with_seven(history: Histories, copied: Path, ask: Ask) -> None:
    project, _ = history("failed")
    (copied / LEDGER_FILE).write_bytes(b"no database at all" * 100)
    answer = ask(project, "status", "--store", str(copied))
    assert (answer.code, answer.error_code) == (ExitCode.INTEGRITY, "ledger-damaged")


@pytest.mark.parametrize("harm", ["altered", "cut", "gone"])
def test_damaged_evidence_ends_with_seven_and_names_the_file(
    harm: str, history: Histories, copied: Path, ask: Ask
) -> None:
    project, _ = history("failed")
    connection = sqlite3.connect(copied / LEDGER_FILE)
    (payload,) = connection.execute("SELECT payload FROM events WHERE tag = 'verdict-decided'").fetchone()
    connection.close()
    digest = json.loads(payload)["classes"]
    file = copied / "evidence" / digest[:2] / f"{digest}.gz"
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:-12] if harm == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    answer = ask(project, "why", "test_zero", "--store", str(copied))
    assert (answer.code, answer.error_code) == (ExitCode.INTEGRITY, "evidence-damaged")
    assert digest in answer.err
    assert ask(project, "status", "--store", str(copied)).code == ExitCode.PASSED


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_bug_leaves_a_report_and_no_traceback_on_the_screen(
    as_json: bool, history: Histories, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project, _ = history("passed")

    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(show, "emit_json" if as_json else "summary_lines", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = ask(project, "status", *(["--json"] if as_json else []))
    assert (answer.code, answer.error_code) == (ExitCode.BUG, "bug")
    (report,) = tmp_path.glob("ledger-crash-*.txt")
    assert str(report) in answer.err
    assert "Traceback" not in answer.err + answer.out
    assert "RuntimeError: planted" in report.read_text("utf-8")
    assert "$ ledger status" in report.read_text("utf-8")
    assert not as_json or json.loads(answer.out)["error"]["code"] == "bug"


def test_a_bug_on_a_full_disk_is_told_in_full(
    history: Histories, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project, _ = history("passed")
    monkeypatch.setattr(show, "summary_lines", None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    answer = ask(project, "status")
    assert answer.code == ExitCode.BUG
    assert "TypeError" in answer.err


def test_an_error_of_the_machine_is_no_bug(history: Histories, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    project, _ = history("passed")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/some/file")

    monkeypatch.setattr(show, "summary_lines", full)
    answer = ask(project, "status")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "system-refused")
    assert "/some/file" in answer.err


def test_every_exit_code_has_a_meaning_in_the_help(ask: Ask, tmp_path: Path) -> None:
    tmp_path.joinpath("project").mkdir()
    answer = ask(Project(tmp_path), "--help")
    assert set(MEANING) == set(ExitCode)
    assert [line for line in MEANING.values() if line not in answer.out] == []


def test_a_project_without_a_commit_to_compare_with_is_told_so(tmp_path: Path, ask: Ask) -> None:
    project = Project.make(tmp_path, CALC | TESTS | SETTINGS)
    answer = ask(project, "gate")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "no-baseline")
    assert not project.store.exists()


def test_every_code_of_an_error_or_a_refusal_is_explained(ask: Ask, tmp_path: Path) -> None:
    tmp_path.joinpath("project").mkdir()
    explained = {one["code"] for one in json.loads(ask(Project(tmp_path), "explain", "--json").out)["codes"]}
    used = {code for source in python_sources(*PRODUCT_ROOMS) for code in codes_in(source.tree)}
    assert {"equal-commits", "run-unknown", "evidence-damaged"} <= used
    assert used - explained == set()


def codes_in(tree: ast.AST) -> set[str]:
    """The codes that classes of errors have and that refusals are raised with."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                found.add(code)
            case ast.Call(func=ast.Name(id="Refusal"), args=[ast.Constant(value=str(code)), *_]):
                found.add(code)
    return found


def test_settings_that_cannot_be_used_keep_nobody_from_reading_and_from_stopping(
    history: Histories, ask: Ask, tmp_path: Path
) -> None:
    project, _ = history("failed")
    copy = Project(tmp_path, "copy")
    shutil.copytree(project.path, copy.path)
    whole = {command: ask(copy, *command) for command in READING}
    copy.write({"ledger.toml": "this is [ no TOML"})
    for command, before in whole.items():
        answer = ask(copy, *command)
        assert (answer.code, answer.out) == (before.code, before.out), command
        assert "the settings are not used: file ledger.toml:1" in answer.err
    for command in (("gate",), ("replay", "--policy", "current"), ("config",), ("resume", "--from", "gate")):
        assert ask(copy, *command).error_code == "config-invalid"


READING = (
    ("status", "--json"), ("log", "--json"), ("show", "--json"), ("verify", "--json"), ("replay", "--json"),
    ("query", "classes", "--json"), ("report", "--format", "jsonl"), ("release", "list", "--json"),
)  # fmt: skip
