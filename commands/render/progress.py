"""What happens to the jobs of a gate: a line for each change, and a few words for where a job stands."""

from collections.abc import Iterable
from typing import NamedTuple

from commands.render.words import counted, seconds
from ledger.events import AttemptRecorded, GatePolicy
from projections.gate.remaining import Remaining
from projections.gate.shards import GateView, ShardSide

WAITS_FOR_ROOM = "waits for room on this machine"
"""Where an attempt stands that found no room yet, which is no trouble of its tests."""


class Change(NamedTuple):
    """The start or the end of an attempt; the first three name it, `words` tell it."""

    job: str
    attempt: int
    ended: bool
    words: str


def changes(gate: GateView, policy: GatePolicy) -> Iterable[Change]:
    """Everything that has happened to each job so far, in its order."""
    for side in gate.sides.values():
        job = f"{side.shard}/{side.side}"
        for attempt in side.attempts:
            number = attempt.started.attempt
            yield Change(job, number, False, f"started, attempt {number}" if number > 1 else "started")
            if attempt.recorded:
                again = attempt is not side.attempts[-1] or side.status(policy) == "owed"
                yield Change(job, number, True, _outcome(attempt.recorded, again=again))


def _outcome(record: AttemptRecorded, *, again: bool) -> str:
    took = seconds(record.duration_seconds)
    if record.complete:
        return ", ".join(filter(None, (f"done in {took}", counted(record.counts))))
    ran = f" after {took}" if record.duration_seconds else ""
    if record.cause == "stopped":
        return f"stopped{ran}"
    if _waits_for_room(record):
        return f"{WAITS_FOR_ROOM}: {record.detail}" if record.detail else WAITS_FOR_ROOM
    what_next = "will be tried again" if again else "no rounds are left"
    return f"unmeasured{ran} ({record.cause or 'some targets'}), {what_next}"


def _waits_for_room(record: AttemptRecorded) -> bool:
    """Whether the attempt was only put off: it used up no round, and is started as soon as there is room."""
    return record.cause == "no-room" and not record.counted


def time_left(remaining: Remaining) -> str:
    """How long a gate still takes, and what that rests on."""
    if remaining.seconds is None:
        return f"unknown ({remaining.reason})"
    left = f"about {seconds(remaining.seconds)}" if remaining.seconds >= 1 else "less than 1 s"
    if remaining.compared == 0:
        return f"{left}, by the plan alone"
    return f"{left}, if all goes on to take {remaining.factor:.2f} times what was planned"


def standing(side: ShardSide, policy: GatePolicy) -> str:
    """Where a job stands."""
    status, record = side.status(policy), side.last
    if status == "running":
        return f"running, attempt {len(side.attempts)}" if record else "running"
    if status == "owed":
        return WAITS_FOR_ROOM if record and _waits_for_room(record) else "will be tried again"
    if status == "unmeasured":
        return f"unmeasured ({record.cause or 'some targets'})" if record else status
    return counted(record.counts) or "done" if record else "waiting"
