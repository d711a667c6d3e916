"""Moments: `#17`, `@1234` or a time, and how much of a run had happened by then.

The order of events is that of the ledger. A time stands for the longest beginning of the run in which no event is later
than it: clocks may go back, and what was recorded behind a later event was not known yet when that one happened.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from ledger.errors import LedgerDamaged, LedgerError
from ledger.record import Header, RecordedEvent

_NUMBERED = re.compile(r"([#@])([0-9]{1,18})")
_HINT = "give a position in the run like '#17', a sequence like @1234, or a UTC time like '2030-01-31 13:00'"


class MomentUnknown(LedgerError):
    """It is not a moment, or not one of this run."""

    code = "moment-unknown"
    exit_code = 2


class Moment(Struct, frozen=True, kw_only=True):
    """What was asked for, as `text`; exactly one of the others is not None. `time` is in UTC."""

    text: str
    position: int | None = None
    sequence: int | None = None
    time: datetime | None = None

    def includes(self, recorded: RecordedEvent) -> bool:
        """Whether the event had happened, given that everything before it had."""
        if self.position is not None:
            return recorded.header.position <= self.position
        if self.sequence is not None:
            return recorded.sequence <= self.sequence
        return self.time is not None and event_time(recorded.header, recorded.sequence) <= self.time


class Past(Struct, frozen=True, kw_only=True):
    """A run as it was: after the event at `position` (and `sequence` in the ledger), seen at `time`."""

    position: int
    sequence: int
    time: datetime

    @property
    def as_of(self) -> str:
        """The time as it is stored in documents."""
        return self.time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_moment(text: str) -> Moment:
    """Read a moment; a time without an offset is UTC. Raises MomentUnknown."""
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None:
        number = int(numbered[2])
        return Moment(text=text, position=number) if numbered[1] == "#" else Moment(text=text, sequence=number)
    try:
        time = datetime.fromisoformat(text)
        return Moment(text=text, time=(time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        raise MomentUnknown(f"{text!r} is not a moment", _HINT) from None


def locate(moment: Moment, run: str, events: Iterable[RecordedEvent], head: int) -> Past:
    """Where the run stood at this moment; `head` is the last sequence of the ledger. Raises MomentUnknown."""
    if moment.sequence is not None and moment.sequence > head:
        raise MomentUnknown(f"{moment.text} has not happened yet: the ledger ends at @{head}", "name an earlier moment")
    last = None
    for recorded in events:
        if not moment.includes(recorded):
            if last is None:
                raise _too_early(moment, run, recorded)
            break
        last = recorded
    if last is None or (moment.position is not None and last.header.position < moment.position):
        end = last.header.position if last else 0
        raise MomentUnknown(f"run {run} has no event {moment.text}: it ends at #{end}", "name an earlier moment")
    time = moment.time or event_time(last.header, last.sequence)
    return Past(position=last.header.position, sequence=last.sequence, time=time)


def locate_in_ledger(moment: Moment, events: Iterable[RecordedEvent], head: int) -> int:
    """The last sequence of the whole ledger at this moment. Raises MomentUnknown, also for a position in a run."""
    if moment.position is not None:
        raise MomentUnknown(
            f"{moment.text} is a position in one run", "give a sequence like @1234 or a time for what is about all runs"
        )
    if moment.sequence is not None:
        if not 1 <= moment.sequence <= head:
            raise MomentUnknown(f"there is no {moment.text}: the ledger ends at @{head}", _HINT)
        return moment.sequence
    last = 0
    for recorded in events:
        if not moment.includes(recorded):
            break
        last = recorded.sequence
    if last == 0:
        raise MomentUnknown(f"the ledger did not exist yet at {moment.text}", "name a later time")
    return last


def event_time(header: Header, sequence: int) -> datetime:
    """When an event was recorded, by the clock of its writer. Raises LedgerDamaged when its header does not tell."""
    try:
        time = datetime.fromisoformat(header.time)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise LedgerDamaged(
            f"{header.time!r} is not a time", stream=header.stream, position=header.position, sequence=sequence
        ) from None


def _too_early(moment: Moment, run: str, first: RecordedEvent) -> MomentUnknown:
    return MomentUnknown(
        f"run {run} did not exist yet at {moment.text}",
        f"it began at @{first.sequence}, {first.header.time[:19].replace('T', ' ')} UTC",
    )
