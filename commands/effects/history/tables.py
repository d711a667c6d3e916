"""The tables of the history: what they hold, how they are written, and how rows are read from them again.

Names of targets and tests are kept once, and numbered as they first appear; so the same events give the same file.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import starmap
from typing import Any

import msgspec

from ledger.events import TAGS, AttemptRecorded, Measured
from ledger.record import RecordedEvent
from ledger.tables import CaseTable
from projections.history.flaky import Observation
from projections.history.results import OutcomeRow, TargetRow, case_results, target_results
from projections.history.runs import PastRun

HISTORY_VERSION = 3
APPLICATION_ID = 0x6C656468

_FAILING = "outcome IN ('failed', 'error') OR reruns > 0"
"""What has failed at least once: few rows of many, which have an index of their own."""

SCHEMA = (
    "CREATE TABLE taken (ledger TEXT, shape TEXT, sequence INTEGER, digest TEXT)",
    "CREATE TABLE runs (first INTEGER PRIMARY KEY, run TEXT UNIQUE, state TEXT)",
    """CREATE TABLE attempts (sequence INTEGER PRIMARY KEY, run TEXT, shard TEXT, side TEXT, attempt INTEGER,
       commit_id TEXT, host TEXT, time TEXT)""",
    "CREATE TABLE targets (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE tests (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    """CREATE TABLE uses (target INTEGER, sequence INTEGER, cause TEXT, duration_seconds REAL,
       peak_memory_bytes INTEGER, memory_basis TEXT, PRIMARY KEY (target, sequence)) WITHOUT ROWID""",
    """CREATE TABLE outcomes (test INTEGER, sequence INTEGER, outcome TEXT, duration_seconds REAL, reruns INTEGER,
       line TEXT, trusted INTEGER, PRIMARY KEY (test, sequence)) WITHOUT ROWID""",
    f"CREATE INDEX failing ON outcomes (test) WHERE {_FAILING}",
    "CREATE TABLE sessions (sequence INTEGER PRIMARY KEY, duration_seconds REAL, memory_bytes INTEGER)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {HISTORY_VERSION}",
)

_NAMES_MAX = 100_000
"""So many numbers of names are kept at hand; they are looked up again when there are more."""

_TARGETS = (
    "SELECT a.run, t.name, a.side, a.shard, a.attempt, a.commit_id, u.cause, u.duration_seconds, u.peak_memory_bytes,"
    " u.memory_basis, a.sequence FROM targets t JOIN uses u ON u.target = t.id"
    " JOIN attempts a ON a.sequence = u.sequence {} ORDER BY t.id, u.sequence"
)
_LATEST = "WHERE u.sequence IN (SELECT sequence FROM uses WHERE target = t.id ORDER BY sequence DESC LIMIT {})"
_OUTCOMES = (
    "SELECT a.run, t.name, a.side, a.shard, a.attempt, a.commit_id, o.outcome, o.duration_seconds, o.reruns,"
    " a.sequence FROM tests t JOIN outcomes o ON o.test = t.id JOIN attempts a ON a.sequence = o.sequence"
    " {} ORDER BY t.id, o.sequence"
)
_OBSERVATIONS = (
    "SELECT t.name, a.run, a.side, a.commit_id, a.host, o.outcome, o.reruns, o.line, a.time, a.sequence"
    " FROM tests t JOIN outcomes o ON o.test = t.id JOIN attempts a ON a.sequence = o.sequence"
    " WHERE o.trusted AND {} ORDER BY t.id, o.sequence"
)

_encoder = msgspec.json.Encoder(order="deterministic")
_state_decoder = msgspec.json.Decoder(PastRun)


def shape() -> str:
    """A digest of everything that what is kept depends on besides the ledger: a program that knows more kinds of events
    takes them all again."""
    known = sorted(f"{tag} {version}" for tag, version in TAGS.values())
    return sha256("\n".join((str(HISTORY_VERSION), *known)).encode()).hexdigest()


class Names:
    """The numbers of names in one of the tables of names."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._insert = f"INSERT OR IGNORE INTO {table} (name) VALUES (?)"
        self._select = f"SELECT id FROM {table} WHERE name=?"
        self._known: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a name, which gets the next one when it is new."""
        known = self._known.get(name)
        if known is not None:
            return known
        if len(self._known) >= _NAMES_MAX:
            self._known.clear()
        self._connection.execute(self._insert, (name,))
        number: int = self._connection.execute(self._select, (name,)).fetchone()[0]
        self._known[name] = number
        return number


class RunStates:
    """The runs that events of one transaction belong to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._touched: dict[str, PastRun] = {}

    def get(self, run: str) -> PastRun:
        """A run as it was kept last, or a new one."""
        past = self._touched.get(run)
        if past is None:
            row = self._connection.execute("SELECT state FROM runs WHERE run=?", (run,)).fetchone()
            past = self._touched[run] = _state_decoder.decode(row[0]) if row else PastRun()
        return past

    def keep(self) -> None:
        """Write them, and let go of them."""
        rows = [(past.first_sequence, run, _encoder.encode(past).decode()) for run, past in self._touched.items()]
        self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?,?,?)", rows)
        self._touched.clear()


def insert_results(
    connection: sqlite3.Connection,
    targets: Names,
    tests: Names,
    recorded: RecordedEvent,
    event: AttemptRecorded,
    table: CaseTable,
) -> int:
    """Write what an attempt says, and return how many rows that were."""
    sequence = recorded.sequence
    attempt = (sequence, recorded.header.stream, event.shard, event.side, event.attempt, event.commit)
    written = (recorded.header.actor.host, recorded.header.time)
    connection.execute("INSERT INTO attempts VALUES (?,?,?,?,?,?,?,?)", attempt + written)
    uses = [(targets.number(name), sequence, *rest) for name, *rest in target_results(event, table)]
    outcomes = [(tests.number(name), sequence, *rest) for name, *rest in case_results(table)]
    connection.executemany("INSERT OR REPLACE INTO uses VALUES (?,?,?,?,?,?)", uses)
    connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?,?,?,?,?,?,?)", outcomes)
    return len(uses) + len(outcomes)


def insert_session(connection: sqlite3.Connection, sequence: int, event: Measured) -> None:
    """Write what an attempt took besides its targets."""
    values = (sequence, event.session_seconds, event.session_memory_bytes)
    connection.execute("INSERT INTO sessions VALUES (?,?,?)", values)


def select_latest(connection: sqlite3.Connection, attempts: int) -> Iterator[TargetRow]:
    """What the targets used in so many attempts each, the newest ones, in the order of `select_targets`."""
    return _target_rows(connection.execute(_TARGETS.format(_LATEST.format(attempts))))


def select_case_seconds(connection: sqlite3.Connection, target: str) -> Iterator[tuple[str, float]]:
    """The time of each test of a target, in its newest attempt."""
    # Texts are ordered by their bytes, in which the tests of a target follow each other.
    first, end = f"{target}::", f"{target}:;"
    query = (
        "SELECT t.name, o.duration_seconds FROM tests t JOIN outcomes o ON o.test = t.id"
        " WHERE t.name >= ? AND t.name < ? AND o.sequence = (SELECT max(sequence) FROM outcomes WHERE test = t.id)"
    )
    yield from connection.execute(query, (first, end))


def select_sessions(connection: sqlite3.Connection, attempts: int) -> list[tuple[float, int | None]]:
    """What so many attempts, the newest ones, took besides their targets."""
    query = "SELECT duration_seconds, memory_bytes FROM sessions ORDER BY sequence DESC LIMIT ?"
    return connection.execute(query, (attempts,)).fetchall()


def first_of_latest_runs(connection: sqlite3.Connection, runs: int) -> int:
    """The sequence at which the newest so many runs begin; 0 when there are not more than that."""
    row = connection.execute("SELECT first FROM runs ORDER BY first DESC LIMIT 1 OFFSET ?", (runs - 1,)).fetchone()
    return row[0] if row else 0


def select_runs(connection: sqlite3.Connection) -> Iterator[PastRun]:
    """Every run, in the order in which they began."""
    for (state,) in connection.execute("SELECT state FROM runs ORDER BY first"):
        yield _state_decoder.decode(state)


def select_targets(connection: sqlite3.Connection, run: str | None) -> Iterator[TargetRow]:
    """What the targets used, of one run or of all; each target's rows in the order of their sequence."""
    return _target_rows(_select(connection, _TARGETS, run))


def _target_rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[TargetRow]:
    names = TargetRow.__struct_fields__
    return (TargetRow(**dict(zip(names, row, strict=True))) for row in rows)


def select_outcomes(connection: sqlite3.Connection, run: str | None) -> Iterator[OutcomeRow]:
    """What the cases did, of one run or of all; each case's rows in the order of their sequence."""
    names = OutcomeRow.__struct_fields__
    return (OutcomeRow(**dict(zip(names, row, strict=True))) for row in _select(connection, _OUTCOMES, run))


def select_failing(connection: sqlite3.Connection, run: str | None) -> Iterator[Observation]:
    """What all attempts, or those of one run, saw of each test that failed at least once in any."""
    condition = f"t.id IN (SELECT test FROM outcomes WHERE {_FAILING})"
    values: tuple[str, ...] = ()
    if run is not None:
        condition, values = f"{condition} AND a.run = ?", (run,)
    return starmap(Observation, connection.execute(_OBSERVATIONS.format(condition), values))


def select_test(connection: sqlite3.Connection, test: str) -> Iterator[Observation]:
    """What all attempts saw of a test, by its text form; without a variant, of all of its variants."""
    # A bracket that is part of a name is escaped, so what begins like this is a variant.
    values = (test, f"{test}[", f"{test}\\")
    return starmap(
        Observation, connection.execute(_OBSERVATIONS.format("(t.name=? OR t.name>=? AND t.name<?)"), values)
    )


def select_names_like(connection: sqlite3.Connection, text: str) -> Iterator[str]:
    """The tests whose text form, without the escapes in it, may be this text."""
    query = "SELECT name FROM tests WHERE replace(name, '\\', '') = replace(?, '\\', '') ORDER BY name"
    return (name for (name,) in connection.execute(query, (text,)))


def _select(connection: sqlite3.Connection, query: str, run: str | None) -> Iterator[tuple[Any, ...]]:
    condition, values = ("", ()) if run is None else ("WHERE a.run = ?", (run,))
    yield from connection.execute(query.format(condition), values)
