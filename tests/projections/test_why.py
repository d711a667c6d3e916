"""Why a case has its class: which rows are meant, and what every attempt says of the test."""

from ledger.events import Event
from ledger.tables import CaseTable, ClassRow, ClassTable
from ledger.values import TestId
from projections.gate.why import Why, explain, matching
from tests.support.makers import (
    attempt_recorded,
    attempt_started,
    begun,
    case,
    collections,
    digest_of,
    placed,
    planned,
    verdict_decided,
    views_of,
)
from tests.support.sides import File, table_of

ROW = ClassRow(
    test=case("a.py::t"), candidate="failed", baseline="passed", case_class="introduced", effect="failed",
    rule="failed x passed", line="no", cause="",
)  # fmt: skip
READY: list[Event] = [*begun(), *collections(), planned(), *placed("shard-1")]


def row(test: TestId) -> ClassRow:
    return ClassRow(test=test, candidate="passed", baseline="passed", case_class="passed", effect="none", rule="r")


def why(row: ClassRow, *tried: tuple[Event, Event], tables: tuple[CaseTable, ...] = ()) -> Why:
    """The explanation after these attempts, with these tables at hand."""
    events = [event for pair in tried for event in pair]
    gate = views_of(*READY, *events, verdict_decided()).gate
    return explain(row, "classes/1", gate, {digest_of(table): table for table in tables})


def test_the_exact_name_is_meant_although_other_names_contain_it() -> None:
    names = [case("a.py::t"), case("a.py::t2"), case("a.py::t[1]"), case("b.py::x")]
    table = ClassTable(table="classes/1", rows=tuple(map(row, names)))
    assert [found.test for found in matching(table, "a.py::t")] == names[:1]
    assert [found.test for found in matching(table, "a.py::t[")] == [names[2]]
    assert [found.test for found in matching(table, "a.py")] == names[:3]
    assert matching(table, "c.py") == []


def test_a_name_as_its_runner_writes_it_is_meant_and_nothing_is_guessed_between_two() -> None:
    escaped, name, twin = TestId("a.py", ("t",), "x::[1]"), TestId("a.py", ("t[2]",)), TestId("a.py", ("t",), "2")
    table = ClassTable(table="classes/1", rows=tuple(map(row, (escaped, name, twin))))
    assert [found.test for found in matching(table, "a.py::t[x::[1]]")] == [escaped]
    assert [found.test for found in matching(table, escaped.text())] == [escaped]
    assert [found.test for found in matching(table, "x::[1")] == [escaped]
    assert [found.test for found in matching(table, twin.text())] == [twin]
    untyped = ClassTable(table="classes/1", rows=(row(name), row(TestId("a.py", (), "t[2]"))))
    assert [found.test for found in matching(untyped, "a.py::t[2]")] == [name]


def test_each_attempt_that_saw_the_target_is_told_with_its_evidence() -> None:
    first = table_of("candidate", {"a.py": File({"t": "failed"})}, {"a.py": "signalled"})
    second = table_of("candidate", {"a.py": File({"t": "rerun"})})
    there = table_of("baseline", {"a.py": File({"u": "passed"})})
    found = why(
        ROW,
        (attempt_started(), attempt_recorded(table=digest_of(first), missing={"a.py": "signalled"}, log="l" * 64)),
        (attempt_started(attempt=2), attempt_recorded(attempt=2, table=digest_of(second), record="r" * 64)),
        (attempt_started(side="baseline"), attempt_recorded(side="baseline", table=digest_of(there))),
        tables=(first, second, there),
    )
    assert [(a.side, a.attempt, a.outcome, a.cause, a.message) for a in found.attempts] == [
        ("candidate", 1, "failed", "signalled", ""),
        ("candidate", 2, "passed after 1 re-runs", "", ""),
        ("baseline", 1, "not reported", "", ""),
    ]
    assert [(a.log, a.record) for a in found.attempts] == [("l" * 64, None), (None, "r" * 64), (None, None)]
    assert [a.duration_seconds for a in found.attempts] == [0.25, 0.25, None]


def test_the_explanation_repeats_the_row_and_says_when_it_was_decided() -> None:
    found = why(ROW)
    assert (found.test, found.case_class, found.effect, found.rule, found.line) == (
        "a.py::t", "introduced", "failed", "failed x passed", "no",
    )  # fmt: skip
    assert found.table == "classes/1"
    assert found.verdict_sequence == 101 + 2 * len(READY)
    assert found.attempts == ()


def test_attempts_on_other_targets_or_without_a_table_are_left_out() -> None:
    other = table_of("candidate", {"b.py": File({"t": "passed"})})
    found = why(
        ROW,
        (attempt_started(), attempt_recorded(table=digest_of(other))),
        (attempt_started(side="baseline"), attempt_recorded(side="baseline", cause="lost", measured=0)),
        tables=(other,),
    )
    assert found.attempts == ()
