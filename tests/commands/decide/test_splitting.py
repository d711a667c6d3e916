"""Slow targets in parts: every test in exactly one part, parts as even as neighbours allow, plans that stay proofs."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commands.decide.planning import plan_fault, plan_shards
from commands.decide.splitting import cut_points
from ledger.events import GatePolicy, PlanPolicy
from ledger.parts import part_count, part_name, whole_target
from ledger.tables import Inventory, KnownTarget, Plan, PlannedPart, UsageTable
from tests.support.makers import inventory, inventory_target

DIGESTS = ("1" * 64, "2" * 64)
SPLIT = PlanPolicy(split_seconds=10.0)


def sides(slow: list[str], there: list[str] | None = None) -> tuple[Inventory, Inventory]:
    """Both sides of a project with a slow file that has these tests, and two short files."""
    short = inventory_target("a.py", "t"), inventory_target("b.py", "t")
    return (
        inventory("candidate", inventory_target("slow.py", *slow), *short),
        inventory("baseline", inventory_target("slow.py", *(slow if there is None else there)), *short),
    )


def known(slow_seconds: float, **case_seconds: float) -> UsageTable:
    rows = [("a.py", 5.0), ("b.py", 5.0), ("slow.py", slow_seconds)]
    return UsageTable(
        session_seconds=0.0,
        session_memory_bytes=0,
        targets=tuple(KnownTarget(name, seconds, 100, "alone", False) for name, seconds in rows),
        case_seconds={f"slow.py::{name}": seconds for name, seconds in case_seconds.items()},
    )


def plan(both: tuple[Inventory, Inventory], usage: UsageTable, **policy: Any) -> Plan:
    return plan_shards(*both, DIGESTS, GatePolicy(**{"plan": SPLIT, "parallel": 2, **policy}), usage, 10_000)


def parts(made: Plan) -> dict[str, list[str]]:
    """The tests of each part on the candidate."""
    return {part.part: [case.path[0] for case in part.candidate] for shard in made.shards for part in shard.parts}


def test_a_slow_target_is_cut_where_its_tests_take_as_long_on_both_sides_of_the_cut() -> None:
    usage = known(100.0, t1=10.0, t2=40.0, t3=25.0, t4=25.0)
    made = plan(sides(["t1", "t2", "t3", "t4"]), usage)
    assert parts(made) == {"slow.py::part-1-of-2": ["t1", "t2"], "slow.py::part-2-of-2": ["t3", "t4"]}
    assert made.makespan_seconds == 55.0
    assert [len(shard.parts) for shard in made.shards] == [1, 1]


def test_without_times_of_its_tests_a_target_is_cut_in_equal_numbers() -> None:
    assert [len(tests) for tests in parts(plan(sides([f"t{n}" for n in range(10)]), known(100.0))).values()] == [5, 5]


@pytest.mark.parametrize(
    ("seconds", "policy"),
    [
        (100.0, {"plan": PlanPolicy()}),
        (9.0, {}),
        (100.0, {"parallel": 1}),
        (100.0, {"plan": PlanPolicy(split_seconds=200)}),
    ],
)
def test_nothing_is_split_that_is_not_slow_or_where_nothing_is_won(seconds: float, policy: dict[str, Any]) -> None:
    assert parts(plan(sides(["t1", "t2"]), known(seconds), **policy)) == {}


def test_a_target_of_one_test_stays_whole() -> None:
    assert parts(plan(sides(["t1"]), known(100.0))) == {}


def test_tests_that_only_the_baseline_has_go_with_the_last_part() -> None:
    made = plan(sides(["t1", "t2"], ["t0", "t2", "gone"]), known(100.0, t1=50.0, t2=50.0))
    by_name = {part.part: part for shard in made.shards for part in shard.parts}
    last = by_name["slow.py::part-2-of-2"]
    assert [case.path[0] for case in last.baseline] == ["t2", "t0", "gone"]
    assert by_name["slow.py::part-1-of-2"].baseline == ()


@given(st.lists(st.floats(0.001, 100), min_size=2, max_size=9), st.data())
def test_no_other_cut_has_a_lighter_heaviest_run(weights: list[float], data: st.DataObject) -> None:
    total = data.draw(st.integers(1, len(weights)))

    def heaviest(ends: tuple[int, ...]) -> float:
        starts = (0, *ends)
        return max(sum(weights[start:end]) for start, end in zip(starts, (*ends, len(weights)), strict=True))

    found = cut_points(weights, total)
    assert len(found) == total
    assert found == sorted(set(found))
    assert found[-1] == len(weights)
    best = min(heaviest(ends) for ends in combinations(range(1, len(weights)), total - 1))
    assert heaviest(tuple(found[:-1])) <= best * (1 + 1e-6)


NAMES = st.lists(st.sampled_from([f"t{n}" for n in range(12)]), unique=True, max_size=12)


@given(
    ours=NAMES, theirs=NAMES, seconds=st.floats(0, 1000), shards=st.integers(0, 5), parallel=st.integers(1, 4),
    times=st.dictionaries(st.sampled_from([f"t{n}" for n in range(12)]), st.floats(0, 500)),
)  # fmt: skip
def test_however_targets_are_split_the_plan_is_a_partition_of_every_test(
    ours: list[str], theirs: list[str], seconds: float, shards: int, parallel: int, times: dict[str, float]
) -> None:
    both = sides(ours, theirs)
    made = plan(both, known(seconds, **times), shards=shards, parallel=parallel)
    assert plan_fault(made.shards, *both) == ""
    names = [name for shard in made.shards for name in shard.candidate]
    assert sorted({whole_target(name) for name in names}) == ["a.py", "b.py", "slow.py"]
    tests = [test for held in parts(made).values() for test in held]
    assert sorted(tests) == (sorted(ours) if tests else [])
    for shard in made.shards:
        assert len({whole_target(name) for name in shard.candidate}) == len(shard.candidate)


def test_a_part_that_loses_or_doubles_a_test_is_found() -> None:
    both = sides(["t1", "t2", "t3"])
    made = plan(both, known(100.0))
    where = next(number for number, shard in enumerate(made.shards) if len(shard.parts[0].candidate) > 1)
    shard = made.shards[where]
    (part,) = shard.parts
    for cases in (part.candidate[1:], (*part.candidate, part.candidate[0])):
        changed = structs.replace(shard, parts=(PlannedPart(part.part, cases, part.baseline),))
        shards = (*made.shards[:where], changed, *made.shards[where + 1 :])
        assert "lose, double or add a test" in plan_fault(shards, *both)
    assert plan_fault((*made.shards[:where], structs.replace(shard, parts=()), *made.shards[where + 1 :]), *both)


@pytest.mark.parametrize(
    "name", ["a.py", "a.py::part-0-of-2", "a.py::part-1-of", "::part-1-of-2", "a.py::part-1-of-2x"]
)
def test_other_names_are_those_of_whole_targets(name: str) -> None:
    assert (whole_target(name), part_count(name)) == (name, 1)
    assert (whole_target(part_name(name, 1, 2)), part_count(part_name(name, 1, 2))) == (name, 2)
