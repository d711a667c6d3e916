"""The planner by count: shards of nearly equal numbers of targets, in byte order, and the proof that it is a partition.

With usage, the planner by usage plans instead. Every target of the candidate is in exactly one shard. The baseline
side of a shard runs those of its targets that the baseline has too; targets that only the baseline has are gone and
need no run.
"""

from collections import Counter

from commands.decide.planner import PlanRequest, UsagePlan, plan_shards_by_usage
from commands.messages import Refusal
from ledger.events import GatePolicy, PlannedShard
from ledger.tables import Inventory, Plan, ShardTargets

PLANNER = "count/1"
TARGETS_PER_SHARD = 100
"""Without a wish for a number of shards there is one per process, and more only where shards would be larger than
this."""


def plan_shards(
    candidate: Inventory,
    baseline: Inventory,
    digests: tuple[str, str],
    policy: GatePolicy,
    usage: PlanRequest | None = None,
) -> Plan:
    """The plan for these inventories; `digests` are theirs. Raises Refusal when there is nothing to plan.

    With `usage`, whose targets are those of the candidate, the shards are planned by it; more is refused then.
    """
    if usage is not None:
        return _plan_by_usage(candidate, baseline, digests, plan_shards_by_usage(usage))
    targets = sorted({target.target for target in candidate.targets})
    if not targets:
        raise Refusal("nothing-collected", "the candidate has no tests", "check `paths` in ledger.toml")
    there = {target.target for target in baseline.targets}
    shards = tuple(
        ShardTargets(
            shard=f"shard-{number}",
            candidate=chunk,
            baseline=tuple(target for target in chunk if target in there),
        )
        for number, chunk in enumerate(_chunks(targets, _count(len(targets), policy)), start=1)
    )
    _check(shards, candidate, baseline)
    return Plan(policy=PLANNER, candidate_inventory=digests[0], baseline_inventory=digests[1], shards=shards)


def _plan_by_usage(candidate: Inventory, baseline: Inventory, digests: tuple[str, str], planned: UsagePlan) -> Plan:
    there = {target.target for target in baseline.targets}
    shards = tuple(
        ShardTargets(
            shard=shard.shard,
            candidate=shard.targets,
            baseline=tuple(target for target in shard.targets if target in there),
            planned_memory_bytes=shard.memory_bytes,
            planned_seconds=shard.seconds,
            deadline_seconds=shard.deadline_seconds,
        )
        for shard in planned.shards
    )
    _check(shards, candidate, baseline)
    return Plan(
        policy=planned.policy,
        candidate_inventory=digests[0],
        baseline_inventory=digests[1],
        shards=shards,
        usage_plan=planned.plan_id,
        makespan_seconds=planned.makespan_seconds,
        bound_seconds=planned.bound.seconds,
        warnings=planned.warnings,
    )


def _check(shards: tuple[ShardTargets, ...], candidate: Inventory, baseline: Inventory) -> None:
    fault = plan_fault(shards, candidate, baseline)
    if fault:
        raise AssertionError(f"nothing runs on such a plan, whatever the planner believes: {fault}")


def _count(targets: int, policy: GatePolicy) -> int:
    wanted = policy.shards or max(policy.parallel, -(-targets // TARGETS_PER_SHARD))
    return min(wanted, targets)


def _chunks(targets: list[str], count: int) -> list[tuple[str, ...]]:
    """`count` runs of neighbours whose lengths differ by one at most."""
    size, larger = divmod(len(targets), count)
    chunks, start = [], 0
    for number in range(count):
        end = start + size + (number < larger)
        chunks.append(tuple(targets[start:end]))
        start = end
    return chunks


def plan_fault(shards: tuple[ShardTargets, ...], candidate: Inventory, baseline: Inventory) -> str:
    """What keeps the shards from being a partition of the candidate's targets; "" when they are one."""
    there = {target.target for target in baseline.targets}
    planned = Counter(target for shard in shards for target in shard.candidate)
    if planned != Counter({target.target for target in candidate.targets}):
        return "the plan loses, doubles or adds a target"
    if not all(shard.candidate for shard in shards) or len({shard.shard for shard in shards}) < len(shards):
        return "the plan has an empty shard, or two of one name"
    if any(Counter(shard.baseline) != Counter(there & set(shard.candidate)) for shard in shards):
        return "the baseline of a shard is not what the baseline has of its targets"
    return ""


def planned_shard(shard: ShardTargets) -> PlannedShard:
    """What the event says of a shard of the plan."""
    absent = tuple(sorted(set(shard.candidate) - set(shard.baseline)))
    return PlannedShard(shard=shard.shard, candidate_targets=len(shard.candidate), absent=absent)
