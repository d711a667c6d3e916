"""Ledgers to test with: appending in sentences, and a raw connection for whoever goes around the writer."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from ledger import codec
from ledger.events import (
    FORMAT_VERSION,
    STREAM,
    TAGS,
    DriverStarted,
    Event,
    LedgerCreated,
    StepFinished,
    StepStarted,
)
from ledger.record import Actor, NewEvent, RecordedEvent, Stamp
from ledger.store.api import Place
from ledger.store.reader import Reader
from ledger.store.writer import Writer

LEDGER_ID = "1" * 32
RUN = "run-1"
OTHER_RUN = "run-2"
NOBODY_ID = 65534


def created() -> LedgerCreated:
    """The event that a ledger begins with."""
    return LedgerCreated(ledger_id=LEDGER_ID, project="demo", root_commit="a" * 40, format_version=FORMAT_VERSION)


def stamp(command: str = "command-1") -> Stamp:
    """A stamp of this command; everything else is fixed."""
    return Stamp(
        time="2030-01-02T03:04:05.000000+00:00", actor=Actor("someone", "here", "ledger 0"), command=command, policy="1"
    )


def started(step: str = "gate") -> StepStarted:
    """The shortest event there is."""
    return StepStarted(step=step)


def on(stream: str, *events: Event) -> list[NewEvent]:
    """These events, to be appended to this stream."""
    return [NewEvent(stream, event) for event in events]


def begin(writer: Writer) -> RecordedEvent:
    """Append the first event."""
    return writer.append(on(STREAM, created()), {STREAM: 0}, stamp("begin"))[0]


def fill(writer: Writer) -> None:
    """Begin a ledger, then append five events to one run and three to another, by turns and in four commands."""
    begin(writer)
    writer.append(on(RUN, DriverStarted(term=1, host="here", pid=1), started("a")), {RUN: 0}, stamp("fill-1"))
    writer.append(on(OTHER_RUN, DriverStarted(term=1, host="here", pid=2)), {OTHER_RUN: 0}, stamp("fill-2"))
    both = [*on(RUN, started("b")), *on(OTHER_RUN, started("c")), *on(RUN, StepFinished(step="b", outcome="passed"))]
    writer.append(both, {RUN: 2, OTHER_RUN: 1}, stamp("fill-3"))
    writer.append([*on(OTHER_RUN, started("d")), *on(RUN, started("é\n☃"))], {RUN: 4, OTHER_RUN: 2}, stamp("fill-4"))


def read(place: Place, stream: str | None = None) -> list[RecordedEvent]:
    """Everything in a ledger, or in a stream of it."""
    with Reader.open(place) as reader:
        return list(reader.events(stream))


@contextmanager
def raw(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A connection that goes around reader and writer; what it does is committed at the end."""
    name = str(path)
    memory = name.startswith("memory:")
    connection = sqlite3.connect(
        f"file:{name.removeprefix('memory:')}?mode=memory&cache=shared" if memory else name, uri=memory
    )
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def place_file(path: Path, content: bytes | bytearray) -> Path:
    """Put a database file in place of another one, together with which the side files of the other have to go."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(content)
    return path


def edited(path: Path, *statements: str) -> Path:
    """A copy of a ledger in which somebody has dropped the triggers and then run these statements."""
    with raw(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = place_file(path.with_name("edited.db"), path.read_bytes())
    with raw(copy) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, f"nothing was changed by {statement}"
    return copy


@contextmanager
def newer_program(event_type: type[Event]) -> Iterator[None]:
    """Within it, this is a program that has a second version of an event type."""
    tag, version = TAGS[event_type]
    upcaster = {(tag, version): lambda fields: fields}
    with patch.dict(TAGS, {event_type: (tag, version + 1)}), patch.dict(codec.UPCASTERS, upcaster):
        codec._reader.cache_clear()
        yield
    codec._reader.cache_clear()


def run_python(code: str, *arguments: object, as_nobody: bool = False) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, without the superuser's rights to everything if asked.

    The rights go after the imports at the top of the code, where it says `drop_rights()`.
    """
    drop = f"os.setuid({NOBODY_ID})" if as_nobody and os.getuid() == 0 else "pass"
    code = f"import os\ndef drop_rights():\n    {drop}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )
