"""The planner by count: shards of nearly equal numbers of targets, in byte order, and the proof that it is a partition.

With usage, the planner by usage plans instead. Every target of the candidate is in exactly one shard. The baseline
side of a shard runs those of its targets that the baseline has too; targets that only the baseline has are gone and
need no run.
"""

from collections import Counter

from commands.decide.known_usage import plan_by_known_usage
from commands.decide.planner import PLANNER as BY_USAGE
from commands.decide.planner import UsagePlan
from commands.decide.splitting import Placed, parts_fault, parts_of, placed_parts, with_parts
from commands.messages import Refusal
from ledger.events import GatePolicy, PlannedShard
from ledger.parts import whole_target
from ledger.tables import Inventory, Plan, ShardTargets, UsageTable

PLANNER = "count/1"
PLANNERS = (PLANNER, BY_USAGE)
"""What this build can plan with: by count where nothing is known of usage, and by usage."""

TARGETS_PER_SHARD = 100
"""Without a wish for a number of shards there is one per process, and more only where shards would be larger than
this."""


def plan_shards(
    candidate: Inventory,
    baseline: Inventory,
    digests: tuple[str, str],
    policy: GatePolicy,
    usage: UsageTable | None = None,
    machine_bytes: int = 0,
) -> Plan:
    """The plan for these inventories; `digests` are theirs. Raises Refusal when there is nothing to plan.

    With `usage`, what earlier runs tell, the shards are planned by it, on a machine with so much memory.
    """
    targets = sorted({target.target for target in candidate.targets})
    if not targets:
        raise Refusal("nothing-collected", "the candidate has no tests", "check `paths` in ledger.toml")
    if usage is not None:
        parts = parts_of(candidate, baseline, usage, policy)
        usage = with_parts(usage, parts)
        names = [name for target in targets for name in parts.get(target, (target,))]
        planned = plan_by_known_usage(names, usage, policy, machine_bytes)
        held = [shard.targets for shard in planned.shards]
        return _plan_by_usage(candidate, baseline, digests, planned, usage, placed_parts(held, parts))
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


def _plan_by_usage(
    candidate: Inventory,
    baseline: Inventory,
    digests: tuple[str, str],
    planned: UsagePlan,
    usage: UsageTable,
    placed: list[Placed],
) -> Plan:
    """The plan of the planner by usage, in which every shard has a session besides its targets."""
    there = {target.target for target in baseline.targets}
    seconds, memory = usage.session_seconds, usage.session_memory_bytes
    # Where no memory is known at all, what was planned with is no reason to set any aside.
    is_known = any(row.memory_bytes is not None for row in usage.targets)
    shards = tuple(
        ShardTargets(
            shard=shard.shard,
            candidate=names,
            baseline=tuple(name for name in names if whole_target(name) in there),
            parts=parts,
            planned_memory_bytes=shard.memory_bytes + memory if is_known else None,
            planned_seconds=shard.seconds + seconds,
            deadline_seconds=shard.deadline_seconds,
        )
        for shard, (names, parts) in zip(planned.shards, placed, strict=True)
    )
    _check(shards, candidate, baseline)
    return Plan(
        policy=planned.policy,
        candidate_inventory=digests[0],
        baseline_inventory=digests[1],
        shards=shards,
        usage_plan=planned.plan_id,
        budget_bytes=planned.budget_bytes + memory,
        session_seconds=seconds,
        session_memory_bytes=memory,
        makespan_seconds=planned.makespan_seconds + seconds,
        bound_seconds=planned.bound.seconds + seconds,
        origins=planned.origins,
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
    """What keeps the shards from being a partition of the candidate's targets; "" when they are one.

    The parts of a target have to be a partition of its tests, on both sides.
    """
    parts = {part.part: part for shard in shards for part in shard.parts}
    there = {target.target for target in baseline.targets}
    there |= {name for name in parts if whole_target(name) in there}
    planned = Counter(target for shard in shards for target in shard.candidate)
    wholes = Counter(planned.keys() - parts.keys()) + Counter({whole_target(name) for name in parts})
    if max(planned.values(), default=1) > 1 or wholes != Counter({target.target for target in candidate.targets}):
        return "the plan loses, doubles or adds a target"
    if any({part.part for part in shard.parts} != parts.keys() & set(shard.candidate) for shard in shards):
        return "a part of a target is not in the shard that says what it is"
    if fault := parts_fault(parts.values(), candidate, baseline):
        return fault
    if not all(shard.candidate for shard in shards) or len({shard.shard for shard in shards}) < len(shards):
        return "the plan has an empty shard, or two of one name"
    if any(Counter(shard.baseline) != Counter(there & set(shard.candidate)) for shard in shards):
        return "the baseline of a shard is not what the baseline has of its targets"
    return ""


def planned_shard(shard: ShardTargets) -> PlannedShard:
    """What the event says of a shard of the plan."""
    absent = tuple(sorted(set(shard.candidate) - set(shard.baseline)))
    return PlannedShard(
        shard=shard.shard,
        candidate_targets=len(shard.candidate),
        absent=absent,
        seconds=shard.planned_seconds,
        memory_bytes=shard.planned_memory_bytes,
        deadline_seconds=shard.deadline_seconds,
    )
