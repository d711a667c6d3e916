"""Files that were cut short, and write-ahead logs: what is left is read, what is gone is named."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from ledger.errors import LedgerMissing
from ledger.proof.tail import read_tail
from ledger.record import NewEvent
from ledger.store.reader import Head, Reader
from ledger.store.writer import Writer
from tests.ledger.attack.ledgers import RUN, attempt, stamp, verified, write
from tests.ledger.attack.test_bytes import NOTHING, judged, stored

PAGE_BYTES, HEAD_BYTES = 4096, 32
INDEXES_END = 4 * PAGE_BYTES
"""Where the pages end that hold the schema, the root of the table, and the whole of both indexes."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ledger, all of it in its file."""
    return write(tmp_path_factory.mktemp("cut"))


def test_a_file_that_was_cut_at_any_page_is_read_as_far_as_it_goes(place: Path, tmp_path: Path) -> None:
    content = place.read_bytes()
    copy = tmp_path / place.name
    copy.write_bytes(content)
    before = stored(copy)
    dice = random.Random(0)
    counts: Counter[str] = Counter()
    ends = range(PAGE_BYTES, len(content), PAGE_BYTES)
    for size in [*ends, *(end + dice.randrange(1, PAGE_BYTES) for end in ends), 1, 50, 100, 512, 4000]:
        copy.write_bytes(content[:size])
        said = verified(copy)
        counts[judged(copy, before, said)] += 1
        if size in ends and size >= INDEXES_END:
            unreadable = [finding.sequence for finding in said.findings if finding.code == "event-unreadable"]
            assert [*range(1, said.report.events + 1), *unreadable] == list(range(1, 23))
    assert counts[NOTHING] == 0
    assert counts.total() == 2 * len(ends) + 5, counts


def test_a_file_that_was_cut_to_nothing_is_no_ledger(place: Path, tmp_path: Path) -> None:
    (tmp_path / place.name).touch()
    with pytest.raises(LedgerMissing):
        verified(tmp_path / place.name)


@pytest.fixture
def open_ledger(place: Path, tmp_path: Path) -> tuple[Path, Head]:
    """A copy of a ledger whose last four events, of two commands, are only in its write-ahead log; and its head."""
    original = shutil.copytree(place.parent, tmp_path / "open") / place.name
    copy = tmp_path / "copy" / place.name
    copy.parent.mkdir()
    with Writer.open(original) as writer:
        for number, side in enumerate(("candidate", "baseline")):
            events = [NewEvent(RUN, event) for event in attempt(RUN, side)]
            head = writer.append(events, {RUN: 12 + 2 * number}, stamp(f"late {number}"))[-1]
        for suffix in ("", "-wal"):
            shutil.copy(original.with_name(place.name + suffix), copy.with_name(place.name + suffix))
    return copy, Head(head.sequence, head.digest)


def test_a_whole_write_ahead_log_belongs_to_the_ledger(open_ledger: tuple[Path, Head]) -> None:
    place, head = open_ledger
    tail = read_tail(place)
    assert (tail.frames > 0, tail.rejected, tail.damage) == (True, 0, "")
    said = verified(place, noted=head)
    assert (said.codes, said.report.notes, said.report.events) == ([], (), 26)


@pytest.mark.slow
def test_bytes_of_a_write_ahead_log_that_are_flipped_are_found_or_the_last_commit_is_gone(
    open_ledger: tuple[Path, Head],
) -> None:
    """When the last commit is the one that does not fit, it looks as if it had never ended; only a noted head tells."""
    place, head = open_ledger
    log = place.with_name(place.name + "-wal")
    content, counts = log.read_bytes(), Counter[str]()
    for offset in (*range(HEAD_BYTES), *range(HEAD_BYTES, len(content), 37)):
        changed = bytearray(content)
        changed[offset] ^= 0xFF
        log.write_bytes(changed)
        place.with_name(place.name + "-shm").unlink(missing_ok=True)
        said = verified(place)
        if said.report.events == 26:
            assert said.codes == []
            counts["nothing that is read changed"] += 1
        elif "tail-damaged" in said.codes:
            counts["found"] += 1
        else:
            assert said.report.events == 24
            assert [note.code for note in said.report.notes] == ["tail-unfinished"]
            assert "head-missing" in verified(place, noted=head).codes
            counts["as if the last commit had not ended"] += 1
    assert counts["found"] > 0 < counts["as if the last commit had not ended"], counts
    assert counts["nothing that is read changed"] < 10, counts


def test_a_log_that_was_cut_in_its_last_commit_is_whole_up_to_the_one_before(open_ledger: tuple[Path, Head]) -> None:
    place, head = open_ledger
    log = place.with_name(place.name + "-wal")
    log.write_bytes(log.read_bytes()[:-100])
    said = verified(place)
    assert (said.codes, said.report.events) == ([], 24)
    assert verified(place, noted=head).codes == ["head-missing"]
    with Reader.open(place) as reader:
        assert len(list(reader.events())) == 24


@pytest.mark.parametrize("content", [b"", b"short", bytes(10_000), random.Random(1).randbytes(10_000)])
def test_a_log_that_is_no_log_hides_nothing_of_the_file(place: Path, tmp_path: Path, content: bytes) -> None:
    copy = tmp_path / place.name
    shutil.copy(place, copy)
    copy.with_name(copy.name + "-wal").write_bytes(content)
    said = verified(copy)
    assert said.report.events == 22
    assert said.codes == ([] if len(content) < 32 else ["tail-damaged"])
