"""Decisions of a gate: collect, plan, place, start attempts, record them, and decide the verdict.

Rules:
- nothing is planned before both inventories are recorded, and nothing runs before the plan is proved a partition.
- an attempt is promised only for what is owed, in the order of the plan, candidate before baseline, within the slots.
- an attempt is recorded once; a record without a promise is refused.
- the verdict is decided when every side is measured or has used up its rounds and every new failure was run again that
  is to be, and not before.
"""

from itertools import islice

from commands.decide.attempts.limits import limits_of
from commands.decide.attempts.settled import attempts_settled, reruns_due, startable
from commands.decide.base import NOTHING, Decided, Documents, Needs, stored
from commands.decide.planning import plan_shards, planned_shard
from commands.decide.verdict import carried, evidence_needed, inventory_of, judge_gate, recheck_needed
from commands.messages import Collect, Judge, MakePlan, Place, RecordAttempt, Refusal, StartAttempts
from ledger.events import (
    COLLECTION,
    RERUN,
    AttemptRecorded,
    AttemptStarted,
    Carried,
    Collected,
    Event,
    Measured,
    Placed,
    Planned,
    RunFinished,
    StepFinished,
    VerdictDecided,
)
from ledger.tables import Inventory, UsageTable
from projections.gate.shards import Attempt, GateView
from projections.people.muting import ValidMutes
from projections.registry import RunViews
from projections.run.owed import Owed, collection_owed, owed

STEP = "gate"


def collect(message: Collect, views: RunViews, documents: Documents) -> Decided:
    """Promise the collections that are owed and may be started."""
    entries = [entry for entry in owed(views.gate, views.run.policy) if entry.shard == COLLECTION and entry.ready]
    return Decided(tuple(_start(entry, views, message.member) for entry in entries[: max(0, message.slots)]))


def plan_needs(message: MakePlan, views: RunViews) -> Needs:
    """The planner reads both inventories and what is known of usage."""
    known: Needs = {} if message.usage is None else {message.usage: UsageTable}
    return {
        **known,
        **recheck_needed(views.gate),
        **{one.inventory: Inventory for one in views.gate.inventories.values()},
    }


def make_plan(message: MakePlan, views: RunViews, documents: Documents) -> Decided:
    """One plan per run. Refused while an inventory is missing or when the candidate has no tests."""
    if views.gate.plan is not None:
        return NOTHING
    inventories = views.gate.inventories
    if collection_owed(owed(views.gate, views.run.policy)):
        raise Refusal("not-collected", "the tests of both sides must be collected before they can be planned")
    plan = plan_shards(
        inventory_of(views.gate, "candidate", documents),
        inventory_of(views.gate, "baseline", documents),
        (inventories["candidate"].inventory, inventories["baseline"].inventory),
        views.run.policy,
        None if message.usage is None else documents.get(message.usage, UsageTable),
        message.machine_bytes,
    )
    digest, data = stored(plan)
    planned = Planned(
        commit=views.run.begun.candidate,
        plan=digest,
        policy=plan.policy,
        shards=tuple(planned_shard(shard) for shard in plan.shards),
        budget_bytes=plan.budget_bytes,
        makespan_seconds=plan.makespan_seconds,
        bound_seconds=plan.bound_seconds,
        origins=plan.origins,
        warnings=plan.warnings,
    )
    return Decided((planned,), (data,))


def place(message: Place, views: RunViews, documents: Documents) -> Decided:
    """Place every shard and every re-run that has no place yet. This machine is the pool's one member."""
    if views.gate.plan is None:
        raise Refusal("not-planned", "there is no plan to place")
    if not message.members:
        raise Refusal("pool-empty", "no member of the pool can run a shard")
    unplaced = [shard for shard in views.gate.shards() if shard not in views.gate.placements]
    return Decided(tuple(Placed(shard=shard, member=message.members[0], reason="only-member") for shard in unplaced))


def start_attempts(message: StartAttempts, views: RunViews, documents: Documents) -> Decided:
    """Promise owed attempts, as many as there are free slots."""
    if views.gate.plan is None:
        raise Refusal("not-planned", "there is no plan to run")
    chosen = islice(startable(views), max(0, message.slots))
    return Decided(tuple(_start(entry, views, views.gate.placements[entry.shard]) for entry in chosen))


def _start(entry: Owed, views: RunViews, member: str) -> AttemptStarted:
    begun, limits = views.run.begun, limits_of(entry, views)
    return AttemptStarted(
        shard=entry.shard,
        side=entry.side,
        attempt=len(views.gate.side(entry.shard, entry.side).attempts) + 1,
        term=views.run.term,
        commit=begun.candidate if entry.side == "candidate" else begun.baseline,
        member=member,
        targets=entry.next_targets,
        tests=entry.tests,
        **limits._asdict(),
    )


def record_attempt(message: RecordAttempt, views: RunViews, documents: Documents) -> Decided:
    """Record what an attempt gave, once; a complete collection also gives its side's inventory."""
    attempt = _promised(message, views.gate)
    if attempt.recorded is not None:
        return NOTHING
    recorded = AttemptRecorded(
        shard=message.shard, side=message.side, attempt=message.attempt, term=attempt.started.term,
        commit=message.commit, complete=message.complete, counted=message.counted, cause=message.cause,
        detail=message.detail, exit_code=message.exit_code, signal=message.signal, started_at=message.started_at,
        duration_seconds=message.duration_seconds, peak_memory_bytes=message.peak_memory_bytes, reader=message.reader,
        evidence_key=message.evidence_key, table=message.table, record=message.record, log=message.log,
        targets=message.targets, measured_targets=message.measured_targets, missing=message.missing,
        attention=message.attention, counts=message.counts, failures=message.failures,
    )  # fmt: skip
    return Decided((recorded, *_inventory(message), *_measured(message)))


def _measured(message: RecordAttempt) -> tuple[Event, ...]:
    if message.session_seconds is None or message.table is None or not (message.measured_targets or message.exceeded):
        return ()
    if message.shard.startswith(RERUN):
        # What a test needs alone, or when it is run again, is not what its target is planned by.
        return ()
    return (
        Measured(
            shard=message.shard,
            side=message.side,
            attempt=message.attempt,
            commit=message.commit,
            table=message.table,
            targets=message.measured_targets,
            seconds=message.target_seconds,
            session_seconds=message.session_seconds,
            session_memory_bytes=message.session_memory_bytes,
            peak_memory_bytes=message.peak_memory_bytes,
            memory_basis=message.memory_basis,
            memory_method=message.memory_method,
            sampling_seconds=message.sampling_seconds,
            exceeded=message.exceeded,
        ),
    )


def _inventory(message: RecordAttempt) -> tuple[Event, ...]:
    if message.inventory is None or not message.complete:
        return ()
    return (
        Collected(
            side=message.side,
            commit=message.commit,
            attempt=message.attempt,
            inventory=message.inventory,
            targets=message.targets,
            cases=message.cases,
            errors=message.errors,
        ),
    )


def _promised(message: RecordAttempt, gate: GateView) -> Attempt:
    for attempt in gate.side(message.shard, message.side).attempts:
        if attempt.started.attempt == message.attempt:
            return attempt
    raise Refusal(
        "attempt-unknown",
        f"attempt {message.attempt} of {message.shard}/{message.side} was never started in this run",
    )


def judge_needs(message: Judge, views: RunViews) -> Needs:
    """The verdict reads the inventories, the plan and the tables of every attempt."""
    return evidence_needed(views.gate)


def judge(message: Judge, views: RunViews, documents: Documents) -> Decided:
    """The verdict, the end of the step and the end of the run, at once."""
    if views.gate.verdict is not None:
        return NOTHING
    if not attempts_settled(views):
        raise Refusal("not-settled", "attempts are still owed or running, so no verdict can be decided yet")
    if reruns_due(views):
        raise Refusal("not-rerun", "new failures may have to be run again before a verdict can be decided")
    mutes = ValidMutes.of(message.mutes, message.date, message.environment)
    judged = judge_gate(views, documents, mutes)
    digest, data = stored(judged.table)
    verdict = VerdictDecided(
        verdict=judged.verdict,
        reason=judged.reason,
        table=judged.table.table,
        classes=digest,
        counts=judged.counts,
        blocking=judged.blocking,
        unmeasured=judged.unmeasured,
        muted=judged.muted,
    )
    finished = StepFinished(step=STEP, outcome=judged.verdict)
    return Decided((*_carried(views.gate, documents), verdict, finished, RunFinished(verdict=judged.verdict)), (data,))


def _carried(gate: GateView, documents: Documents) -> tuple[Event, ...]:
    """What of an earlier gate the verdict rests on as well."""
    if gate.recheck is None or gate.plan is None:
        return ()
    rows = carried(gate, documents)
    if not rows:
        return ()
    told = Carried(
        gate=gate.recheck.gate,
        commit=gate.recheck.commit,
        classes=gate.recheck.classes,
        targets=len({row.test.target for row in rows}),
        cases=len(rows),
    )
    return (told,)
