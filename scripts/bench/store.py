"""The store beside its limits: raw sqlite3 with the same bytes, and the event-store library with its default codec.

Usage: python scripts/bench/store.py [--events 20000] [--repetitions 5] [--million]. Exit code 1 over a limit.
"""

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from eventsourcing.application import Application
from eventsourcing.domain import DomainEvent, datetime_now_with_tzinfo
from lib import Watch, compare, report

from ledger.events import STREAM, TYPES, AttemptRecorded, AttemptStarted, Event, FailureLine, LedgerCreated
from ledger.record import Actor, NewEvent, Stamp
from ledger.store.reader import Reader
from ledger.store.sqlite.schema import TABLE
from ledger.store.writer import Writer

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
    """Put the same fields into the library's own event store with its default mapper, in the same batches."""
    fields = [msgspec.to_builtins(event) for event in attempts(RUN_EVENTS)]
    application: Application[Any] = Application(
        {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    )
    for start in range(0, count, BATCH):
        stream, now = uuid4(), datetime_now_with_tzinfo()
        batch = [
            LibraryEvent(stream, position, now, fields[(start + position) % RUN_EVENTS])
            for position in range(BATCH)
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
