"""The reader of pytest records against made-up records: every exit, every way to end, what counts as measured."""

from itertools import product
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from commands.causes import CAUSES
from commands.executors.api import End
from commands.readers.pytest_lines import READER, read_collection
from commands.readers.pytest_record import Phase, row_of
from ledger.tables import CaseTable, Inventory, InventoryTarget, decode_document, encode_document
from ledger.values import TestId
from tests.commands.runners.records import (
    FAILED,
    PASSED,
    A,
    B,
    Record,
    controller,
    distributed,
    read,
    whole_session,
)
from tests.commands.runners.sessions import COMMIT, ended, outcomes, unmeasured


def test_a_whole_session_is_complete_and_its_table_is_sorted_and_can_be_stored() -> None:
    reading = read(whole_session(), 1, "b.py", "a.py")
    assert (reading.complete, reading.cause, reading.detail, reading.missing) == (True, None, "", ())
    assert reading.measured_targets == 2
    assert reading.attention == ("b.py",)
    assert reading.counts == {"failed": 1, "passed": 1}
    assert [(line.test, line.line) for line in reading.failures] == [(B.text(), "the line")]
    table = reading.table
    assert (table.reader, table.side, table.commit) == (READER, "candidate", COMMIT)
    assert [row.target for row in table.targets] == ["a.py", "b.py"]
    assert [row.test for row in table.cases] == [A, B]
    assert [round(row.duration_seconds, 3) for row in table.targets] == [0.6, 0.6]
    assert decode_document(encode_document(table), CaseTable) == table


# The exit map as a table of another shape: exit code and how far the session came give the reason code.
# Columns: everything passed; something failed; the loop broke off after the first target; it broke off after a failure.
EXIT_MAP = """
code  passed                  failed                  cut-short              cut-short-failed
0     complete                exit-contradicts-cases  session-ended-early    exit-contradicts-cases
1     exit-contradicts-cases  complete                session-ended-early    session-ended-early
2     interrupted             interrupted             interrupted            interrupted
3     runner-internal-error   runner-internal-error   runner-internal-error  runner-internal-error
4     runner-usage-error      runner-usage-error      runner-usage-error     runner-usage-error
5     nothing-collected       nothing-collected       nothing-collected      nothing-collected
6     exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
120   exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
255   exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
"""
STANDING = ("session-ended-early", "interrupted", "complete")
FINISHED = {"passed": 2, "failed": 2, "cut-short": 1, "cut-short-failed": 1}


def session(state: str) -> Record:
    record = Record().items(A, B).case(0, FAILED if "failed" in state else PASSED)
    return record if state.startswith("cut-short") else record.case(1, PASSED)


def exit_map() -> list[tuple[int, str, str]]:
    header, *lines = (line.split() for line in EXIT_MAP.strip().splitlines())
    return [(int(line[0]), state, cause) for line in lines for state, cause in zip(header[1:], line[1:], strict=True)]


@pytest.mark.parametrize(("code", "state", "cause"), exit_map())
def test_the_exit_code_and_the_cases_have_to_agree(code: int, state: str, cause: str) -> None:
    record = session(state).add("end", code, not state.startswith("cut-short"))
    reading = read(record, code)
    assert (reading.cause or "complete") == cause
    assert reading.complete is (cause == "complete")
    assert reading.measured_targets == (FINISHED[state] if cause in STANDING else 0)
    for other in range(256):
        if other != code:
            changed = read(record, other)
            assert (changed.cause, changed.measured_targets) == ("exit-contradicts-record", 0)


@pytest.mark.parametrize(("code", "state"), list(product((0, 1, 2, 3, 4, 5, 77), FINISHED)))
def test_without_the_end_of_the_session_no_exit_code_makes_it_complete(code: int, state: str) -> None:
    reading = read(session(state), code)
    assert (reading.complete, reading.cause) == (False, "session-ended-early")
    assert reading.measured_targets == FINISHED[state]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (0, "session-ended-early"),
        (1, "session-ended-early"),
        (2, "interrupted"),
        (3, "runner-internal-error"),
        (4, "runner-usage-error"),
        (5, "session-ended-early"),
        (9, "session-ended-early"),
    ],
)
def test_an_end_before_the_first_test_is_told_by_its_exit_code(code: int, cause: str) -> None:
    reading = read(Record().items(A, B).add("trouble", "conftest.py: it broke", ""), code)
    assert (reading.cause, reading.measured_targets) == (cause, 0)
    assert "conftest.py: it broke" in reading.detail


@pytest.mark.parametrize("code", range(8))
def test_an_empty_record_measures_nothing(code: int) -> None:
    reading = read(b"", code)
    expected = {3: "runner-internal-error", 4: "runner-usage-error"}.get(code, "record-missing")
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, expected, 0)


ENDS = [end for end in get_args(End) if end != "exited"]


@pytest.mark.parametrize("end", ENDS)
def test_a_death_leaves_what_was_finished_and_names_what_was_running(end: str) -> None:
    record = Record().items(A, B).case(0, PASSED).start(1)
    dead = replace(ended(0), end=end, exit_code=None, signal=9, detail="a note of the supervisor")
    reading = read(record, dead)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, end, 1)
    assert [(missing.target, missing.cause) for missing in reading.missing] == [("b.py", end)]
    assert B.text() in reading.detail
    assert "a note of the supervisor" in reading.detail
    not_reached = read(Record().items(A, B).case(0, PASSED), dead)
    assert [(missing.target, missing.cause) for missing in not_reached.missing] == [("b.py", "not-run")]
    nothing = read(b"", dead)
    assert (nothing.cause, nothing.measured_targets) == (end, 0)
    # Where a target may have done it, nobody knows which: each is named, so that they can be told apart.
    named = ["a.py", "b.py"] if end == "signalled" or end.endswith("-limit") else []
    assert [(missing.target, missing.cause) for missing in nothing.missing] == [(target, end) for target in named]


@pytest.mark.parametrize("end", ENDS)
def test_a_death_after_the_end_of_the_session_is_never_complete(end: str) -> None:
    reading = read(whole_session(), replace(ended(1), end=end, exit_code=None, signal=9))
    assert not reading.complete
    if end == "signalled":
        assert (reading.cause, reading.measured_targets) == ("exit-contradicts-record", 0)
    else:
        assert (reading.cause, reading.measured_targets) == (end, 2)


def test_exit_five_is_complete_only_where_nothing_was_planned_and_nothing_collected() -> None:
    nothing = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="a.py", blob=None, cases=(), skipped="why"),)
    )
    skipped = ("collection", "a.py", [], "skipped", "Skipped: why", "")
    reading = read(Record().add(*skipped).add("end", 5, True), 5, inventory=nothing)
    assert (reading.complete, reading.measured_targets, reading.attention) == (True, 1, ("a.py",))
    assert read(Record().add("end", 5, True), 5, "a.py", inventory=nothing).complete
    assert read(Record().items(A).add("end", 5, True), 5, "a.py", inventory=nothing).cause == "nothing-collected"
    assert read(Record().add("end", 5, True), 5).cause == "nothing-collected"


def test_a_test_that_was_collected_now_but_not_planned_has_to_end_too() -> None:
    new = TestId("a.py", ("test_new",))
    record = Record().items(A, B, new).case(0, PASSED).case(1, PASSED)
    assert unmeasured(read(Record().items(A, B).case(0, PASSED).case(1, PASSED).add("end", 0, True))) == {}
    assert unmeasured(read(record.add("end", 0, True))) == {"a.py": "cases-missing"}


def test_a_collector_that_failed_stands_for_the_tests_below_it_and_for_no_other() -> None:
    inner, outer = TestId("a.py", ("TestA", "test_inner")), TestId("a.py", ("test_outer",))
    inventory = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="a.py", blob=None, cases=(inner, outer)),)
    )
    failed = ("collection", "a.py", ["TestA"], "failed", "ImportError: no", "")
    reading = read(Record().add(*failed).items(outer).case(0, PASSED).add("end", 1, True), 1, inventory=inventory)
    assert reading.complete
    assert outcomes(reading) == {"a.py::TestA": "error", "a.py::test_outer": "passed"}
    reading = read(Record().add(*failed).add("end", 1, True), 1, inventory=inventory)
    assert unmeasured(reading) == {"a.py": "cases-missing"}


def test_tests_of_other_files_void_the_attempt() -> None:
    foreign = TestId("c.py", ("test_c",))
    reading = read(Record().items(A, B, foreign).case(0, PASSED).case(1, PASSED).case(2, PASSED).add("end", 0, True))
    assert (reading.cause, reading.measured_targets) == ("foreign-tests", 0)
    assert "c.py" in reading.detail
    assert "c.py::test_c" in outcomes(reading)
    error = ("collection", "c.py", [], "failed", "ImportError", "")
    assert read(Record().add(*error).items(A, B).add("end", 1, True), 1).cause == "foreign-tests"


def test_an_error_of_a_directory_above_a_target_is_not_foreign_but_leaves_the_target_unmeasured() -> None:
    deep = TestId("d/e/a.py", ("test_a",))
    inventory = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="d/e/a.py", blob=None, cases=(deep,)),)
    )
    error = ("collection", "d/e", [], "failed", "ImportError: conftest", "")
    reading = read(Record().add(*error).add("end", 1, True), 1, inventory=inventory)
    assert (reading.cause, reading.measured_targets) == ("cases-missing", 0)
    assert outcomes(reading) == {"d/e": "error"}


def test_a_collection_that_failed_as_a_whole_voids_everything() -> None:
    record = Record().add("collection", ".", [], "failed", "ImportError: conftest", "").items(A, B)
    record.case(0, PASSED).case(1, PASSED).add("end", 1, True)
    reading = read(record, 1)
    assert (reading.cause, reading.detail, reading.measured_targets) == (
        "collection-aborted",
        "ImportError: conftest",
        0,
    )
    assert read_collection(record.data(), ended(1)).cause == "collection-aborted"


def test_code_from_another_tree_voids_the_attempt_and_the_collection() -> None:
    record = Record().items(A, B).case(0, PASSED).case(1, PASSED)
    record.add("wrong-tree", [["product", "/elsewhere/product.py"]]).add("end", 0, True)
    reading = read(record)
    assert (reading.cause, reading.measured_targets) == ("wrong-tree", 0)
    assert "/elsewhere/product.py" in reading.detail
    assert read_collection(record.data(), ended(0)).cause == "wrong-tree"


def test_the_records_of_workers_are_put_together() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).add("end", 0, True)
    second = Record("gw1").items(A, B).case(1, FAILED).add("end", 1, True)
    reading = read(distributed(first, second, code=1), 1)
    assert reading.complete
    assert [row.worker for row in reading.table.cases] == ["gw0", "gw1"]


def test_a_test_that_two_workers_report_has_the_worse_result() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).case(1, FAILED).add("end", 1, True)
    second = Record("gw1").items(A, B).case(0, FAILED).case(1, PASSED).add("end", 1, True)
    reading = read(distributed(first, second, code=1), 1)
    assert set(outcomes(reading).values()) == {"failed"}


@pytest.mark.parametrize("again", [PASSED, FAILED])
def test_a_crash_under_a_test_is_not_mended_by_a_result_from_elsewhere(again: list[list[Any]]) -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).start(1)
    second = Record("gw1").items(A, B).case(1, again).add("end", 0, True)
    main = controller(first, second).add("crash", "failed", "worker 'gw0' crashed", "").add("end", 1, True)
    reading = read(b"\n".join((first.data(), second.data(), main.data())), 1)
    assert (reading.cause, reading.measured_targets) == ("worker-crashed", 1)
    assert unmeasured(reading) == {"b.py": "worker-crashed"}
    assert f"{B.text()} in gw0" in reading.detail


def test_a_worker_that_vanishes_between_tests_is_never_complete() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).case(1, PASSED)
    reading = read(distributed(first))
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "worker-crashed", 2)
    silent = controller(first.add("end", 0, True), Record("gw1")).add("end", 0, True)
    reading = read(b"\n".join((first.data(), silent.data())))
    assert (reading.complete, reading.cause) == (False, "worker-crashed")
    assert "gw1" in reading.detail


def shown(*phases: list[Any]) -> tuple[str, int, int]:
    row = row_of(A, tuple(Phase(*phase) for phase in phases))
    return row.outcome, row.reruns, row.subtests_failed


def test_the_phases_of_a_test_give_one_outcome() -> None:
    setup, call, teardown = PASSED
    bad_call, bad_teardown = FAILED[1], ["teardown", "failed", 0.0]
    subtest = ["call", "failed", 0.0, None, "", "", True]
    assert shown(setup, call, teardown) == ("passed", 0, 0)
    assert shown(setup, bad_call, teardown) == ("failed", 0, 0)
    assert shown(["setup", "failed", 0.0], teardown) == ("error", 0, 0)
    assert shown(setup, call, bad_teardown) == ("error", 0, 0)
    assert shown(setup, bad_call, bad_teardown) == ("failed", 0, 0)
    assert shown(setup, ["call", "skipped", 0.0], teardown) == ("skipped", 0, 0)
    assert shown(setup, ["call", "skipped", 0.0], bad_teardown) == ("error", 0, 0)
    assert shown(setup, call, ["teardown", "skipped", 0.0]) == ("skipped", 0, 0)
    assert shown(["setup", "skipped", 0.0, "", "", "", False], teardown) == ("xfailed", 0, 0)
    assert shown(setup, ["call", "passed", 0.0, "known"], teardown) == ("xpassed", 0, 0)
    assert shown(setup, ["call", "strange", 0.0], teardown) == ("failed", 0, 0)
    assert shown(setup, subtest, subtest, call, teardown) == ("failed", 0, 2)
    assert shown(setup, ["call", "rerun", 0.0], setup, call, teardown) == ("passed", 1, 0)
    assert shown(["setup", "rerun", 0.0], setup, ["call", "rerun", 0.0], setup, bad_call, teardown) == ("failed", 2, 0)
    assert shown(setup, bad_call, ["teardown", "rerun", 0.0], setup, call, teardown) == ("passed", 1, 0)


def test_a_test_without_the_end_of_its_teardown_has_no_result_unless_it_failed() -> None:
    record = Record().items(A, B).case(0, PASSED[:2]).case(1, FAILED[:2])
    reading = read(record.add("end", 2, False), 2)
    assert outcomes(reading) == {B.text(): "failed"}
    assert reading.measured_targets == 0


def test_texts_are_bounded_whatever_the_record_holds() -> None:
    long = ["call", "failed", 0.0, None, "l" * 5000, "m" * 50000, False]
    record = Record().items(A, B).case(0, [PASSED[0], long, PASSED[2]]).case(1, PASSED).add("end", 1, True)
    row = read(record, 1).table.cases[0]
    assert (len(row.line), len(row.message)) == (200, 4000)


def test_every_reason_that_the_reader_gives_is_explained() -> None:
    given_causes = {cause for _, _, cause in exit_map()} - {"complete"}
    others = {"exit-contradicts-record", "record-missing", "record-damaged", "record-truncated", "wrong-tree"}
    others |= {"collection-aborted", "foreign-tests", "cases-missing", "worker-crashed", "not-run"}
    assert given_causes | others | set(ENDS) <= set(CAUSES)
    for cause in CAUSES.values():
        assert cause.meaning.endswith(".")
        assert cause.next_step.endswith(".")


def test_a_test_whose_call_did_not_run_is_not_measured() -> None:
    without_call = [PASSED[0], PASSED[2]]
    repeated = [PASSED[0], ["call", "rerun", 0.1], *without_call]
    for phases in (without_call, repeated, [PASSED[2]], [*without_call, ["call", "passed", 0.1, None, "", "", True]]):
        reading = read(Record().items(A, B).case(0, PASSED).case(1, phases).add("end", 0, True))
        assert (reading.cause, reading.measured_targets, reading.counts) == ("cases-missing", 1, {"passed": 1})
    skipped = [["setup", "skipped", 0.1, None, "Skipped: why", "", False], PASSED[2]]
    assert read(Record().items(A, B).case(0, PASSED).case(1, skipped).add("end", 0, True)).complete
