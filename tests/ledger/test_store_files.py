"""The store among other processes, other people's files, full disks and missing rights; and processes that die."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.errors import ForeignLedger, LedgerDamaged, LedgerError, LedgerMissing, NewerFormat, StoreUnwritable
from ledger.store.api import StoreUnreadable
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.ledger.stores import RUN, begin, edited, fill, on, place_file, raw, read, run_python, stamp, started

APPEND = """
import sys
from pathlib import Path
from ledger.store.writer import Writer
from tests.ledger.stores import on, stamp, started
place, stream, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
with Writer.open(place) as writer:
    for position in range(count):
        batch = on(stream, *[started(f"{stream} {position}")] * 3)
        last = writer.append(batch, {stream: 3 * position}, stamp(f"{stream} {position}"))[-1]
        print(last.sequence, last.digest, flush=True)
"""

OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a ledger of nine events that nobody has open."""
    with Writer.open(tmp_path / "ledger.db", create=True) as writer:
        fill(writer)
    return tmp_path / "ledger.db"


@pytest.fixture
def shared_directory() -> Iterator[Path]:
    """A directory that other users can reach, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that runs this code, which waits for a line before it does anything."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def let_go(process: subprocess.Popen[str]) -> None:
    """Write the line that the process waits for."""
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.real
def test_processes_append_to_streams_of_their_own_at_the_same_time(path: Path) -> None:
    streams = ["run-a", "run-b"]
    processes = [start(APPEND, path, stream, 40) for stream in streams]
    for process in processes:
        let_go(process)
    acknowledged = [process.communicate(timeout=60)[0].split("\n")[:-1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    events = read(path)
    assert [event.sequence for event in events] == list(range(1, 9 + 2 * 120 + 1))
    for stream, lines in zip(streams, acknowledged, strict=True):
        ends = [event for event in events if event.header.stream == stream][2::3]
        assert lines == [f"{event.sequence} {event.digest}" for event in ends]


@pytest.mark.real
def test_processes_that_create_one_ledger_at_the_same_time_make_one(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from ledger.errors import Conflict
from ledger.store.writer import Writer
from tests.ledger.stores import begin
sys.stdin.readline()
with Writer.open(Path(sys.argv[1]), create=True) as writer:
    try:
        begin(writer)
    except Conflict:
        print("late")
    else:
        print("first")
"""
    place = tmp_path / "new" / "ledger.db"
    processes = [start(code, place) for _ in range(4)]
    for process in processes:
        let_go(process)
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert sorted(answers) == ["first\n", "late\n", "late\n", "late\n"]
    assert len(read(place)) == 1


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_before_a_kill_is_there_and_verifies(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    process = start(APPEND, path, RUN + "-killed", 100_000)
    assert process.stdout
    let_go(process)
    acknowledged = [process.stdout.readline() for _ in range(chance.randint(1, 120))]
    # Spinning a random while puts the kill anywhere inside the append that follows.
    for _ in range(chance.randint(0, 60_000)):
        pass
    process.send_signal(signal.SIGKILL)
    # `communicate` would read past what `readline` has already taken from the pipe, and lose it.
    with process:
        acknowledged += [line + "\n" for line in process.stdout.read().split("\n")[:-1]]
    events = read(path)
    digests = {event.sequence: event.digest for event in events}
    assert [line for line in acknowledged if digests.get(int(line.split()[0])) != line.split()[1]] == []
    stream = [event for event in events if event.header.stream == RUN + "-killed"]
    assert len(stream) in (3 * len(acknowledged), 3 * len(acknowledged) + 3)
    with Writer.open(path) as writer:
        writer.append(on(RUN + "-killed", started()), {RUN + "-killed": len(stream)}, stamp("after the kill"))
    assert len(read(path)) == len(events) + 1


def test_a_writer_that_was_killed_before_the_first_event_leaves_a_ledger_to_begin(tmp_path: Path) -> None:
    for content in (b"", edited_blank(tmp_path / "blank.db")):
        place = place_file(tmp_path / "ledger.db", content)
        for opening in (Reader.open, Writer.open):
            with pytest.raises(LedgerMissing, match="empty"):
                opening(place)
        with Writer.open(place, create=True) as writer:
            begin(writer)
        assert len(read(place)) == 1


def edited_blank(path: Path) -> bytes:
    """A database that was set to its journal mode, and in which no table was made yet."""
    with raw(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    return path.read_bytes()


@pytest.mark.parametrize("mark", ["PRAGMA application_id = 7", "PRAGMA application_id = 0"])
def test_the_database_of_another_program_is_refused_and_left_alone(path: Path, mark: str) -> None:
    other = edited(path)
    with raw(other) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(mark)
    before = other.read_bytes()
    for opening in (Reader.open, Writer.open, lambda place: Writer.open(place, create=True)):
        with pytest.raises(ForeignLedger, match="another program"):
            opening(other)
    assert other.read_bytes() == before


def test_a_file_that_is_no_database_is_damaged_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_text("not a database, and long enough to have a head of one hundred bytes" * 3)
    before = file.read_bytes()
    for opening in (Reader.open, Writer.open, lambda place: Writer.open(place, create=True)):
        with pytest.raises(LedgerDamaged, match="not a database"):
            opening(file)
    assert file.read_bytes() == before


def test_a_newer_format_can_be_read_but_not_written(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    with Reader.open(path) as reader:
        assert reader.format_version == 2
        assert len(list(reader.events())) == 9
    for create in (False, True):
        with pytest.raises(NewerFormat, match="format 2"):
            Writer.open(path, create=create)


def test_the_file_says_what_it_is_and_is_kept_safe(path: Path) -> None:
    with raw(path) as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        ]
        assert pragmas == [0x6C656467, 1, "wal"]
    with Writer.open(path) as writer, writer._transaction() as cursor:
        cursor.execute("PRAGMA synchronous")
        full = 2
        assert cursor.fetchone()[0] == full


def test_an_auditor_needs_nothing_but_sqlite(path: Path) -> None:
    with raw(path) as connection:
        rows = connection.execute(
            "SELECT sequence, tag, json_extract(payload, '$.step'), json_extract(header, '$.time') FROM events"
            " WHERE stream = 'run-1' AND tag LIKE 'step%'"
        ).fetchall()
    assert rows[0] == (3, "step-started", "a", stamp().time)
    assert [row[0] for row in rows] == [3, 5, 7, 9]


def test_reading_leaves_the_file_as_it_was(path: Path) -> None:
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    read(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_reader_cannot_write(path: Path) -> None:
    with Reader.open(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("CREATE TABLE extra (x)")


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="only Linux tells which files a process has open")
def test_a_reading_that_was_left_holds_nothing_open(path: Path) -> None:
    reader = Reader.open(path)
    pages = reader.pages(page_size=1)
    next(pages)
    with (
        pytest.raises(LedgerDamaged) as caught,
        Reader.open(edited(path, "DELETE FROM events WHERE sequence=2")) as other,
    ):
        list(other.events())
    reader.close()
    held = [os.path.realpath(file) for file in OPEN_FILES.iterdir()]
    assert caught.value.sequence == 3
    assert [name for name in held if name.startswith(str(path.parent))] == []


# Whoever has no rights may not be able to read the interpreter's own modules either: all are imported before.
LOOK = """
import sys
import urllib.parse
from pathlib import Path
from ledger.errors import LedgerError
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.ledger.stores import begin, on, stamp, started
drop_rights()
place, what = Path(sys.argv[1]), sys.argv[2]
try:
    if what == "read":
        with Reader.open(place) as reader:
            print(len(list(reader.events())))
    elif what == "append":
        with Writer.open(place) as writer:
            writer.append(on("run-9", started()), {"run-9": 0}, stamp("late"))
    else:
        with Writer.open(place, create=True) as writer:
            begin(writer)
except LedgerError as error:
    print(type(error).__name__, error.code, error.message, error.hint, sep="|")
"""


def look(place: Path, what: str) -> list[str]:
    """What a process without special rights gets when it reads or appends: the number of events, or the failure."""
    done = run_python(LOOK, place, what, as_nobody=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


@pytest.mark.real
def test_a_ledger_in_a_directory_that_may_not_be_written_can_be_read_but_not_written(shared_directory: Path) -> None:
    place = shared_directory / "ledger.db"
    with Writer.open(place, create=True) as writer:
        fill(writer)
    shared_directory.chmod(0o555)
    try:
        assert look(place, "read") == ["9"]
        kind, code, message, hint = look(place, "append")
        assert (kind, code) == ("StoreUnwritable", "store-unwritable")
        assert str(place) in message
        assert "permissions" in hint
        assert look(shared_directory / "sub" / "ledger.db", "create")[0] == "StoreUnwritable"
        assert look(shared_directory / "other.db", "create")[0] == "StoreUnwritable"
    finally:
        shared_directory.chmod(0o755)


@pytest.mark.real
def test_a_ledger_with_events_outside_its_file_is_not_read_without_them(shared_directory: Path) -> None:
    """What a crashed writer leaves, copied without the index of its log, to where the index cannot be made again."""
    place = shared_directory / "ledger.db"
    with Writer.open(place, create=True) as writer:
        fill(writer)
        copies = {suffix: place.with_name(f"ledger.db{suffix}").read_bytes() for suffix in ("", "-wal")}
    copy = shared_directory / "copy"
    copy.mkdir()
    for suffix, content in copies.items():
        (copy / f"ledger.db{suffix}").write_bytes(content)
    copy.chmod(0o555)
    try:
        kind, _, message, hint = look(copy / "ledger.db", "read")
        assert kind == "StoreUnreadable"
        assert str(copy) in message
        assert "copy" in hint
    finally:
        copy.chmod(0o755)
    assert len(read(copy / "ledger.db")) == 9


@pytest.mark.real
def test_a_file_that_may_not_be_opened_is_unreadable(shared_directory: Path) -> None:
    place = shared_directory / "ledger.db"
    with Writer.open(place, create=True) as writer:
        fill(writer)
    place.chmod(0o000)
    assert look(place, "read")[0] == "StoreUnreadable"


def test_an_sqlite_that_is_too_old_is_said_to_be_and_calls_nothing_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    for opening in (Reader.open, Writer.open, lambda place: Writer.open(place, create=True)):
        with pytest.raises(StoreUnreadable, match="too old"):
            opening(path)


def test_a_directory_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreadable):
        Reader.open(tmp_path)
    with pytest.raises((StoreUnreadable, StoreUnwritable)):
        Writer.open(tmp_path)


def test_a_ledger_that_another_process_keeps_busy_is_unwritable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.store.sqlite.recorder.BUSY_TIMEOUT_SECONDS", 1)
    with Writer.open(path) as writer, raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnwritable, match="busy"):
            writer.append(on(RUN, started()), {RUN: 5}, stamp("late"))
        other.rollback()
        writer.append(on(RUN, started()), {RUN: 5}, stamp("late"))
    assert len(read(path)) == 10


def test_a_commit_that_fails_writes_nothing_and_the_next_one_is_not_hindered(path: Path) -> None:
    def refuse_commit(action: int, operation: str | None, *_: object) -> int:
        refused = action == sqlite3.SQLITE_TRANSACTION and operation == "COMMIT"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    with Writer.open(path) as writer:
        connection = writer._recorder.datastore._connection._sqlite_conn
        connection.set_authorizer(refuse_commit)
        with pytest.raises(LedgerError, match="not authorized"):
            writer.append(on(RUN, started()), {RUN: 5}, stamp("refused"))
        connection.set_authorizer(None)
        assert len(read(path)) == 9
        writer.append(on(RUN, started()), {RUN: 5}, stamp("let through"))
    assert [event.header.command for event in read(path)][9:] == ["let through"]


FILL_UP = """
import sys
from pathlib import Path
from ledger.errors import StoreUnwritable
from ledger.store.writer import Writer
from tests.ledger.stores import on, stamp, started
if sys.argv[2] == "limit":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
with Writer.open(Path(sys.argv[1])) as writer:
    acknowledged = 0
    try:
        for position in range(10_000):
            writer.append(on("big", started("x" * 10_000)), {"big": position}, stamp(f"big {position}"))
            acknowledged += 1
    except StoreUnwritable as error:
        print(error.code, error.message, error.hint, sep="|")
    if sys.argv[2] == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.append(on("big", started()), {"big": acknowledged}, stamp("afterwards"))
print(acknowledged)
"""


def fill_up(place: Path, how: str) -> int:
    """Append until there is no room; the number of acknowledged events."""
    done = run_python(FILL_UP, place, how)
    assert done.returncode == 0, done.stderr
    failure, acknowledged = done.stdout.splitlines()
    code, message, hint = failure.split("|")
    assert code == "store-unwritable"
    assert str(place) in message
    assert "space" in hint
    return int(acknowledged)


@pytest.mark.real
def test_a_file_that_may_not_grow_is_unwritable_and_keeps_what_it_has(path: Path) -> None:
    acknowledged = fill_up(path, "limit")
    assert 0 < acknowledged < 1000
    assert len(read(path)) == 9 + acknowledged + 1


@pytest.mark.real
def test_a_full_disk_is_unwritable_and_keeps_what_it_has(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("a disk of its own can only be mounted with the rights to do so")
    try:
        place = disk / "ledger.db"
        with Writer.open(place, create=True) as writer:
            fill(writer)
        acknowledged = fill_up(place, "disk")
        assert 0 < acknowledged < 1000
        assert len(read(place)) == 9 + acknowledged
    finally:
        subprocess.run(["umount", disk], check=True)
