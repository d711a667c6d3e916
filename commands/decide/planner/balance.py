"""Time: shards that end together, within the memory of each. Times and memories are whole numbers, sums are exact."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from commands.decide.planner.model import Assignment, Item, PlannerPolicy
from commands.decide.planner.packing import Packing, pack

CLOSE_ENOUGH = 10_000
"""A plan is not improved any more when it is above the bound by less than one part in so many."""


class Bound(NamedTuple):
    """What no assignment can go below, in units of time: the largest of the three."""

    mean: Fraction
    longest: Fraction
    crowded: Fraction


def time_bound(items: Sequence[Item], number: int) -> Bound:
    """The bound for items, the longest first, in `number` shards.

    Of the longest `k * number + 1` items, some shard has `k + 1`, which take at least as long as the shortest of them.
    """
    sums = [0, *accumulate(item.time for item in items)]
    crowds = ((k * number - k, k * number + 1) for k in range(1, 1 + (len(items) - 1) // number))
    crowded = max((sums[end] - sums[start] for start, end in crowds), default=0)
    return Bound(Fraction(sums[-1], number), Fraction(items[0].time), Fraction(crowded))


def balance(
    items: Sequence[Item], number: int, budget: int, policy: PlannerPolicy, known: Assignment | None = None
) -> Packing:
    """Items, the longest first, in `number` shards of which none is empty, as even as is found.

    There must not be more shards than items. The start is the best of: the longest item first, the largest first, one
    that is known; where none of them fits, what fits by memory alone.
    """
    starts = [longest_first(items, number, budget), largest_first(items, number, budget), known]
    found = [start for start in starts if start is not None]
    if not found:
        packing = pack([item.memory for item in items], number, budget, policy.search_steps)
        if packing.assignment is None:
            return packing
        found = [packing.assignment]
    best = min(found, key=lambda start: _makespan(items, start))
    return Packing(_Improvement(items, best, budget).run(policy.improvement_steps))


def _makespan(items: Sequence[Item], assignment: Assignment) -> int:
    return max(sum(items[item].time for item in shard) for shard in assignment)


def longest_first(items: Sequence[Item], number: int, budget: int) -> Assignment | None:
    """Each item, the longest first, into the shard that is shortest so far among those with room; None if none has."""
    return _greedy(items, range(len(items)), number, budget, more=False)


def largest_first(items: Sequence[Item], number: int, budget: int, *, more: bool = False) -> Assignment | None:
    """The same with the largest by memory first; with `more`, a shard is added where none has room."""
    order = sorted(range(len(items)), key=lambda item: (-items[item].memory, item))
    return _greedy(items, order, number, budget, more=more)


def _greedy(items: Sequence[Item], order: Iterable[int], number: int, budget: int, *, more: bool) -> Assignment | None:
    assignment: Assignment = [[] for _ in range(number)]
    # Sorted by time; then by memory, so that an empty shard comes before one with items that take no time.
    shards = [(0, 0, shard) for shard in range(number)]
    for item in order:
        time, memory, _ = items[item]
        room = budget - memory
        for position, (_, used, _) in enumerate(shards):
            if used <= room:
                planned, used, shard = shards.pop(position)
                break
        else:
            if not more:
                return None
            planned, used, shard = 0, 0, len(assignment)
            assignment.append([])
        insort(shards, (planned + time, used + memory, shard))
        assignment[shard].append(item)
    return [sorted(shard) for shard in assignment]


class _Improvement:
    """Takes time from the longest shard, as long as it can be done by moving one item or exchanging two."""

    def __init__(self, items: Sequence[Item], assignment: Assignment, budget: int) -> None:
        self._shards, self._budget = [list(shard) for shard in assignment], budget
        self._time = [item.time for item in items]
        self._memory = [item.memory for item in items]
        self._times = [sum(self._time[item] for item in shard) for shard in assignment]
        self._memories = [sum(self._memory[item] for item in shard) for shard in assignment]
        bound = max(time_bound(items, len(assignment)))
        self._good = bound + bound // CLOSE_ENOUGH

    def run(self, steps: int) -> Assignment:
        """Improve until it is good, or there is nothing to improve, or the steps (looks at an item) are used up."""
        while steps > 0:
            by_time = sorted(range(len(self._times)), key=lambda shard: (self._times[shard], shard))
            longest = by_time.pop()
            if self._times[longest] <= self._good:
                break
            steps -= len(by_time)
            for other in by_time:
                steps -= len(self._shards[longest]) + len(self._shards[other])
                pair = self._best_exchange(longest, other)
                if pair is not None:
                    self._exchange(longest, other, *pair)
                    break
                if steps <= 0:
                    break
            else:
                break
        return self._shards

    def _best_exchange(self, longest: int, other: int) -> tuple[int, int | None] | None:
        """The item to give and the one to take back, if any, that bring the two shards closest; None for no gain.

        What is given minus what is taken should be half of the difference, and must be more than 0 and less than all.
        """
        difference = self._times[longest] - self._times[other]
        takes: list[int | None] = [None, *reversed(self._shards[other])]
        times = [0, *(self._time[item] for item in reversed(self._shards[other]))]
        best, nearest = None, difference
        for give in self._shards[longest]:
            time = self._time[give]
            middle = bisect_left(times, time - difference // 2)
            # From the middle on upwards and downwards, things only get worse.
            for way in (range(middle, len(times)), range(middle - 1, -1, -1)):
                for position in way:
                    distance = abs(2 * (time - times[position]) - difference)
                    if distance >= nearest:
                        break
                    if self._fits(longest, other, give, takes[position]):
                        best, nearest = (give, takes[position]), distance
                        break
        return best

    def _fits(self, longest: int, other: int, give: int, take: int | None) -> bool:
        change = self._memory[give] - (0 if take is None else self._memory[take])
        return self._memories[other] + change <= self._budget and self._memories[longest] - change <= self._budget

    def _exchange(self, longest: int, other: int, give: int, take: int | None) -> None:
        self._move(give, longest, other)
        if take is not None:
            self._move(take, other, longest)

    def _move(self, item: int, source: int, destination: int) -> None:
        self._shards[source].remove(item)
        insort(self._shards[destination], item)
        for totals, of_item in ((self._times, self._time), (self._memories, self._memory)):
            totals[source] -= of_item[item]
            totals[destination] += of_item[item]
