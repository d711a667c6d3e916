"""The planner: a partition of the candidate's targets, in byte order, in shards of nearly equal numbers."""

import json
import random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.decide.planning import PLANNER, TARGETS_PER_SHARD, plan_shards
from commands.messages import Refusal
from ledger.events import GatePolicy
from ledger.tables import (
    Inventory,
    KnownTarget,
    MemoryBasis,
    Plan,
    UsageTable,
    decode_document,
    encode_document,
)
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


def known(seconds: dict[str, float], memory_bytes: int = 100) -> UsageTable:
    """What earlier runs tell of targets that ran alone, and of a session of 2 s and 50 bytes."""
    rows = tuple(KnownTarget(name, time, memory_bytes, "alone", False) for name, time in sorted(seconds.items()))
    return UsageTable(session_seconds=2.0, session_memory_bytes=50, targets=rows)


def plan_by(usage: UsageTable, candidate: list[str], baseline: list[str], machine_bytes: int, **policy: Any) -> Plan:
    """The plan by usage of sides with these targets."""
    sides = _side("candidate", candidate), _side("baseline", baseline)
    return plan_shards(*sides, DIGESTS, GatePolicy(**policy), usage, machine_bytes)


def test_with_usage_the_shards_are_balanced_by_time_and_the_plan_says_what_it_rests_on() -> None:
    usage = known({"c.py": 30.0, "a.py": 10.0, "b.py": 20.0, "gone.py": 99.0})
    made = plan_by(usage, ["c.py", "a.py", "b.py"], ["b.py", "z.py"], 500, shards=2)
    assert made.policy == "usage/1"
    assert len(made.usage_plan) == 64
    assert (made.makespan_seconds, made.bound_seconds, made.session_seconds) == (32.0, 32.0, 2.0)
    assert made.origins == {"measured": 3, "aged": 0, "estimated": 0}
    assert [(shard.candidate, shard.baseline) for shard in made.shards] == [
        (("a.py", "b.py"), ("b.py",)), (("c.py",), ()),
    ]  # fmt: skip
    assert [(shard.planned_memory_bytes, shard.planned_seconds) for shard in made.shards] == [(250, 32.0), (150, 32.0)]
    assert decode_document(encode_document(made), Plan) == made


def test_targets_that_no_run_tells_of_are_estimated_and_the_plan_says_so() -> None:
    made = plan_by(known({"a.py": 10.0}), ["a.py", "new.py"], [], 1000)
    assert made.origins == {"measured": 1, "aged": 0, "estimated": 1}
    assert any("1 target of unknown time planned with 10 s" in warning for warning in made.warnings)


def test_a_number_of_shards_without_room_becomes_a_larger_one_and_the_plan_says_so() -> None:
    made = plan_by(
        known({"a.py": 1.0, "b.py": 1.0, "c.py": 1.0}), ["a.py", "b.py", "c.py"], [], 300, shards=1, parallel=1
    )
    assert len(made.shards) == 2
    assert made.warnings[0].startswith("2 shards instead of the 1 that were asked for")


@pytest.mark.parametrize(("basis", "said"), [("alone", True), ("at-least", True), ("upper-bound", False)])
def test_a_target_above_the_budget_is_planned_alone_and_only_a_bound_from_above_is_no_warning(
    basis: MemoryBasis, said: bool
) -> None:
    rows = (KnownTarget("a.py", 1.0, 10**6, basis, False), KnownTarget("b.py", 1.0, 5, "alone", False))
    usage = UsageTable(session_seconds=0.0, session_memory_bytes=0, targets=rows)
    made = plan_by(usage, ["a.py", "b.py"], [], 1000, parallel=1)
    assert [shard.candidate for shard in made.shards] == [("a.py",), ("b.py",)]
    assert made.shards[0].planned_memory_bytes == 1000
    assert any(warning.startswith("a.py needs") for warning in made.warnings) == said


@given(
    told=st.dictionaries(
        NAMES,
        st.tuples(
            st.floats(0, 1e6), st.none() | st.integers(1, 10**7), st.sampled_from(get_args(MemoryBasis)), st.booleans()
        ),
        max_size=12,
    ),
    candidate=st.lists(NAMES, min_size=1, max_size=12, unique=True),
    machine_bytes=st.integers(0, 10**6),
    session_bytes=st.integers(0, 10**6),
    shards=st.integers(0, 5),
    parallel=st.integers(1, 4),
)
def test_whatever_is_known_a_gate_gets_a_plan_within_its_budget(
    told: dict[str, tuple[float, int | None, MemoryBasis, bool]], candidate: list[str],
    machine_bytes: int, session_bytes: int, shards: int, parallel: int,
) -> None:  # fmt: skip
    rows = tuple(KnownTarget(name, *row) for name, row in sorted(told.items()))
    usage = UsageTable(session_seconds=1.0, session_memory_bytes=session_bytes, targets=rows)
    made = plan_by(usage, candidate, candidate[:3], machine_bytes, shards=shards, parallel=parallel)
    assert sorted(target for shard in made.shards for target in shard.candidate) == sorted(candidate)
    assert made.budget_bytes is not None
    assert all((shard.planned_memory_bytes or 0) <= made.budget_bytes for shard in made.shards)
    assert made == plan_by(usage, candidate[::-1], candidate[:3], machine_bytes, shards=shards, parallel=parallel)


def test_a_plan_without_usage_is_stored_as_it_always_was() -> None:
    stored = json.loads(encode_document(plan(["a.py"])))
    assert stored == {
        "policy": PLANNER,
        "candidate_inventory": DIGESTS[0],
        "baseline_inventory": DIGESTS[1],
        "shards": [{"shard": "shard-1", "candidate": ["a.py"], "baseline": ["a.py"]}],
    }
