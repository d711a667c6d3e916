"""A damaged ledger is moved aside whole and a new one is made of what is proved, wherever that is cut short."""

import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger.errors import LedgerDamaged, NewerFormat
from ledger.events import STREAM, LostEvents, Quarantined, StepStarted
from ledger.proof.receipt import Receipt, RecoveryUnfinished, plan_of, refuse_unfinished
from ledger.proof.recover import NothingKept, NothingToRecover, recover
from ledger.record import NewEvent
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.ledger.attack.killing import Program, needs_strace
from tests.ledger.attack.ledgers import (
    OTHER_RUN,
    RUN,
    attempt,
    forged,
    rewrite,
    run_sql,
    stamp,
    verified,
    write,
)
from tests.ledger.stores import raw

STAMP = stamp("recovery", time="2030-02-01T00:00:00.000000Z")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A whole ledger of 22 events."""
    directory = tmp_path / "ledger"
    directory.mkdir()
    return write(directory)


def change(sequence: int) -> str:
    """The statement that changes an event."""
    return f"UPDATE events SET payload = payload || ' ' WHERE sequence = {sequence}"


def alter(place: Path, statement: str) -> None:
    """Change the schema."""
    with raw(place) as connection:
        connection.execute(statement)


def rows(place: Path, until: int) -> list[tuple[Any, ...]]:
    """The stored rows up to a sequence."""
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute("SELECT * FROM events WHERE sequence <= ? ORDER BY sequence", (until,)).fetchall()


def quarantined(place: Path) -> Path:
    """The directory of the only quarantine."""
    (directory,) = (place.parent / "quarantine").iterdir()
    return directory


def last_event(place: Path) -> Quarantined:
    """The last event, which says what was set aside."""
    with Reader.open(place) as reader:
        event = list(reader.events(STREAM))[-1].event
    assert isinstance(event, Quarantined)
    return event


def test_everything_before_the_first_damaged_event_is_kept_byte_for_byte(place: Path) -> None:
    run_sql(place, change(12), change(20))
    damaged, before = place.read_bytes(), rows(place, 11)
    receipt = recover(place, STAMP)
    assert rows(place, 11) == before
    assert receipt.kept_sequence == 11
    said = verified(place, evidence=True)
    assert said.report.sound
    assert said.report.events == 12
    assert (quarantined(place) / place.name).read_bytes() == damaged


def test_the_new_ledger_says_what_was_moved_where_and_what_was_lost(place: Path) -> None:
    run_sql(place, change(16))
    damaged = place.read_bytes()
    receipt = recover(place, STAMP)
    event = last_event(place)
    assert (event.what, event.kept_sequence, event.size_bytes) == ("ledger", 15, len(damaged))
    assert event.digest == sha256(damaged).hexdigest()
    assert place.parent / event.place == quarantined(place)
    assert event.reason.startswith("event-changed: ")
    assert event.lost == (
        LostEvents(stream=RUN, first=8, last=12, tags={
            "attempt-started": 1, "attempt-recorded": 1, "verdict-decided": 1, "step-finished": 1, "run-finished": 1,
        }),
        LostEvents(stream=OTHER_RUN, first=8, last=9, tags={"attempt-started": 1, "attempt-recorded": 1}),
    )  # fmt: skip
    assert event.lost == receipt.lost


def test_the_receipt_lies_beside_what_was_moved(place: Path) -> None:
    run_sql(place, change(16), change(18))
    receipt = recover(place, STAMP)
    directory = quarantined(place)
    assert msgspec.json.decode((directory / "receipt.json").read_bytes(), type=Receipt) == receipt
    assert (receipt.time, receipt.actor) == (STAMP.time, STAMP.actor)
    assert [finding.sequence for finding in receipt.findings] == [16, 18]
    assert directory.name == f"20300201-000000-{receipt.files[0].digest[:12]}"
    for moved in receipt.files:
        content = (directory / moved.name).read_bytes()
        assert (moved.size_bytes, moved.digest) == (len(content), sha256(content).hexdigest())
    assert not plan_of(place).exists()


def test_the_recovered_ledger_goes_on(place: Path) -> None:
    run_sql(place, change(9))
    recover(place, STAMP)
    with Writer.open(place) as writer:
        writer.append([NewEvent(RUN, StepStarted(step="again"))], {RUN: 7}, stamp("again"))
    assert verified(place).report.events == 10


def test_it_can_be_damaged_and_recovered_again(place: Path) -> None:
    for number, sequence in enumerate((20, 10)):
        run_sql(place, change(sequence))
        recover(place, stamp(f"recovery-{number}", time=f"2030-02-0{number + 1}T00:00:00.000000Z"))
        assert verified(place).report.events == sequence
    assert len(list((place.parent / "quarantine").iterdir())) == 2


def forge(place: Path) -> None:
    """Put another event with a right digest in the place of @5, which is the fourth of its stream."""
    rewrite(place, lambda rows: ({**rows, 5: forged(rows[5], 5, time="2031-01-01T00:00:00Z")}).values())


def cut(place: Path) -> None:
    """Cut the file in half."""
    place.write_bytes(place.read_bytes()[: 6 * 4096])


def rot_index(place: Path) -> None:
    """Damage the text of a stream in an index, where no event is."""
    content = place.read_bytes()
    offset = content.index(RUN.encode(), 2 * 4096, 4 * 4096)
    place.write_bytes(content[:offset] + b"X" + content[offset + 1 :])


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        (lambda place: run_sql(place, "DELETE FROM events WHERE sequence = 7"), 6),
        (lambda place: run_sql(place, "UPDATE events SET tag = 'x' WHERE sequence = 7"), 6),
        (lambda place: run_sql(place, "UPDATE events SET sequence = 99 WHERE sequence = 7"), 6),
        (lambda place: alter(place, "DROP TRIGGER events_are_not_changed"), 22),
        (lambda place: alter(place, "CREATE TABLE more (a)"), 22),
        (forge, 4),
        (cut, 9),
        (rot_index, 22),
    ],
    ids=["missing", "column", "moved", "trigger", "table", "forged", "cut", "index"],
)
def test_what_is_kept_is_all_that_is_proved(place: Path, damage: Callable[[Path], None], kept: int) -> None:
    before = rows(place, kept)
    damage(place)
    assert verified(place).findings
    assert recover(place, STAMP).kept_sequence == kept
    assert rows(place, kept) == before
    assert verified(place).report.sound


def test_a_write_ahead_log_is_a_part_of_the_damaged_ledger_and_is_moved_along(place: Path, tmp_path: Path) -> None:
    run_sql(place, change(16))
    copy = shutil.copytree(place.parent, tmp_path / "copy") / place.name
    with Writer.open(place) as writer:
        writer.append([NewEvent(RUN, event) for event in attempt(RUN, "candidate")], {RUN: 12}, stamp("late"))
        log = place.with_name(f"{place.name}-wal").read_bytes()
    copy.with_name(f"{place.name}-wal").write_bytes(log)
    receipt = recover(copy, STAMP)
    assert receipt.lost[0].last == 14
    assert (quarantined(copy) / f"{place.name}-wal").read_bytes() == log
    assert {moved.name: moved.size_bytes for moved in receipt.files}[f"{place.name}-wal"] == len(log)
    assert verified(copy).report.events == 16


def test_a_whole_ledger_is_left_alone(place: Path) -> None:
    before = place.read_bytes()
    with pytest.raises(NothingToRecover, match="every event up to @22 was verified"):
        recover(place, STAMP)
    assert place.read_bytes() == before
    assert not (place.parent / "quarantine").exists()


@pytest.mark.parametrize("in_event", [True, False], ids=["said by its first event", "said by the mark of the file"])
def test_a_ledger_of_a_newer_format_is_left_to_the_newer_program(place: Path, in_event: bool) -> None:
    def newer(rows: dict[int, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        payload = rows[1][6].replace('"format_version":1', '"format_version":99').encode()
        return [forged(rows[1], 1, payload), *(row for sequence, row in rows.items() if sequence > 1)]

    if in_event:
        rewrite(place, newer)
        run_sql(place, change(22))
    alter(place, "PRAGMA user_version = 99")
    before = place.read_bytes()
    with pytest.raises(NewerFormat):
        recover(place, STAMP)
    assert place.read_bytes() == before
    assert not plan_of(place).exists()


def test_damaged_evidence_is_no_reason_to_touch_the_events(place: Path) -> None:
    for path in (place.parent / "evidence").rglob("*.gz"):
        path.write_bytes(b"")
    with pytest.raises(NothingToRecover) as caught:
        recover(place, STAMP)
    assert "evidence" in caught.value.hint


@pytest.mark.parametrize(
    "damage",
    [lambda place: run_sql(place, change(1)), lambda place: place.write_bytes(b"x" * 50)],
    ids=["the first event", "everything"],
)
def test_when_not_even_the_first_event_is_proved_nothing_is_changed(
    place: Path, damage: Callable[[Path], None]
) -> None:
    damage(place)
    before = place.read_bytes()
    with pytest.raises(NothingKept):
        recover(place, STAMP)
    assert place.read_bytes() == before
    assert not plan_of(place).exists()


def test_while_a_recovery_is_unfinished_nobody_may_write(place: Path) -> None:
    refuse_unfinished(place)
    plan_of(place).write_text("{}")
    with pytest.raises(RecoveryUnfinished):
        refuse_unfinished(place)
    assert "recovery-begun" in verified(place).codes
    with pytest.raises(LedgerDamaged, match="plan"):
        recover(place, STAMP)


@needs_strace
@pytest.mark.slow
@pytest.mark.real
def test_a_recovery_that_is_killed_between_any_two_system_calls_ends_the_same_when_it_is_run_again(
    place: Path, tmp_path: Path
) -> None:
    run_sql(place, change(16))
    reading = sqlite3.connect(place)
    reading.execute("SELECT 1 FROM events").fetchone()
    damaged, directory = place.read_bytes(), tmp_path / "killed"
    program = Program("one_recovery.py", directory)
    shutil.copytree(place.parent, directory)
    calls = program.changing_calls(tmp_path / "log")
    # Most of them fill the new file, which nothing depends on before it is whole: of those, some will do.
    filling = [call for call in calls if call[0] in ("openat", "pwrite64")]
    calls = [call for call in calls if call not in filling] + filling[::6]
    expected = contents(directory)
    unfinished = 0
    for name, number in calls:
        shutil.rmtree(directory)
        shutil.copytree(place.parent, directory)
        done = program.with_fault(name, str(number), "signal=SIGKILL")
        assert done.returncode == -signal.SIGKILL, (name, number, done.stderr)
        kept = [path for path in directory.rglob(place.name) if path.read_bytes() == damaged]
        assert kept, "the damaged file is gone"
        assert (directory / place.name).exists()
        if plan_of(directory / place.name).exists():
            unfinished += 1
        if verified(directory / place.name).findings:
            recover(directory / place.name, STAMP)
        assert contents(directory) == expected
    assert 0 < unfinished < len(calls)


def contents(directory: Path) -> dict[str, Any]:
    """What a recovery has left: the new rows, and every file of the quarantine."""
    place = directory / "ledger.sqlite"
    assert verified(place, evidence=True).report.sound
    files = {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in (directory / "quarantine").rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }
    return {"rows": rows(place, 10**9), "plan": plan_of(place).exists(), **files}
