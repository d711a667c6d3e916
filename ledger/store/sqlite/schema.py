"""The tables of a ledger file, and how a file is recognised as one. The names are part of the file format."""

import sqlite3

from ledger.errors import ForeignLedger, LedgerMissing, NewerFormat
from ledger.events import FORMAT_VERSION

APPLICATION_ID = 0x6C656467
"""Written into the head of the file ("ledg"), so that a database of another program is recognised and left alone."""

TABLE = """
CREATE TABLE events (
  sequence      INTEGER PRIMARY KEY,
  stream        TEXT NOT NULL,
  position      INTEGER NOT NULL,
  tag           TEXT NOT NULL,
  version       INTEGER NOT NULL,
  header        TEXT NOT NULL,
  payload       TEXT NOT NULL,
  digest        TEXT NOT NULL,
  command       TEXT NOT NULL,
  command_index INTEGER NOT NULL,
  UNIQUE (stream, position),
  UNIQUE (command, command_index)
) STRICT
"""

# INSERT OR REPLACE removes the row in its way without firing the DELETE trigger, so inserting over any key is refused
# before it can. A new sequence must be the highest: that is cheap to look up, and it keeps the order of appending.
TRIGGERS = (
    """
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never changed'); END
""",
    """
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never removed'); END
""",
    """
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
WHEN NEW.sequence <= (SELECT max(sequence) FROM events)
  OR EXISTS (SELECT 1 FROM events WHERE stream = NEW.stream AND position = NEW.position)
  OR EXISTS (SELECT 1 FROM events WHERE command = NEW.command AND command_index = NEW.command_index)
BEGIN SELECT RAISE(ABORT, 'events are never replaced'); END
""",
)

STATEMENTS = (
    TABLE,
    *TRIGGERS,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
)


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether the database holds nothing at all: a file that was just made, or whose making was cut short."""
    marked = _pragma(connection, "application_id") or _pragma(connection, "user_version")
    return not marked and connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def format_version(connection: sqlite3.Connection, place: object) -> int:
    """The format version of a ledger.

    Raises LedgerMissing for an empty database, and ForeignLedger for the database of another program.
    """
    if is_blank(connection):
        raise LedgerMissing(f"{place} is an empty database", "start a run to begin a ledger there")
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise ForeignLedger(f"{place} is the database of another program", "name another place for the ledger")
    return _pragma(connection, "user_version")


def refuse_newer(version: int, place: object) -> None:
    """Raise NewerFormat when a program of this version must not write into a ledger of that version."""
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{place} has format {version}, and this program writes format {FORMAT_VERSION}",
            "install the newer program to write; reading is allowed",
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
