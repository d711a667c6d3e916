"""Where the time of a run went, what was planned for it, and whether it met its target.

The time of an attempt is that of its record, which is monotonic. Everything that lies between attempts is known by the
clock of the ledger's writers alone: how long the whole took, waiting, and the gaps in which no driver lived, which are
not counted. That clock is never taken to go back.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Literal

from msgspec import Struct

from ledger.errors import LedgerError
from ledger.events import COLLECTION
from ledger.record import RecordedEvent
from projections.registry import RunViews
from projections.run.state import RunStatus
from projections.run.timeline import TimedAttempt, Timeline, timeline_of
from projections.run.timing_sides import LongestSide, SideTiming, longest_side, side_timings

MOST_SLOWEST = 5
P90 = 0.9

TargetAnswer = Literal["met", "missed", "undetermined"]


class TimingMissing(LedgerError):
    """No attempt of the run was recorded yet, so there is no time to speak of."""

    code = "timing-missing"
    exit_code = 3


class AttemptTiming(Struct, frozen=True, kw_only=True):
    """An attempt, as `shard/side/attempt`, and how long it took."""

    attempt: str
    duration_seconds: float


class TimingGap(Struct, frozen=True, kw_only=True):
    """A time in which no driver lived: from the last sign of life of one to the beginning of the next, in UTC."""

    began_at: str
    ended_at: str
    duration_seconds: float


class Overhead(Struct, frozen=True, kw_only=True):
    """What attempts took beyond their tests: median and nearest-rank 90th percentile over the `measured` ones; None
    without any. `unmeasured` are the attempts of which it is not known."""

    median_seconds: float | None
    p90_seconds: float | None
    measured: int
    unmeasured: int


class RunTiming(Struct, frozen=True, kw_only=True):
    """Where the time of a run went.

    `wall_seconds` is from the first start of an attempt to the last record, without the gaps; `root_wall_seconds` that
    to the last record of a first attempt, and `retry_tail_seconds` the rest. `collection_seconds` is the part of it in
    which tests were collected. These, and what is waited, are by the clock of the ledger's writers; all else is
    monotonic.

    Sum, median and slowest are over the attempts of shards. `retries` counts the records of later attempts and
    `without_duration` those that tell no time, collections included. `promised_seconds` is what attempts were promised
    and not started yet, together; `idle_slot_seconds` what the slots had nothing to do, and `efficiency` the share in
    which they had.

    The longest side stands beside the planned makespan (`makespan_deviation`: 0.1 is 10 percent longer) and the bound
    (`bound_ratio`). `sides` begin with those that deviate most. `target` is None when no time was asked for;
    `doubts` are the codes of why it is undetermined.
    """

    run: str
    status: RunStatus
    as_of: str
    wall_seconds: float
    gaps: tuple[TimingGap, ...]
    gap_seconds: float
    collection_seconds: float
    root_wall_seconds: float
    retry_tail_seconds: float
    attempts: int
    retries: int
    without_duration: int
    sum_seconds: float
    median_seconds: float | None
    slowest: tuple[AttemptTiming, ...]
    overhead: Overhead
    promised_seconds: float
    slots: int
    idle_slot_seconds: float
    efficiency: float | None
    makespan_seconds: float | None
    longest: LongestSide | None
    makespan_deviation: float | None
    bound_seconds: float | None
    bound_ratio: float | None
    sides: tuple[SideTiming, ...]
    target_seconds: float | None
    target: TargetAnswer | None
    doubts: tuple[str, ...]


def time_run(events: Iterable[RecordedEvent], *, target_seconds: float | None = None, as_of: str = "") -> RunTiming:
    """The timing of a run after these events, which are the first of its stream.

    Without `target_seconds` the target is that of the run's own policy, if it has one. Raises TimingMissing while no
    attempt is recorded.
    """
    views = RunViews()
    timeline = timeline_of(events, views)
    if not timeline.recorded:
        raise TimingMissing(
            f"no attempt of run {views.run.run} was recorded yet", "`ledger status` says where the run stands"
        )
    return _timing(views, timeline, target_seconds or views.run.policy.planning.target_seconds or None, as_of)


def _timing(views: RunViews, timeline: Timeline, target_seconds: float | None, as_of: str) -> RunTiming:
    recorded = timeline.recorded
    first = min(attempt.promised for attempt in timeline.attempts.values())
    wall = timeline.worked_seconds(first, _last(recorded))
    roots = [attempt for attempt in recorded if attempt.started.attempt == 1]
    root_wall = timeline.worked_seconds(first, _last(roots or recorded))
    of_shards = [attempt for attempt in recorded if attempt.started.shard != COLLECTION]
    timed = [attempt for attempt in of_shards if attempt.duration_seconds is not None]
    durations = [attempt.duration_seconds or 0.0 for attempt in timed]
    busy = sum(attempt.duration_seconds or 0.0 for attempt in recorded)
    gaps = timeline.gaps_within(first, _last(recorded))
    without_duration = sum(attempt.duration_seconds is None for attempt in recorded)
    answer, doubts = _judge(wall, target_seconds, finished=views.run.status == "finished", unknown=without_duration)
    slots, plan = views.run.policy.parallel, views.gate.plan
    sides = side_timings(views)
    longest = longest_side(views, sides)
    makespan, bound = (plan.makespan_seconds, plan.bound_seconds) if plan else (None, None)
    return RunTiming(
        run=views.run.run,
        status=views.run.status,
        as_of=as_of,
        wall_seconds=wall,
        gaps=tuple(_gap(began, ended) for began, ended in gaps),
        gap_seconds=sum((ended - began).total_seconds() for began, ended in gaps),
        collection_seconds=_collection_seconds(timeline),
        root_wall_seconds=root_wall,
        retry_tail_seconds=wall - root_wall,
        attempts=len(of_shards),
        retries=sum(attempt.started.attempt > 1 for attempt in recorded),
        without_duration=without_duration,
        sum_seconds=sum(durations),
        median_seconds=median(durations) if durations else None,
        slowest=_slowest(timed),
        overhead=_overhead(of_shards),
        promised_seconds=sum(attempt.promised_seconds for attempt in recorded),
        slots=slots,
        idle_slot_seconds=max(0.0, slots * wall - busy),
        efficiency=busy / (slots * wall) if slots * wall else None,
        makespan_seconds=makespan,
        longest=longest,
        makespan_deviation=longest.actual_seconds / makespan - 1 if longest and makespan else None,
        bound_seconds=bound,
        bound_ratio=longest.actual_seconds / bound if longest and bound else None,
        sides=sides,
        target_seconds=target_seconds,
        target=answer,
        doubts=doubts,
    )


def _judge(
    wall: float, target_seconds: float | None, *, finished: bool, unknown: int
) -> tuple[TargetAnswer | None, tuple[str, ...]]:
    """What took longer already has missed its target, whatever else is known; to meet it takes that all is known."""
    if target_seconds is None:
        return None, ()
    if wall > target_seconds:
        return "missed", ()
    doubts = (("run-unfinished",) if not finished else ()) + (("duration-unknown",) if unknown else ())
    return ("undetermined", doubts) if doubts else ("met", ())


def _last(attempts: Sequence[TimedAttempt]) -> datetime:
    return max(attempt.ended for attempt in attempts)


def _collection_seconds(timeline: Timeline) -> float:
    collections = [attempt for attempt in timeline.recorded if attempt.started.shard == COLLECTION]
    if not collections:
        return 0.0
    return timeline.worked_seconds(min(attempt.promised for attempt in collections), _last(collections))


def _slowest(timed: Sequence[TimedAttempt]) -> tuple[AttemptTiming, ...]:
    ordered = sorted(timed, key=lambda attempt: (-(attempt.duration_seconds or 0.0), attempt.name))
    return tuple(
        AttemptTiming(attempt=one.name, duration_seconds=one.duration_seconds or 0.0) for one in ordered[:MOST_SLOWEST]
    )


def _overhead(attempts: Sequence[TimedAttempt]) -> Overhead:
    known = sorted(one.session_seconds for one in attempts if one.session_seconds is not None)
    return Overhead(
        median_seconds=median(known) if known else None,
        p90_seconds=known[math.ceil(P90 * len(known)) - 1] if known else None,
        measured=len(known),
        unmeasured=len(attempts) - len(known),
    )


def _gap(began: datetime, ended: datetime) -> TimingGap:
    return TimingGap(began_at=_utc(began), ended_at=_utc(ended), duration_seconds=(ended - began).total_seconds())


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
