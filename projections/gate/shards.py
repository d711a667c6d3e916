"""Shards and their attempts: what was collected, planned, placed, tried, and what each side of a shard still misses."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from ledger.events import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    Collected,
    Placed,
    Planned,
    ResumeStarted,
    VerdictDecided,
)
from ledger.record import RecordedEvent
from ledger.values import SIDES, Side
from projections.fold import View

SideStatus = Literal["pending", "running", "owed", "measured", "unmeasured"]

NOT_REACHED = "not-run"
"""The reason code of a target that an attempt did not come to; it says nothing about the target itself."""


class Attempt(Struct):
    """One attempt of one side: its intent and, once there is one, its record."""

    started: AttemptStarted
    started_at: str
    sequence: int
    recorded: AttemptRecorded | None = None
    recorded_at: str = ""


class ShardSide(Struct):
    """One side of a shard over all of its attempts.

    `missing` maps each target that is still owed to the reason code; None means that no attempt could tell its targets
    apart yet, so every target is owed. `suspects` maps a target to the last attempt that did not come past it.
    `covered` are the measured targets of attempts that named theirs. `attention` are the measured targets that failed,
    skipped or lost cases. `rounds` counts the attempts that used up a round since the last resume.
    """

    shard: str
    side: Side
    attempts: list[Attempt] = field(default_factory=list)
    missing: dict[str, str] | None = None
    suspects: dict[str, int] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    attention: set[str] = field(default_factory=set)
    rounds: int = 0

    @property
    def running(self) -> Attempt | None:
        """The attempt that was started and has no record yet."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].recorded is None else None

    @property
    def last(self) -> AttemptRecorded | None:
        """The newest record."""
        return next((a.recorded for a in reversed(self.attempts) if a.recorded is not None), None)

    @property
    def measured(self) -> bool:
        """Whether every target asked for so far was measured."""
        return self.missing is not None and not self.missing

    def status(self, rounds_allowed: int) -> SideStatus:
        """Where this side stands when so many rounds are allowed."""
        if self.running:
            return "running"
        if self.measured:
            return "measured"
        if not self.attempts:
            return "pending"
        return "owed" if self.rounds < rounds_allowed else "unmeasured"


class GateView(Struct):
    """One gate: its two inventories, its plan, where shards are placed, and every side of every shard."""

    inventories: dict[Side, Collected] = field(default_factory=dict)
    plan: Planned | None = None
    placements: dict[str, str] = field(default_factory=dict)
    sides: dict[tuple[str, Side], ShardSide] = field(default_factory=dict)
    verdict: VerdictDecided | None = None
    verdict_sequence: int = 0

    def side(self, shard: str, side: Side) -> ShardSide:
        """This side of this shard, whether or not anything happened to it yet."""
        return self.sides.get((shard, side)) or ShardSide(shard, side)

    def collections(self) -> Iterable[ShardSide]:
        """The collection of each side."""
        return (self.side(COLLECTION, side) for side in SIDES)

    def in_flight(self) -> list[Attempt]:
        """Every attempt without a record, in the order of their start."""
        found = [side.running for side in self.sides.values() if side.running]
        return sorted(found, key=lambda attempt: attempt.sequence)


def _side(view: GateView, shard: str, side: Side) -> ShardSide:
    return view.sides.setdefault((shard, side), ShardSide(shard, side))


def _collected(view: GateView, event: Collected, recorded: RecordedEvent) -> None:
    view.inventories[event.side] = event


def _planned(view: GateView, event: Planned, recorded: RecordedEvent) -> None:
    view.plan = event


def _placed(view: GateView, event: Placed, recorded: RecordedEvent) -> None:
    view.placements[event.shard] = event.member


def _attempt_started(view: GateView, event: AttemptStarted, recorded: RecordedEvent) -> None:
    attempt = Attempt(event, recorded.header.time, recorded.sequence)
    _side(view, event.shard, event.side).attempts.append(attempt)


def _attempt_recorded(view: GateView, event: AttemptRecorded, recorded: RecordedEvent) -> None:
    side = _side(view, event.shard, event.side)
    for attempt in side.attempts:
        if attempt.started.attempt == event.attempt:
            attempt.recorded, attempt.recorded_at = event, recorded.header.time
            _take_results(side, attempt.started, event)
    side.rounds += event.counted


def _take_results(side: ShardSide, started: AttemptStarted, event: AttemptRecorded) -> None:
    """What is listed as missing counts more than a claim to be complete.

    An attempt that died after its last target is not complete and has nothing missing: all that it was asked for was
    measured. One that lists nothing although it did not measure everything has measured nothing that can be told apart.
    """
    side.attention.update(event.attention)
    if event.missing:
        side.missing = {missing.target: missing.cause for missing in event.missing}
        side.suspects.update((m.target, event.attempt) for m in event.missing if m.cause != NOT_REACHED)
    elif event.complete or 0 < event.targets == event.measured_targets:
        side.missing = {}
    elif started.targets is not None:
        side.missing = dict.fromkeys(started.targets, event.cause or "unmeasured")
    if side.missing is not None:
        side.covered.update(target for target in started.targets or () if target not in side.missing)


def _verdict(view: GateView, event: VerdictDecided, recorded: RecordedEvent) -> None:
    view.verdict, view.verdict_sequence = event, recorded.sequence


def _resumed(view: GateView, event: ResumeStarted, recorded: RecordedEvent) -> None:
    view.verdict = None
    for side in view.sides.values():
        side.rounds = 0


SHARDS = View(
    "shards",
    "what was planned, where does it run, what has been measured and what is missing?",
    GateView,
    {
        Collected: _collected,
        Planned: _planned,
        Placed: _placed,
        AttemptStarted: _attempt_started,
        AttemptRecorded: _attempt_recorded,
        VerdictDecided: _verdict,
        ResumeStarted: _resumed,
    },
)
