"""Makers of events, records and documents with defaults, so that a test names only what it is about."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from commands.messages import RecordAttempt
from ledger.events import (
    COLLECTION,
    TAGS,
    AttemptRecorded,
    AttemptStarted,
    Collected,
    DriverStarted,
    Event,
    GatePolicy,
    Measured,
    MissingTarget,
    Muted,
    Placed,
    Planned,
    PlannedShard,
    Question,
    QuestionAsked,
    QuestionOption,
    RunStarted,
    StepStarted,
    VerdictDecided,
)
from ledger.record import Actor, Header, RecordedEvent
from ledger.tables import CaseRow, CaseTable, Inventory, InventoryTarget, Plan, ShardTargets, TargetRow, encode_document
from ledger.values import Commit, Side, TestId
from projections.registry import RunViews

RUN = "20300102-030405-abcd"
COMMITS: dict[Side, Commit] = {"candidate": "c" * 40, "baseline": "b" * 40}
TIME = "2030-01-02T03:04:05.000000+00:00"
SEQUENCE_OF_FIRST = 101
"""The run's first event is not the ledger's first, so that a mix-up of position and sequence shows."""


def recorded(events: Iterable[Event], *, start: int = 1) -> list[RecordedEvent]:
    """The events as they come back from the ledger: with sequence, position and header."""
    return [
        RecordedEvent(
            sequence=SEQUENCE_OF_FIRST + 2 * (position - 1),
            header=header(event, position),
            event=event,
            digest=sha256(f"{position} {event}".encode()).hexdigest(),
        )
        for position, event in enumerate(events, start=start)
    ]


def header(event: Event, position: int) -> Header:
    """A header for this event at this place; an event without a registered tag gets the name of its type."""
    tag, version = TAGS.get(type(event), (type(event).__name__.lower(), 1))
    return Header(
        ledger="ledger-1",
        stream=RUN,
        position=position,
        tag=tag,
        version=version,
        time=f"2030-01-02T03:{4 + position // 60:02d}:{position % 60:02d}.000000+00:00",
        actor=Actor("someone", "here", "ledger 0"),
        command=f"command-{position}",
        index=0,
        correlation="",
        message="",
        policy="1",
        basis=0,
        previous="",
    )


def views_of(*events: Event) -> RunViews:
    """The views of a run after these events."""
    views = RunViews()
    for one in recorded(events):
        views.apply(one)
    return views


def digest_of(document: Struct) -> str:
    """The digest under which evidence holds this document."""
    return sha256(encode_document(document)).hexdigest()


def run_started(policy: GatePolicy | None = None, **changes: Any) -> RunStarted:
    """The start of a run of two fixed commits."""
    values: dict[str, Any] = {
        "run": RUN, "kind": "gate", "candidate": COMMITS["candidate"], "candidate_ref": "HEAD",
        "baseline": COMMITS["baseline"], "baseline_ref": "v1", "baseline_reason": "the newest tag", "dirty": False,
        "steps": ("gate",), "policy": policy or GatePolicy(), "config": "f" * 64,
    }  # fmt: skip
    return RunStarted(**values | changes)


def driver_started(term: int = 1, pid: int = 4711) -> DriverStarted:
    """A process took the run."""
    return DriverStarted(term=term, host="here", pid=pid)


def begun(policy: GatePolicy | None = None) -> list[Event]:
    """A run that was started and taken, and whose gate has begun."""
    return [run_started(policy), driver_started(), StepStarted(step="gate")]


def attempt_started(
    shard: str = "shard-1", side: Side = "candidate", attempt: int = 1, **changes: Any
) -> AttemptStarted:
    """The intent to run all of a side."""
    values: dict[str, Any] = {"term": 1, "commit": COMMITS[side], "member": "local", "targets": None}
    return AttemptStarted(shard=shard, side=side, attempt=attempt, **values | changes)


def attempt_result(
    *, missing: Mapping[str, str] | None = None, measured: int = 1, cause: str | None = None, **changes: Any
) -> dict[str, Any]:
    """The fields of a result, for an event or a message: complete unless something is missing or there is a cause."""
    listed = tuple(MissingTarget(target, why) for target, why in (missing or {}).items())
    values: dict[str, Any] = {
        "complete": not listed and cause is None, "counted": True, "cause": cause, "detail": "", "exit_code": 0,
        "signal": None, "started_at": TIME, "duration_seconds": 1.5, "peak_memory_bytes": 2**20, "reader": "lines/1",
        "evidence_key": None, "table": None, "record": None, "log": None, "targets": measured + len(listed),
        "measured_targets": measured, "missing": listed, "attention": (), "counts": {}, "failures": (),
    }  # fmt: skip
    return values | changes


def attempt_recorded(
    shard: str = "shard-1", side: Side = "candidate", attempt: int = 1, **changes: Any
) -> AttemptRecorded:
    """The record of an attempt; see `attempt_result`."""
    values = {"term": 1, "commit": COMMITS[side], **attempt_result(**changes)}
    return AttemptRecorded(shard=shard, side=side, attempt=attempt, **values)


def measured(shard: str = "shard-1", side: Side = "candidate", attempt: int = 1, **changes: Any) -> Measured:
    """What the targets of an attempt needed."""
    values: dict[str, Any] = {
        "commit": COMMITS[side], "table": "1" * 64, "targets": 2, "seconds": 1.0, "session_seconds": 0.5,
        "session_memory_bytes": 2**20, "peak_memory_bytes": 2**21, "memory_basis": "upper-bound",
        "memory_method": "pss", "sampling_seconds": 0.1, "exceeded": (),
    }  # fmt: skip
    return Measured(shard=shard, side=side, attempt=attempt, **values | changes)


def record_message(shard: str = "shard-1", side: Side = "candidate", attempt: int = 1, **changes: Any) -> RecordAttempt:
    """The message that reports an attempt's result; see `attempt_result`."""
    own = {name: changes.pop(name) for name in ("inventory", "cases", "errors") if name in changes}
    return RecordAttempt(
        stream=RUN, shard=shard, side=side, attempt=attempt, commit=COMMITS[side], **attempt_result(**changes), **own
    )


def collection(side: Side, document: Inventory | None = None) -> list[Event]:
    """The three events of a collection that succeeded."""
    held = document or two_files(side)
    return [
        attempt_started(COLLECTION, side),
        attempt_recorded(COLLECTION, side, measured=len(held.targets)),
        Collected(
            side=side,
            commit=COMMITS[side],
            attempt=1,
            inventory=digest_of(held),
            targets=len(held.targets),
            cases=sum(len(target.cases) for target in held.targets),
            errors=(),
        ),
    ]


def collections() -> list[Event]:
    """Both collections succeeded."""
    return [*collection("candidate"), *collection("baseline")]


def histories(shard: str, side: Side) -> dict[str, list[Event]]:
    """Each status of a side, under two rounds, with events that lead to it."""
    first, second = (attempt_started(shard, side, number) for number in (1, 2))
    lost, lost_again = (attempt_recorded(shard, side, number, cause="lost", measured=0) for number in (1, 2))
    measured = collection(side) if shard == COLLECTION else [first, attempt_recorded(shard, side)]
    return {
        "pending": [],
        "running": [first],
        "owed": [first, lost],
        "unmeasured": [first, lost, second, lost_again],
        "measured": measured,
    }


def planned(plan: Plan | None = None) -> Planned:
    """The event of this plan, or of a plan with one shard of two targets that both sides have."""
    held = plan or Plan(
        policy="count/1",
        candidate_inventory="1" * 64,
        baseline_inventory="2" * 64,
        shards=(ShardTargets(shard="shard-1", candidate=("a.py", "b.py"), baseline=("a.py", "b.py")),),
    )
    events = tuple(
        PlannedShard(
            shard=shard.shard,
            candidate_targets=len(shard.candidate),
            absent=tuple(sorted(set(shard.candidate) - set(shard.baseline))),
        )
        for shard in held.shards
    )
    return Planned(commit=COMMITS["candidate"], plan=digest_of(held), policy=held.policy, shards=events)


def placed(*shards: str) -> list[Event]:
    """Each shard runs on this machine."""
    return [Placed(shard=shard, member="local", reason="only-member") for shard in shards]


def verdict_decided(verdict: str = "passed", **changes: Any) -> VerdictDecided:
    """A verdict over nothing in particular."""
    values: dict[str, Any] = {
        "verdict": verdict, "reason": "no-regression", "table": "classes/1", "classes": "d" * 64,
        "counts": {"passed": 2}, "blocking": (), "unmeasured": (),
    }  # fmt: skip
    return VerdictDecided(**values | changes)


def case(name: str) -> TestId:
    """`file.py::name` or `file.py::name[variant]`."""
    return TestId.parse(name)


def inventory_target(target: str, *names: str, blob: str | None = "blob-1", **changes: Any) -> InventoryTarget:
    """A target with tests of these names (`name` or `name[variant]`)."""
    return InventoryTarget(
        target=target, blob=blob, cases=tuple(case(f"{target}::{name}") for name in names), **changes
    )


def inventory(side: Side, *targets: InventoryTarget) -> Inventory:
    """What a side collects."""
    return Inventory(side=side, commit=COMMITS[side], targets=targets)


def two_files(side: Side) -> Inventory:
    """Two files of one test each."""
    return inventory(side, inventory_target("a.py", "test_a"), inventory_target("b.py", "test_b"))


def case_row(test: TestId, outcome: str, reruns: int = 0) -> CaseRow:
    """One reported test; what did not pass has a first line."""
    line = "" if outcome == "passed" else f"{outcome}: it said so"
    return CaseRow(test=test, outcome=outcome, duration_seconds=0.25, line=line, reruns=reruns)  # type: ignore[arg-type]


def case_table(side: Side, targets: Mapping[str, str | None], cases: Sequence[CaseRow]) -> CaseTable:
    """The reading of an attempt: each target with its cause (None: measured), and the reported cases."""
    rows = tuple(TargetRow(target=target, cause=cause, duration_seconds=0.5) for target, cause in targets.items())
    return CaseTable(
        reader="lines/1",
        side=side,
        commit=COMMITS[side],
        targets=rows,
        cases=tuple(sorted(cases, key=lambda row: row.test.sort_key())),
    )


def muted(test: str = "a.py::test_a", **changes: Any) -> Muted:
    """A muting of this test, through January 2030."""
    values: dict[str, Any] = {
        "mute": "mute-1", "owner": "someone", "reason": "it depends on the weather", "expires": "2030-01-31",
    }  # fmt: skip
    return Muted(test=test, **values | changes)


def question(*labels: str, recommended: str = "", **changes: Any) -> Question:
    """A question of the step `publish` with these options, of which the first is recommended, or that of this label."""
    named = labels or ("stable", "beta")
    options = tuple(QuestionOption(label=one, recommended=one == (recommended or named[0])) for one in named)
    values: dict[str, Any] = {"step": "publish", "key": "channel", "prompt": "Which channel?", "impact": "high"}
    return Question(options=options, **values | changes)


def question_asked(content: Question | None = None, name: str = "question-1", minutes: int = 30) -> QuestionAsked:
    """People were asked this, or that of `question()`."""
    return QuestionAsked(question=name, content=content or question(), deadline_minutes=minutes)
