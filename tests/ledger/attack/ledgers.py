"""A small whole ledger to attack: two runs of a gate, with all the evidence that their events name."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from ledger.events import STREAM, Event, LedgerCreated, RunFinished, StepFinished, StepStarted
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding, Report
from ledger.proof.verify import verify
from ledger.record import Actor, Header, NewEvent, Stamp
from ledger.store.reader import Head
from ledger.store.sqlite.recorder import make_row
from ledger.store.writer import Writer
from tests.ledger.stores import raw
from tests.support.makers import (
    attempt_recorded,
    attempt_started,
    driver_started,
    placed,
    planned,
    run_started,
    verdict_decided,
)

LEDGER_ID = "1" * 32
RUN, OTHER_RUN = "20300102-030405-abcd", "20300103-030405-ef01"


class Verified(NamedTuple):
    """What a verification said."""

    report: Report
    findings: list[Finding]

    @property
    def codes(self) -> list[str]:
        """The codes of the findings, in the order in which they were told."""
        return [finding.code for finding in self.findings]

    def at(self, sequence: int) -> list[str]:
        """The codes of the findings that name this sequence."""
        return [finding.code for finding in self.findings if finding.sequence == sequence]


def verified(place: Path, *, evidence: bool = False, noted: Head | None = None) -> Verified:
    """Verify a ledger file; with its evidence, when that is asked for."""
    findings: list[Finding] = []
    directory = place.parent / "evidence" if evidence else None
    return Verified(verify(place, directory, findings.append, noted=noted), findings)


def stamp(command: str, message: str = "", time: str = "2030-01-02T03:04:05.000000Z") -> Stamp:
    """The stamp of a command that was sent with this message."""
    return Stamp(time=time, actor=Actor("someone", "here", "ledger 0"), command=command, message=message, policy="1")


def created() -> LedgerCreated:
    """The event that a ledger begins with."""
    return LedgerCreated(ledger_id=LEDGER_ID, project="demo", root_commit="a" * 40, format_version=1)


def content_of(name: str) -> bytes:
    """What the piece of evidence with this name holds."""
    return f"the content of {name}\n".encode() * 20


def digest_of(name: str) -> str:
    """The digest of this piece of evidence."""
    return sha256(content_of(name)).hexdigest()


def attempt(run: str, side: str) -> list[Event]:
    """The start and the record of an attempt, with three pieces of evidence of its own and one that all share."""
    evidence = {kind: digest_of(f"{run} {side} {kind}") for kind in ("table", "record", "log")}
    key = digest_of("key")
    return [
        attempt_started(side=side),  # type: ignore[arg-type]
        attempt_recorded(side=side, evidence_key=key, **evidence),  # type: ignore[arg-type]
    ]


def gate(run: str, *, verdict: bool) -> list[list[Event]]:
    """The events of a gate, by command."""
    begun = run_started(run=run, config=digest_of("config"))
    commands: list[list[Event]] = [
        [begun, driver_started(), StepStarted(step="gate")],
        [structs.replace(planned(), plan=digest_of("plan")), *placed("shard-1")],
        attempt(run, "candidate"),
        attempt(run, "baseline"),
    ]
    if verdict:
        decided = verdict_decided(classes=digest_of("classes"))
        commands.append([decided, StepFinished(step="gate", outcome="passed"), RunFinished(verdict="passed")])
    return commands


def evidence_names() -> list[str]:
    """The names of all pieces of evidence; messages are among them."""
    attempts = [f"{run} {side} {kind}" for run in (RUN, OTHER_RUN) for side in ("candidate", "baseline")
                for kind in ("table", "record", "log")]  # fmt: skip
    messages = [f"message {run} {number}" for run in (RUN, OTHER_RUN) for number in range(5)]
    return [*attempts, *messages, "key", "config", "plan", "classes"]


def write(directory: Path) -> Path:
    """Write the ledger and its evidence, and return the ledger's file, which holds 23 events in three streams."""
    store = EvidenceStore(directory / "evidence")
    for name in evidence_names():
        store.put_bytes(content_of(name))
    place = directory / "ledger.sqlite"
    with Writer.open(place, create=True) as writer:
        writer.append([NewEvent(STREAM, created())], {STREAM: 0}, stamp("begin"))
        commands = [(RUN, number, events) for number, events in enumerate(gate(RUN, verdict=True))]
        commands[3:3] = [(OTHER_RUN, number, events) for number, events in enumerate(gate(OTHER_RUN, verdict=False))]
        positions = {RUN: 0, OTHER_RUN: 0}
        for run, number, events in commands:
            message = digest_of(f"message {run} {number}")
            new = [NewEvent(run, event) for event in events]
            writer.append(new, {run: positions[run]}, stamp(f"{run} {number}", message))
            positions[run] += len(events)
    return place


def rows(place: Path) -> dict[int, tuple[Any, ...]]:
    """The rows by sequence."""
    with raw(place) as connection:
        return {row[0]: row for row in connection.execute("SELECT * FROM events ORDER BY sequence")}


@contextmanager
def around_the_writer(place: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody who has taken the triggers away for a while."""
    with raw(place) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)


def run_sql(place: Path, *statements: str) -> None:
    """Change events around the writer."""
    with around_the_writer(place) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, f"nothing was changed by {statement}"


def rewrite(place: Path, change: Callable[[dict[int, tuple[Any, ...]]], Iterable[tuple[Any, ...]]]) -> None:
    """Put other rows in the place of all; the file itself is as sound as before."""
    changed = list(change(rows(place)))
    with around_the_writer(place) as connection:
        connection.execute("DELETE FROM events")
        connection.executemany("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?)", changed)


def forged(row: tuple[Any, ...], sequence: int, payload: bytes | None = None, **changes: Any) -> tuple[Any, ...]:
    """A row made from another one with a right digest and with columns that agree with its header."""
    header = msgspec.json.decode(row[5], type=Header)
    return make_row(sequence, structs.replace(header, **changes), payload or row[6].encode())[0]
