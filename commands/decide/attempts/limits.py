"""What an attempt may take: the memory that is set aside for it, and where its memory and its time end.

| the shard is planned by | memory limit                                             | time limit                    |
|---|---|---|
| usage                   | its planned memory and headroom, at least the reservation | its deadline                  |
| count                   | the gate's limit                                         | the gate's limit              |

A re-run has the limits of the shard that it is of. Each earlier attempt of the same side that a limit ended doubles
that limit. No limit is above the gate's own; without one, memory ends at what the machine was planned to have for all
that runs at a time. Runs of programs that knew no reservations have none, and only the gate's limits.
"""

from typing import NamedTuple

from msgspec import UNSET

from ledger.events import GatePolicy, Planned, PlannedShard
from projections.gate.shards import ShardSide
from projections.registry import RunViews
from projections.run.owed import Owed


class Limits(NamedTuple):
    """The fields of `attempt-started` of the same names; 0 is no limit, None what the policy says."""

    reserved_bytes: int | None
    memory_limit_bytes: int | None
    time_limit_seconds: float | None


def limits_of(entry: Owed, views: RunViews) -> Limits:
    """The limits of the next attempt at what is owed."""
    policy, plan = views.run.policy, views.gate.plan
    if policy.machine is UNSET:
        return Limits(None, None, None)
    side = views.gate.side(entry.shard, entry.side)
    rerun = views.gate.reruns.get(entry.shard)
    name = rerun.of if rerun else entry.shard
    shard = next((shard for shard in plan.shards if shard.shard == name), None) if plan else None
    memory_limit = policy.memory_limit_bytes
    if plan is not None and shard is not None and shard.memory_bytes is not None:
        memory_limit = _memory_limit(shard, shard.memory_bytes, plan, policy, _ended_by(side, "memory-limit"))
    reserved = max(policy.placing.reservation_bytes, memory_limit)
    return Limits(reserved, memory_limit, _time_limit(shard, policy, _ended_by(side, "time-limit")))


def gets_more_memory(entry: Owed, views: RunViews) -> bool:
    """Whether a limit of memory ended the newest attempt at what is owed, and the next one may use more."""
    side = views.gate.side(entry.shard, entry.side)
    if side.last is None or side.last.cause != "memory-limit":
        return False
    before, then = side.attempts[-1].started.memory_limit_bytes, limits_of(entry, views).memory_limit_bytes
    return bool(before and then is not None and (then == 0 or then > before))


def _memory_limit(shard: PlannedShard, planned: int, plan: Planned, policy: GatePolicy, ended: int) -> int:
    placing = policy.placing
    with_headroom = -(-planned * placing.headroom_percent // 100)
    limit = max(placing.reservation_bytes, with_headroom) << ended
    ceiling = policy.memory_limit_bytes or (plan.budget_bytes or 0) * policy.parallel
    return min(limit, max(ceiling, planned if not policy.memory_limit_bytes else 0))


def _time_limit(shard: PlannedShard | None, policy: GatePolicy, ended: int) -> float:
    if shard is None or shard.deadline_seconds is None:
        return policy.time_limit_seconds
    limit = float(shard.deadline_seconds << ended)
    return min(limit, policy.time_limit_seconds) if policy.time_limit_seconds else limit


def _ended_by(side: ShardSide, cause: str) -> int:
    """How many attempts of this side such a limit ended."""
    return sum(attempt.recorded is not None and attempt.recorded.cause == cause for attempt in side.attempts)
