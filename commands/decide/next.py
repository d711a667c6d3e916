"""What the gate has to do next, seen from where it stands. Level-triggered: the same state gives the same answer."""

from commands.decide.attempts.settled import attempts_settled, reruns_due, startable
from commands.decide.gate import STEP
from commands.messages import BeginStep, Collect, Judge, MakePlan, Message, Place, PlanReruns, StartAttempts
from projections.registry import RunViews
from projections.run.owed import collections_owed

MEMBER = "local"
"""The one member of the pool: this machine."""


def next_message(views: RunViews, stream: str, free_slots: int) -> Message | None:
    """The next message to handle, or None while there is nothing to do but wait (or nothing left to do).

    | the gate                                         | next            |
    |---|---|
    | has not begun                                    | BeginStep       |
    | has its verdict                                  | None            |
    | owes a collection that may start                 | Collect (slots) |
    | has both inventories and no plan                 | MakePlan        |
    | has shards or re-runs without a place            | Place           |
    | has all measured or no rounds left, and failures that may have to run again | PlanReruns |
    | has everything measured, or no rounds left       | Judge           |
    | owes attempts that may start, and has free slots | StartAttempts   |
    | waits for what runs                              | None            |
    """
    run, gate = views.run, views.gate
    if run.steps.get(STEP) is None:
        return BeginStep(stream=stream, step=STEP)
    if gate.verdict is not None:
        return None
    collections = collections_owed(gate, run.policy)
    if any(entry.ready for entry in collections):
        return Collect(stream=stream, member=MEMBER, slots=free_slots) if free_slots > 0 else None
    if not collections and gate.plan is None:
        return MakePlan(stream=stream)
    if gate.plan is not None and any(shard not in gate.placements for shard in gate.shards()):
        return Place(stream=stream, members=(MEMBER,))
    # What may be started is found at once, what is settled only by looking at every shard.
    if next(startable(views), None) is not None:
        return StartAttempts(stream=stream, slots=free_slots) if free_slots > 0 else None
    if not attempts_settled(views):
        return None
    return PlanReruns(stream=stream) if reruns_due(views) else Judge(stream=stream)
