"""Splitting slow targets: which are cut into parts, and where, so that none keeps all other shards waiting.

Rules:
- a target is split when it takes longer than the policy says and longer than an even share of all time.
- it gets as many parts as even shares are in it, but never more than tests.
- tests keep their order, and neighbours stay together: parts are cut where the longest of them is shortest.
- tests that only the baseline has go with the last part.

Tests that depend on those before them may fail in a part; then they fail on both sides, and nothing is learned of
them. That is why nothing is split unless the policy asks for it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ledger.events import GatePolicy
from ledger.parts import part_name, whole_target
from ledger.tables import Inventory, InventoryTarget, KnownTarget, MemoryBasis, PlannedPart, UsageTable

UNKNOWN_SECONDS = 0.001
"""The time of a test that is not known."""


Parts = Mapping[str, Mapping[str, PlannedPart]]
"""By target, its parts by their names."""

Placed = tuple[tuple[str, ...], tuple[PlannedPart, ...]]
"""What a shard runs, and which of that are parts."""


def parts_of(candidate: Inventory, baseline: Inventory, usage: UsageTable, policy: GatePolicy) -> Parts:
    """The parts of each target that is split, by what is known of its time."""
    longer_than, shards = policy.planning.split_seconds, policy.shards or policy.parallel
    if shards < 2 or longer_than <= 0:
        return {}
    targets = {target.target: target for target in candidate.targets}
    seconds = {row.target: row.seconds for row in usage.targets if row.target in targets}
    theirs = {target.target: target for target in baseline.targets}
    share = sum(seconds.values()) / shards
    found = {}
    for name, takes in sorted(seconds.items()):
        total = min(len(targets[name].cases), math.ceil(takes / share)) if share > 0 else 1
        if takes > max(longer_than, share) and total > 1:
            weights = [max(UNKNOWN_SECONDS, usage.case_seconds.get(one.text(), 0.0)) for one in targets[name].cases]
            found[name] = _parts(targets[name], theirs.get(name), cut_points(weights, total))
    return found


def with_parts(usage: UsageTable, parts: Parts) -> UsageTable:
    """What is known of targets, and of parts: what was measured of them, else what their tests took.

    A part never needs more memory than the whole target.
    """
    told = {row.target: row for row in usage.targets}
    estimates = [
        KnownTarget(name, _seconds(part, told[target], usage, len(of_target)), *_memory(told[target]))
        for target, of_target in parts.items()
        for name, part in of_target.items()
        if name not in told
    ]
    return replace(usage, targets=tuple(sorted([*usage.targets, *estimates], key=lambda row: row.target)))


def _seconds(part: PlannedPart, whole: KnownTarget, usage: UsageTable, parts: int) -> float:
    known = sum(usage.case_seconds.get(case.text(), 0.0) for case in part.candidate)
    return known if known > 0 else whole.seconds / parts


def _memory(whole: KnownTarget) -> tuple[int | None, MemoryBasis, bool]:
    return whole.memory_bytes, "none" if whole.memory_bytes is None else "upper-bound", whole.aged


def placed_parts(shards: Iterable[tuple[str, ...]], parts: Parts) -> list[Placed]:
    """The same shards, with one part of a target in each at most: parts that meet become one.

    The parts of a target are numbered anew then, in the order of the shards. One that has met all others is whole.
    """
    known = {name: part for of_target in parts.values() for name, part in of_target.items()}
    together = [_by_target(names, known) for names in shards]
    totals = Counter(target for of_shard in together for target in of_shard)
    numbers: Counter[str] = Counter()
    placed = []
    for names, of_shard in zip(shards, together, strict=True):
        whole = [name for name in names if name not in known]
        whole += [target for target in of_shard if totals[target] == 1]
        merged = []
        for target, held in of_shard.items():
            if totals[target] > 1:
                numbers[target] += 1
                merged.append(_merged(target, held, numbers[target], totals[target]))
        placed.append((tuple(sorted([*whole, *(part.part for part in merged)])), tuple(merged)))
    return placed


def _by_target(names: Iterable[str], known: Mapping[str, PlannedPart]) -> dict[str, list[PlannedPart]]:
    found: dict[str, list[PlannedPart]] = {}
    for name in names:
        if name in known:
            found.setdefault(whole_target(name), []).append(known[name])
    return found


def _merged(target: str, held: Sequence[PlannedPart], number: int, total: int) -> PlannedPart:
    candidate = tuple(case for part in held for case in part.candidate)
    baseline = tuple(case for part in held for case in part.baseline)
    return PlannedPart(part_name(target, number, total), candidate, baseline)


def parts_fault(parts: Iterable[PlannedPart], candidate: Inventory, baseline: Inventory) -> str:
    """What keeps the parts of targets from being partitions of their tests; "" when they are."""
    split: dict[str, list[PlannedPart]] = {}
    for part in parts:
        split.setdefault(whole_target(part.part), []).append(part)
    ours, theirs = ({target.target: target.cases for target in side.targets} for side in (candidate, baseline))
    for target, held in split.items():
        planned = Counter(case for part in held for case in part.candidate)
        compared = Counter(case for part in held for case in part.baseline)
        if planned != Counter(ours.get(target, ())) or compared != Counter(theirs.get(target, ())):
            return "the parts of a target lose, double or add a test"
    return ""


def cut_points(weights: Sequence[float], total: int) -> list[int]:
    """Where to cut a sequence into so many runs, none empty, whose heaviest is lightest: the end of each run."""
    lightest, heaviest = max(weights), sum(weights)
    while heaviest - lightest > heaviest * 1e-9:
        middle = (lightest + heaviest) / 2
        if _runs_within(weights, middle) <= total:
            heaviest = middle
        else:
            lightest = middle
    ends: list[int] = []
    weight = 0.0
    for place, one in enumerate(weights):
        left, open_runs = len(weights) - place, total - len(ends)
        # A run ends where it would be too heavy, and where each of those that are left needs a test of its own.
        if place > (ends[-1] if ends else 0) and open_runs > 1 and (weight + one > heaviest or left < open_runs):
            ends.append(place)
            weight = 0.0
        weight += one
    return [*ends, len(weights)]


def _runs_within(weights: Sequence[float], limit: float) -> int:
    runs, weight = 1, 0.0
    for one in weights:
        if weight + one > limit and weight:
            runs, weight = runs + 1, 0.0
        weight += one
    return runs


def _parts(ours: InventoryTarget, theirs: InventoryTarget | None, ends: Sequence[int]) -> dict[str, PlannedPart]:
    there = dict.fromkeys(theirs.cases if theirs else ())
    parts, start = [], 0
    for number, end in enumerate(ends, start=1):
        cases = ours.cases[start:end]
        both = tuple(case for case in cases if case in there)
        parts.append(PlannedPart(part_name(ours.target, number, len(ends)), cases, both))
        start = end
    mine = set(ours.cases)
    gone = tuple(case for case in there if case not in mine)
    last = parts.pop()
    parts.append(PlannedPart(last.part, last.candidate, (*last.baseline, *gone)))
    return {part.part: part for part in parts}
