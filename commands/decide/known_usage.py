"""From what earlier runs tell of the targets to a request for the planner, for a gate that has to go on at night.

Rules:
- a target that no run tells of is planned with what most others need, which the plan says.
- a bound from above never keeps a target from being planned: it counts for as much as a shard may need. A target that
  is known to need more than that is planned all the same, alone, with a warning: its limit will end it there.
- where the wished number of shards has no room for all, there are more; the plan says so.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from commands.decide.planner import PlannerPolicy, PlanRequest, UsagePlan, plan_shards_by_usage
from commands.decide.planner.estimate import KnownUsage, complete_usage
from commands.messages import Refusal
from commands.render.words import count, memory
from ledger.events import GatePolicy, PlanPolicy
from ledger.tables import KnownTarget, UsageTable

LONGEST_SECONDS = 10**9
"""The deadline where the policy has no time limit."""


def plan_by_known_usage(targets: Sequence[str], known: UsageTable, policy: GatePolicy, machine_bytes: int) -> UsagePlan:
    """The plan of a gate. Raises Refusal only when there is nothing to plan."""
    request, warnings = planning_request(targets, known, policy, budget_bytes(policy, machine_bytes), strict=False)
    try:
        plan = plan_shards_by_usage(request)
    except Refusal as refusal:
        if refusal.code != "plan-does-not-fit":
            raise
        plan = plan_shards_by_usage(replace(request, count=None))
        needed = f"{count(len(plan.shards), 'shard')} instead of the {policy.shards} that were asked for"
        warnings = (f"{needed}: fewer have no room for the memory of all targets", *warnings)
    return replace(plan, warnings=(*warnings, *plan.warnings))


def planning_request(
    targets: Sequence[str], known: UsageTable, policy: GatePolicy, budget: int, *, strict: bool
) -> tuple[PlanRequest, tuple[str, ...]]:
    """What the planner is asked for, and what is to be said of what it is told.

    The session that every shard has besides its targets is taken off the budget (in bytes). When `strict`, a target
    that is known to need more than the budget stays what it is, for the planner to refuse.
    """
    room = max(min(budget, 1), budget - known.session_memory_bytes)
    told = {row.target: row for row in known.targets}
    usage, warnings = _within(targets, told, room, strict)
    estimated = complete_usage(targets, usage, room)
    request = PlanRequest(
        targets=tuple(targets),
        usage=estimated.usage,
        budget_bytes=room,
        count=policy.shards or None,
        target_seconds=None if policy.shards else policy.planning.target_seconds or None,
        at_least=policy.parallel,
        policy=planner_policy(policy),
    )
    return request, (*warnings, *estimated.assumptions)


def budget_bytes(policy: GatePolicy, machine_bytes: int) -> int:
    """The memory that a shard may need: as configured, else the gate's limit, else an even part of the machine's."""
    even_part = machine_bytes // policy.parallel
    return policy.planning.budget_bytes or policy.memory_limit_bytes or max(1, even_part)


def planner_policy(policy: GatePolicy) -> PlannerPolicy:
    """The planner's part of a run's rules."""
    planning = policy.planning
    return PlannerPolicy(
        heavy_percent=planning.heavy_percent,
        spawn_targets=planning.spawn_targets,
        spawn_shards=planning.spawn_shards,
        deadline_floor_seconds=int(planning.deadline_floor_seconds),
        deadline_percent=planning.deadline_percent,
        deadline_cap_seconds=int(policy.time_limit_seconds) or LONGEST_SECONDS,
    )


def spawn_warnings(policy: PlanPolicy, targets: Collection[str]) -> tuple[str, ...]:
    """What to say of the names in `spawn_targets` that are no targets, and so do nothing; it decides nothing."""
    unknown = sorted(set(policy.spawn_targets).difference(targets))
    return tuple(f"plan.spawn_targets names {name!r}, which is no target of the candidate" for name in unknown)


def _within(
    targets: Sequence[str], told: Mapping[str, KnownTarget], room: int, strict: bool
) -> tuple[dict[str, KnownUsage], list[str]]:
    """What is known of the targets, none above the room of a shard, and what is to be said of those that were."""
    usage: dict[str, KnownUsage] = {}
    too_large, bounds = [], 0
    for target in targets:
        row = told.get(target)
        if row is None:
            continue
        used, is_bound = row.memory_bytes, row.memory_basis == "upper-bound"
        bounds += is_bound
        if used is not None and used > room and not (strict and not is_bound):
            too_large += [] if is_bound else [(target, used)]
            used = room
        usage[target] = KnownUsage(seconds=row.seconds, memory_bytes=used, aged=row.aged)
    warnings = [
        f"{target} needs {memory(used)}, more than the {memory(room)} that a shard has for it"
        for target, used in too_large
    ]
    if bounds:
        warnings.append(f"the memory of {count(bounds, 'target')} is a bound from above: they never ran alone")
    return usage, warnings
