"""`ledger timing` and `ledger usage`, as a user types them."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from commands.cli.data.schemas import everything_described
from commands.cli.exits import ExitCode
from ledger.events import GatePolicy
from tests.commands.measures.conftest import Ask, history, write_run
from tests.support.ledgers import begin

DESCRIBED = {described.name: described for described in everything_described()}
Golden = Callable[[str, str], None]


def both_widths(ledger: Ask, *arguments: str | Path) -> str:
    answers = [ledger(*arguments, columns=columns) for columns in (100, 40)]
    assert {(answer.code, answer.err) for answer in answers} == {(ExitCode.PASSED, "")}
    return "\n".join(answer.out for answer in answers)


def test_the_timing_of_a_run_is_told(ledger: Ask, store: Path, golden: Golden) -> None:
    golden("cli/timing.txt", both_widths(ledger, "timing", "--store", store, "--target", "6m"))


def test_what_targets_need_is_told(ledger: Ask, store: Path, golden: Golden) -> None:
    golden("cli/usage.txt", both_widths(ledger, "usage", "--store", store))


@pytest.mark.parametrize("command", ["timing", "usage"])
def test_how_it_is_used_is_said(command: str, ledger: Ask, golden: Golden) -> None:
    golden(f"cli/help-{command}.txt", both_widths(ledger, command, "--help"))


@pytest.mark.parametrize("command", ["timing", "usage"])
def test_a_document_is_what_its_schema_says(command: str, ledger: Ask, store: Path) -> None:
    answer = ledger(command, "--store", store, "--json")
    assert answer.out.count("\n") == 1
    document = msgspec.json.decode(answer.out, type=DESCRIBED[command].type)
    assert json.loads(msgspec.json.encode(document)) == json.loads(answer.out)


def test_what_was_known_of_the_targets_at_a_moment_is_told(ledger: Ask, store: Path) -> None:
    now = json.loads(ledger("usage", "--store", store, "--json").out)
    assert json.loads(ledger("usage", "--store", store, "--json", "--at", f"@{now['sequence']}").out) == now
    newest = max(one["sequence"] for one in now["targets"])
    then = json.loads(ledger("usage", "--store", store, "--json", "--at", f"@{newest}").out)
    assert (then["sequence"], then["targets"]) == (newest, now["targets"])
    before = ledger("usage", "--store", store, "--at", f"@{newest - 1}")
    assert (before.code, before.error_code) == (ExitCode.UNMEASURED, "nothing-measured")
    nowhere = ledger("usage", "--store", store, "--at", "#3")
    assert (nowhere.code, nowhere.error_code) == (ExitCode.USAGE, "moment-unknown")


@pytest.mark.parametrize(
    ("arguments", "answer", "code"),
    [
        ((), "met", ExitCode.PASSED),
        (("--target", "302s"), "met", ExitCode.PASSED),
        (("--target", "5m"), "missed", ExitCode.FAILED),
        (("--target", "301.9s"), "missed", ExitCode.FAILED),
        (("--at", "#13", "--target", "1m"), "missed", ExitCode.FAILED),
        (("--at", "#13"), "undetermined", ExitCode.UNMEASURED),
    ],
)
def test_a_target_decides_the_exit_code(
    arguments: tuple[str, ...], answer: str, code: ExitCode, ledger: Ask, store: Path
) -> None:
    told = ledger("timing", "run-1", *arguments, "--store", store, "--json")
    assert (json.loads(told.out)["target"], told.code) == (answer, code)


@pytest.mark.parametrize("target", ["0", "-5", "soon", "1e999", ""])
def test_a_target_that_is_no_time_is_refused(target: str, ledger: Ask, store: Path) -> None:
    answer = ledger("timing", "--target", target, "--store", store)
    assert (answer.code, answer.error_code, answer.out) == (ExitCode.USAGE, "usage-invalid", "")


def test_without_a_target_there_is_no_answer_to_it(ledger: Ask, tmp_path: Path) -> None:
    with begin(tmp_path / "store") as writer:
        write_run(writer, "run-1", history(None, GatePolicy()))
    answer = ledger("timing", "--store", tmp_path / "store", "--json")
    assert (answer.code, json.loads(answer.out)["target"]) == (ExitCode.PASSED, None)


def test_where_nothing_is_measured_there_is_nothing_to_tell(ledger: Ask, tmp_path: Path) -> None:
    with begin(tmp_path / "store") as writer:
        write_run(writer, "run-1", history(None, GatePolicy())[:3])
    for command, code in (("timing", "timing-missing"), ("usage", "nothing-measured")):
        answer = ledger(command, "--store", tmp_path / "store")
        assert (answer.code, answer.error_code, answer.out) == (ExitCode.UNMEASURED, code, "")
        assert answer.err.count("\n") == 2, "the error and what to do"
        assert ledger("explain", code).code == ExitCode.PASSED


def test_as_many_targets_are_told_as_are_asked_for(ledger: Ask, store: Path) -> None:
    for top, told in (("1", 1), ("3", 3), ("0", 5), ("99", 5)):
        document = json.loads(ledger("usage", "--top", top, "--store", store, "--json").out)
        assert (len(document["targets"]), document["known"]) == (told, 5)
    assert ledger("usage", "--top", "-1", "--store", store).code == ExitCode.USAGE


@pytest.mark.parametrize(
    "reason", ["not-planned-yet", "planned-by-count", "longer-than-planned", "run-unfinished", "duration-unknown"]
)
def test_every_reason_is_explained(reason: str, ledger: Ask) -> None:
    assert ledger("explain", reason).out.startswith(reason)
