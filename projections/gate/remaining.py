"""How long a gate still takes, as far as its plan tells, and what has ended of it.

What is owed or running is laid out on the slots in the order in which the gate would start it: whenever a slot is free,
the first that may start takes it. Retries that may still come to be owed are not foreseen, nor is the baseline of what
the candidate has not failed yet under `on-failure`, nor re-runs that are not planned yet, nor waiting for memory.
"""

from collections.abc import Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from msgspec import Struct

from ledger.events import PlannedShard
from ledger.values import Side
from projections.gate.shards import Attempt, GateView
from projections.run.owed import owed
from projections.run.state import RunView

FACTOR_LEAST, FACTOR_MOST = 0.25, 4.0
OVERDUE = 2.0
"""What runs so many times longer than it was expected to may run for any time."""


class Remaining(Struct, frozen=True, kw_only=True):
    """How long a gate still takes; `seconds` is None where nobody can tell, and `reason` then is the code of why.

    `factor` is what whole attempts that ended took over what was planned for them, within 0.25 and 4; `compared` says
    how many those are. With none the plan alone speaks, and the factor is 1.
    """

    seconds: float | None
    reason: str
    factor: float
    compared: int


class Work(NamedTuple):
    """A side of a shard that runs or will run, for so many seconds from now or from its start. One that `waits` does so
    for the candidate of its shard."""

    shard: str
    side: Side
    seconds: float
    running: bool = False
    waits: bool = False


def remaining_time(run: RunView, gate: GateView, now: datetime) -> Remaining:
    """How long this gate still takes if it is driven from now on."""
    if gate.plan is None:
        return Remaining(seconds=None, reason="not-planned-yet", factor=1.0, compared=0)
    shards = {shard.shard: shard for shard in gate.plan.shards}
    factor, compared = _factor(gate, shards)
    # A re-run takes its share of the time of the shard that it is of.
    shards |= {rerun.shard: shards[rerun.of] for rerun in gate.reruns.values()}

    def unknown(reason: str) -> Remaining:
        return Remaining(seconds=None, reason=reason, factor=factor, compared=compared)

    work: list[Work] = []
    for attempt in gate.in_flight():
        started = attempt.started
        planned = _planned_seconds(shards.get(started.shard), started.side, started.targets)
        if planned is None:
            return unknown("planned-by-count")
        elapsed = _elapsed_seconds(attempt, now)
        if elapsed > OVERDUE * max(planned, planned * factor):
            return unknown("longer-than-planned")
        work.append(Work(started.shard, started.side, max(0.0, planned * factor - elapsed), running=True))
    for entry in owed(gate, run.policy):
        if entry.status not in ("pending", "owed"):
            continue
        planned = _planned_seconds(shards.get(entry.shard), entry.side, entry.targets)
        if planned is None:
            return unknown("planned-by-count")
        work.append(Work(entry.shard, entry.side, planned * factor, waits=not entry.ready))
    seconds = schedule_seconds(work, run.policy.parallel)
    return Remaining(seconds=seconds, reason="", factor=factor, compared=compared)


def schedule_seconds(work: Sequence[Work], slots: int) -> float:
    """When the last of it ends; what runs already has its slot, and the rest stands in the order of its start."""
    waiting = [one for one in work if not one.running]
    blocked = {one.shard for one in work if one.side == "candidate"}
    running = [(one.seconds, one.shard, one.side) for one in work if one.running]
    heapify(running)
    now = 0.0
    while running or waiting:
        while len(running) < max(1, slots) and (ready := _first_ready(waiting, blocked)) is not None:
            waiting.remove(ready)
            heappush(running, (now + ready.seconds, ready.shard, ready.side))
        now = running[0][0]
        # What ends at the same time is seen at the same time: only then is anything started.
        while running and running[0][0] == now:
            _, shard, side = heappop(running)
            if side == "candidate":
                blocked.discard(shard)
    return now


def _first_ready(waiting: Sequence[Work], blocked: set[str]) -> Work | None:
    return next((one for one in waiting if not one.waits or one.shard not in blocked), None)


def _planned_seconds(shard: PlannedShard | None, side: Side, targets: tuple[str, ...] | None) -> float | None:
    """What is planned for these targets of a side; a part of them gets its share. None when it was planned by count."""
    if shard is None or shard.seconds is None:
        return None
    every = shard.candidate_targets if side == "candidate" else shard.baseline_targets
    return shard.seconds if targets is None else shard.seconds * len(targets) / max(1, every)


def _elapsed_seconds(attempt: Attempt, now: datetime) -> float:
    return max(0.0, (now - datetime.fromisoformat(attempt.started_at)).total_seconds())


def _factor(gate: GateView, shards: dict[str, PlannedShard]) -> tuple[float, int]:
    """What took place over what was planned, from complete attempts that ran all targets of their side."""
    planned_seconds, actual_seconds, compared = 0.0, 0.0, 0
    for side in gate.sides.values():
        planned = _planned_seconds(shards.get(side.shard), side.side, None)
        for attempt in side.attempts:
            record = attempt.recorded
            if planned and record is not None and record.complete and attempt.started.targets is None:
                planned_seconds += planned
                actual_seconds += record.duration_seconds
                compared += 1
    if not compared:
        return 1.0, 0
    return min(FACTOR_MOST, max(FACTOR_LEAST, actual_seconds / planned_seconds)), compared
