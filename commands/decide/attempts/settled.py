"""When the attempts of a gate have come to their end, and what may be started until then."""

from collections.abc import Iterator

from projections.registry import RunViews
from projections.run.owed import Owed, owed

RERUNS_AT_A_TIME = 4
"""More re-runs at a time would disturb each other, which is what they are to find out about."""


def attempts_settled(views: RunViews) -> bool:
    """Whether nothing runs and everything that is owed has used up its rounds."""
    entries = owed(views.gate, views.run.policy)
    if views.gate.plan is None and not any(entry.status == "unmeasured" for entry in entries):
        return False
    return all(entry.status == "unmeasured" for entry in entries)


def reruns_due(views: RunViews) -> bool:
    """Whether it has to be found out yet if something is run again: a test failed, and nobody looked since."""
    gate = views.gate
    if not views.run.policy.reruns or gate.plan is None or gate.reruns_closed:
        return False
    sides = (gate.side(shard.shard, "candidate") for shard in gate.plan.shards)
    records = (attempt.recorded for side in sides for attempt in side.attempts)
    return any(record is not None and record.failures for record in records)


def startable(views: RunViews) -> Iterator[Owed]:
    """What is owed and may be started now, in order: what has its place, and only so many re-runs at a time."""
    gate = views.gate
    running = sum(attempt.started.shard in gate.reruns for attempt in gate.in_flight()) if gate.reruns else 0
    for entry in views.ready():
        if entry.shard in gate.reruns:
            running += 1
            if running > RERUNS_AT_A_TIME:
                return
        if entry.shard in gate.placements:
            yield entry
