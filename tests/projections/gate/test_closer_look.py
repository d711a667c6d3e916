"""A closer look at new failures: what was asked for, what was read of it, and what the verdict makes of it."""

import pytest
from msgspec import UNSET, structs

from ledger.events import Event, JudgedCase, PlannedRerun, RerunsPlanned
from ledger.tables import CaseRow, CaseTable
from ledger.values import Side, TestId
from projections.gate.cases import PROVING, JoinedCase
from projections.gate.classes import TABLE_VERSIONS, WITH_RERUNS, WITHOUT_RERUNS
from projections.gate.notes import LOAD
from projections.gate.reruns import HIDDEN, NOT_READ, Rerun, Seen, TestReruns, observed, rows_that_failed_again
from projections.gate.verdict import Closer, judge_cases, judge_nothing, table_version
from tests.support.makers import (
    COMMITS,
    attempt_recorded,
    attempt_started,
    begun,
    case,
    case_row,
    case_table,
    collections,
    digest_of,
    planned,
    views_of,
)

T, U, V = case("a.py::t"), case("a.py::u"), case("b.py::v")
ALONE = PlannedRerun(
    shard="rerun-alone-1", kind="alone", of="shard-1", attempt=1, targets=("a.py",), test="a.py::t", baseline=True
)
BUNDLE = PlannedRerun(shard="rerun-bundle-1", kind="bundle", of="shard-1", attempt=1, targets=("a.py", "b.py"))
FAILED = case_table("candidate", {"a.py": None}, [case_row(T, "failed")])


def seen(reruns: tuple[PlannedRerun, ...], *events: Event, table: CaseTable = FAILED) -> TestReruns:
    """What is observed of the test after these events."""
    ordered = RerunsPlanned(commit=COMMITS["candidate"], reruns=reruns)
    gate = views_of(*begun(), *collections(), planned(), ordered, *events).gate
    return observed(gate, {digest_of(table): table})[T]


def attempt(shard: str = "rerun-alone-1", table: CaseTable | None = FAILED) -> list[Event]:
    """An attempt on the candidate with this table."""
    return [attempt_started(shard), attempt_recorded(shard, table=digest_of(table) if table else None)]


def test_a_test_that_the_baseline_does_not_have_is_not_waited_for_there() -> None:
    found = seen((structs.replace(ALONE, baseline=False), BUNDLE), *attempt())
    assert found.alone_baseline == Seen()
    assert found.shown() == Rerun("failed-again")


def test_a_bundle_that_was_not_asked_for_says_nothing() -> None:
    found = seen((ALONE,), *attempt())
    assert (found.bundle, found.alone.told) == (Seen(), "failed")


def test_a_bundle_is_that_of_the_attempt_that_saw_the_test_fail() -> None:
    for changes in ({"of": "shard-2"}, {"attempt": 2}):
        other = structs.replace(BUNDLE, shard="rerun-bundle-2", **changes)
        assert seen((ALONE, other), *attempt("rerun-bundle-2")).bundle == Seen()
        assert seen((ALONE, other, BUNDLE), *attempt("rerun-bundle-1")).bundle.told == "failed"


def test_an_attempt_that_is_under_way_or_left_no_table_was_not_read() -> None:
    for events in ([attempt_started("rerun-alone-1")], attempt(table=None)):
        assert seen((ALONE,), *events).alone == Seen("not-read", NOT_READ)


def test_the_rows_of_what_failed_again_alone_are_those_of_its_attempts() -> None:
    failed = seen((ALONE,), *attempt())
    assert failed.alone.row == FAILED.cases[0]
    passing = case_table("candidate", {"a.py": None}, [case_row(T, "passed")])
    passed = seen((ALONE,), *attempt(table=passing), table=passing)
    assert (passed.alone.told, passed.alone.row) == ("passed", passing.cases[0])
    unread = TestReruns(Seen("failed"))
    assert list(rows_that_failed_again([passed, failed, unread, TestReruns()])) == [FAILED.cases[0]]


def seen_on(side: Side, cause: str | None, outcome: str, test: TestId = T) -> str:
    """What is told of a test by a re-run that ended so, and reported the test and another."""
    table = case_table(side, {"a.py": cause, "b.py": None}, [case_row(test, outcome), case_row(V, "failed")])
    alone = structs.replace(ALONE, test=test.text())
    recorded = attempt_recorded(
        "rerun-alone-1", side, table=digest_of(table), cause=cause, missing={"a.py": cause} if cause else {}
    )
    ordered = RerunsPlanned(commit=COMMITS["candidate"], reruns=(alone,))
    events = (*begun(), *collections(), planned(), ordered, attempt_started("rerun-alone-1", side), recorded)
    found = observed(views_of(*events).gate, {digest_of(table): table})[test]
    assert found.shown().state != "passed-again"
    return (found.alone if side == "candidate" else found.alone_baseline).told


@pytest.mark.parametrize("cause", [*sorted(PROVING), "time-limit", "wrong-tree", "lost"])
@pytest.mark.parametrize("outcome", ["failed", "error", "passed", "skipped"])
def test_of_an_unmeasured_target_only_a_failure_counts_and_only_on_the_candidate(outcome: str, cause: str) -> None:
    counts = outcome in ("failed", "error") and cause in PROVING
    assert seen_on("candidate", cause, outcome) == ("failed" if counts else "not-read")
    assert seen_on("baseline", cause, outcome) == "not-read"
    assert seen_on("candidate", cause, outcome, TestId("a.py")) == "not-read"


def test_the_collection_of_a_target_that_was_measured_has_a_row_though_nothing_reports_it() -> None:
    alone = structs.replace(ALONE, test="a.py")
    ordered = RerunsPlanned(commit=COMMITS["candidate"], reruns=(alone,))
    gate = views_of(*begun(), *collections(), planned(), ordered, *attempt()).gate
    (found,) = observed(gate, {digest_of(FAILED): FAILED}).values()
    assert found.alone.row == CaseRow(test=TestId("a.py"), outcome="passed", duration_seconds=0.0)


NEW = JoinedCase(T, "failed", "passed", line="it broke", ran=True, collected=True)


@pytest.mark.parametrize(
    ("rerun", "case_class", "verdict", "cause", "note"),
    [
        (Rerun(), "introduced", "failed", "", UNSET),
        (Rerun("failed-again"), "introduced", "failed", "", UNSET),
        (Rerun("failed-among-others"), "interference", "unmeasured", "interference", UNSET),
        (Rerun("unresolved", HIDDEN), "unresolved", "unmeasured", HIDDEN, UNSET),
        (Rerun("unresolved"), "unresolved", "unmeasured", "unresolved", UNSET),
        (Rerun("passed-again"), "flaky", "passed", "", UNSET),
        (Rerun("passed-again", load=True), "flaky", "passed", "", LOAD),
    ],
)
def test_what_the_re_runs_of_a_failure_show_decides_of_it_alone(
    rerun: Rerun, case_class: str, verdict: str, cause: str, note: object
) -> None:
    other = JoinedCase(U, "passed", "passed", ran=True, collected=True)
    result = judge_cases([NEW, other], flaky_blocks=False, closer=Closer({T: rerun}, {}))
    row, beside = result.table.rows
    assert (row.case_class, row.cause, row.note, result.verdict) == (case_class, cause, note, verdict)
    assert (beside.case_class, beside.note, result.table.table) == ("passed", UNSET, WITH_RERUNS)


def test_a_failure_that_nobody_looked_at_again_is_what_it_looks_like() -> None:
    result = judge_cases([NEW], flaky_blocks=False, closer=Closer({U: Rerun("passed-again", load=True)}, {}))
    assert result.blocking == (JudgedCase("a.py::t", "introduced", "it broke"),)
    assert (result.verdict, result.table.rows[0].note) == ("failed", UNSET)


def test_only_what_failed_is_looked_up_among_the_re_runs() -> None:
    passed = structs.replace(NEW, candidate="passed")
    result = judge_cases([passed], flaky_blocks=False, closer=Closer({T: Rerun("passed-again", load=True)}, {}))
    assert (result.verdict, result.table.rows[0].note) == ("passed", UNSET)


def test_a_note_on_a_case_stands_in_its_row_before_any_other() -> None:
    closer = Closer({T: Rerun("passed-again", load=True)}, {T: "a note", U: "another"})
    (row,) = judge_cases([NEW], flaky_blocks=False, closer=closer).table.rows
    assert row.note == "a note"
    (bare,) = judge_cases([NEW], flaky_blocks=False, closer=Closer({}, {U: "another"})).table.rows
    assert bare.note is UNSET


def test_an_unmeasured_case_keeps_the_cause_that_it_has_beside_what_was_looked_at_again() -> None:
    lost = JoinedCase(U, "failed", "unmeasured", cause="signalled", ran=True)
    result = judge_cases([NEW, lost], flaky_blocks=False, closer=Closer({T: Rerun("unresolved", HIDDEN)}, {}))
    assert [(one.test, one.case_class, one.line) for one in result.unmeasured] == [
        ("a.py::t", "unresolved", HIDDEN),
        ("a.py::u", "unmeasured", "signalled"),
    ]


def test_one_case_that_ran_is_enough_wherever_it_stands() -> None:
    ran = JoinedCase(T, "passed", "passed", ran=True)
    idle = JoinedCase(U, "skipped", "skipped")
    for cases in ([ran, idle], [idle, ran], [idle, ran, idle]):
        assert judge_cases(cases, flaky_blocks=False).verdict == "passed"


def test_a_row_holds_all_that_is_known_of_its_case() -> None:
    (row,) = judge_cases([NEW], flaky_blocks=False).table.rows
    assert (row.test, row.candidate, row.baseline, row.line) == (T, "failed", "passed", "it broke")
    assert (row.case_class, row.effect, row.rule, row.cause) == ("introduced", "failed", "failed x passed", "")


def test_counts_are_told_in_the_order_of_their_names() -> None:
    cases = [NEW, JoinedCase(U, "passed", "passed", ran=True), JoinedCase(TestId("b.py", ("t",)), "passed", "failed")]
    counts = judge_cases(cases, flaky_blocks=False).counts
    assert list(counts.items()) == [("fixed", 1), ("introduced", 1), ("passed", 1)]


@pytest.mark.parametrize(("reruns", "version"), [(True, WITH_RERUNS), (False, WITHOUT_RERUNS)])
def test_without_a_case_nothing_is_counted_and_the_table_is_still_named(reruns: bool, version: str) -> None:
    result = judge_nothing({"collection/candidate": "lost"}, reruns=reruns)
    assert (result.counts, result.blocking, result.muted) == ({}, (), ())
    assert (result.table.table, result.table.rows) == (version, ())
    assert table_version(reruns=reruns) == version
    assert judge_nothing({}).table.table == WITHOUT_RERUNS


def test_the_names_of_the_table_are_those_that_ledgers_hold() -> None:
    assert TABLE_VERSIONS == (table_version(reruns=False), table_version(reruns=True)) == ("classes/1", "classes/2")
