"""The events themselves: each by its own bytes, and all of them by how they follow one another.

Nearly every event is as it should be, so one test in one expression decides about it, and only what fails that test is
looked at in detail. What is wrong with one event must not make those after it look wrong: the checks go on from what
the damaged event most likely was.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from ledger.codec import decode_stored
from ledger.errors import LedgerDamaged
from ledger.events import STREAM, Event, LedgerCreated, RunStarted, Unknown
from ledger.events.base import evidence_of
from ledger.proof.evidence import NamedEvidence
from ledger.proof.file import Unreadable
from ledger.proof.findings import Finding, Note
from ledger.record import Header, event_digest
from ledger.store.api import Links
from ledger.store.reader import Head
from ledger.store.rows import StoredRow
from ledger.values import Digest

PROGRESS_EVENTS = 10_000

_SEEN_ONCE = (LedgerCreated, RunStarted)

_NOT_KNOWN = "?"
"""Stands for the digest of an event that cannot be read: whatever the next one links to may be right."""

Holder = Callable[[str, int], tuple[int, Digest] | None]
"""Gives sequence and digest of the row that the index has for a command and the event's place in it."""


class Chain:
    """Takes the rows of a ledger in their order and tells what is wrong with each.

    Afterwards it knows what they say together. With `named`, it keeps there what evidence the events name.
    """

    def __init__(
        self,
        found: Callable[[Finding], None],
        holder: Holder,
        progress: Callable[[int], None],
        named: NamedEvidence | None,
    ) -> None:
        self._found, self._holder, self._progress, self._named = found, holder, progress, named
        self.events = 0
        self.head = Head(0, "")
        self.ledger = ""
        self.created: LedgerCreated | None = None
        self.notes: dict[str, Note] = {}
        self._sequence = 0
        self._links: Links = {}
        self._sequences: dict[str, int] = {}
        # After a damaged event: the digest of its bytes as they are, beside the stored one that is in the links.
        self._also: Links = {}
        self._time, self._message = "", ""
        self._command: tuple[str, int] | None = None

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return len(self._links)

    def take(self, rows: Iterable[StoredRow | Unreadable]) -> None:
        """Check all of these rows."""
        links, sequences, last = self._links, self._sequences, None
        for row in rows:
            if isinstance(row, Unreadable):
                self._unreadable(row)
                continue
            last = row
            self.events += 1
            if self.events % PROGRESS_EVENTS == 0:
                self._progress(self.events)
            try:
                header, event = decode_stored(row[1], row[2])
            except (LedgerDamaged, TypeError) as error:
                self._undecodable(row, error)
                continue
            stream, position = header.stream, header.position
            if (
                row[0] == self._sequence + 1
                and links.get(stream) == (position - 1, header.previous)
                and row[4:] == (stream, position, header.tag, header.version, header.command, header.index)
                and event_digest(row[1], row[2]) == row[3]
                and header.ledger == self.ledger
                and header.time >= self._time
                and (header.index == 0 or self._command == (header.command, header.index - 1))
            ):
                links[stream] = (position, row[3])
                self._sequence = sequences[stream] = row[0]
                self._time = header.time
                self._command = (header.command, header.index)
                self._look_inside(header, event, row[0])
            else:
                self._explain(row, header, event)
        if last is not None and isinstance(last[3], str):
            self.head = Head(last[0], last[3])

    def _look_inside(self, header: Header, event: Event, sequence: int) -> None:
        """Look at what the event says: whether it can stand where it stands, and what evidence it names."""
        if type(event) in _SEEN_ONCE:
            self._check_start(header, event, sequence)
        elif isinstance(event, Unknown):
            self._note("event-unknown", sequence)
        named = self._named
        if named is None:
            return
        # The events of one command come one after another and name the same message.
        if header.message and header.message != self._message:
            self._message = header.message
            named.add(header.message, sequence)
        for digest in evidence_of(event):
            named.add(digest, sequence)

    def _explain(self, row: StoredRow, header: Header, event: Event) -> None:
        """Tell what is wrong with a row that is an event: by its own bytes, by its columns, by its place."""
        sequence = self._follow_sequence(row[0])
        actual = event_digest(row[1], row[2])
        if actual != row[3]:
            what = f"its bytes have the digest {actual[:12]}, not the stored one"
            self._tell("event-changed", what, *_columns(row), sequence)
            self._go_on(*self._likely(row, header), sequence, row[3], actual)
            return
        place = (header.stream, header.position, sequence)
        if row[4:] != (*place[:2], header.tag, header.version, header.command, header.index):
            holder = self._holder(header.command, header.index)
            if holder is not None and holder[0] != row[0] and holder[1] == row[3]:
                self._tell("event-duplicated", f"it is a copy of @{holder[0]}", *place)
                self._command = None
                return
            self._tell("columns-differ", "the columns of the row say something else than its header", *place)
        self._check_ledger(header, place)
        self._check_beginning(header, event, place)
        if self._check_position(header, place):
            self._links[header.stream] = (header.position, row[3])
            self._sequences[header.stream] = sequence
        self._check_command(header, place)
        self._check_time(header, sequence)
        self._look_inside(header, event, sequence)

    def _undecodable(self, row: StoredRow, error: Exception) -> None:
        """A row that is no event. When a part of it is not even there, its sequence says nothing either."""
        before = self._sequence
        bare = row[1] is None or row[2] is None
        sequence = before + 1 if bare and row[0] <= before else self._follow_sequence(row[0])
        what = f"a part of the row after @{before} is gone" if bare else str(error)
        actual = _NOT_KNOWN if bare else event_digest(row[1], row[2])
        code = "event-undecodable" if actual == row[3] else "event-changed"
        self._tell(code, what, *_columns(row), sequence)
        self._go_on(*_columns(row), sequence, row[3], actual)

    def _unreadable(self, row: Unreadable) -> None:
        self._follow_sequence(row.sequence)
        what = f"{row.error}; the same holds for everything after it" if row.rest else row.error
        self._tell("event-unreadable", what, str(row.stream), row.position, row.sequence)
        self._go_on(row.stream, row.position, row.sequence, _NOT_KNOWN, _NOT_KNOWN)

    def _likely(self, row: StoredRow, header: Header) -> tuple[str, int]:
        """Which event a changed row was: what continues a stream is more likely than what does not."""
        continues = self._position(header.stream) + 1 == header.position
        return (header.stream, header.position) if continues else _columns(row)

    def _go_on(self, stream: str, position: int, sequence: int, stored: Digest, actual: Digest) -> None:
        """After a damaged event the next one may link to the digest that is stored or to that of the bytes."""
        self._command = None
        if self._position(stream) + 1 == position:
            self._links[stream] = (position, stored)
            self._also[stream] = (position, actual)
            self._sequences[stream] = sequence

    def _follow_sequence(self, sequence: int) -> int:
        """The sequence at which a row stands: what it says, unless it comes too late for that."""
        expected = self._sequence + 1
        if sequence < expected:
            self._tell("event-reordered", f"the row after @{expected - 1} says that it is @{sequence}", "", 0, expected)
            return expected
        if sequence > expected:
            count = sequence - expected
            what = f"@{expected} is missing" if count == 1 else f"@{expected} to @{sequence - 1} are missing ({count})"
            self._tell("events-missing", what, "", 0, expected)
            self._command = None
        self._sequence = sequence
        return sequence

    def _check_ledger(self, header: Header, place: tuple[str, int, int]) -> None:
        """All events name the ledger that the first one names."""
        self.ledger = self.ledger or header.ledger
        if header.ledger != self.ledger:
            self._tell("event-foreign", f"it belongs to {header.ledger!r}, this is {self.ledger!r}", *place)

    def _check_beginning(self, header: Header, event: Event, place: tuple[str, int, int]) -> None:
        """The first event of the ledger, and that of a stream, begin something."""
        stream, position, sequence = place
        if sequence == 1 and not isinstance(event, LedgerCreated):
            self._tell("ledger-start", f"the ledger begins with {header.tag}", *place)
        elif position == 1 and stream != STREAM and not isinstance(event, RunStarted | Unknown):
            self._tell("run-start", f"the stream begins with {header.tag}", *place)

    def _check_start(self, header: Header, event: Event, sequence: int) -> None:
        """What begins a ledger or a run stands at its beginning, and begins this one."""
        place = (header.stream, header.position, sequence)
        if isinstance(event, LedgerCreated):
            if place != (STREAM, 1, 1):
                self._tell("ledger-start", "a ledger is created here once more", *place)
            elif event.ledger_id != header.ledger:
                self._tell("ledger-start", f"it creates {event.ledger_id!r}, its header says otherwise", *place)
            self.created = self.created or event
        elif isinstance(event, RunStarted):
            if header.position != 1:
                self._tell("run-start", "the run is started once more", *place)
            elif event.run != header.stream:
                self._tell("run-start", f"it starts the run {event.run!r}", *place)

    def _check_position(self, header: Header, place: tuple[str, int, int]) -> bool:
        """Whether the event takes its stream further."""
        stream, position, sequence = place
        last, digest = self._links.get(stream, (0, ""))
        if position <= last:
            self._tell("event-reordered", f"it comes after #{last} of its stream", *place)
            return False
        if position > last + 1:
            missing = f"#{last + 1}" if position == last + 2 else f"#{last + 1} to #{position - 1}"
            self._tell("positions-missing", f"{missing} of the stream should come before it", *place)
        elif digest not in (header.previous, _NOT_KNOWN) and self._also.get(stream) != (last, header.previous):
            before = self._sequences.get(stream, sequence)
            what = f"it does not link to #{last} @{before}" if last else "it is the first, and links to another event"
            self._tell("link-broken", what, *place, doubtful_from=before)
        return True

    def _check_command(self, header: Header, place: tuple[str, int, int]) -> None:
        known = self._command is not None
        if header.index != 0 and known and self._command != (header.command, header.index - 1):
            self._tell("command-broken", f"it is event {header.index} of its command, the one before is not", *place)
        self._command = (header.command, header.index)

    def _check_time(self, header: Header, sequence: int) -> None:
        """Times are written in one form, so that their order is that of the text; another form is compared as time."""
        if header.time < self._time and _earlier(header.time, self._time):
            self._note("clock-back", sequence)
        else:
            self._time = header.time

    def _position(self, stream: str) -> int:
        return self._links.get(stream, (0, ""))[0]

    def _note(self, code: str, sequence: int) -> None:
        before = self.notes.get(code, Note(code=code, count=0, sequence=sequence))
        self.notes[code] = Note(code=code, count=before.count + 1, sequence=before.sequence)

    def _tell(
        self, code: str, what: str, stream: str, position: int, sequence: int, doubtful_from: int | None = None
    ) -> None:
        doubtful = sequence if doubtful_from is None else doubtful_from
        finding = Finding(
            code=code, what=what, stream=stream, position=position, sequence=sequence, doubtful_from=doubtful
        )
        self._found(finding)


def _columns(row: StoredRow) -> tuple[str, int]:
    """Stream and position as the columns have them, whatever a damage has made of them."""
    return str(row[4]), row[5] if isinstance(row[5], int) else 0


def _earlier(time: str, other: str) -> bool:
    try:
        return datetime.fromisoformat(time) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False
