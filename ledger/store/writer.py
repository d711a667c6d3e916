"""Appending to a ledger: atomic over streams, refused when a stream has moved on, checked before it is written."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from eventsourcing.persistence import PersistenceError
from eventsourcing.sqlite import SQLiteCursor

from ledger.codec import encode
from ledger.disk import make_directory
from ledger.errors import Conflict, StoreUnwritable
from ledger.events import STREAM, Event, LedgerCreated
from ledger.record import Header, NewEvent, RecordedEvent, Stamp
from ledger.store.api import CommandRepeated, Links, Place
from ledger.store.rows import FIRST_ROW, SELECT_ROW, linked, verified, verified_identity
from ledger.store.sqlite.connect import FAILURES, connect_read_only, is_memory, require_version, uri, write_failure
from ledger.store.sqlite.recorder import LedgerDatastore, LedgerRecorder, Row, make_row, stored_row
from ledger.store.sqlite.schema import format_version, is_blank, refuse_newer


class Writer:
    """Appends events. Made by `Writer.open`; holds one connection until it is closed."""

    def __init__(self, place: Place, recorder: LedgerRecorder) -> None:
        self.place = place
        self._recorder = recorder
        self._ledger_id = ""

    @classmethod
    def open(cls, place: Place, *, create: bool = False) -> Self:
        """Open a ledger for appending; with `create`, begin one where there is none, its directory included.

        Raises LedgerMissing, StoreUnwritable, ForeignLedger, NewerFormat or LedgerDamaged.
        """
        require_version()
        if create and not is_memory(place):
            _make_directory(Path(place))
        with _explained(place):
            _look(place, create=create)
            datastore = LedgerDatastore(uri(place, "rwc" if create else "rw"))
            try:
                recorder = LedgerRecorder(datastore)
                if create:
                    recorder.create_table()
            except BaseException:
                datastore.close()
                raise
        return cls(place, recorder)

    def append(self, events: Sequence[NewEvent], after: Mapping[str, int], stamp: Stamp) -> list[RecordedEvent]:
        """Append all of these events, or none, and return them as recorded.

        `after` gives the position at which each stream was read, 0 for one that does not exist yet. It names every
        stream that is written, and may name more as guards. The first event of a ledger is `ledger-created`.
        Raises CommandRepeated when the stamp's command was appended before, Conflict when a stream has moved on,
        LedgerDamaged when a head does not verify, StoreUnwritable when the store cannot be written, and ValueError for
        an event that must not be written.
        """
        unnamed = {new.stream for new in events} - set(after)
        if unnamed:
            raise ValueError(f"the position of {sorted(unnamed)} is not given")
        encoded = [encode(new.event) for new in events]
        with self._transaction() as cursor:
            self._refuse_repeated(cursor, stamp.command)
            heads = {stream: self._head(cursor, stream, position) for stream, position in after.items()}
            sequence = self._recorder.last_sequence(cursor)
            ledger_id = self._identity(cursor, sequence, events)
            recorded, rows = _placed(events, encoded, heads, sequence, ledger_id, stamp)
            self._recorder.insert_rows(cursor, rows)
        self._ledger_id = ledger_id
        return recorded

    def append_stored(self, events: Iterable[tuple[bytes, bytes]], after: Mapping[str, int]) -> None:
        """Append all of these events, or none, byte for byte as they are stored elsewhere: header and payload of each.

        `after` names every stream that is written, as in `append`. Raises what `append` does, and LedgerDamaged for an
        event that does not link to the one before it.
        """
        with self._transaction() as cursor:
            links = {stream: self._head(cursor, stream, position) for stream, position in after.items()}
            sequence = self._recorder.last_sequence(cursor)
            ledger_id = self._identity(cursor, sequence, ()) if sequence else ""
            for header, payload in events:
                sequence += 1
                told, event, digest = linked(header, payload, links, ledger_id)
                if told.stream not in after:
                    raise ValueError(f"the position of {told.stream!r} is not given")
                if sequence == 1:
                    ledger_id = _begun_by(told.stream, event)
                self._recorder.insert_rows(cursor, [stored_row(sequence, told, header, payload, digest)])

    def close(self) -> None:
        """Close the connection."""
        self._recorder.datastore.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[SQLiteCursor]:
        with _explained(self.place), self._recorder.datastore.transaction(commit=True) as cursor:
            yield cursor

    def _refuse_repeated(self, cursor: SQLiteCursor, command: str) -> None:
        cursor.execute(
            "SELECT stream, position FROM events WHERE command=? ORDER BY command_index DESC LIMIT 1",
            (command,),
        )
        row = cursor.fetchone()
        if row is not None:
            raise CommandRepeated(command, row["stream"], row["position"])

    def _head(self, cursor: SQLiteCursor, stream: str, expected: int) -> tuple[int, str]:
        """Position and digest of the last event of a stream, which must be where the caller has read it.

        It is verified as the reader does it: nothing is ever linked to an event that does not verify.
        """
        cursor.execute(SELECT_ROW + "WHERE stream=? ORDER BY position DESC LIMIT 1", (stream,))
        row = cursor.fetchone()
        if row is None:
            position, digest = 0, ""
        else:
            head = verified(tuple(row))
            position, digest = head.header.position, head.digest
        if position != expected:
            raise Conflict(stream, expected, position)
        return position, digest

    def _identity(self, cursor: SQLiteCursor, sequence: int, events: Sequence[NewEvent]) -> str:
        """The id of this ledger: from its first event, which is stored already or about to be."""
        if self._ledger_id:
            return self._ledger_id
        if sequence == 0:
            return _begun_by(events[0].stream, events[0].event) if events else _begun_by("", None)
        cursor.execute(FIRST_ROW)
        return verified_identity(tuple(cursor.fetchone())).ledger_id


def _placed(
    events: Sequence[NewEvent],
    encoded: Sequence[tuple[str, int, bytes]],
    heads: Links,
    sequence: int,
    ledger_id: str,
    stamp: Stamp,
) -> tuple[list[RecordedEvent], list[Row]]:
    """Give every event its place after the heads, and its header and digest."""
    recorded, rows = [], []
    for index, (new, (tag, version, payload)) in enumerate(zip(events, encoded, strict=True)):
        position, previous = heads[new.stream]
        header = Header(
            ledger=ledger_id, stream=new.stream, position=position + 1, tag=tag, version=version, time=stamp.time,
            actor=stamp.actor, command=stamp.command, index=index, correlation=stamp.correlation,
            message=stamp.message, policy=stamp.policy, basis=stamp.basis, previous=previous,
        )  # fmt: skip
        row, digest = make_row(sequence + index + 1, header, payload)
        heads[new.stream] = (header.position, digest)
        recorded.append(RecordedEvent(sequence + index + 1, header, new.event, digest))
        rows.append(row)
    return recorded, rows


def _begun_by(stream: str, event: Event | None) -> str:
    """The id of the ledger that begins with this event. Raises ValueError when none does."""
    if stream != STREAM or not isinstance(event, LedgerCreated):
        raise ValueError(f"the first event of a ledger is ledger-created, in the stream {STREAM!r}")
    return event.ledger_id


def _make_directory(path: Path) -> None:
    try:
        make_directory(path.parent)
    except OSError as error:
        raise StoreUnwritable(f"{path.parent} cannot be made: {error.strerror}", "check its parent") from error


def _look(place: Place, *, create: bool) -> None:
    """See that this is a ledger that may be written, before SQLite may change anything in the file."""
    if create and not is_memory(place) and not Path(place).exists():
        return
    with closing(connect_read_only(place)) as connection:
        if not (create and is_blank(connection)):
            refuse_newer(format_version(connection, place), place)


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn what SQLite and the library raise into what a user can act on."""
    try:
        yield
    except FAILURES as error:
        raise write_failure(error, place) from error
    except PersistenceError as error:
        cause = error.__cause__
        if not isinstance(cause, sqlite3.Error):
            raise
        raise write_failure(cause, place) from error
