"""Memory alone: how many shards it asks for at least, and the search for a way to fit into a given number."""

from bisect import bisect_right
from itertools import accumulate

from msgspec import Struct

from commands.decide.planner.model import Assignment


class Packing(Struct, frozen=True):
    """What a search gave: where each item goes, or None; then `proved` says whether there is no way at all."""

    assignment: Assignment | None
    proved: bool = True


def shards_by_memory(memories: list[int], budget: int) -> int:
    """A number of shards that no packing can go below, after Martello and Toth.

    For each size `small`, items too large to share a shard with one of that size count as a shard each; so do other
    items above half of the budget; and of what lies between `small` and half, only so much can go into the gaps of the
    latter, while the rest fills shards of its own.
    """
    ordered = sorted(memories)
    sums = [0, *accumulate(ordered)]
    half = bisect_right(ordered, budget // 2)
    needed = 0
    # With `small` of 0 nothing is left out, and the bound is that of volume or better.
    huge = len(ordered)
    for start, small in enumerate([0, *ordered[:half]]):
        first = max(0, start - 1)
        while huge > half and ordered[huge - 1] > budget - small:
            huge -= 1
        gaps = budget * (huge - half) - (sums[huge] - sums[half])
        rest = max(0, sums[half] - sums[first] - gaps)
        needed = max(needed, len(ordered) - half - (-rest // budget))
    return needed


def pack(memories: list[int], number: int, budget: int, steps: int) -> Packing:
    """Fit items into `number` shards: the largest first into the fullest shard that takes it, else by search."""
    if shards_by_memory(memories, budget) > number:
        return Packing(None)
    order = sorted(range(len(memories)), key=lambda item: (-memories[item], item))
    sizes = [memories[item] for item in order]
    places = _best_fit(sizes, number, budget)
    if places is None:
        places, proved = _search(sizes, number, budget, steps)
        if places is None:
            return Packing(None, proved)
    assignment: Assignment = [[] for _ in range(number)]
    for item, place in zip(order, places, strict=True):
        assignment[place].append(item)
    return Packing(_without_empty([sorted(items) for items in assignment]))


def _best_fit(sizes: list[int], number: int, budget: int) -> list[int] | None:
    free = [budget] * number
    places = []
    for size in sizes:
        room = [shard for shard in range(number) if free[shard] >= size]
        if not room:
            return None
        fullest = min(room, key=lambda shard: free[shard])
        free[fullest] -= size
        places.append(fullest)
    return places


def _search(sizes: list[int], number: int, budget: int, steps: int) -> tuple[list[int] | None, bool]:
    """Depth first over the place of each item, the largest first; a step is a look at one shard.

    Gives the places, or None and whether all ways were tried. Two ways that leave the same room for the same items are
    one, and a way ends where the shards that still take the smallest item have not enough room for what is to come.
    """
    to_come = [*accumulate(reversed(sizes))][::-1]
    free, places = [budget] * number, list[int]()
    open_ways = [_ways(free, sizes[0])]
    seen = set[tuple[int, ...]]()
    while open_ways:
        steps -= number
        if steps < 0:
            return None, False
        if not open_ways[-1]:
            open_ways.pop()
            if places:
                free[places.pop()] += sizes[len(places)]
            continue
        place = open_ways[-1].pop()
        free[place] -= sizes[len(places)]
        places.append(place)
        if len(places) == len(sizes):
            return places, True
        state = (len(places), *sorted(free))
        usable = sum(room for room in free if room >= sizes[-1])
        hopeless = state in seen or usable < to_come[len(places)]
        seen.add(state)
        open_ways.append([] if hopeless else _ways(free, sizes[len(places)]))
    return None, True


def _ways(free: list[int], size: int) -> list[int]:
    """The shards to try, the last first: the fullest is tried first, and of equally full ones only one.

    An item that fills a shard exactly can go there without loss.
    """
    by_room = {room: shard for shard, room in enumerate(free) if room >= size}
    if size in by_room:
        return [by_room[size]]
    return [by_room[room] for room in sorted(by_room, reverse=True)]


def _without_empty(assignment: Assignment) -> Assignment:
    """Give each empty shard an item of one that has several; there are at least as many items as shards."""
    for shard in assignment:
        if not shard:
            shard.append(max(assignment, key=len).pop())
    return assignment
