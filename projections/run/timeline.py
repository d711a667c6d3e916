"""When the attempts of a run were promised, started and recorded, and when no driver lived.

All times are those of the events' headers, never going back: an event is as late as the latest before it. A driver that
died is taken to have lived until its last event, or until the end of an attempt of its that was settled later and ended
after that, because attempts end with their driver.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from ledger.events import AttemptRecorded, AttemptStarted, DriverReplaced, DriverStarted, Measured
from ledger.record import RecordedEvent
from ledger.values import Side
from projections.registry import RunViews
from projections.run.moment import event_time

Span = tuple[datetime, datetime]
"""A time, from its beginning to its end."""


class TimedAttempt(Struct):
    """An attempt with the time of its promise and, once there is one, of its record."""

    started: AttemptStarted
    promised: datetime
    ended: datetime
    recorded: AttemptRecorded | None = None
    session_seconds: float | None = None

    @property
    def name(self) -> str:
        """`shard/side/attempt`."""
        return f"{self.started.shard}/{self.started.side}/{self.started.attempt}"

    @property
    def duration_seconds(self) -> float | None:
        """How long it ran; None when its record does not tell."""
        return (self.recorded.duration_seconds or None) if self.recorded else None

    @property
    def promised_seconds(self) -> float:
        """How long it was promised and not started; 0 when its record does not tell."""
        if self.recorded is None or self.duration_seconds is None:
            return 0.0
        started = min(self.ended, _time(self.recorded.started_at, self.promised))
        return max(0.0, (started - self.promised).total_seconds())


class Timeline(Struct):
    """The attempts of a run, and the gaps between its drivers by the term of the one before."""

    attempts: dict[tuple[str, Side, int], TimedAttempt] = field(default_factory=dict)
    gaps: dict[int, Span] = field(default_factory=dict)

    @property
    def recorded(self) -> list[TimedAttempt]:
        """The attempts that have a record."""
        return [attempt for attempt in self.attempts.values() if attempt.recorded is not None]

    def gaps_within(self, began: datetime, ended: datetime) -> list[Span]:
        """The parts of the gaps that lie in this time."""
        clipped = ((max(began, gap[0]), min(ended, gap[1])) for gap in self.gaps.values())
        return [span for span in clipped if span[0] < span[1]]

    def worked_seconds(self, began: datetime, ended: datetime) -> float:
        """How much of this time was no gap."""
        gaps = sum((gap[1] - gap[0] for gap in self.gaps_within(began, ended)), timedelta())
        return (ended - began - gaps).total_seconds()


def timeline_of(events: Iterable[RecordedEvent], views: RunViews) -> Timeline:
    """The timeline of a run after these events, which are the first of its stream; its views take them too."""
    timeline = Timeline()
    now = datetime.min.replace(tzinfo=UTC)
    for recorded in events:
        before, term = now, views.run.term
        now = max(before, event_time(recorded.header, recorded.sequence))
        views.apply(recorded)
        if isinstance(recorded.event, DriverStarted | DriverReplaced) and term:
            timeline.gaps[term] = (before, now)
        elif isinstance(recorded.event, AttemptStarted):
            started = recorded.event
            timeline.attempts[started.shard, started.side, started.attempt] = TimedAttempt(started, now, now)
        elif isinstance(recorded.event, AttemptRecorded | Measured):
            _take(timeline, recorded.event, now)
    return timeline


def _take(timeline: Timeline, event: AttemptRecorded | Measured, now: datetime) -> None:
    attempt = timeline.attempts.get((event.shard, event.side, event.attempt))
    if attempt is None:
        return
    if isinstance(event, Measured):
        attempt.session_seconds = event.session_seconds
        return
    attempt.recorded, attempt.ended = event, now
    gap = timeline.gaps.get(attempt.started.term)
    if gap is not None and attempt.duration_seconds is not None:
        lived = _time(event.started_at, attempt.promised) + timedelta(seconds=attempt.duration_seconds)
        timeline.gaps[attempt.started.term] = (min(gap[1], max(gap[0], lived)), gap[1])


def _time(text: str, otherwise: datetime) -> datetime:
    """The time of a record, which is whatever its attempt's supervisor wrote."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    return time if time.tzinfo else otherwise
