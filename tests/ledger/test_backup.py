"""Backups: a copy that holds everything up to one moment, made while others write, and never over something else."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ledger.backup import MARK, DestinationOccupied, back_up
from ledger.errors import LedgerDamaged, LedgerMissing, StoreUnwritable
from ledger.events import RunStopped
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding
from ledger.proof.verify import verify
from ledger.record import NewEvent, RecordedEvent, Stamp
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.ledger.stores import edited, place_file
from tests.support.ledgers import ACTOR, add_run, make_ledger

RUN = "run-1"
WRITES = 60


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A ledger with one run."""
    return make_ledger(tmp_path / "original", RUN)


def events(directory: Path) -> list[RecordedEvent]:
    """Everything in the ledger of a directory."""
    with Reader.open(directory / LEDGER_FILE) as reader:
        return list(reader.events())


def contents(directory: Path) -> dict[Path, bytes]:
    """Every file below a directory, without those that SQLite keeps beside a ledger while it is open."""
    files = (path for path in directory.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {path: path.read_bytes() for path in files}


def findings(directory: Path) -> list[Finding]:
    """What is wrong with the ledger of a directory."""
    found: list[Finding] = []
    verify(directory / LEDGER_FILE, directory / EVIDENCE, found.append)
    return found


def test_a_backup_holds_the_same_events_and_verifies(original: Path, tmp_path: Path) -> None:
    made = back_up(original, tmp_path / "deep" / "copy")
    copy = tmp_path / "deep" / "copy"
    assert events(copy) == events(original)
    assert findings(copy) == []
    assert (made.head_sequence, made.head_digest) == (events(original)[-1].sequence, events(original)[-1].digest)
    assert (made.added, made.damaged) == (made.evidence, ())


def test_a_backup_can_be_written_to_like_any_ledger(original: Path, tmp_path: Path) -> None:
    back_up(original, tmp_path / "copy")
    with Writer.open(tmp_path / "copy" / LEDGER_FILE) as writer:
        add_run(writer, tmp_path / "copy", "run-2")
    assert findings(tmp_path / "copy") == []


def test_what_becomes_of_the_original_does_not_become_of_the_copy(original: Path, tmp_path: Path) -> None:
    back_up(original, tmp_path / "copy")
    for file in (original / EVIDENCE).glob("*/*.gz"):
        file.write_bytes(b"rotten")
    assert findings(original)
    assert findings(tmp_path / "copy") == []
    shutil.rmtree(original)
    assert findings(tmp_path / "copy") == []


def test_a_backup_made_while_others_write_is_a_beginning_of_the_ledger(original: Path, tmp_path: Path) -> None:
    started = threading.Event()

    def write() -> None:
        with Writer.open(original / LEDGER_FILE) as writer:
            for number in range(WRITES):
                message = EvidenceStore(original / EVIDENCE).put_bytes(f"message {number}".encode())
                told = Stamp(time="2030-02-01T00:00:00.000000Z", actor=ACTOR, command=f"w {number}", message=message)
                writer.append([NewEvent("run-w", RunStopped(reason="asked", term=number))], {"run-w": number}, told)
                started.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert started.wait(30)
        made = back_up(original, tmp_path / "copy")
    finally:
        thread.join()
    assert events(tmp_path / "copy") == events(original)[: made.head_sequence]
    assert [finding.code for finding in findings(tmp_path / "copy") if finding.code != "run-start"] == []
    assert made.damaged == ()


def test_a_later_backup_brings_the_copy_up_to_date(original: Path, tmp_path: Path) -> None:
    back_up(original, tmp_path / "copy")
    assert back_up(original, tmp_path / "copy").added == 0
    with Writer.open(original / LEDGER_FILE) as writer:
        add_run(writer, original, "run-2")
    EvidenceStore(original / EVIDENCE).put_bytes(b"named by no event")
    back_up(original, tmp_path / "copy")
    assert events(tmp_path / "copy") == events(original)
    assert findings(tmp_path / "copy") == []


KILLED = """
import os, signal, sys
from pathlib import Path
from ledger.backup import back_up
from ledger.evidence import EvidenceStore
left = int(sys.argv[3])
real = EvidenceStore.put_from
def put_from(self, other, digest):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    real(self, other, digest)
EvidenceStore.put_from = put_from
back_up(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("pieces", [0, 1, 10])
def test_a_backup_that_was_killed_is_taken_up_again(original: Path, tmp_path: Path, pieces: int) -> None:
    copy = tmp_path / "copy"
    command = [sys.executable, "-c", KILLED, original, copy, str(pieces)]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert not (copy / LEDGER_FILE).exists()
    made = back_up(original, copy)
    assert made.added == made.evidence - pieces
    assert findings(copy) == []
    assert sorted(path.name for path in copy.iterdir()) == [MARK, EVIDENCE, LEDGER_FILE]


def test_nothing_else_is_written_over(original: Path, tmp_path: Path) -> None:
    other = make_ledger(tmp_path / "other", "run-9", ledger_id="2" * 32)
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    theirs = tmp_path / "theirs"
    back_up(other, theirs)
    for occupied in (original, other, full, theirs, tmp_path):
        before = contents(occupied)
        with pytest.raises(DestinationOccupied):
            back_up(original, occupied)
        assert contents(occupied) == before
    assert json.loads((theirs / MARK).read_text()) == {"backup_of": "2" * 32}


def test_a_backup_with_events_of_its_own_is_kept(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    back_up(original, copy)
    with Writer.open(copy / LEDGER_FILE) as writer:
        add_run(writer, copy, "run-2")
    before = events(copy)
    with pytest.raises(DestinationOccupied, match="events of its own"):
        back_up(original, copy)
    assert events(copy) == before


def test_damaged_evidence_is_told_of_and_the_rest_is_saved(original: Path, tmp_path: Path) -> None:
    altered, missing, *_ = sorted((original / EVIDENCE).glob("*/*.gz"))
    altered.write_bytes(b"no compressed data")
    missing.unlink()
    made = back_up(original, tmp_path / "copy")
    assert sorted(made.damaged) == sorted([altered.stem, missing.stem])
    assert {finding.evidence for finding in findings(tmp_path / "copy")} == {altered.stem, missing.stem}
    assert events(tmp_path / "copy") == events(original)


def test_a_damaged_piece_of_a_backup_is_put_right_from_the_original(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    back_up(original, copy)
    piece = next((copy / EVIDENCE).glob("*/*.gz"))
    piece.unlink()
    piece.write_bytes(b"rotten")
    assert back_up(original, copy).added == 1
    assert findings(copy) == []


def test_events_that_do_not_verify_do_not_become_a_backup(original: Path, tmp_path: Path) -> None:
    changed = edited(original / LEDGER_FILE, "UPDATE events SET payload = '{}' WHERE sequence = 4")
    place_file(original / LEDGER_FILE, changed.read_bytes())
    with pytest.raises(LedgerDamaged, match="@4"):
        back_up(original, tmp_path / "copy")
    assert not (tmp_path / "copy" / LEDGER_FILE).exists()


def test_there_must_be_something_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        back_up(tmp_path, tmp_path / "copy")
    Writer.open(tmp_path / LEDGER_FILE, create=True).close()
    with pytest.raises(LedgerMissing):
        back_up(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_place_that_cannot_be_written_is_said(original: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable):
        back_up(original, tmp_path / "file" / "copy")
