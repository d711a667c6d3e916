"""The story of a run: what was compared and why, under which rules, who drove it, every attempt, every verdict."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ledger.events import (
    DriverReplaced,
    DriverStarted,
    GatePolicy,
    JudgedCase,
    ResumeStarted,
    RunStarted,
    RunStopped,
    VerdictDecided,
)
from ledger.record import Actor, RecordedEvent
from ledger.values import SIDES, Commit, Digest, Side, Verdict
from projections.gate.shards import Attempt, GateView
from projections.registry import RunViews
from projections.run.summary import SummarySide


class Told(Struct, frozen=True, kw_only=True):
    """When and by whom something was recorded: position in the run, sequence in the ledger, time in UTC."""

    position: int
    sequence: int
    time: str
    actor: Actor


class StoryDriver(Struct, frozen=True, kw_only=True):
    """A process that took the run; `replaced` says what became of the one before, "" when it was not in the way."""

    term: int
    host: str
    pid: int
    replaced: str
    told: Told


class StoryTurn(Struct, frozen=True, kw_only=True):
    """The run was resumed from a step, with what was owed then, or was stopped for a reason."""

    kind: Literal["resumed", "stopped"]
    detail: str
    owed: tuple[str, ...]
    told: Told


class StoryVerdict(Struct, frozen=True, kw_only=True):
    """A verdict with the table that gave it and the evidence with its classes. One that a later resume set aside is
    `superseded`: it happened, but does not hold."""

    verdict: Verdict
    reason: str
    table: str
    policy: str
    classes: Digest
    counts: dict[str, int]
    blocking: tuple[JudgedCase, ...]
    unmeasured: tuple[JudgedCase, ...]
    superseded: bool
    told: Told


class StoryInventory(Struct, frozen=True, kw_only=True):
    """What one side collected, and the evidence that holds it; `errors` are the targets that could not be collected."""

    side: Side
    commit: Commit
    targets: int
    cases: int
    errors: tuple[str, ...]
    inventory: Digest


class StoryShard(Struct, frozen=True, kw_only=True):
    """A planned shard: how many targets it has on each side, and where it was placed, "" where it was not yet."""

    shard: str
    candidate_targets: int
    baseline_targets: int
    member: str


class StoryPlan(Struct, frozen=True, kw_only=True):
    """The plan, its planner and the evidence that holds it."""

    planner: str
    plan: Digest
    shards: tuple[StoryShard, ...]


class StoryAttempt(Struct, frozen=True, kw_only=True):
    """One attempt: where it ran, what came of it, what it took, and the evidence that it left.

    `outcome` is `running` without a record. `targets` is None for all of the shard's. Durations are monotonic seconds.
    """

    shard: str
    side: Side
    attempt: int
    term: int
    member: str
    sequence: int
    started_at: str
    outcome: Literal["running", "complete", "incomplete"]
    cause: str
    detail: str
    counts: dict[str, int]
    targets: int | None
    measured_targets: int
    exit_code: int | None
    signal: int | None
    duration_seconds: float | None
    peak_memory_bytes: int | None
    reader: str
    evidence: dict[str, Digest]


class RunStory(Struct, frozen=True, kw_only=True):
    """Everything about a run on one page. `head` is the digest of the last event that is told of, to be noted down:
    whoever has it can tell later that nothing up to there was changed."""

    run: str
    kind: str
    state: str
    candidate: SummarySide
    baseline: SummarySide
    dirty: bool
    settings: Digest
    policy: GatePolicy
    asked: Told
    steps: dict[str, str | None]
    drivers: tuple[StoryDriver, ...]
    turns: tuple[StoryTurn, ...]
    inventories: tuple[StoryInventory, ...]
    plan: StoryPlan | None
    attempts: tuple[StoryAttempt, ...]
    verdicts: tuple[StoryVerdict, ...]
    position: int
    sequence: int
    time: str
    head: Digest


def tell_story(events: Iterable[RecordedEvent]) -> RunStory:
    """The story that the events of a run tell, from its start on; there must be that start."""
    views, kept, last = RunViews(), [], None
    for last in events:
        views.apply(last)
        if isinstance(last.event, _KEPT):
            kept.append(last)
    if last is None:
        raise LookupError("a run without events has no story")
    run, gate = views.run, views.gate
    return RunStory(
        run=run.run,
        kind=run.begun.kind,
        state=run.status,
        candidate=SummarySide(commit=run.begun.candidate, ref=run.begun.candidate_ref),
        baseline=SummarySide(commit=run.begun.baseline, ref=run.begun.baseline_ref, reason=run.begun.baseline_reason),
        dirty=run.begun.dirty,
        settings=run.begun.config,
        policy=run.policy,
        asked=next(_told(one) for one in kept if isinstance(one.event, RunStarted)),
        steps=dict(run.steps),
        drivers=tuple(_drivers(kept)),
        turns=tuple(_turns(kept)),
        inventories=tuple(_inventories(gate)),
        plan=_plan(gate),
        attempts=tuple(_attempts(gate)),
        verdicts=tuple(_verdicts(kept)),
        position=last.header.position,
        sequence=last.sequence,
        time=last.header.time,
        head=last.digest,
    )


_KEPT = (RunStarted, DriverStarted, DriverReplaced, ResumeStarted, RunStopped, VerdictDecided)


def _told(recorded: RecordedEvent) -> Told:
    header = recorded.header
    return Told(position=header.position, sequence=recorded.sequence, time=header.time, actor=header.actor)


def _drivers(kept: Iterable[RecordedEvent]) -> Iterator[StoryDriver]:
    for recorded in kept:
        event = recorded.event
        if isinstance(event, DriverStarted | DriverReplaced):
            replaced = event.reason if isinstance(event, DriverReplaced) else ""
            told = _told(recorded)
            yield StoryDriver(term=event.term, host=event.host, pid=event.pid, replaced=replaced, told=told)


def _turns(kept: Iterable[RecordedEvent]) -> Iterator[StoryTurn]:
    for recorded in kept:
        event, told = recorded.event, _told(recorded)
        if isinstance(event, ResumeStarted):
            yield StoryTurn(kind="resumed", detail=event.step, owed=event.owed, told=told)
        elif isinstance(event, RunStopped):
            yield StoryTurn(kind="stopped", detail=event.reason, owed=(), told=told)


def _verdicts(kept: Sequence[RecordedEvent]) -> Iterator[StoryVerdict]:
    for number, recorded in enumerate(kept):
        event = recorded.event
        if isinstance(event, VerdictDecided):
            yield StoryVerdict(
                verdict=event.verdict,
                reason=event.reason,
                table=event.table,
                policy=recorded.header.policy,
                classes=event.classes,
                counts=event.counts,
                blocking=event.blocking,
                unmeasured=event.unmeasured,
                superseded=any(isinstance(later.event, ResumeStarted) for later in kept[number:]),
                told=_told(recorded),
            )


def _inventories(gate: GateView) -> Iterator[StoryInventory]:
    for side in SIDES:
        event = gate.inventories.get(side)
        if event is not None:
            yield StoryInventory(
                side=side,
                commit=event.commit,
                targets=event.targets,
                cases=event.cases,
                errors=event.errors,
                inventory=event.inventory,
            )


def _plan(gate: GateView) -> StoryPlan | None:
    if gate.plan is None:
        return None
    shards = tuple(
        StoryShard(
            shard=planned.shard,
            candidate_targets=planned.candidate_targets,
            baseline_targets=planned.baseline_targets,
            member=gate.placements.get(planned.shard, ""),
        )
        for planned in gate.plan.shards
    )
    return StoryPlan(planner=gate.plan.policy, plan=gate.plan.plan, shards=shards)


def _attempts(gate: GateView) -> Iterator[StoryAttempt]:
    """Every attempt in the order of its start."""
    attempts = (attempt for state in gate.sides.values() for attempt in state.attempts)
    return (_attempt(attempt, gate) for attempt in sorted(attempts, key=lambda one: one.sequence))


def _attempt(attempt: Attempt, gate: GateView) -> StoryAttempt:
    started, record = attempt.started, attempt.recorded
    whole = started.targets is None or started.shard in gate.reruns
    named = {name: getattr(record, name) for name in ("table", "record", "log", "evidence_key")} if record else {}
    return StoryAttempt(
        shard=started.shard,
        side=started.side,
        attempt=started.attempt,
        term=started.term,
        member=started.member,
        sequence=attempt.sequence,
        started_at=attempt.started_at,
        outcome="running" if record is None else "complete" if record.complete else "incomplete",
        cause=(record.cause or "") if record else "",
        detail=record.detail if record else "",
        counts=record.counts if record else {},
        targets=None if whole else len(started.targets or ()),
        measured_targets=record.measured_targets if record else 0,
        exit_code=record.exit_code if record else None,
        signal=record.signal if record else None,
        duration_seconds=record.duration_seconds if record else None,
        peak_memory_bytes=record.peak_memory_bytes if record else None,
        reader=record.reader if record else "",
        evidence={name: digest for name, digest in named.items() if digest is not None},
    )
