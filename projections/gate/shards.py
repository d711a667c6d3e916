"""Shards and their attempts: what was collected, planned, placed, tried, and what each side of a shard still misses."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct, field

from ledger.events import (
    COLLECTION,
    RERUN,
    AttemptRecorded,
    AttemptStarted,
    Carried,
    Collected,
    GatePolicy,
    Placed,
    Planned,
    PlannedRerun,
    RecheckPlanned,
    RerunsPlanned,
    ResumeStarted,
    VerdictDecided,
)
from ledger.record import RecordedEvent
from ledger.values import SIDES, Side
from projections.fold import View
from projections.gate.ladder import SAME_CAUSE_LEAST, TRIES_MOST, Blame, Step, next_part, rung

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
    skipped or lost cases. `rounds` counts the attempts that used up a round since the last resume. `given_up`: since
    then, the cause that ended this side has ended most others too.
    """

    shard: str
    side: Side
    attempts: list[Attempt] = field(default_factory=list)
    missing: dict[str, str] | None = None
    suspects: dict[str, int] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    attention: set[str] = field(default_factory=set)
    rounds: int = 0
    given_up: bool = False

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

    @property
    def last_trouble(self) -> AttemptRecorded | None:
        """The newest record of an attempt that used up a round and has a cause for not having measured everything."""
        records = (attempt.recorded for attempt in reversed(self.attempts))
        return next((record for record in records if record is not None and record.counted and record.cause), None)

    def others(self, targets: Iterable[str]) -> tuple[str, ...]:
        """Those of these targets that no attempt died in."""
        return tuple(target for target in targets if target not in self.suspects)

    def not_yet_alone(self, targets: Iterable[str]) -> tuple[str, ...]:
        """Those of these targets that an attempt died in and that were never tried alone."""
        alone = {a.started.targets for a in self.attempts if a.recorded is not None and a.recorded.counted}
        return tuple(target for target in targets if target in self.suspects and (target,) not in alone)

    def step(self, policy: GatePolicy, wanted: Iterable[str] | None = None) -> Step:
        """The next step of the retry ladder. `wanted` are the targets to measure, None for what is missing."""
        last = self.last_trouble
        if self.rounds == 0 or last is None or not policy.ladder:
            return "again" if self.rounds < policy.rounds else "stop"
        answer = rung(last.cause)
        rounds = policy.rounds if answer.again is None else min(policy.rounds, 1 + answer.again)
        if self.given_up:
            return "stop"
        if self.rounds < rounds:
            return "again"
        most = answer.tries_most(self.asked_most) if policy.halves else TRIES_MOST
        if not answer.isolated or policy.rounds == 1 or self.rounds >= most or self.shard.startswith(RERUN):
            return "stop"
        targets = tuple(self.missing or () if wanted is None else wanted)
        if policy.halves:
            return self._step_between(targets)
        if self.others(targets):
            return "others"
        return "alone" if self.not_yet_alone(targets) else "stop"

    def _step_between(self, targets: tuple[str, ...]) -> Step:
        """The next step of telling these targets apart, in `ladder/2`."""
        blames = self.blames()
        if any(target not in blames for target in targets):
            return "others"
        part = next_part(targets, blames, self.since_resume)
        return "stop" if not part else "alone" if len(part) == 1 else "halves"

    def part(self, step: Step, policy: GatePolicy, targets: tuple[str, ...]) -> tuple[str, ...] | None:
        """Which of these targets the next attempt takes at this step; None for all of them."""
        if step not in ("others", "halves", "alone"):
            return None
        if not policy.halves:
            return self.others(targets) if step == "others" else self.not_yet_alone(targets)[:1]
        blames = self.blames()
        if step == "others":
            return tuple(target for target in targets if target not in blames)
        return next_part(targets, blames, self.since_resume)

    def blames(self) -> dict[str, Blame]:
        """The narrowest blame of each target that an attempt may have died in. What was cut off from outside blames
        nobody, and an attempt that came to none of its targets blames them all."""
        found: dict[str, Blame] = {}
        for attempt in self.attempts:
            blamed = _blamed(attempt)
            blame = Blame(attempt.started.attempt, _asked(attempt), len(blamed))
            found.update((target, blame) for target in blamed if blame.is_narrower(found.get(target)))
        return found

    @property
    def since_resume(self) -> int:
        """The number of the first attempt that used up a round since the last resume, or that may be the first to."""
        counted = [one.started.attempt for one in self.attempts if one.recorded is not None and one.recorded.counted]
        return counted[-self.rounds] if self.rounds else len(self.attempts) + 1

    @property
    def asked_most(self) -> int:
        """The most targets that one attempt was asked for."""
        return max(map(_asked, self.attempts), default=0)

    def status(self, policy: GatePolicy) -> SideStatus:
        """Where this side stands under these rules."""
        if self.running:
            return "running"
        if self.measured:
            return "measured"
        if not self.attempts:
            return "pending"
        return "unmeasured" if self.step(policy) == "stop" else "owed"


def _asked(attempt: Attempt) -> int:
    """How many targets the attempt was asked for, as far as that is known before and after it."""
    if attempt.started.targets is not None:
        return len(attempt.started.targets)
    return attempt.recorded.targets if attempt.recorded is not None else 0


def _blamed(attempt: Attempt) -> tuple[str, ...]:
    """The targets that the attempt may have died in."""
    record = attempt.recorded
    if record is None or not record.counted or record.complete:
        return ()
    missing = tuple(entry.target for entry in record.missing)
    reached = tuple(entry.target for entry in record.missing if entry.cause != NOT_REACHED)
    if reached or record.measured_targets:
        return reached
    return missing or attempt.started.targets or ()


class GateView(Struct):
    """One gate: its two inventories, its plan, where shards are placed, and every side of every shard.

    `reruns` are the re-runs by the name of their shard, in the order in which they were planned. `reruns_closed`: since
    the last record of an attempt it was found that no re-run would tell more; `reruns_stopped` is the reason code of
    why, if there were more. `recheck` says which part is measured when it is not all. `tripped` is the cause, with its
    side, that has ended most shards since the last resume. `carried` is how many cases an earlier gate has judged.
    """

    inventories: dict[Side, Collected] = field(default_factory=dict)
    plan: Planned | None = None
    placements: dict[str, str] = field(default_factory=dict)
    sides: dict[tuple[str, Side], ShardSide] = field(default_factory=dict)
    verdict: VerdictDecided | None = None
    verdict_sequence: int = 0
    reruns: dict[str, PlannedRerun] = field(default_factory=dict)
    reruns_closed: bool = False
    reruns_stopped: str = ""
    tripped: tuple[Side, str] | None = None
    recheck: RecheckPlanned | None = None
    carried: int = 0

    def shards(self) -> Iterator[str]:
        """The name of every shard that has to have a place: those of the plan, then the re-runs."""
        yield from (shard.shard for shard in self.plan.shards) if self.plan else ()
        yield from self.reruns

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


def _recheck(view: GateView, event: RecheckPlanned, recorded: RecordedEvent) -> None:
    view.recheck = event


def _carried(view: GateView, event: Carried, recorded: RecordedEvent) -> None:
    view.carried = event.cases


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
    view.reruns_closed = False
    _trip(view, side)


def _take_results(side: ShardSide, started: AttemptStarted, event: AttemptRecorded) -> None:
    """What is listed as missing counts more than a claim to be complete.

    What an attempt on a part of them was not asked for stays missing. An attempt that died after its last target is not
    complete and has nothing missing: all that it was asked for was measured. One that lists nothing although it did not
    measure everything has measured nothing that can be told apart.
    """
    side.attention.update(event.attention)
    asked = started.targets
    before = {} if asked is None else {t: cause for t, cause in (side.missing or {}).items() if t not in asked}
    if event.missing:
        side.missing = before | {missing.target: missing.cause for missing in event.missing}
        side.suspects.update((m.target, event.attempt) for m in event.missing if m.cause != NOT_REACHED)
    elif event.complete or 0 < event.targets == event.measured_targets:
        side.missing = before
    elif asked is not None:
        side.missing = before | dict.fromkeys(asked, event.cause or "unmeasured")
    if side.missing is not None:
        side.covered.update(target for target in asked or () if target not in side.missing)


def _trip(view: GateView, side: ShardSide) -> None:
    """Give up the planned sides that one cause left without any result, once these are most of them."""
    ended, shards = _fruitless(side), view.plan.shards if view.plan else ()
    if ended is None or all(shard.shard != side.shard for shard in shards):
        return
    alike = [one for one in (view.side(shard.shard, side.side) for shard in shards) if _fruitless(one) == ended]
    if len(alike) >= SAME_CAUSE_LEAST and 2 * len(alike) > len(shards):
        view.tripped = (side.side, ended)
        for one in alike:
            one.given_up = True


def _fruitless(side: ShardSide) -> str | None:
    """The cause of a side of which nothing was measured since the last resume; None for any other side."""
    last = side.last_trouble if side.rounds and not side.measured else None
    return None if last is None or last.measured_targets else last.cause


def _reruns_planned(view: GateView, event: RerunsPlanned, recorded: RecordedEvent) -> None:
    view.reruns.update((rerun.shard, rerun) for rerun in event.reruns)
    view.reruns_closed, view.reruns_stopped = not event.reruns, event.stopped


def _verdict(view: GateView, event: VerdictDecided, recorded: RecordedEvent) -> None:
    view.verdict, view.verdict_sequence = event, recorded.sequence


def _resumed(view: GateView, event: ResumeStarted, recorded: RecordedEvent) -> None:
    view.verdict, view.tripped, view.carried = None, None, 0
    for side in view.sides.values():
        side.rounds, side.given_up = 0, False


SHARDS = View(
    "shards",
    "what was planned, where does it run, what has been measured and what is missing?",
    GateView,
    {
        Collected: _collected,
        Planned: _planned,
        RecheckPlanned: _recheck,
        Carried: _carried,
        Placed: _placed,
        AttemptStarted: _attempt_started,
        AttemptRecorded: _attempt_recorded,
        RerunsPlanned: _reruns_planned,
        VerdictDecided: _verdict,
        ResumeStarted: _resumed,
    },
)
