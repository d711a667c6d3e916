"""Attempts that are read from JUnit reports: what the reader of reports says, as the gate is told it."""

from typing import Any

from commands.readers.attempt import AttemptReading
from commands.readers.junit import Report
from commands.readers.junit_attempt import read_junit_attempt
from ledger.events import MissingTarget
from ledger.tables import Inventory, InventoryTarget
from tests.commands.generic.ends import ended

COMMIT = "c" * 40
A = '<testcase file="a.x" name="one" time="1"/>'
B = '<testcase file="b.x" name="two" time="3"/>'
FAILED = '<testcase file="b.x" name="two" time="3"><failure message="no"/></testcase>'
SKIPPED = '<testcase file="b.x" name="two"><skipped/></testcase>'


def read(*reports: str, code: int = 0, requested: tuple[str, ...] = ("a.x", "b.x"), **more: Any) -> AttemptReading:
    """Read reports with these cases, each a document of its own."""
    documents = [f"<testsuites><testsuite>{cases}</testsuite></testsuites>".encode() for cases in reports]
    inventory = Inventory(
        side="candidate",
        commit=COMMIT,
        targets=tuple(InventoryTarget(target=target, blob=None, cases=()) for target in requested),
    )
    end = ended(code, **more.pop("end", {}))
    return read_junit_attempt(
        [Report(f"report-{number}.xml", [document]) for number, document in enumerate(documents, 1)],
        end, side="candidate", commit=COMMIT, requested=requested, inventory=inventory, root="/tree", **more,
    )  # fmt: skip


def test_an_attempt_in_which_everything_passed_is_complete() -> None:
    reading = read(A + B)
    assert (reading.complete, reading.cause, reading.measured_targets, reading.missing) == (True, None, 2, ())
    assert (reading.counts, reading.attention, reading.failures) == ({"passed": 2}, (), ())
    assert reading.table.reader == "junit/1"


def test_reports_of_one_attempt_are_read_together() -> None:
    assert read(A, B).complete
    assert read(A, B[:-3]).cause == "report-malformed"


def test_a_failure_is_measured_and_asks_for_attention() -> None:
    reading = read(A + FAILED, code=1)
    assert (reading.complete, reading.attention) == (True, ("b.x",))
    assert [(line.test, line.line) for line in reading.failures] == [("b.x::two", "no")]


def test_a_target_that_only_skips_is_measured_for_now() -> None:
    reading = read(A + SKIPPED)
    assert (reading.complete, reading.attention) == (True, ("b.x",))


def test_targets_without_a_case_are_missing_and_the_others_stand() -> None:
    reading = read(A)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "target-missing", 1)
    assert reading.missing == (MissingTarget("b.x", "target-missing"),)
    assert reading.detail.startswith("b.x: ")


def test_every_target_of_a_run_that_died_is_named_so_that_each_can_be_run_alone() -> None:
    reading = read(A + B, code=-9)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "signalled", 0)
    assert reading.missing == (MissingTarget("a.x", "signalled"), MissingTarget("b.x", "signalled"))
    assert {row.cause for row in reading.table.targets} == {"signalled"}


def test_without_a_report_nothing_is_measured_whatever_the_exit_code() -> None:
    assert (read(code=0).cause, read(code=1).cause) == ("report-missing", "report-missing")


def test_absolute_paths_in_the_tree_are_targets_and_others_are_foreign() -> None:
    assert read(A.replace("a.x", "/tree/a.x"), requested=("a.x",)).complete
    assert read(A.replace("a.x", "/elsewhere/a.x"), requested=("a.x",)).cause == "foreign-tests"


def test_exit_codes_mean_what_the_settings_say() -> None:
    named = {"exit_codes": {"0": "passed", "3": "failed"}}
    assert read(A + FAILED, code=3, **named).complete
    assert read(A + FAILED, code=3, dialect="cargo-nextest", **named).cause != "exit-code-unexpected"
    assert read(A + B, code=3, **named).cause == "exit-contradicts-cases"
    assert read(A + FAILED, code=0, **named).cause == "exit-contradicts-cases"
    unknown = read(A + FAILED, code=1, **named)
    assert (unknown.cause, "the real exit code is 1" in unknown.detail) == ("exit-code-unexpected", True)
    assert read(A, code=-9, **named).cause == "signalled"


def test_times_come_from_the_reports_and_the_rest_is_the_sessions() -> None:
    usage = read(A + B).usage
    assert [(target, need.seconds) for target, need in sorted(usage.targets.items())] == [("a.x", 1.0), ("b.x", 3.0)]
    assert (usage.session_seconds, usage.session_memory_bytes) == (6.0, None)


def test_targets_that_ran_side_by_side_never_take_longer_together_than_the_attempt() -> None:
    usage = read(A + B, end={"duration_seconds": 2.0}).usage
    assert [need.seconds for _, need in sorted(usage.targets.items())] == [0.5, 1.5]
    assert usage.session_seconds == 0.0


def test_memory_is_that_of_a_target_alone_or_a_bound_for_all() -> None:
    memory = {"end": {"peak_memory_bytes": 7}}
    assert {need.memory_basis for need in read(A + B, **memory).usage.targets.values()} == {"upper-bound"}
    alone = read(A, requested=("a.x",), **memory).usage
    assert [(need.memory_bytes, need.memory_basis) for need in alone.targets.values()] == [(7, "alone")]
    assert {need.memory_basis for need in read(A + B).usage.targets.values()} == {"none"}


def test_a_memory_limit_tells_something_of_a_target_that_ran_alone_only() -> None:
    limit = {"end": {"end": "memory-limit", "peak_memory_bytes": 7}}
    alone = read(A, code=-9, requested=("a.x",), **limit).usage
    assert (alone.exceeded, alone.targets["a.x"].memory_basis) == (("a.x",), "at-least")
    assert read(A + B, code=-9, **limit).usage.exceeded == ()
