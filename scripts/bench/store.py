"""The store beside its limits: raw sqlite3 with the same bytes, and the event-store library with its default codec.

Usage: python scripts/bench/store.py [--events 20000] [--repetitions 5] [--longer]. Exit code 1 over a limit.
"""

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from eventsourcing.application import Application
from eventsourcing.domain import DomainEvent, datetime_now_with_tzinfo

from ledger.events import STREAM, TYPES, AttemptRecorded, AttemptStarted, Event, FailureLine, LedgerCreated
from ledger.record import Actor, NewEvent, Stamp
from ledger.store.reader import Reader
from ledger.store.sqlite.schema import TABLE
from ledger.store.writer import Writer
from scripts.bench.measuring.lib import Watch, compare, report

BATCH = 100
RUN_EVENTS = 500
COMMIT = "a" * 40
ACTOR = Actor(who="operator@example.org", host="host-1.example.org", tool="release-ledger 0.1.0")


def digest_of(number: int) -> str:
    """A digest that looks like any other."""
    return sha256(str(number).encode()).hexdigest()


def attempts(count: int) -> list[Event]:
    """Events as a gate writes them: for each shard and side the start and the record, a tenth with a failure."""
    events: list[Event] = []
    for number in range((count + 3) // 4):
        failed = number % 10 == 0
        failure = FailureLine("tests/unit/test_api.py::test_get", "AssertionError: assert 1 == 2")
        for side in ("candidate", "baseline"):
            common = {
                "shard": f"shard-{number:03}", "side": side, "attempt": 1, "term": 1, "commit": COMMIT,
            }  # fmt: skip
            outcome = {
                "complete": True, "counted": True, "cause": None, "detail": "", "exit_code": int(failed),
                "signal": None, "started_at": "2026-11-30T13:00:00.123456Z",
                "duration_seconds": 12.345678 + number, "peak_memory_bytes": 123456789 + number,
                "reader": "pytest-lines-1", "evidence_key": digest_of(number), "table": digest_of(number + 1),
                "record": digest_of(number + 2), "log": digest_of(number + 3), "targets": 12,
                "measured_targets": 12, "missing": [], "attention": ["tests/unit/test_api.py"] * failed,
                "counts": {"passed": 120, "failed": int(failed), "skipped": 3, "xfailed": 1},
                "failures": [failure] * failed,
            }  # fmt: skip
            events.append(msgspec.convert({**common, "member": "local", "targets": None}, AttemptStarted))
            events.append(msgspec.convert({**common, **outcome}, AttemptRecorded))
    return events[:count]


class Progress:
    """The fold that both sides of a reading do: the latest attempt per run, shard and side, and counters."""

    def __init__(self) -> None:
        self.latest: dict[tuple[str, str, str], AttemptRecorded] = {}
        self.running = 0
        self.cases: Counter[str] = Counter()

    def add(self, stream: str, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, AttemptStarted):
            self.running += 1
        elif isinstance(event, AttemptRecorded):
            self.running -= 1
            self.latest[stream, event.shard, event.side] = event
            for outcome, count in event.counts.items():
                self.cases[outcome] += count


def append_with_writer(path: Path, count: int, watch: Watch) -> None:
    """Append runs of events in batches, each batch one durable transaction."""
    events = attempts(RUN_EVENTS)
    with Writer.open(path, create=True) as writer:
        created = LedgerCreated(ledger_id="c" * 32, project="bench", root_commit=COMMIT, format_version=1)
        writer.append([NewEvent(STREAM, created)], {STREAM: 0}, stamp(-1))
        for start in range(0, count, BATCH):
            stream, position = f"run-{start // RUN_EVENTS:06}", start % RUN_EVENTS
            batch = [NewEvent(stream, event) for event in events[position : position + BATCH]]
            with watch.timed():
                writer.append(batch, {stream: position}, stamp(start))


def stamp(number: int) -> Stamp:
    """What the loop would stamp on the batch of this number."""
    return Stamp(
        time="2026-11-30T13:00:00.123456Z", actor=ACTOR, command=digest_of(number)[:32],
        correlation=digest_of(number)[:32], message=digest_of(-number), policy="1",
    )  # fmt: skip


def append_raw(source: Path, path: Path, watch: Watch) -> None:
    """Write the same rows into the same table with executemany alone: no triggers, no digests, no checks."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(TABLE)
    stored = sqlite3.connect(source)
    cursor = stored.execute("SELECT * FROM events WHERE sequence > 1 ORDER BY sequence")
    insert = f"INSERT INTO events VALUES ({','.join('?' * len(cursor.description))})"
    while rows := cursor.fetchmany(BATCH):
        with watch.timed():
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, rows)
            connection.execute("COMMIT")
    stored.close()
    connection.close()


@dataclass(frozen=True)
class LibraryEvent(DomainEvent):
    """An event of the library with the fields of one of ours."""

    fields: dict[str, Any]


def append_with_library(path: Path, count: int, watch: Watch) -> None:
    """Put the same content (fields, and who did it by which command) into the library's own event store."""
    stamped = msgspec.to_builtins(stamp(0))
    fields = [{"event": msgspec.to_builtins(event), "stamp": stamped} for event in attempts(RUN_EVENTS)]
    application: Application[Any] = Application(
        {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    )
    for start in range(0, count, BATCH):
        stream, now = uuid4(), datetime_now_with_tzinfo()
        batch = [
            LibraryEvent(stream, position, now, fields[(start + position) % RUN_EVENTS]) for position in range(BATCH)
        ]
        with watch.timed():
            application.events.put(batch)
    application.close()


def read_with_reader(path: Path, watch: Watch, **arguments: Any) -> None:
    """Read, verify and fold."""
    progress = Progress()
    with watch.timed(), Reader.open(path) as reader:
        for page in reader.pages(**arguments):
            for recorded in page:
                progress.add(recorded.header.stream, recorded.event)


def read_raw(path: Path, watch: Watch) -> None:
    """Select the payloads with what their decoding and the fold need, decode, and fold: no verification."""
    progress = Progress()
    decode = {tag: msgspec.json.Decoder(event_type).decode for tag, event_type in TYPES.items()}
    with watch.timed():
        connection = sqlite3.connect(path)
        cursor = connection.execute("SELECT stream, tag, payload FROM events ORDER BY sequence")
        while rows := cursor.fetchmany(1000):
            for stream, tag, payload in rows:
                progress.add(stream, decode[tag](payload))
        connection.close()


def peak_memory_bytes(path: Path) -> int:
    """The most memory that a process takes which does nothing but read and verify a ledger to its end."""
    code = f"""
import resource
from pathlib import Path
from ledger.store.reader import Reader
with Reader.open(Path({str(path)!r})) as reader:
    for page in reader.pages():
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout) * 1024


def seconds(path: Path) -> float:
    """The CPU time of one reading."""
    watch = Watch()
    read_with_reader(path, watch)
    return watch.cpu_seconds


def measure_appending(directory: Path, count: int, repetitions: int) -> list[bool]:
    """Appending beside raw SQLite and beside the library."""
    source = directory / "source.db"
    append_with_writer(source, count, Watch())
    numbers = iter(range(10**6))

    def ours(watch: Watch) -> None:
        append_with_writer(directory / f"{next(numbers)}.db", count, watch)

    def raw(watch: Watch) -> None:
        append_raw(source, directory / f"{next(numbers)}.db", watch)

    def library(watch: Watch) -> None:
        append_with_library(directory / f"{next(numbers)}.db", count, watch)

    return [
        compare(
            "store.append",
            ours,
            raw,
            unit=f"x raw executemany of the same rows, batches of {BATCH}, synchronous FULL",
            limit=2.5,
            repetitions=repetitions,
        ),
        compare(
            "store.append-library",
            ours,
            library,
            unit=f"x the library's EventStore.put with its default mapper and the same content, batches of {BATCH}",
            limit=1.0,
            repetitions=repetitions,
        ),
    ]


def measure_reading(directory: Path, count: int, repetitions: int, *, longer: bool) -> list[bool]:
    """Reading beside raw SQLite; and that a ledger ten times as long costs no more for each event, nor memory."""
    path, longer_path = directory / "read.db", directory / "longer.db"
    append_with_writer(path, count, Watch())
    within = [
        compare(
            "store.read",
            lambda watch: read_with_reader(path, watch),
            lambda watch: read_raw(path, watch),
            unit=f"x raw select of the payload, decode and the same fold; {count} events",
            limit=2.5,
            repetitions=repetitions,
        )
    ]
    if longer:
        append_with_writer(longer_path, 10 * count, Watch())
        ratios = sorted(seconds(longer_path) / 10 / seconds(path) for _ in range(3))
        memory = peak_memory_bytes(longer_path) / peak_memory_bytes(path)
        spread = (ratios[0], ratios[-1])
        unit = f"x the same for {count} events"
        within += [
            report("store.read-longer", ratios[1], unit=f"{unit}, per event", limit=1.2, spread=spread),
            report("store.read-memory", memory, unit=f"{unit}, peak memory", limit=1.1, spread=(memory, memory)),
        ]
    return within


def main() -> int:
    """Measure everything; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--longer", action="store_true", help="also read a ledger that is ten times as long")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        within = measure_appending(Path(name), arguments.events, arguments.repetitions)
        within += measure_reading(Path(name), arguments.events, arguments.repetitions, longer=arguments.longer)
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
