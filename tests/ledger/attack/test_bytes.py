"""Every byte of a ledger file, changed one at a time: each change is found, or nothing that is stored changed."""

import os
import random
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.ledger.attack.ledgers import Verified, verified, write

PARTS = 8
FLIPS = ("all-bits", "one-bit")
FILE_CODES = {"file-damaged", "format-differs", "schema-differs"}
NOTHING = "nothing that is stored changed"
IN_EVENT, NEVER_WRITTEN = "found: in an event", "found: an event that was never written"
AROUND, UNREADABLE = "found: in the file around the events", "found: a part cannot be read"
BROKEN = (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ledger whose file holds everything: nothing is left in a write-ahead log."""
    return write(tmp_path_factory.mktemp("bytes"))


class Stored(NamedTuple):
    """What a file holds, read with SQLite alone: schema and marks, and the rows by sequence.

    `readable`: all of the rows could be read; `whole`: SQLite's own check finds nothing.
    """

    around: list[Any]
    rows: dict[int, tuple[Any, ...]]
    readable: bool
    whole: bool


def stored(place: Path) -> Stored:
    """Read a file as far as it goes."""
    around: list[Any] = []
    rows: dict[int, tuple[Any, ...]] = {}
    readable = whole = False
    with closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as connection, suppress(*BROKEN):
        # In the schema, a text is told from a blob of the same bytes; an event is its bytes, however they are stored.
        connection.text_factory = lambda data: ("text", data)
        around += connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
        around += [connection.execute(f"PRAGMA {mark}").fetchone() for mark in ("application_id", "user_version")]
        connection.text_factory = bytes
        for row in connection.execute("SELECT * FROM events ORDER BY sequence"):
            rows.setdefault(row[0], row)
        readable = True
        whole = connection.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)]
    return Stored(around, rows, readable, whole)


def judged(place: Path, before: Stored, said: Verified) -> str:
    """What came of a change: the category, after the check that it was found, and where it is."""
    now = stored(place)
    if now == before:
        assert said.codes == []
        return NOTHING
    changed = {sequence for sequence, row in before.rows.items() if row != now.rows.get(sequence)}
    told = {finding.sequence for finding in said.findings if finding.code not in FILE_CODES}
    if not now.readable:
        # The verification tries harder than this reading, so that it may come further, but never less far.
        assert {"event-unreadable", "file-damaged"} & set(said.codes)
        assert min(told, default=min(changed)) >= min(changed)
        return UNREADABLE
    if changed:
        assert min(told) == min(changed), f"{changed} changed, and {said.findings} was said"
        return IN_EVENT
    if now.rows.keys() - before.rows.keys():
        assert told
        return NEVER_WRITTEN
    assert FILE_CODES & set(said.codes)
    return AROUND


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
    found = counts[IN_EVENT] + counts[NEVER_WRITTEN] + counts[AROUND] + counts[UNREADABLE]
    assert found + counts[NOTHING] == length, counts
    assert found > 0 < counts[NOTHING], counts
