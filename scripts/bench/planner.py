"""The planner by usage beside its limits: how close plans come to the lower bound, and what planning costs.

Beside it, on the same targets: pytest-split's two ways to split, restated: the longest first, and chunks in order.
Usage: python scripts/bench/planner.py. Exit code 1 over a limit.
"""

import random
import sys
import time
from statistics import mean

from commands.decide.planner import PlanRequest, Usage, UsagePlan, plan_shards_by_usage
from commands.messages import Refusal
from scripts.bench.measuring.lib import TOLERANCE, report

SEEDS = range(20)
SETS = ((60, 8), (60, 16), (300, 16), (300, 32), (2000, 32))
MEAN_MAX, WORST_MAX = 1.005, 1.02
MANY, MANY_SECONDS_MAX = 20_000, 1.0
ROOM = (1.3, 1.1, 1.03)
"""Memory budgets where memory decides, as multiples of what an even share would be."""


def times_of(number: int, seed: int) -> list[float]:
    """Times in seconds with a long tail, as those of test files are."""
    chance = random.Random(seed)
    return [chance.lognormvariate(2, 1.2) for _ in range(number)]


def memories_of(number: int, seed: int) -> list[int]:
    """Memories in bytes, with a tail of their own."""
    chance = random.Random(-1 - seed)
    return [int(chance.lognormvariate(18.5, 0.8)) for _ in range(number)]


def plan(times: list[float], memories: list[int], shards: int, budget: int) -> UsagePlan:
    """The plan for targets with these needs."""
    usage = {
        f"tests/test_{place:05}.py": Usage(memory_bytes=memory, seconds=seconds)
        for place, (seconds, memory) in enumerate(zip(times, memories, strict=True))
    }
    return plan_shards_by_usage(PlanRequest(targets=tuple(usage), usage=usage, budget_bytes=budget, count=shards))


def longest_first(times: list[float], shards: int) -> list[list[int]]:
    """pytest-split's `least_duration`: each, the longest first, to the group that has least."""
    groups: list[list[int]] = [[] for _ in range(shards)]
    sums = [0.0] * shards
    for item in sorted(range(len(times)), key=lambda one: -times[one]):
        least = min(range(shards), key=lambda group: sums[group])
        groups[least].append(item)
        sums[least] += times[item]
    return groups


def chunks(times: list[float], shards: int) -> list[list[int]]:
    """pytest-split's `duration_based_chunks`: in order, on to the next group when the share of time is used up."""
    share = sum(times) / shards
    groups: list[list[int]] = [[] for _ in range(shards)]
    group, used = 0, 0.0
    for item, seconds in enumerate(times):
        if used >= share and group < shards - 1:
            group, used = group + 1, 0.0
        groups[group].append(item)
        used += seconds
    return groups


THEIRS = {"least_duration": longest_first, "duration_based_chunks": chunks}


def lower_bound(times: list[float], shards: int) -> float:
    """What no split can go below; not taken from the planner that is measured."""
    ordered = sorted(times, reverse=True)
    pair = ordered[shards - 1] + ordered[shards] if len(times) > shards else 0.0
    return max(sum(times) / shards, ordered[0], pair)


def measure_balance(number: int, shards: int) -> bool:
    """Time alone: the planner and the other two, as multiples of the bound."""
    ratios, empty, above = [], 0, 0
    others: dict[str, list[float]] = {name: [] for name in THEIRS}
    others_empty = dict.fromkeys(others, 0)
    for seed in SEEDS:
        times = times_of(number, seed)
        bound = lower_bound(times, shards)
        budget = number * 2**20
        made = plan(times, [2**20] * number, shards, budget)
        ratios.append(made.makespan_seconds / bound)
        empty += shards - len(made.shards) + sum(not shard.targets for shard in made.shards)
        above += sum(shard.memory_bytes > budget for shard in made.shards)
        for name, split in THEIRS.items():
            groups = split(times, shards)
            others[name].append(max(sum(times[item] for item in group) for group in groups) / bound)
            others_empty[name] += sum(not group for group in groups)
    for name, found in others.items():
        print(
            f"{number} x {shards}: {name}: mean {mean(found):.4f}, worst {max(found):.4f}, {others_empty[name]} empty"
        )
    print(
        f"{number} x {shards}: planner: mean {mean(ratios):.4f}, worst {max(ratios):.4f}, {empty} empty, {above} above"
    )
    within = mean(ratios) <= MEAN_MAX and max(ratios) <= WORST_MAX and not empty and not above
    report(
        f"planner.balance.{number}x{shards}", mean(ratios), unit="x lower bound", limit=MEAN_MAX,
        spread=(min(ratios), max(ratios)),
    )  # fmt: skip
    return within


def measure_memory(number: int, shards: int, room: float) -> None:
    """Where memory decides the bound may be out of reach: the gap is shown and has no limit."""
    ratios, refused = [], 0
    for seed in SEEDS:
        memories = memories_of(number, seed)
        budget = max(*memories, int(sum(memories) / shards * room))
        try:
            made = plan(times_of(number, seed), memories, shards, budget)
        except Refusal as refusal:
            refused += 1
            print(f"{number} x {shards}, room {room}: {refusal}")
            continue
        assert all(shard.targets and shard.memory_bytes <= budget for shard in made.shards)
        ratios.append(made.makespan_seconds / made.bound.seconds)
    gap = f"mean {mean(ratios):.4f}, worst {max(ratios):.4f}" if ratios else "no plan"
    print(f"{number} x {shards}, room {room}: {gap} of the bound by time, {refused} refused")


def measure_many(shards: int, room: float) -> bool:
    """The CPU time of planning very many targets."""
    times, memories = times_of(MANY, 1), memories_of(MANY, 1)
    budget = max(*memories, int(sum(memories) / shards * room))
    start = time.process_time()
    plan(times, memories, shards, budget)
    taken = time.process_time() - start
    unit = f"s CPU, {MANY} targets in {shards} shards, room {room}"
    return report("planner.cpu", taken, unit=unit, limit=MANY_SECONDS_MAX, spread=(taken, taken))


def main() -> int:
    """Measure everything; 1 when a limit is broken. Only times are forgiven up to a factor, plans are exact."""
    print(f"times may be above their limit by a factor of {TOLERANCE}")
    within = [measure_balance(number, shards) for number, shards in SETS]
    for room in ROOM:
        for number, shards in SETS:
            measure_memory(number, shards, room)
    within += [measure_many(shards, room) for shards in (32, 200, 1000) for room in (1000.0, 1.02)]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
