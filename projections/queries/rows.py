"""The rows of one run: each a flat record whose fields are the columns. Names of tests are in their text form."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from msgspec import Struct, structs

from ledger.events import COLLECTION, Unknown
from ledger.record import RecordedEvent
from ledger.tables import CaseTable, ClassTable, Document, Inventory
from ledger.values import SIDES, Commit, Digest, Outcome, Side
from projections.gate.shards import Attempt, ShardSide, SideStatus
from projections.registry import RunViews
from projections.run.owed import owed


class Load(Protocol):
    """Gives a document of the evidence. Raises EvidenceDamaged."""

    def __call__(self, digest: Digest, kind: type[Document]) -> Document: ...


class RunSource(Struct, frozen=True):
    """What the rows of a run are made of: its views, its events, and the evidence that they name."""

    views: RunViews
    events: Callable[[], Iterable[RecordedEvent]]
    load: Load


class EventRow(Struct, frozen=True, kw_only=True):
    """One event with its header; `event` are the fields of the event itself, or its payload as text when this version
    does not know the tag."""

    sequence: int
    position: int
    time: str
    tag: str
    version: int
    who: str
    host: str
    tool: str
    command: str
    index: int
    message: str
    policy: str
    basis: int
    digest: Digest
    event: Any


def event_rows(source: RunSource) -> Iterator[EventRow]:
    """Every event of the run."""
    for recorded in source.events():
        header, event = recorded.header, recorded.event
        yield EventRow(
            sequence=recorded.sequence,
            position=header.position,
            time=header.time,
            tag=header.tag,
            version=header.version,
            who=header.actor.who,
            host=header.actor.host,
            tool=header.actor.tool,
            command=header.command,
            index=header.index,
            message=header.message,
            policy=header.policy,
            basis=header.basis,
            digest=recorded.digest,
            event=event.payload if isinstance(event, Unknown) else event,
        )


class ShardRow(Struct, frozen=True, kw_only=True):
    """One side of a shard, or a side's collection. `targets` is how many it has, None before that is known; `missing`
    is how many of them are not measured, None when no attempt could tell them apart. `cause` and `detail` are those of
    the last record; `duration_seconds` is over all attempts, `peak_memory_bytes` the highest of them."""

    shard: str
    side: Side
    status: SideStatus
    member: str
    targets: int | None
    missing: int | None
    attempts: int
    rounds: int
    cause: str | None
    detail: str
    duration_seconds: float
    peak_memory_bytes: int | None


def shard_rows(source: RunSource) -> Iterator[ShardRow]:
    """Both collections, then the sides of each planned shard, then those of the re-runs."""
    gate = source.views.gate
    for state in gate.collections():
        collected = gate.inventories.get(state.side)
        yield _shard_row(source, state, collected.targets if collected else None)
    for planned in gate.plan.shards if gate.plan else ():
        targets = {"candidate": planned.candidate_targets, "baseline": planned.baseline_targets}
        for side in SIDES:
            if targets[side]:
                yield _shard_row(source, gate.side(planned.shard, side), targets[side])
    for rerun in gate.reruns.values():
        for side in SIDES if rerun.baseline else SIDES[:1]:
            yield _shard_row(source, gate.side(rerun.shard, side), len(rerun.targets))


def _shard_row(source: RunSource, state: ShardSide, targets: int | None) -> ShardRow:
    records = [attempt.recorded for attempt in state.attempts if attempt.recorded]
    last = state.last
    return ShardRow(
        shard=state.shard,
        side=state.side,
        status=state.status(source.views.run.policy),
        member=source.views.gate.placements.get(state.shard, ""),
        targets=targets,
        missing=None if state.missing is None else len(state.missing),
        attempts=len(state.attempts),
        rounds=state.rounds,
        cause=last.cause if last else None,
        detail=last.detail if last else "",
        duration_seconds=sum((record.duration_seconds for record in records), 0.0),
        peak_memory_bytes=max((r.peak_memory_bytes for r in records if r.peak_memory_bytes is not None), default=None),
    )


class AttemptRow(Struct, frozen=True, kw_only=True):
    """One attempt, in the order of their start. What only its record can tell is None while there is none; `complete`
    says that every target asked for was measured, `counted` that it used up a round. `sequence` is that of its start.
    `table`, `record` and `log` are evidence."""

    shard: str
    side: Side
    attempt: int
    term: int
    member: str
    commit: Commit
    started_at: str
    recorded_at: str | None
    complete: bool | None
    counted: bool | None
    cause: str | None
    detail: str | None
    exit_code: int | None
    signal: int | None
    duration_seconds: float | None
    peak_memory_bytes: int | None
    targets: int | None
    measured_targets: int | None
    failures: int | None
    reader: str | None
    table: Digest | None
    record: Digest | None
    log: Digest | None
    sequence: int


_OF_RECORD = (
    "complete", "counted", "cause", "detail", "exit_code", "signal", "duration_seconds", "peak_memory_bytes", "targets",
    "measured_targets", "reader", "table", "record", "log",
)  # fmt: skip


def attempt_rows(source: RunSource) -> Iterator[AttemptRow]:
    """Every attempt of the run, collections included."""
    for attempt in _attempts(source):
        started, record = attempt.started, attempt.recorded
        told = {name: getattr(record, name) if record else None for name in _OF_RECORD}
        yield AttemptRow(
            shard=started.shard,
            side=started.side,
            attempt=started.attempt,
            term=started.term,
            member=started.member,
            commit=started.commit,
            started_at=attempt.started_at,
            recorded_at=attempt.recorded_at if record else None,
            failures=len(record.failures) if record else None,
            sequence=attempt.sequence,
            **told,
        )


def _attempts(source: RunSource) -> list[Attempt]:
    attempts = (attempt for side in source.views.gate.sides.values() for attempt in side.attempts)
    return sorted(attempts, key=lambda attempt: attempt.sequence)


class CaseRow(Struct, frozen=True, kw_only=True):
    """One reported case of one attempt, as its report says. `line` is the first line of its message, `reruns` counts
    the failed tries before its outcome, `subtests_failed` the failed subtests in it."""

    test: str
    target: str
    shard: str
    side: Side
    attempt: int
    outcome: Outcome
    duration_seconds: float
    line: str
    reason: str
    worker: str
    reruns: int
    subtests_failed: int


def case_rows(source: RunSource) -> Iterator[CaseRow]:
    """Every case of every attempt's table."""
    for attempt in _attempts(source):
        started, record = attempt.started, attempt.recorded
        if record is None or record.table is None or record.shard == COLLECTION:
            continue
        for row in source.load(record.table, CaseTable).cases:
            told = structs.asdict(row)
            del told["test"], told["message"]
            yield CaseRow(
                test=row.test.text(),
                target=row.test.target,
                shard=started.shard,
                side=started.side,
                attempt=started.attempt,
                **told,
            )


class ClassRow(Struct, frozen=True, kw_only=True):
    """The judgement of one case: its states on both sides, its class, the effect on the verdict, and the cell of the
    decision table that gave both. `cause` says why it is unmeasured, `mute` names the muting that keeps it from
    blocking, `note` is the code of what else there is to say of it."""

    test: str
    target: str
    candidate: str
    baseline: str
    case_class: str
    effect: str
    rule: str
    line: str
    cause: str
    mute: str | None
    note: str | None


def class_rows(source: RunSource) -> Iterator[ClassRow]:
    """Every case of the verdict that stands; nothing while there is none."""
    verdict = source.views.gate.verdict
    for row in source.load(verdict.classes, ClassTable).rows if verdict else ():
        named = {"test": row.test.text(), "target": row.test.target, "mute": row.mute or None, "note": row.note or None}
        yield ClassRow(**structs.asdict(row) | named)


class BlockingRow(Struct, frozen=True, kw_only=True):
    """A case because of which the verdict is not `passed`: `effect` says which one it leads to. `line` is the first
    line of what was seen, for an unmeasured case the reason code."""

    test: str
    case_class: str
    effect: str
    line: str


def blocking_rows(source: RunSource) -> Iterator[BlockingRow]:
    """What blocks, then what could not be measured; nothing while there is no verdict."""
    verdict = source.views.gate.verdict
    if verdict is None:
        return
    for effect, cases in (("failed", verdict.blocking), ("unmeasured", verdict.unmeasured)):
        for case in cases:
            yield BlockingRow(test=case.test, case_class=case.case_class, effect=effect, line=case.line)


class OwedRow(Struct, frozen=True, kw_only=True):
    """One side of a shard that is still to be measured. `targets` None means all of its targets; `ready` that it may be
    started now. `cause` and `detail` are those of its last record, None and "" without one."""

    shard: str
    side: Side
    status: SideStatus
    ready: bool
    targets: tuple[str, ...] | None
    cause: str | None
    detail: str


def owed_rows(source: RunSource) -> Iterator[OwedRow]:
    """What is owed, in the order in which it would be run."""
    gate = source.views.gate
    for entry in owed(gate, source.views.run.policy):
        last = gate.side(entry.shard, entry.side).last
        yield OwedRow(
            shard=entry.shard,
            side=entry.side,
            status=entry.status,
            ready=entry.ready,
            targets=entry.targets,
            cause=last.cause if last else None,
            detail=last.detail if last else "",
        )


class InventoryRow(Struct, frozen=True, kw_only=True):
    """One collected test of one side. A target without tests has one row, whose `test` is None; `error` is then what
    its collection said, `skipped` why it skips itself. `blob` identifies the file's bytes in git."""

    side: Side
    target: str
    test: str | None
    blob: str | None
    error: str | None
    skipped: str | None


def inventory_rows(source: RunSource) -> Iterator[InventoryRow]:
    """What both sides collected."""
    for side in SIDES:
        collected = source.views.gate.inventories.get(side)
        for target in source.load(collected.inventory, Inventory).targets if collected else ():
            for test in target.cases or (None,):
                yield InventoryRow(
                    side=side,
                    target=target.target,
                    test=test.text() if test else None,
                    blob=target.blob,
                    error=target.error,
                    skipped=target.skipped,
                )
