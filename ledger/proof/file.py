"""The file below the events: whether SQLite can read it, whether it is laid out as ours, and every row that is left.

A damaged file is read as far as it goes. What SQLite refuses at first it may still give when it is told to be lenient,
and a row that a walk through the table does not reach may be found by the entry that an index has of it.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from ledger.errors import ForeignLedger, LedgerDamaged, LedgerMissing
from ledger.proof.findings import Finding
from ledger.store.api import Place
from ledger.store.rows import SELECT_ROW, StoredRow
from ledger.store.sqlite.connect import FAILURES, connect_read_only, is_memory, read_failure, uri
from ledger.store.sqlite.schema import APPLICATION_ID, STATEMENTS, is_blank

UNREADABLE = (*FAILURES, MemoryError, OverflowError)
"""What reading a damaged file may raise: a length that rotted can ask for more memory than there is."""

MOST_MESSAGES = 1000
"""SQLite's own check stops after so many messages."""

_SMALLEST_PAGE_BYTES = 512
_BEFORE_ALL = -(2**63)

# Both indexes hold the sequence of every event; the first also says which event it is.
_INDEXED = (
    "SELECT sequence, stream, position FROM events INDEXED BY sqlite_autoindex_events_1",
    "SELECT sequence, '', 0 FROM events INDEXED BY sqlite_autoindex_events_2",
)


class Unreadable(Struct, frozen=True):
    """A row that is there and cannot be read; stream "" and position 0 where not even that is known.

    With `rest` it stands for everything from its sequence on.
    """

    sequence: int
    stream: str
    position: int
    error: str
    rest: bool = False


def open_damaged(place: Place) -> tuple[sqlite3.Connection, list[Finding]]:
    """A connection for reading, in a transaction that sees one state of the ledger, and what was wrong with opening it.

    Raises LedgerMissing, ForeignLedger or StoreUnreadable for what is no damage.
    """
    findings = []
    try:
        connection = connect_read_only(place)
    except LedgerDamaged as damage:
        findings.append(Finding(code="file-damaged", what=damage.message))
        connection = _connect_leniently(place)
    try:
        connection.execute("BEGIN")
        _require_ledger(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection, findings


def check_schema(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Whether tables, indexes and triggers are those that this program makes."""
    expected = _expected_schema()
    try:
        found = _schema(connection)
    except UNREADABLE as error:
        yield _damage(error)
        return
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            yield Finding(code="schema-differs", what=f"{name} is missing")
        elif name not in expected:
            yield Finding(code="schema-differs", what=f"{name} is not of this program")
        elif found[name] != expected[name]:
            yield Finding(code="schema-differs", what=f"{name} was changed")


def check_pages(connection: sqlite3.Connection) -> Iterator[Finding]:
    """What SQLite itself finds in the pages of the file, the indexes included."""
    try:
        messages = connection.execute(f"PRAGMA integrity_check({MOST_MESSAGES})").fetchall()
    except UNREADABLE as error:
        yield _damage(error)
        return
    # One damage can give the same message for many rows, and a heading before the first.
    lines = Counter(line for (text,) in messages for line in text.splitlines() if not line.startswith("***"))
    for line, count in lines.items():
        if line != "ok":
            yield Finding(code="file-damaged", what=line if count == 1 else f"{line} ({count} times)")
    if len(messages) == MOST_MESSAGES:
        yield Finding(code="file-damaged", what=f"there may be more: the check ends after {MOST_MESSAGES} messages")


def check_marks(connection: sqlite3.Connection, format_version: int) -> Iterator[Finding]:
    """Whether the marks in the head of the file are those of a ledger of this format."""
    for name, expected in (("application_id", APPLICATION_ID), ("user_version", format_version)):
        try:
            found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        except UNREADABLE as error:
            yield _damage(error)
            return
        if found != expected:
            yield Finding(code="format-differs", what=f"the file's {name} is {found}, not {expected}")


def every_row(connection: sqlite3.Connection) -> Iterator[StoredRow | Unreadable]:
    """Every row by sequence; where the table cannot be walked any further, one by one with the help of an index."""
    after = _BEFORE_ALL
    try:
        for row in connection.execute(SELECT_ROW + "ORDER BY sequence"):
            yield row
            after = max(after, row[0])
    except UNREADABLE as error:
        yield from _rows_by_index(connection, after, str(error))


def _rows_by_index(connection: sqlite3.Connection, after: int, error: str) -> Iterator[StoredRow | Unreadable]:
    # A text that is no UTF-8 any more must not hide the rest of its row.
    connection.text_factory = _text
    for query in _INDEXED:
        with suppress(*UNREADABLE):
            for found in connection.execute(f"{query} WHERE sequence > ? ORDER BY sequence", (after,)):
                yield from _row_of(connection, *found)
                after = found[0]
            return
    yield Unreadable(max(after, 0) + 1, "", 0, error, rest=True)


def _row_of(
    connection: sqlite3.Connection, sequence: int, stream: str, position: int
) -> Iterator[StoredRow | Unreadable]:
    """The row that an index has an entry of; nothing when there is none, which SQLite's own check reports."""
    try:
        row = connection.execute(SELECT_ROW + "WHERE sequence = ?", (sequence,)).fetchone()
    except UNREADABLE as error:
        yield Unreadable(sequence, stream, position, str(error))
        return
    if row is not None:
        yield row


def _connect_leniently(place: Place) -> sqlite3.Connection:
    """A connection to a file that is shorter than its head says, or of whose schema only a part makes sense."""
    connection = sqlite3.connect(uri(place, "ro"), uri=True, isolation_level=None)
    with suppress(*FAILURES):
        connection.execute("PRAGMA writable_schema = ON")
        # The first statement fails with the schema; those that follow are read against what could be made of it.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    return connection


def _require_ledger(connection: sqlite3.Connection, place: Place) -> None:
    """Raise LedgerMissing for an empty database and ForeignLedger for one that has nothing of ours."""
    try:
        blank = is_blank(connection)
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        ours = mark == APPLICATION_ID or "events" in _schema(connection)
    except FAILURES as error:
        failure = read_failure(error, place)
        if isinstance(failure, LedgerDamaged):
            # What is wrong with it is for the checks to say.
            return
        raise failure from error
    if blank and not _is_stump(place):
        raise LedgerMissing(f"{place} is an empty database", "there is nothing to verify")
    if not blank and not ours:
        raise ForeignLedger(f"{place} is the database of another program", "name another place for the ledger")


def _is_stump(place: Place) -> bool:
    """Whether the file holds something, but less than a database can be; SQLite takes it for an empty one."""
    return not is_memory(place) and 0 < Path(place).stat().st_size < _SMALLEST_PAGE_BYTES


@cache
def _expected_schema() -> dict[str, tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in STATEMENTS:
            fresh.execute(statement)
        return _schema(fresh)


def _schema(connection: sqlite3.Connection) -> dict[str, tuple[object, ...]]:
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
    return {str(name): tuple(rest) for name, *rest in rows}


def _damage(error: BaseException) -> Finding:
    return Finding(code="file-damaged", what=str(error) or type(error).__name__)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
