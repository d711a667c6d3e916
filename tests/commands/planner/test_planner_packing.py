"""Fitting by memory alone: what is found, what is proved to be impossible, and what a search cut off must not claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.decide.planner import PlannerPolicy, PlanRequest, Usage, plan_shards_by_usage
from commands.decide.planner.packing import pack, shards_by_memory
from commands.messages import Refusal

HARD = [
    (2, 20, [10, 8, 6, 5, 4, 4, 3]),
    (3, 10, [6, 6, 5, 4, 3, 2, 2, 2]),
    (3, 12, [8, 6, 5, 3, 3, 3, 3, 2, 2]),
    (2, 12, [7, 4, 4, 4, 3, 2]),
]
"""Number of shards, budget and memories: each can be packed, but neither greedy way finds how."""

IMPOSSIBLE = [
    (3, 20, [11, 11, 11, 7, 6, 5, 5]),
    (3, 10, [6, 6, 5, 5, 3, 3, 2]),
    (3, 20, [9, 9, 8, 8, 6, 6, 6, 4, 4]),
    (3, 12, [8, 7, 6, 3, 3, 3, 3, 3]),
]
"""Each passes the lower bound, but only trying every way shows that there is none."""


def asked(number: int, budget: int, memories: list[int], steps: int) -> PlanRequest:
    """A request for targets with these memories."""
    usage = {f"t{place}": Usage(memory_bytes=memory, seconds=1.0) for place, memory in enumerate(memories)}
    policy = PlannerPolicy(search_steps=steps)
    return PlanRequest(targets=tuple(usage), usage=usage, budget_bytes=budget, count=number, policy=policy)


@pytest.mark.parametrize(("number", "budget", "memories"), HARD)
def test_a_plan_that_only_a_search_finds_is_found(number: int, budget: int, memories: list[int]) -> None:
    plan = plan_shards_by_usage(asked(number, budget, memories, steps=10_000))
    assert len(plan.shards) == number
    assert all(shard.memory_bytes <= budget for shard in plan.shards)


@pytest.mark.parametrize(("number", "budget", "memories"), IMPOSSIBLE)
def test_what_no_bound_shows_is_proved_by_trying_every_way(number: int, budget: int, memories: list[int]) -> None:
    assert shards_by_memory(memories, budget) <= number
    with pytest.raises(Refusal, match=r"\(that is proved\)"):
        plan_shards_by_usage(asked(number, budget, memories, steps=10_000))


@pytest.mark.parametrize(("number", "budget", "memories"), HARD + IMPOSSIBLE)
def test_a_search_that_is_cut_off_says_so(number: int, budget: int, memories: list[int]) -> None:
    with pytest.raises(Refusal, match=r"the search for a plan was cut off, so there may be one") as refused:
        plan_shards_by_usage(asked(number, budget, memories, steps=number))
    assert refused.value.code == "plan-does-not-fit"


def test_as_many_shards_as_targets_are_filled_even_when_fewer_would_do() -> None:
    packing = pack([3, 2, 2, 1], 4, 10, steps=100)
    assert packing.assignment is not None
    assert sorted(packing.assignment) == [[0], [1], [2], [3]]


@given(memories=st.lists(st.integers(1, 30), min_size=1, max_size=12), budget=st.integers(30, 60))
def test_the_bound_is_at_least_that_of_volume_and_no_packing_is_below_it(memories: list[int], budget: int) -> None:
    needed = shards_by_memory(memories, budget)
    assert needed >= -(-sum(memories) // budget)
    fewest = next(n for n in range(1, len(memories) + 1) if pack(memories, n, budget, steps=10**6).assignment)
    assert needed <= fewest
    if fewest > 1:
        assert pack(memories, fewest - 1, budget, steps=10**6).proved


@pytest.mark.parametrize(
    ("memories", "needed"),
    [([6, 6, 6], 3), ([6, 6, 5], 3), ([5, 5, 5], 2), ([7, 7, 4, 4], 3), ([10], 1), ([9, 9, 9, 2], 4), ([1] * 21, 3)],
)
def test_the_bound_counts_what_cannot_share_a_shard(memories: list[int], needed: int) -> None:
    assert shards_by_memory(memories, 10) == needed
