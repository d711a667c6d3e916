"""How a place becomes a connection, and what SQLite's failures mean to a user."""

import sqlite3
from pathlib import Path
from typing import Literal

from ledger.errors import LedgerDamaged, LedgerError, LedgerMissing, StoreUnwritable
from ledger.store.api import Place, StoreUnreadable

BUSY_TIMEOUT_SECONDS = 30

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite can raise: its own message may quote bytes of a damaged file that are no text."""

_MEMORY = "memory:"
_OLDEST_SQLITE = (3, 37)
_NO_SIDE_FILES = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
_UNWRITABLE = {
    "SQLITE_FULL": ("there is no space left", "free some space and try again"),
    "SQLITE_IOERR": (
        "the file system refuses the data",
        "check the disk, its space and its quota, and try again",
    ),
    "SQLITE_READONLY": ("it is read-only", "check the permissions of the file and of its directory"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "check the permissions of the file and of its directory"),
    "SQLITE_PERM": ("permission is denied", "check the permissions of the file and of its directory"),
    "SQLITE_BUSY": (
        "another process keeps it busy",
        "find the process that holds it open, or try again later",
    ),
    "SQLITE_PROTOCOL": ("too many processes open it at once", "try again"),
    "SQLITE_NOMEM": ("there is no memory left", "free some memory and try again"),
    "SQLITE_LOCKED": ("another connection keeps it busy", "try again later"),
}


def is_memory(place: Place) -> bool:
    """Whether this place is a ledger in memory."""
    return isinstance(place, str) and place.startswith(_MEMORY)


def uri(place: Place, mode: Literal["ro", "rw", "rwc"]) -> str:
    """The name of this place for SQLite, opened in this mode."""
    if is_memory(place):
        return f"file:{str(place).removeprefix(_MEMORY)}?mode=memory&cache=shared"
    # `Path.as_uri` does the same and more, but takes as long to load as a ledger to open.
    name = str(Path(place).absolute())
    for special in "%?#":
        name = name.replace(special, f"%{ord(special):02x}")
    return f"file://{name}?mode={mode}"


def require(place: Place) -> None:
    """Raise StoreUnreadable when this SQLite is too old, and LedgerMissing when there is no file at this place."""
    require_version()
    if not is_memory(place) and not Path(place).exists():
        raise LedgerMissing(f"there is no ledger at {place}", "start a run to begin one, or name its place")


def require_version() -> None:
    """Raise StoreUnreadable when this SQLite is too old to know our tables; it would call them damaged."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnreadable(
            f"SQLite {sqlite3.sqlite_version} is too old for a ledger; 3.37 is needed",
            "use a Python with a newer SQLite",
        )


def connect_read_only(place: Place) -> sqlite3.Connection:
    """A connection that cannot write.

    SQLite itself keeps two side files (`-wal`, `-shm`) next to a ledger while it is open. Where it may not make them
    and no `-wal` holds anything, the file alone is the whole ledger and is read as one that nobody changes.
    """
    require(place)
    try:
        return _connect(uri(place, "ro"))
    except FAILURES as error:
        if _primary_code(error) not in _NO_SIDE_FILES or is_memory(place) or _has_unmerged_events(Path(place)):
            raise read_failure(error, place) from error
    try:
        return _connect(uri(place, "ro") + "&immutable=1")
    except FAILURES as error:
        raise read_failure(error, place) from error


def read_failure(error: Exception, place: Place) -> LedgerError:
    """What an error of SQLite means to somebody who reads."""
    if _known(error) is None:
        return LedgerDamaged(f"{place} is not a readable ledger: {error}")
    return StoreUnreadable(
        f"{place} cannot be read: {error}",
        "check the permissions of the file and of its directory, or read a copy of it and of its -wal file",
    )


def write_failure(error: Exception, place: Place) -> LedgerError:
    """What an error of SQLite means to somebody who writes."""
    known = _known(error)
    if known is None:
        return LedgerDamaged(f"{place} is not a usable ledger: {error}")
    return StoreUnwritable(f"{place} cannot be written: {known[0]} ({error})", known[1])


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_SECONDS)
    try:
        # Opening is lazy: only a first read shows whether this is a database that can be read.
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except FAILURES:
        connection.close()
        raise
    return connection


def _has_unmerged_events(path: Path) -> bool:
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def _known(error: Exception) -> tuple[str, str] | None:
    return _UNWRITABLE.get(_primary_code(error))


def _primary_code(error: Exception) -> str:
    """SQLITE_IOERR of SQLITE_IOERR_WRITE; nothing for an error that is not SQLite's own."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return "_".join(name.split("_")[:2])
