"""Every byte of a ledger file, changed one at a time: each change is found, or nothing that is stored changed."""

import os
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.attack.ledgers import Verified, verified, write

PARTS = 8
FLIPS = ("all-bits", "one-bit")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ledger whose file holds everything: nothing is left in a write-ahead log."""
    return write(tmp_path_factory.mktemp("bytes"))


def stored(place: Path) -> tuple[Any, dict[int, tuple[Any, ...]] | None]:
    """What the file holds, read with SQLite alone: schema and marks, and the rows by sequence; None if unreadable."""
    with closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        try:
            marks = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")]
            schema = sorted(connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall())
            whole = connection.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)]
        except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
            return None, None
        try:
            rows = {row[0]: row for row in connection.execute("SELECT * FROM events ORDER BY sequence")}
        except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
            rows = None
        return (marks, schema, whole), rows


def judged(place: Path, before: tuple[Any, Any], said: Verified) -> str:
    """What came of a change: the category, after the check that it was found where it is."""
    file, rows = stored(place)
    if (file, rows) == before:
        assert said.codes == []
        return "nothing that is stored changed"
    assert said.findings, "a change was not found"
    if rows is None:
        assert {"event-unreadable", "file-damaged"} & set(said.codes)
        return "found: a part cannot be read"
    changed = {sequence for sequence, row in before[1].items() if row != rows.get(sequence)}
    told = {finding.sequence for finding in said.findings if finding.code.startswith("event")}
    if changed:
        assert min(told & before[1].keys()) == min(changed), f"{changed} changed, and {said.findings} was said"
        return "found: in an event"
    added = rows.keys() - before[1].keys()
    if added:
        assert min(added) in told
        return "found: an event that was never written"
    assert {"file-damaged", "format-differs", "schema-differs"} & set(said.codes)
    return "found: in the file around the events"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("flip", FLIPS)
def test_every_byte_that_is_flipped_is_found(place: Path, tmp_path: Path, part: int, flip: str) -> None:
    content = place.read_bytes()
    copy = tmp_path / place.name
    copy.write_bytes(content)
    before, dice = stored(copy), random.Random(part)
    length = len(content) // PARTS
    counts: Counter[str] = Counter()
    file = os.open(copy, os.O_WRONLY)
    for offset in range(part * length, (part + 1) * length):
        mask = 0xFF if flip == "all-bits" else 1 << dice.randrange(8)
        os.pwrite(file, bytes([content[offset] ^ mask]), offset)
        counts[judged(copy, before, verified(copy))] += 1
        os.pwrite(file, content[offset : offset + 1], offset)
    os.close(file)
    assert counts.total() == length
    assert counts["found: in an event"] + counts["found: a part cannot be read"] > 0, counts
