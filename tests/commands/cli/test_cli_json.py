"""`--json`: exactly one document on standard output, or one a line; what is for people goes to standard error."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import CALC, SETTINGS, TESTS, Ask, Histories
from tests.support.cli import Answer, Project

pytestmark = pytest.mark.real


def document(answer: Answer) -> Any:
    """The one document that was printed, on the one line."""
    assert answer.out.count("\n") == 1, answer.out
    return json.loads(answer.out)


@pytest.mark.parametrize(
    ("name", "command", "keys"),
    [
        ("failed", "status", {"run", "state", "verdict", "counts", "blocking", "owed", "progress", "next_command"}),
        ("interrupted", "status", {"run", "state", "driver"}),
        ("failed", "why test_zero", {"test", "case_class", "rule", "attempts"}),
        ("unmeasured", "why collection/candidate", {"test", "cause", "attempts"}),
        ("interrupted", "resume --from gate --dry-run", {"run", "owed", "in_flight", "nothing_to_do"}),
        ("passed", "resume --from gate", {"run", "state", "verdict"}),
        ("interrupted", "stop", {"run", "state"}),
        ("passed", "config", {"settings", "store"}),
        ("passed", "explain", {"codes"}),
        ("passed", "explain signalled", {"codes"}),
    ],
)
def test_an_answer_is_one_document(name: str, command: str, keys: set[str], history: Histories, ask: Ask) -> None:
    project, _ = history(name)
    answer = ask(project, *command.split(), "--json")
    assert answer.code == ExitCode.PASSED
    assert keys <= set(document(answer))
    assert answer.err in ("", "nothing is owed; the verdict stands\n")


def test_a_gate_answers_with_its_summary_and_tells_people_what_it_does(tmp_path: Path) -> None:
    project = Project.make(tmp_path, CALC | TESTS | SETTINGS, {"README.txt": "Adds.\n"})
    gate = project.ledger("gate", "--json")
    assert (gate.code, document(gate)["verdict"]) == (ExitCode.PASSED, "passed")
    assert "[4/4] shard-1/" in gate.err
    status = document(project.ledger("status", "--json"))
    assert {key for key in status if status[key] != document(gate)[key]} <= {"driver"}


def test_a_repository_that_is_set_up_is_told_in_one_document(tmp_path: Path, ask: Ask) -> None:
    project = Project.make(tmp_path, CALC | TESTS)
    assert document(ask(project, "init", "--json")) == {
        "file": str(project.path / "ledger.toml"),
        "runner": "pytest",
        "reason": "there is tests/test_calc.py",
    }


def test_a_log_is_one_document_a_line_in_the_order_of_the_stream(history: Histories, ask: Ask) -> None:
    project, _ = history("failed")
    answer = ask(project, "log", "--json")
    documents = [json.loads(line) for line in answer.out.splitlines()]
    assert [one["header"]["position"] for one in documents] == list(range(1, len(documents) + 1))
    assert [one["header"]["tag"] for one in documents] == [
        line.split()[5] for line in ask(project, "log").out.splitlines()
    ]
    assert all(set(one) == {"sequence", "header", "digest", "event"} for one in documents)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "no-such-run"], "run-unknown"),
        (["gate", "no-such-ref"], "ref-unknown"),
        (["gate", "--nonsense"], "usage-invalid"),
        (["why", "no_such_test"], "test-unknown"),
        (["resume", "--from", "no-such-step"], "step-unknown"),
        (["init"], "already-initialized"),
        (["explain", "no-such-code"], "code-unknown"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_an_error_is_one_document_too(arguments: list[str], code: str, history: Histories, ask: Ask) -> None:
    project, _ = history("passed")
    answer = ask(project, *arguments, "--json")
    error = json.loads(answer.out)["error"]
    assert (error["code"], answer.error_code) == (code, code)
    assert error["message"]
    assert error["hint"]
    assert error["message"] in answer.err
