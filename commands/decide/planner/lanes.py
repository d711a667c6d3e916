"""Lanes: which targets share shards with each other and with no others, and how many shards each lane gets.

Rules:
- a target that needs more than the heavy part of the budget is a lane of its own.
- the targets of the spawn lane share a fixed number of shards; all others share what is left.
"""

from typing import NamedTuple

from commands.decide.planner.balance import Bound, balance, largest_first, time_bound
from commands.decide.planner.model import Assignment, Item, PlannerPolicy, PlanRequest
from commands.decide.planner.packing import shards_by_memory
from commands.decide.planner.refusal import does_not_fit


class Lane(NamedTuple):
    """Targets that share shards with each other and with no others."""

    items: list[Item]
    assignment: Assignment

    @property
    def bound(self) -> Bound:
        """What no assignment of these items to as many shards can go below."""
        return time_bound(self.items, len(self.assignment))


def cut_lanes(request: PlanRequest, items: list[Item], per_second: int) -> list[Lane]:
    """Every lane of the items, which come longest first, with its shards. Raises Refusal when they do not fit."""
    policy, budget = request.policy, request.budget_bytes
    heavy = [item for item in items if item.memory * 100 > budget * policy.heavy_percent]
    apart = {item.target for item in heavy}
    listed = set(policy.spawn_targets) - apart
    spawning = [item for item in items if item.target in listed]
    apart |= listed
    rest = [item for item in items if item.target not in apart]
    lanes = [Lane([item], [[0]]) for item in heavy]
    if spawning:
        lanes.append(_open(spawning, policy.spawn_shards, budget, policy))
    used = sum(len(lane.assignment) for lane in lanes)
    if request.count is not None:
        lanes += _counted(request, items, rest, request.count, used)
    elif rest and request.target_seconds is not None:
        numerator, denominator = request.target_seconds.as_integer_ratio()
        lanes.append(_timed(rest, numerator * per_second // denominator, budget, policy))
    elif rest:
        lanes.append(_open(rest, request.at_least - used, budget, policy))
    return lanes


def _open(items: list[Item], at_least: int, budget: int, policy: PlannerPolicy) -> Lane:
    """At least so many shards, and more where the next item would fit into none."""
    known = largest_first(items, max(1, min(at_least, len(items))), budget, more=True) or []
    return Lane(items, balance(items, len(known), budget, policy, known).assignment or known)


def _counted(request: PlanRequest, items: list[Item], rest: list[Item], number: int, used: int) -> list[Lane]:
    """The lane of the rest, if there is any, in what the other lanes leave of the number of shards."""
    memories, budget = [item.memory for item in items], request.budget_bytes
    needed = used + (shards_by_memory([item.memory for item in rest], budget) if rest else 0)
    if needed > number:
        raise does_not_fit(memories, budget, number, needed, proved=True)
    if not rest:
        return []
    packing = balance(rest, min(number - used, len(rest)), budget, request.policy)
    if packing.assignment is None:
        raise does_not_fit(memories, budget, number, needed, proved=packing.proved)
    return [Lane(rest, packing.assignment)]


def _timed(items: list[Item], target: int, budget: int, policy: PlannerPolicy) -> Lane:
    """As few shards as are found to end within the time, or within that of the longest item when it takes longer."""
    goal = max(target, items[0].time, 1)
    # Alone, every item fits and ends in time, so there is an end to the search.
    alone = Lane(items, [[position] for position in range(len(items))])
    by_memory = largest_first(items, 1, budget, more=True) or alone.assignment

    def within(number: int) -> Lane | None:
        # A better start may lead to a worse end, so both are tried.
        for known in (by_memory, None) if number == len(by_memory) else (None,):
            assignment = balance(items, number, budget, policy, known).assignment
            if assignment and all(sum(items[item].time for item in shard) <= goal for shard in assignment):
                return Lane(items, assignment)
        return None

    least = min(len(items), max(len(by_memory), -(-sum(item.time for item in items) // goal)))
    low, high, best = least - 1, least, within(least)
    while best is None:
        low, high = high, min(high + 2 * (high - low), len(items))
        best = alone if high == len(items) else within(high)
    while high - low > 1:
        middle = (low + high) // 2
        found = within(middle)
        low, high, best = (low, middle, found) if found else (middle, high, best)
    return best
