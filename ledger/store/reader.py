"""Reading a ledger: in pages, verified event by event, without ever changing the file or importing its writer."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple, Self

from ledger.errors import LedgerDamaged, LedgerError
from ledger.events import STREAM, LedgerCreated
from ledger.record import RecordedEvent
from ledger.store.api import Links, Place
from ledger.store.rows import FIRST_ROW, SELECT_ROW, StoredRow, damaged, verified, verified_identity
from ledger.store.sqlite.connect import FAILURES, connect_read_only, read_failure
from ledger.store.sqlite.schema import format_version
from ledger.values import Digest

PAGE_SIZE = 200
"""Larger pages do not fit the processor's cache and take longer for each event."""

_LAST_CHARACTER = "\U0010ffff"


class Head(NamedTuple):
    """The last event of the whole ledger; sequence 0 and digest "" when there is none."""

    sequence: int
    digest: Digest


class StreamHead(NamedTuple):
    """A stream with the position and the sequence of its last event."""

    stream: str
    position: int
    sequence: int


class Reader:
    """Reads events and verifies them. Made by `Reader.open`; holds one connection until it is closed.

    Whatever it yields has been checked: the digest over the stored bytes, the link to the event before it in its
    stream, positions and sequences without gaps, columns that say the same as the header, and the ledger's id.
    What does not verify raises LedgerDamaged with its place, after everything before that place has been yielded.
    """

    def __init__(self, place: Place, connection: sqlite3.Connection, format_version: int) -> None:
        self.place = place
        self.format_version = format_version
        self._connection = connection
        self._identity: LedgerCreated | None = None

    @classmethod
    def open(cls, place: Place) -> Self:
        """Open a ledger for reading. Raises LedgerMissing, StoreUnreadable, ForeignLedger or LedgerDamaged."""
        connection = connect_read_only(place)
        try:
            return cls(place, connection, format_version(connection, place))
        except BaseException as error:
            connection.close()
            if isinstance(error, FAILURES):
                raise read_failure(error, place) from error
            raise

    def pages(
        self,
        stream: str | None = None,
        after: int = 0,
        until: int | None = None,
        page_size: int = PAGE_SIZE,
        links: Links | None = None,
    ) -> Iterator[list[RecordedEvent]]:
        """Yield the events of a stream by position, or of the whole ledger by sequence, in pages.

        `after` and `until` are positions (sequences for the whole ledger); `until` is included. A caller that reads on
        later passes the same `links` each time; they follow what it has taken. The next event must then link to what
        was read before, which must still be there; without them it must link to what is stored at `after`.
        """
        for page in self._pages(stream, after, until, page_size, links):
            yield page
            if links is not None:
                links.update(_links_of(page))

    def events(
        self,
        stream: str | None = None,
        after: int = 0,
        until: int | None = None,
        page_size: int = PAGE_SIZE,
        links: Links | None = None,
    ) -> Iterator[RecordedEvent]:
        """Yield the same events one by one."""
        for page in self._pages(stream, after, until, page_size, links):
            for recorded in page:
                yield recorded
                if links is not None:
                    links[recorded.header.stream] = (recorded.header.position, recorded.digest)

    def by_command(self, command: str) -> list[RecordedEvent]:
        """The events that this command appended, in its order; none when it is not in the ledger."""
        rows = self._select(SELECT_ROW + "WHERE command=? ORDER BY command_index", command)
        for index, row in enumerate(rows):
            if row[9] != index:
                raise damaged(row, f"event {index} of the command {command} is missing")
        page: list[RecordedEvent] = []
        if rows:
            self._verify(rows, page, {}, rows[0][0] - 1, whole=True, from_start=False)
        return page

    def identity(self) -> LedgerCreated | None:
        """The event that every ledger begins with, None while the ledger is empty."""
        if self._identity is None:
            rows = self._select(FIRST_ROW)
            if rows:
                self._identity = verified_identity(rows[0])
        return self._identity

    def head(self) -> Head:
        """Sequence and digest of the last event of the whole ledger, as stored."""
        rows = self._select("SELECT sequence, digest FROM events ORDER BY sequence DESC LIMIT 1")
        return Head(*rows[0]) if rows else Head(0, "")

    def position(self, stream: str) -> int:
        """The position of the last event of a stream, 0 when there is no such stream."""
        position: int = self._select("SELECT ifnull(max(position), 0) FROM events WHERE stream=?", stream)[0][0]
        return position

    def streams(self, prefix: str = "") -> list[StreamHead]:
        """Every stream whose name has this prefix, with its last event, in the order in which the streams began."""
        found: list[tuple[int, StreamHead]] = []
        before, last_name = prefix, prefix + _LAST_CHARACTER
        # Stepping through the index from name to name does not touch the rest of the events.
        query = "SELECT stream, sequence FROM events WHERE stream{}? AND stream<? ORDER BY stream, position LIMIT 1"
        first_query, next_query = query.format(">="), query.format(">")
        while rows := self._select(next_query if found else first_query, before, last_name):
            name, first = rows[0]
            last = self._select(
                "SELECT position, sequence FROM events WHERE stream=? ORDER BY position DESC LIMIT 1", name
            )
            if not last or (name <= before and found):
                raise LedgerDamaged(f"the index of the streams is out of order after {before!r}")
            found.append((first, StreamHead(name, *last[0])))
            before = name
        return [head for _, head in sorted(found)]

    def newest_run(self) -> str | None:
        """The stream of the run that began last, None when there is none. It costs no more than to read that run."""
        query = "SELECT stream FROM events WHERE position=1 AND stream<>? ORDER BY sequence DESC LIMIT 1"
        rows = self._select(query, STREAM)
        return rows[0][0] if rows else None

    def data_version(self) -> int:
        """A number that changes when another connection has committed: cheap to ask for again and again."""
        version: int = self._select("PRAGMA data_version")[0][0]
        return version

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pages(
        self, stream: str | None, after: int, until: int | None, page_size: int, links: Links | None
    ) -> Iterator[list[RecordedEvent]]:
        """Pages that are verified row by row, so that everything before a damage is delivered."""
        chain = self._links_at(stream, after, links or {})
        from_start, sequence = after == 0, after if stream is None else 0
        while until is None or after < until:
            page: list[RecordedEvent] = []
            try:
                # Closed also on failure: an open cursor would keep its reading transaction, and the file, open.
                with closing(self._rows_after(stream, after, until, page_size)) as rows:
                    self._verify(rows, page, chain, sequence, whole=stream is None, from_start=from_start)
            except (LedgerDamaged, *FAILURES) as error:
                if page:
                    yield page
                raise self._explained(error, stream, after + len(page) + 1) from error
            if not page:
                return
            yield page
            sequence = page[-1].sequence
            after = sequence if stream is None else page[-1].header.position

    def _rows_after(self, stream: str | None, after: int, until: int | None, size: int) -> sqlite3.Cursor:
        """Rows one by one, as they are found: a list of them would only push the page out of the processor's cache."""
        last = 2**63 - 1 if until is None else until
        if stream is None:
            query = SELECT_ROW + "WHERE sequence>? AND sequence<=? ORDER BY sequence LIMIT ?"
            return self._connection.execute(query, (after, last, size))
        query = SELECT_ROW + "WHERE stream=? AND position>? AND position<=? ORDER BY position LIMIT ?"
        return self._connection.execute(query, (stream, after, last, size))

    def _verify(
        self,
        rows: Iterable[StoredRow],
        page: list[RecordedEvent],
        links: Links,
        sequence: int,
        *,
        whole: bool,
        from_start: bool,
    ) -> None:
        """Check rows that follow `sequence` (at once, if this is the `whole` ledger), and add their events to the page.

        `from_start`: nothing was left out before, so the first event of each stream has to be its first.
        """
        identity = self.identity()
        ledger_id = identity.ledger_id if identity else ""
        for row in rows:
            recorded = verified(row)
            header = recorded.header
            if header.ledger != ledger_id:
                raise damaged(row, "the event belongs to another ledger")
            if row[0] != sequence + 1 if whole else row[0] <= sequence:
                raise damaged(row, f"the event that should follow @{sequence} is missing or moved")
            sequence = row[0]
            position, digest = links.get(header.stream) or self._link_before(row, from_start=from_start)
            if header.position != position + 1:
                raise damaged(row, f"the event that should follow #{position} is missing or moved")
            if header.previous != digest:
                raise damaged(row, "it does not link to the event before it")
            links[header.stream] = (header.position, recorded.digest)
            page.append(recorded)

    def _link_before(self, row: StoredRow, *, from_start: bool) -> tuple[int, Digest]:
        """What the first event that is seen of a stream must link to."""
        position = row[5] - 1
        if from_start or position == 0:
            return 0, ""
        rows = self._select("SELECT digest FROM events WHERE stream=? AND position=?", row[4], position)
        if not rows:
            raise damaged(row, f"the event before it, #{position}, is missing")
        return position, rows[0][0]

    def _links_at(self, stream: str | None, after: int, links: Links) -> Links:
        """The links of what was read up to `after`; the event that was read last must still be stored as it was."""
        if after == 0:
            return {}
        if not links or (stream is not None and stream not in links):
            return dict(links)
        query = "SELECT stream, position, digest FROM events "
        if stream is None:
            rows = self._select(query + "WHERE sequence=?", after)
        else:
            rows = self._select(query + "WHERE stream=? AND position=?", stream, after)
        if not rows:
            raise LedgerDamaged("what was read here is gone", **_place(stream, after))
        name, position, digest = rows[0]
        known = links.get(name)
        if known == (position, digest):
            return dict(links)
        if known is not None and known[0] == position:
            raise LedgerDamaged("this is not what was read here before", **_place(stream, after))
        # The caller stopped in between, so that its links lag behind by this one: what is stored stands in for it.
        return {other: link for other, link in links.items() if other != name}

    def _select(self, query: str, *arguments: Any) -> list[StoredRow]:
        try:
            return self._connection.execute(query, arguments).fetchall()
        except FAILURES as error:
            raise read_failure(error, self.place) from error

    def _explained(self, error: Exception, stream: str | None, key: int) -> LedgerError:
        if isinstance(error, LedgerDamaged):
            return error
        failure = read_failure(error, self.place)
        return LedgerDamaged(failure.message, **_place(stream, key)) if isinstance(failure, LedgerDamaged) else failure


def _links_of(page: list[RecordedEvent]) -> Links:
    return {one.header.stream: (one.header.position, one.digest) for one in page}


def _place(stream: str | None, key: int) -> dict[str, Any]:
    """Where a reading stands, for a failure of which no row tells the rest."""
    if stream is None:
        return {"sequence": key}
    return {"stream": stream, "position": key}
