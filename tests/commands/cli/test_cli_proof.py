"""`ledger verify` and `ledger recover` on ledgers of real gates: every finding, the head to note, and the way back."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from ledger.proof import chain
from tests.commands.cli.conftest import (
    CALC,
    SETTINGS,
    TESTS,
    Ask,
    Histories,
    both_sides_run,
    let_go_on,
    waiting_project,
)
from tests.ledger.attack.ledgers import rows, run_sql
from tests.support.cli import Answer, Project

pytestmark = pytest.mark.real


@pytest.fixture
def passed(history: Histories, tmp_path: Path) -> Project:
    """A copy of a project whose gate has passed."""
    project, _ = history("passed")
    shutil.copytree(project.root, tmp_path / "copy", symlinks=True)
    return Project(tmp_path / "copy")


def head_of(answer: Answer) -> str:
    """The head that a verification prints for people to note."""
    (line,) = [line for line in answer.out.splitlines() if line.startswith("head @")]
    return line.removeprefix("head ")


def change(project: Project, tag: str) -> int:
    """Change the first event with this tag around the writer, and return its sequence."""
    ledger = project.store / "ledger.sqlite"
    sequence = next(number for number, row in rows(ledger).items() if row[3] == tag)
    run_sql(ledger, f"UPDATE events SET payload = payload || ' ' WHERE sequence = {sequence}")
    return sequence


def test_the_ledger_of_a_gate_is_whole_and_its_head_can_be_noted(history: Histories, ask: Ask) -> None:
    for name in ("passed", "failed"):
        project, _ = history(name)
        answer = ask(project, "verify")
        assert (answer.code, answer.err) == (ExitCode.PASSED, "")
        assert answer.out.startswith("whole: ")
        again = ask(project, "verify", "--head", head_of(answer))
        assert (again.code, again.out) == (ExitCode.PASSED, answer.out)


def test_the_document_has_the_same_head_and_counts_everything(history: Histories, ask: Ask) -> None:
    project, _ = history("failed")
    document = json.loads(ask(project, "verify", "--json").out)
    assert (document["sound"], document["findings"], document["counts"]) == (True, [], {})
    assert document["head"] == head_of(ask(project, "verify"))
    assert document["events"] == int(document["head"].partition(":")[0].removeprefix("@"))
    assert document["evidence"] > 10
    assert json.loads(ask(project, "verify", "--no-evidence", "--json").out)["evidence"] is None


def test_a_head_that_the_ledger_does_not_hold_is_a_finding(history: Histories, ask: Ask) -> None:
    project, _ = history("passed")
    for head, code in (("@2:" + "0" * 64, "head-differs"), ("@9999:" + "0" * 64, "head-missing")):
        answer = ask(project, "verify", "--head", head)
        assert answer.code == ExitCode.INTEGRITY
        assert answer.out.startswith(code)
        assert "`ledger recover` cannot" in answer.out
    for head in ("9999", "@1:xyz", "@:", ""):
        answer = ask(project, "verify", "--head", head)
        assert (answer.code, answer.error_code) == (ExitCode.USAGE, "head-malformed")


def test_every_finding_is_told_and_the_exit_code_says_so(passed: Project, ask: Ask) -> None:
    sequences = [change(passed, tag) for tag in ("run-started", "planned", "verdict-decided")]
    answer = ask(passed, "verify")
    assert (answer.code, answer.err) == (ExitCode.INTEGRITY, "")
    told = [line for line in answer.out.splitlines() if line.startswith("event-changed")]
    assert [int(line.partition("@")[2].split()[0]) for line in told] == sequences
    assert "damaged: 3 findings" in answer.out
    assert "ledger recover" in answer.out
    assert "head @" not in answer.out
    document = json.loads(ask(passed, "verify", "--json").out)
    assert [finding["sequence"] for finding in document["findings"]] == sequences
    assert document["counts"] == {"event-changed": 3}


def test_on_a_terminal_a_line_says_how_far_it_is_and_goes_away(
    passed: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(passed, "planned")
    quiet = ask(passed, "verify")
    monkeypatch.setattr(chain, "PROGRESS_EVENTS", 5)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    answer = ask(passed, "verify")
    assert (answer.code, answer.out) == (quiet.code, quiet.out)
    assert answer.err.startswith("\rverified 5 events\r")
    assert answer.err.endswith("\r\x1b[K")


def test_damaged_evidence_is_told_with_the_event_that_names_it(passed: Project, ask: Ask) -> None:
    for path in list((passed.store / "evidence").rglob("*.gz"))[:2]:
        path.write_bytes(b"damaged")
    answer = ask(passed, "verify")
    assert answer.code == ExitCode.INTEGRITY
    told = [line for line in answer.out.splitlines() if line.startswith("evidence-altered")]
    assert len(told) == 2
    assert all(", named by @" in line for line in told)
    assert ask(passed, "verify", "--no-evidence").code == ExitCode.PASSED
    recovering = ask(passed, "recover")
    assert (recovering.code, recovering.error_code) == (ExitCode.REFUSED, "nothing-to-recover")


@pytest.mark.slow
def test_a_damaged_gate_is_recovered_and_resumed_to_the_same_verdict(passed: Project, ask: Ask) -> None:
    damaged = change(passed, "planned")
    before = (passed.store / "ledger.sqlite").read_bytes()
    assert ask(passed, "status").error_code == "ledger-damaged"
    answer = ask(passed, "recover")
    assert answer.code == ExitCode.PASSED
    assert f"every event up to @{damaged - 1}" in answer.out
    assert "ledger resume --from gate" in answer.out
    (moved,) = (passed.store / "quarantine").glob("*/ledger.sqlite")
    assert moved.read_bytes() == before
    assert ask(passed, "verify").code == ExitCode.PASSED
    resumed = passed.ledger("resume", "--from", "gate", "--json")
    assert (resumed.code, json.loads(resumed.out)["verdict"]) == (ExitCode.PASSED, "passed")
    assert ask(passed, "verify").code == ExitCode.PASSED
    log = ask(passed, "query", "events", "--where", "tag=quarantined", "--format", "json")
    assert log.code == ExitCode.PASSED


def test_a_whole_ledger_is_not_recovered(passed: Project, ask: Ask) -> None:
    before = (passed.store / "ledger.sqlite").read_bytes()
    answer = ask(passed, "recover", "--json")
    assert answer.code == ExitCode.REFUSED
    assert json.loads(answer.out)["error"]["code"] == "nothing-to-recover"
    assert (passed.store / "ledger.sqlite").read_bytes() == before


def test_nothing_is_written_while_a_recovery_is_unfinished(passed: Project, ask: Ask) -> None:
    (passed.store / "recovering.json").write_text("{}")
    for command in ("gate", "resume --from gate"):
        answer = ask(passed, *command.split())
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "recovery-unfinished")
    assert ask(passed, "verify").out.startswith("recovery-begun")


@pytest.mark.slow
def test_a_ledger_is_not_recovered_while_somebody_works_on_it(tmp_path: Path, ask: Ask) -> None:
    project = waiting_project(tmp_path)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        answer = ask(project, "recover")
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "lock-held")
        assert ask(project, "verify").code == ExitCode.PASSED
        let_go_on(project)
        gate.end()


def test_where_there_is_no_ledger_there_is_nothing_to_prove(tmp_path: Path, ask: Ask) -> None:
    project = Project.make(tmp_path, CALC | TESTS | SETTINGS)
    for command in ("verify", "recover"):
        answer = ask(project, command)
        assert (answer.code, answer.error_code) == (ExitCode.USAGE, "ledger-missing")
    assert not project.store.exists()


def test_a_copy_is_verified_where_there_is_no_repository(passed: Project, tmp_path: Path, ask: Ask) -> None:
    copy = passed.copy_store(tmp_path / "elsewhere" / "ledger")
    answer = ask(passed, "verify", "--store", str(copy), directory=copy.parent)
    assert (answer.code, answer.out) == (ExitCode.PASSED, ask(passed, "verify").out)
