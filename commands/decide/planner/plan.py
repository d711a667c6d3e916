"""From targets with usage to a plan: its shards with their deadlines, the bound, warnings, and the plan's identity.

Rules:
- no shard is empty, none is above the budget, and every target is in exactly one.
- the order of the request decides nothing but which unusable target is named first.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from hashlib import sha256

import msgspec

from commands.decide.planner.lanes import Lane, cut_lanes
from commands.decide.planner.model import (
    PLANNER,
    Item,
    LowerBound,
    PlannerPolicy,
    PlanRequest,
    Usage,
    UsagePlan,
    UsageShard,
)
from commands.decide.planner.packing import shards_by_memory
from commands.decide.planner.refusal import check_request
from commands.render.words import count, seconds
from ledger.values import Digest


def plan_shards_by_usage(request: PlanRequest) -> UsagePlan:
    """The plan. Raises Refusal: for a bad request, unusable usage, or targets that do not fit."""
    targets = sorted(check_request(request))
    usage = {target: request.usage[target] for target in targets}
    items, per_second = _items(usage)
    lanes = cut_lanes(request, items, per_second)
    shards = _shards(lanes, request.policy, per_second)
    origins = Counter(one.origin for one in usage.values())
    plan = UsagePlan(
        policy=PLANNER,
        plan_id=_plan_id(request, usage),
        budget_bytes=request.budget_bytes,
        shards=shards,
        makespan_seconds=max(shard.seconds for shard in shards),
        bound=_bound(lanes, request, items, per_second),
        origins={origin: origins[origin] for origin in ("measured", "aged", "estimated")},
        warnings=_warnings(request, usage, shards),
    )
    fault = _fault(plan, targets)
    if fault:
        raise AssertionError(f"nothing runs on such a plan, whatever the planner believes: {fault}")
    return plan


def _items(usage: dict[str, Usage]) -> tuple[list[Item], int]:
    """The items, the longest first, and how many units of time a second has.

    Every float is a whole number of units of some power of two, so nothing is lost.
    """
    ratios = {target: one.seconds.as_integer_ratio() for target, one in usage.items()}
    per_second = max(denominator for _, denominator in ratios.values())
    items = [
        Item(numerator * (per_second // denominator), usage[target].memory_bytes, target)
        for target, (numerator, denominator) in ratios.items()
    ]
    return sorted(items, key=lambda item: (-item.time, -item.memory, item.target)), per_second


def _shards(lanes: list[Lane], policy: PlannerPolicy, per_second: int) -> tuple[UsageShard, ...]:
    """All shards, the longest first, so that the order in which they start is a good one."""
    bundles = [[lane.items[item] for item in shard] for lane in lanes for shard in lane.assignment]
    sums = [
        (sum(item.time for item in bundle), sum(item.memory for item in bundle), sorted(item.target for item in bundle))
        for bundle in bundles
    ]
    ordered = sorted(sums, key=lambda one: (-one[0], -one[1], one[2]))
    return tuple(
        UsageShard(
            shard=f"shard-{number}",
            targets=tuple(targets),
            memory_bytes=memory,
            seconds=_seconds(time, per_second),
            deadline_seconds=_deadline(time, policy, per_second),
        )
        for number, (time, memory, targets) in enumerate(ordered, start=1)
    )


def _deadline(time: int, policy: PlannerPolicy, per_second: int) -> int:
    wanted = -(-time * policy.deadline_percent // (100 * per_second))
    return max(policy.deadline_floor_seconds, min(wanted, policy.deadline_cap_seconds))


def _seconds(time: int | Fraction, per_second: int) -> float:
    try:
        return float(Fraction(time, per_second))
    except OverflowError:
        # Sums of finite times can be beyond every float, and infinity is no number in JSON.
        return math.nextafter(math.inf, 0)


def _bound(lanes: list[Lane], request: PlanRequest, items: Sequence[Item], per_second: int) -> LowerBound:
    """The bound of the lane that is bound to take longest, part by part."""
    mean, longest, crowded = (max(times) for times in zip(*(lane.bound for lane in lanes), strict=True))
    return LowerBound(
        seconds=_seconds(max(mean, longest, crowded), per_second),
        mean_seconds=_seconds(mean, per_second),
        longest_seconds=_seconds(longest, per_second),
        crowded_seconds=_seconds(crowded, per_second),
        shards_by_memory=shards_by_memory([item.memory for item in items], request.budget_bytes),
    )


def _plan_id(request: PlanRequest, usage: dict[str, Usage]) -> Digest:
    """The digest of everything that decides the plan; `usage` is in byte order."""
    policy = msgspec.to_builtins(request.policy) | {"spawn_targets": sorted(request.policy.spawn_targets)}
    inputs = {
        "planner": PLANNER,
        "policy": policy,
        "budget_bytes": request.budget_bytes,
        "count": request.count,
        "target_seconds": request.target_seconds,
        "at_least": request.at_least,
        "targets": [[target, one.memory_bytes, float(one.seconds), one.origin] for target, one in usage.items()],
    }
    # In ASCII, so that names of bytes that are no text have a digest too.
    return sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def _warnings(request: PlanRequest, usage: dict[str, Usage], shards: tuple[UsageShard, ...]) -> tuple[str, ...]:
    warnings = []
    for what, values in (
        ("time", {one.seconds for one in usage.values()}),
        ("memory", {one.memory_bytes for one in usage.values()}),
    ):
        if len(usage) > 1 and len(values) == 1:
            warnings.append(f"every target is planned with the same {what}, as if none had ever been measured")
    origins = Counter(one.origin for one in usage.values())
    if origins["estimated"]:
        warnings.append(f"{count(origins['estimated'], 'target')} of {len(usage)} planned with an estimate")
    if origins["aged"]:
        warnings.append(f"{count(origins['aged'], 'target')} of {len(usage)} planned with an old measurement")
    makespan = max(shard.seconds for shard in shards)
    if request.target_seconds is not None and makespan > request.target_seconds:
        warnings.append(
            f"the plan takes {seconds(makespan)}, not the {seconds(request.target_seconds)} that were asked for: "
            "a target, or a lane with a fixed number of shards, takes longer by itself"
        )
    doomed = [shard.shard for shard in shards if shard.seconds > shard.deadline_seconds]
    if doomed:
        warnings.append(f"planned to take longer than the deadline allows: {', '.join(doomed)}")
    return tuple(warnings)


def _fault(plan: UsagePlan, targets: list[str]) -> str:
    """What keeps the plan from being a partition within the budget; "" when it is one."""
    if sorted(target for shard in plan.shards for target in shard.targets) != targets:
        return "the plan loses, doubles or adds a target"
    if not all(shard.targets and shard.memory_bytes <= plan.budget_bytes for shard in plan.shards):
        return "the plan has a shard that is empty or above the budget"
    return ""
