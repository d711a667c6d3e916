"""The planner: a partition of the candidate's targets, in byte order, in shards of nearly equal numbers."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.decide.planner import PlanRequest, Usage, plan_shards_by_usage
from commands.decide.planning import PLANNER, TARGETS_PER_SHARD, plan_shards
from commands.messages import Refusal
from ledger.events import GatePolicy
from ledger.tables import Inventory, Plan, decode_document, encode_document
from ledger.values import Side
from tests.support.makers import inventory, inventory_target

DIGESTS = ("1" * 64, "2" * 64)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


def plan(candidate: list[str], baseline: list[str] | None = None, **policy: int) -> Plan:
    """The plan for sides with these targets; the baseline has the same when it is not named."""
    there = candidate if baseline is None else baseline
    return plan_shards(_side("candidate", candidate), _side("baseline", there), DIGESTS, GatePolicy(**policy))


def _side(side: Side, targets: list[str]) -> Inventory:
    return inventory(side, *(inventory_target(target) for target in targets))


@given(
    candidate=st.lists(NAMES, min_size=1, max_size=30, unique=True),
    baseline=st.lists(NAMES, max_size=30, unique=True),
    shards=st.integers(0, 40),
    parallel=st.integers(1, 8),
)
def test_a_plan_is_a_balanced_partition_in_byte_order(
    candidate: list[str], baseline: list[str], shards: int, parallel: int
) -> None:
    there = [*baseline, *candidate[::2]]
    made = plan(candidate, list(dict.fromkeys(there)), shards=shards, parallel=parallel)
    planned = [target for shard in made.shards for target in shard.candidate]
    assert planned == sorted(candidate, key=lambda target: target.encode())
    sizes = {len(shard.candidate) for shard in made.shards}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    assert len(made.shards) == min(len(candidate), shards or parallel)
    for shard in made.shards:
        assert shard.baseline == tuple(target for target in shard.candidate if target in there)


@given(candidate=st.lists(NAMES, min_size=1, max_size=20, unique=True), seed=st.integers(0, 2**16))
def test_a_plan_does_not_depend_on_the_order_of_the_inventories(candidate: list[str], seed: int) -> None:
    shuffled = random.Random(seed).sample(candidate, len(candidate))
    assert plan(shuffled, shards=3) == plan(candidate, shards=3)


def test_byte_order_is_not_the_order_of_words() -> None:
    made = plan(["é.py", "a.py", "Z.py", "\U0001f600.py", "\ufffd.py", "a/b.py", "a-b.py"], shards=1)
    assert made.shards[0].candidate == ("Z.py", "a-b.py", "a.py", "a/b.py", "é.py", "\ufffd.py", "\U0001f600.py")


def test_shards_are_numbered_in_their_order_and_the_plan_names_what_it_was_made_from() -> None:
    made = plan([f"{number:02d}.py" for number in range(12)], shards=12)
    assert [shard.shard for shard in made.shards] == [f"shard-{number}" for number in range(1, 13)]
    assert (made.policy, made.candidate_inventory, made.baseline_inventory) == (PLANNER, *DIGESTS)


@pytest.mark.parametrize(
    ("targets", "policy", "shards"),
    [
        (1, {"parallel": 8}, 1), (5, {"parallel": 2}, 2), (5, {"shards": 3, "parallel": 2}, 3), (5, {"shards": 99}, 5),
        (2 * TARGETS_PER_SHARD, {"parallel": 1}, 2), (2 * TARGETS_PER_SHARD + 1, {"parallel": 1}, 3),
        (2 * TARGETS_PER_SHARD, {"shards": 1, "parallel": 1}, 1),
    ],
)  # fmt: skip
def test_there_is_a_shard_per_process_or_as_many_as_wished_and_more_only_where_they_would_be_too_large(
    targets: int, policy: dict[str, int], shards: int
) -> None:
    made = plan([f"{number:04d}.py" for number in range(targets)], **policy)
    assert len(made.shards) == shards


def test_a_target_that_only_the_baseline_has_is_not_planned() -> None:
    (shard,) = plan(["a.py"], ["a.py", "z.py"], shards=1).shards
    assert (shard.candidate, shard.baseline) == (("a.py",), ("a.py",))


def test_a_candidate_without_tests_is_refused() -> None:
    with pytest.raises(Refusal, match="no tests") as refused:
        plan([], ["a.py"])
    assert refused.value.code == "nothing-collected"
    assert refused.value.hint


def test_with_usage_the_shards_are_those_of_the_planner_by_usage_and_the_plan_says_what_it_rests_on() -> None:
    candidate = ["c.py", "a.py", "b.py"]
    usage = {
        name: Usage(memory_bytes=100, seconds=time) for name, time in zip(candidate, (30.0, 10.0, 20.0), strict=True)
    }
    request = PlanRequest(targets=tuple(candidate), usage=usage, budget_bytes=200, count=2)
    sides = _side("candidate", candidate), _side("baseline", ["b.py", "z.py"])
    made = plan_shards(*sides, DIGESTS, GatePolicy(shards=1), request)
    assert (made.policy, made.usage_plan) == ("usage/1", plan_shards_by_usage(request).plan_id)
    assert (made.makespan_seconds, made.bound_seconds, made.warnings[0][:12]) == (30.0, 30.0, "every target")
    assert [(shard.candidate, shard.baseline) for shard in made.shards] == [
        (("a.py", "b.py"), ("b.py",)), (("c.py",), ()),
    ]  # fmt: skip
    assert [(shard.planned_memory_bytes, shard.planned_seconds) for shard in made.shards] == [(200, 30.0), (100, 30.0)]
    assert decode_document(encode_document(made), Plan) == made


def test_a_plan_by_usage_for_other_targets_than_the_candidates_is_a_bug_that_is_found() -> None:
    request = PlanRequest(targets=("a.py",), usage={"a.py": Usage(memory_bytes=1, seconds=1.0)}, budget_bytes=1)
    with pytest.raises(AssertionError, match="loses, doubles or adds"):
        plan_shards(_side("candidate", ["a.py", "b.py"]), _side("baseline", []), DIGESTS, GatePolicy(), request)


def test_a_plan_without_usage_is_stored_as_it_always_was() -> None:
    stored = json.loads(encode_document(plan(["a.py"])))
    assert stored == {
        "policy": PLANNER,
        "candidate_inventory": DIGESTS[0],
        "baseline_inventory": DIGESTS[1],
        "shards": [{"shard": "shard-1", "candidate": ["a.py"], "baseline": ["a.py"]}],
    }
