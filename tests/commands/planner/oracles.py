"""Other planners to compare with: the original's greedy one, the longest first, and trying everything.

All of them add exactly, and none shares code with the planner.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple


class Need(NamedTuple):
    """A target as the oracles see it."""

    target: str
    memory: Fraction
    seconds: Fraction


Shards = list[list[Need]]


def makespan(shards: Shards) -> Fraction:
    """The time of the longest shard."""
    return max(sum((need.seconds for need in shard), Fraction(0)) for shard in shards)


def original(needs: Sequence[Need], budget: Fraction, count: int | None) -> Shards | None:
    """The original's planner but for its rounding; None where it refuses because the count is too small."""
    shards: Shards = []
    for need in sorted(needs, key=lambda one: (-one.memory, -one.seconds, one.target)):
        room = [shard for shard in shards if sum(one.memory for one in shard) + need.memory <= budget]
        if not room or (count is not None and len(shards) < min(count, len(needs))):
            if count is not None and len(shards) >= count:
                return None
            shards.append([need])
        else:
            shards.sort(key=lambda shard: (sum(one.seconds for one in shard), sum(one.memory for one in shard)))
            next(shard for shard in shards if any(shard is one for one in room)).append(need)
    return shards


def longest_first(needs: Sequence[Need], count: int) -> Shards:
    """Each target, the longest first, onto the shortest shard, whatever the memory."""
    shards: Shards = [[] for _ in range(min(count, len(needs)))]
    for need in sorted(needs, key=lambda one: (-one.seconds, -one.memory, one.target)):
        min(shards, key=lambda shard: (sum(one.seconds for one in shard), sum(one.memory for one in shard))).append(
            need
        )
    return shards


def all_ways(needs: Sequence[Need], budget: Fraction, count: int) -> Iterator[Shards]:
    """Every way to fit all targets into so many shards or fewer; only for a few targets."""
    for places in itertools.product(range(count), repeat=len(needs)):
        shards: Shards = [[] for _ in range(count)]
        for need, place in zip(needs, places, strict=True):
            shards[place].append(need)
        if all(sum(one.memory for one in shard) <= budget for shard in shards):
            yield [shard for shard in shards if shard]
