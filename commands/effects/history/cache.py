"""The history of all runs: what their events and case tables say, kept in a side file so that it is read only once.

The file is a cache. It can be deleted at any time; what is in it depends on nothing but the ledger, however often and
in whichever steps it was caught up. One that is damaged, or of another ledger or version, is made again; where none can
be kept, a private one is made and goes away with its reader.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import MsgspecError, Struct

from commands.effects.history import tables
from ledger.errors import EvidenceDamaged, LedgerError, NewerFormat
from ledger.events import STREAM, AttemptRecorded, Measured
from ledger.record import RecordedEvent
from ledger.store.api import Links
from ledger.store.reader import Reader
from ledger.tables import CaseTable
from ledger.values import Digest, TestId
from projections.history.flaky import FlakyRow, Observation, flaky_rows
from projections.history.results import OutcomeRow, TargetRow, has_results
from projections.history.runs import RunRow, run_row
from projections.history.usage import (
    FRESH_RUNS,
    LATEST_ATTEMPTS,
    SessionUsage,
    TargetUsage,
    latest_usage,
    session_usage,
)

FILE = "history.sqlite"
BATCH_EVENTS = 1000
BATCH_ROWS = 100_000
"""A transaction ends after so many events, or so many rows."""

_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_LOCK_SECONDS = 60
_NOT_KEPT = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_BUSY")
_UNREADABLE = (sqlite3.DatabaseError, MsgspecError, UnicodeDecodeError)

Row = TypeVar("Row")
LoadTable = Callable[[Digest], CaseTable]


class HistoryDamaged(LedgerError):
    """The side file of the history is damaged; it holds nothing that the ledger does not."""

    code = "history-damaged"

    def __init__(self, file: Path, error: Exception) -> None:
        super().__init__(f"{file} is damaged: {error}", "it was deleted; ask again, and it is made anew")


class _OfOther(Exception):
    """The file is of another ledger, of another version of it, or of another program."""


class Taken(NamedTuple):
    """The last event that the history has taken in."""

    sequence: int
    digest: Digest


SESSIONS = 20
"""A session's own usage is that of so many attempts, the newest ones."""


class Usage(Struct, frozen=True):
    """Usage by target, that of a session without any, and its `basis`: the ledger sequence up to which it was read, for
    the header of what is decided on it."""

    targets: dict[str, TargetUsage]
    session: SessionUsage
    basis: int


class History:
    """The history up to one event of the ledger."""

    def __init__(self, connection: sqlite3.Connection, reader: Reader, load: LoadTable, file: Path | None) -> None:
        self._connection, self._reader, self._load, self._file = connection, reader, load, file
        self._runs = tables.RunStates(connection)
        self._targets, self._tests = tables.Names(connection, "targets"), tables.Names(connection, "tests")
        self._links: Links = {}

    def prepare(self) -> None:
        """Make the tables of a new file, or see that those of an old one are what this ledger gives."""
        identity = self._reader.identity()
        ledger_id = identity.ledger_id if identity else ""
        if self._connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            for statement in tables.SCHEMA:
                self._connection.execute(statement)
            self._connection.execute("INSERT INTO taken VALUES (?,?,0,'')", (ledger_id, tables.shape()))
            return
        marks = [
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        if marks != [tables.APPLICATION_ID, tables.HISTORY_VERSION]:
            raise _OfOther
        kept = self._connection.execute("SELECT ledger, shape FROM taken").fetchone()
        if kept != (ledger_id, tables.shape()) or not self._still_there(self.taken()):
            raise _OfOther

    def _still_there(self, taken: Taken) -> bool:
        """Whether the ledger still has the event that was taken last; a damaged ledger may have been shortened."""
        if taken.sequence == 0:
            return True
        there = self._reader.events(after=taken.sequence - 1, until=taken.sequence)
        return [one.digest for one in there] == [taken.digest]

    def taken(self) -> Taken:
        """How far the history has come."""
        return Taken(*self._connection.execute("SELECT sequence, digest FROM taken").fetchone())

    def catch_up(self, until: int | None = None) -> None:
        """Take in every event up to a sequence. Raises LedgerDamaged; what comes before the damage may be kept then."""
        while self._take_batch(until):
            pass

    def hold(self) -> None:
        """Show what is there now, whatever others take in meanwhile."""
        self._connection.execute("BEGIN")
        self.taken()

    def _take_batch(self, until: int | None) -> bool:
        """Take in some events in one transaction; whether there were any."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            before = self.taken()
            last = self._take(before.sequence, until)
            if last is not None:
                self._runs.keep()
                self._connection.execute("UPDATE taken SET sequence=?, digest=?", (last.sequence, last.digest))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
        return last is not None

    def _take(self, after: int, until: int | None) -> RecordedEvent | None:
        rows, last = 0, None
        end = after + BATCH_EVENTS if until is None else min(after + BATCH_EVENTS, until)
        for recorded in self._reader.events(after=after, until=end, links=self._links):
            rows += self._take_event(recorded)
            last = recorded
            if rows >= BATCH_ROWS:
                break
        return last

    def _take_event(self, recorded: RecordedEvent) -> int:
        event = recorded.event
        if recorded.header.stream == STREAM:
            return 0
        past = self._runs.get(recorded.header.stream)
        past.apply(recorded)
        if isinstance(event, Measured):
            tables.insert_session(self._connection, recorded.sequence, event)
        if not isinstance(event, AttemptRecorded) or event.table is None or not has_results(event):
            return 0
        try:
            table = self._load(event.table)
        except EvidenceDamaged:
            past.unreadable_tables += 1
            return 0
        return tables.insert_results(self._connection, self._targets, self._tests, recorded, event, table)

    def runs(self, run: str | None = None) -> Iterator[RunRow]:
        """How each run went, in the order in which they began, or one of them."""
        rows = self._guarded(run_row(past) for past in tables.select_runs(self._connection))
        return (row for row in rows if run in (None, row.run))

    def targets(self, run: str | None = None) -> Iterator[TargetRow]:
        """What each target used."""
        return self._guarded(tables.select_targets(self._connection, run))

    def outcomes(self, run: str | None = None) -> Iterator[OutcomeRow]:
        """What each case did."""
        return self._guarded(tables.select_outcomes(self._connection, run))

    def flaky(self, run: str | None = None) -> Iterator[FlakyRow]:
        """Which tests are flaky, by all runs or by one of them alone."""
        return self._guarded(flaky_rows(tables.select_failing(self._connection, run)))

    def observations(self, test: str) -> list[Observation]:
        """What all attempts saw of a test; without a variant, of all of its variants."""
        return list(self._guarded(tables.select_test(self._connection, test)))

    def names_written(self, text: str) -> list[str]:
        """The tests that any attempt saw whose name is this text when nothing in it is escaped."""
        if not text.isprintable():
            # SQLite takes no such text; in the names of tests it is always escaped.
            return []
        names = self._guarded(tables.select_names_like(self._connection, text))
        return [name for name in names if TestId.parse(name).plain() == text]

    def usage(self) -> Usage:
        """What decisions may be taken on. Raises NewerFormat when a run has events that this version does not know."""
        for row in self.runs():
            if row.unknown_events:
                raise NewerFormat(
                    f"run {row.run} has events that this version does not know",
                    "use the version of ledger that wrote them, or a newer one",
                )
        rows = self._guarded(tables.select_latest(self._connection, LATEST_ATTEMPTS))
        fresh_from = tables.first_of_latest_runs(self._connection, FRESH_RUNS)
        session = session_usage(tables.select_sessions(self._connection, SESSIONS))
        return Usage(latest_usage(rows, fresh_from), session, self.taken().sequence)

    def case_seconds(self, targets: Iterable[str]) -> dict[str, float]:
        """The time of each test of these targets, by its text form, when it was last seen."""
        found = (self._guarded(tables.select_case_seconds(self._connection, one)) for one in targets)
        return dict(row for rows in found for row in rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _guarded(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The same rows; a file that turns out to be damaged is deleted, to be made anew."""
        try:
            yield from rows
        except _UNREADABLE as error:
            if self._file is None:
                raise
            remove(self._file)
            raise HistoryDamaged(self._file, error) from error


@contextmanager
def open_history(directory: Path, reader: Reader, load: LoadTable, until: int | None = None) -> Iterator[History]:
    """The history of the ledger in this directory, caught up, or as it was at a sequence.

    `load` gives a case table, or raises EvidenceDamaged. Raises LedgerDamaged.
    """
    history = _kept(directory, reader, load) if until is None else None
    if history is None:
        history = _private(reader, load, until)
    try:
        history.hold()
        yield history
    finally:
        history.close()


def _kept(directory: Path, reader: Reader, load: LoadTable) -> History | None:
    """The history in the side file, caught up; None where no file can be kept."""
    from filelock import FileLock, Timeout

    file = directory / FILE
    try:
        (directory / "locks").mkdir(exist_ok=True, mode=0o700)
        # One process at a time, because the file of another kind that one of them finds is replaced.
        with FileLock(directory / "locks" / "history.lock", timeout=_LOCK_SECONDS, fallback_to_soft=False):
            try:
                return _caught_up(file, reader, load)
            except (_OfOther, *_UNREADABLE) as error:
                if _cannot_be_kept(error):
                    return None
                remove(file)
                return _caught_up(file, reader, load)
    except (OSError, Timeout, sqlite3.Error):
        return None


def _caught_up(file: Path, reader: Reader, load: LoadTable) -> History:
    connection = sqlite3.connect(file, isolation_level=None)
    history = History(connection, reader, load, file)
    try:
        # A power cut costs the last batches at most, and they are taken in again.
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE")
        history.prepare()
        connection.execute("COMMIT")
        history.catch_up()
    except BaseException:
        connection.close()
        raise
    return history


def _private(reader: Reader, load: LoadTable, until: int | None) -> History:
    """A history that only this process sees; SQLite keeps it in a temporary file when it grows."""
    connection = sqlite3.connect("", isolation_level=None)
    history = History(connection, reader, load, None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        history.prepare()
        history.catch_up(until)
    except BaseException:
        connection.close()
        raise
    return history


def _cannot_be_kept(error: Exception) -> bool:
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(_NOT_KEPT)


def remove(file: Path) -> None:
    """Delete the history's file, with what SQLite keeps beside it."""
    for suffix in _SIDE_FILES:
        with suppress(FileNotFoundError):
            file.with_name(file.name + suffix).unlink()
