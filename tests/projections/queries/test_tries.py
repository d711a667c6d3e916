"""Every case with what each attempt said of it: nothing is left out or told twice, and little is held at a time."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from ledger.events import Event, GatePolicy
from ledger.tables import (
    CaseTable,
    ClassTable,
    Document,
    Plan,
    PlannedPart,
    ShardTargets,
    decode_document,
    encode_document,
)
from ledger.values import Digest
from projections.queries.rows import RunSource, case_rows
from projections.queries.tries import UNDECIDED, TriedCase, tried_cases
from projections.registry import view_run
from tests.support.gates import Suite, finished
from tests.support.makers import (
    attempt_recorded,
    attempt_started,
    begun,
    case,
    case_row,
    case_table,
    collections,
    digest_of,
    placed,
    planned,
    recorded,
)
from tests.support.replays import Past, past_of
from tests.support.sides import File

SUITE = Suite(
    candidate={
        "a.py": File({"test_a": "passed", "test_b": "failed"}),
        "b.py": File({"test_c": "passed"}),
        "c.py": File({"test_d": "skipped", "test_new": "failed"}),
    },
    baseline={
        "a.py": File({"test_a": "passed", "test_b": "passed"}),
        "b.py": File({"test_c": "failed"}),
        "c.py": File({"test_d": "passed"}),
        "gone.py": File({"test_gone": "passed"}),
    },
    killers={"candidate": frozenset({"b.py"})},
)


def source_of(past: Past, position: int | None = None) -> RunSource:
    """What the cases of this run are made of, after an event."""
    events = past.events[:position]
    return RunSource(view_run(events), lambda: events, lambda digest, kind: decode_document(past.load(digest), kind))


def by_name(cases: Iterable[TriedCase]) -> dict[str, TriedCase]:
    """The cases by the names of their tests, each of which is there once."""
    found = list(cases)
    named = {one.row.test.text(): one for one in found}
    assert len(named) == len(found)
    return named


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_row_of_the_class_table_is_there_once(shards: int) -> None:
    gate = finished(SUITE, GatePolicy(shards=shards))
    source = source_of(Past(recorded(gate.events), gate.documents))
    table = source.load(gate.verdict.classes, ClassTable)
    assert by_name(tried_cases(source)).keys() == {row.test.text() for row in table.rows}


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_report_of_a_case_is_one_of_its_tries(shards: int) -> None:
    gate = finished(SUITE, GatePolicy(shards=shards, rounds=2))
    source = source_of(Past(recorded(gate.events), gate.documents))
    told = {(row.test, row.side, row.shard, row.attempt, row.outcome) for row in case_rows(source)}
    found = {
        (name, one.side, one.shard, one.attempt, one.row.outcome)
        for name, tried in by_name(tried_cases(source)).items()
        for one in tried.tries
        if one.row
    }
    assert found == told


def test_a_try_that_did_not_come_to_the_case_is_told_with_its_reason() -> None:
    gate = finished(SUITE, GatePolicy(shards=1, rounds=2))
    named = by_name(tried_cases(source_of(Past(recorded(gate.events), gate.documents))))
    tries = [one for one in named["b.py::test_c"].tries if one.side == "candidate"]
    assert [one.cause for one in tries] == ["signalled", "signalled"]
    assert [one.sequence for one in tries] == sorted(one.sequence for one in tries)


def test_a_case_of_no_shard_has_no_tries() -> None:
    gate = finished(SUITE, GatePolicy())
    named = by_name(tried_cases(source_of(Past(recorded(gate.events), gate.documents))))
    assert named["gone.py::test_gone"].tries == ()


def test_without_a_verdict_the_cases_are_those_that_were_reported_and_none_is_a_pass() -> None:
    past = past_of(SUITE)
    for position, one in enumerate(past.events, start=1):
        source = source_of(past, position)
        if source.views.gate.verdict is None:
            named = by_name(tried_cases(source))
            assert named.keys() == {row.test for row in case_rows(source) if row.side == "candidate"}, one.header.tag
            assert {one.row.effect for one in named.values()} <= {"unmeasured"}
            assert {one.row.cause for one in named.values()} <= {UNDECIDED}


def test_only_one_shard_is_held_at_a_time() -> None:
    gate = finished(replace(SUITE, killers={}), GatePolicy(shards=3))
    past = Past(recorded(gate.events), gate.documents)
    loaded: list[object] = []

    def load(digest: Digest, kind: type[Document]) -> Document:
        loaded.append(kind)
        return decode_document(past.load(digest), kind)

    source = source_of(past)
    next(iter(tried_cases(RunSource(source.views, source.events, load))))
    assert loaded.count(CaseTable) == 2


PART_1, PART_2 = "a.py::part-1-of-2", "a.py::part-2-of-2"
TEST_1, TEST_2 = case("a.py::test_1"), case("a.py::test_2")


def attempt(table: CaseTable, shard: str, **asked: Any) -> list[Event]:
    """An attempt of the candidate that gave this table."""
    return [
        attempt_started(shard, "candidate", **asked),
        attempt_recorded(shard, "candidate", table=digest_of(table)),
    ]


def candidate_tries(plan: Plan, *attempts: tuple[CaseTable, list[Event]]) -> dict[str, list[tuple[str, str | None]]]:
    """Per case the shards of its tries and what each of them reported, before any verdict."""
    documents = {digest_of(one): encode_document(one) for one in (plan, *(table for table, _ in attempts))}
    events = [*begun(), *collections(), planned(plan), *placed(*(one.shard for one in plan.shards))]
    past = Past(recorded([*events, *(event for _, those in attempts for event in those)]), documents)
    return {
        name: [(one.shard, one.row.outcome if one.row else None) for one in tried.tries]
        for name, tried in by_name(tried_cases(source_of(past))).items()
    }


def plan_of(*shards: ShardTargets) -> Plan:
    """A plan of these shards."""
    return Plan(policy="count/1", candidate_inventory="1" * 64, baseline_inventory="2" * 64, shards=shards)


def test_a_test_of_a_split_target_was_tried_where_its_part_was() -> None:
    parts = {PART_1: TEST_1, PART_2: TEST_2}
    plan = plan_of(
        *(
            ShardTargets(shard=shard, candidate=(part,), baseline=(), parts=(PlannedPart(part, (test,), ()),))
            for shard, (part, test) in zip(("shard-1", "shard-2"), parts.items(), strict=True)
        )
    )
    first = case_table("candidate", {PART_1: None}, [case_row(TEST_1, "passed")])
    second = case_table("candidate", {PART_2: "signalled"}, [case_row(TEST_2, "failed")])
    found = candidate_tries(plan, (first, attempt(first, "shard-1")), (second, attempt(second, "shard-2")))
    assert found == {"a.py::test_1": [("shard-1", "passed")], "a.py::test_2": [("shard-2", "failed")]}


def test_a_test_that_is_run_again_alone_is_no_try_of_its_neighbours() -> None:
    plan = plan_of(ShardTargets(shard="shard-1", candidate=("a.py",), baseline=()))
    whole = case_table("candidate", {"a.py": None}, [case_row(TEST_1, "passed"), case_row(TEST_2, "failed")])
    alone = case_table("candidate", {"a.py": "signalled"}, [])
    asked = {"targets": ("a.py",), "tests": (TEST_2.text(),)}
    found = candidate_tries(plan, (whole, attempt(whole, "shard-1")), (alone, attempt(alone, "rerun-1", **asked)))
    assert found == {
        "a.py::test_1": [("shard-1", "passed")],
        "a.py::test_2": [("shard-1", "failed"), ("rerun-1", None)],
    }
