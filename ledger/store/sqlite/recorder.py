"""The recorder of the `eventsourcing` library on our table, over one connection that stays open for writing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any
from uuid import uuid4

from eventsourcing.persistence import Notification, StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteCursor,
    SQLiteDatastore,
    SQLiteTransaction,
)

from ledger.codec import encode_header
from ledger.record import Actor, Header, event_digest
from ledger.store.sqlite.connect import BUSY_TIMEOUT_SECONDS
from ledger.store.sqlite.schema import STATEMENTS, is_blank
from ledger.values import Digest

_INSERT = "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?)"
_STORED_EVENT = (
    "SELECT stream AS originator_id, position AS originator_version, tag AS topic, CAST(payload AS BLOB) AS state,"
    " sequence FROM events "
)
_NOBODY = Actor(who="", host="", tool="eventsourcing")


Row = tuple[int, str, int, str, int, str, str, Digest, str, int]
"""One row of the table, in the order of its columns."""


def make_row(sequence: int, header: Header, payload: bytes) -> tuple[Row, Digest]:
    """The row of an event, with the header as it will be stored, and the digest over both."""
    stored = encode_header(header)
    digest = event_digest(stored, payload)
    return stored_row(sequence, header, stored, payload, digest), digest


def stored_row(sequence: int, header: Header, stored: bytes, payload: bytes, digest: Digest) -> Row:
    """The row of an event whose header has these bytes."""
    return (
        sequence, header.stream, header.position, header.tag, header.version,
        stored.decode(), payload.decode(), digest, header.command, header.index,
    )  # fmt: skip


class ImmediateTransaction(SQLiteTransaction):
    """Takes the write lock first: what is read in it (the heads) then still holds when it commits."""

    def __enter__(self) -> SQLiteCursor:
        cursor = self.connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        return cursor

    def __exit__(self, *raised: Any) -> None:
        try:
            super().__exit__(*raised)
        finally:
            # A commit that fails may leave its transaction open; the connection must stay usable for the next one.
            self.connection.rollback()


class LedgerDatastore(SQLiteDatastore):
    """One connection, opened at once and kept, for one thread at a time: a pool would cost as much as the rest."""

    def __init__(self, db_name: str) -> None:
        self._lock = RLock()
        super().__init__(db_name, lock_timeout=BUSY_TIMEOUT_SECONDS, pool_size=1, originator_id_type="text")
        self._connection: SQLiteConnection = self.pool.get_connection()
        self._connection.cursor().execute("PRAGMA synchronous = FULL")

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        """A transaction that is committed at the end, or only reads."""
        kind = ImmediateTransaction if commit else SQLiteTransaction
        with self._lock, kind(self._connection, commit=commit) as cursor, cursor:
            yield cursor

    def close(self) -> None:
        """Close the connection, when no thread is using it: closing it under a running statement ends the process."""
        with self._lock:
            super().close()


class LedgerRecorder(SQLiteApplicationRecorder):
    """Keeps the library's promises on our table: explicit sequence, header and digest in every row.

    What comes in through the library's own `insert_events` gets a header without an author.
    """

    def __init__(self, datastore: SQLiteDatastore) -> None:
        super().__init__(datastore, events_table_name="events")
        self.select_events_statement = _STORED_EVENT + "WHERE stream=? "
        self.select_max_notification_id_statement = "SELECT max(sequence) FROM events"

    def construct_create_table_statements(self) -> list[str]:
        """The table, its triggers and the marks in the head of the file."""
        return list(STATEMENTS)

    def _create_table(self, c: SQLiteCursor) -> None:
        """Make the tables unless another process was first; the transaction holds the write lock."""
        if is_blank(c.sqlite_cursor.connection):
            super()._create_table(c)

    def insert_rows(self, c: SQLiteCursor, rows: Sequence[Row]) -> None:
        """Insert rows that are complete, within a transaction of the caller."""
        c.executemany(_INSERT, rows)

    def last_sequence(self, c: SQLiteCursor) -> int:
        """The highest sequence, 0 in an empty ledger."""
        return self._max_notification_id(c) or 0

    def _insert_events(self, c: SQLiteCursor, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int]:
        command, sequence = uuid4().hex, self.last_sequence(c)
        rows: list[Row] = []
        previous: dict[str, str] = {}
        for index, stored in enumerate(stored_events):
            stream = str(stored.originator_id)
            if stream not in previous:
                c.execute("SELECT digest FROM events WHERE stream=? ORDER BY position DESC LIMIT 1", (stream,))
                head = c.fetchone()
                previous[stream] = head["digest"] if head else ""
            header = Header(
                ledger="", stream=stream, position=stored.originator_version, tag=stored.topic, version=1, time="",
                actor=_NOBODY, command=command, index=index, correlation="", message="", policy="", basis=0,
                previous=previous[stream],
            )  # fmt: skip
            row, previous[stream] = make_row(sequence + index + 1, header, stored.state)
            rows.append(row)
        self.insert_rows(c, rows)
        return [row[0] for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events in the order of the whole ledger, for the library's own readers."""
        first = (start or 0) + (0 if inclusive_of_start else 1)
        statement, arguments = _STORED_EVENT + "WHERE sequence>=? ", [first]
        if stop is not None:
            statement += "AND sequence<=? "
            arguments.append(stop)
        if topics:
            statement += f"AND tag IN ({','.join('?' * len(topics))}) "
        with self.datastore.transaction(commit=False) as c:
            c.execute(statement + "ORDER BY sequence LIMIT ?", [*arguments, *topics, limit])
            return [
                Notification(
                    id=row["sequence"],
                    originator_id=row["originator_id"],
                    originator_version=row["originator_version"],
                    topic=row["topic"],
                    state=row["state"],
                )
                for row in c.fetchall()
            ]
