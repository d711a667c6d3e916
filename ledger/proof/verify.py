"""Verification: everything that is wrong with a ledger, told one by one, and a report. It repairs nothing.

It reads the rows themselves and goes on after whatever it finds, where a reader would stop: the schema, each event and
how they follow one another, the pages of the file, the head that somebody noted, the evidence. It sees one state of
the ledger, however many write meanwhile.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ledger.events import FORMAT_VERSION
from ledger.proof.chain import Chain
from ledger.proof.evidence import EvidenceCounts, NamedEvidence, check_evidence
from ledger.proof.file import UNREADABLE, check_marks, check_pages, check_schema, every_row, open_damaged
from ledger.proof.findings import Finding, Note, Report, format_head
from ledger.proof.receipt import plan_of
from ledger.proof.tail import Tail, read_tail
from ledger.store.api import StoreUnreadable
from ledger.store.reader import Head
from ledger.values import Digest


def verify(
    place: Path,
    evidence: Path | None,
    found: Callable[[Finding], None],
    progress: Callable[[int], None] = lambda _: None,
    noted: Head | None = None,
) -> Report:
    """Verify the ledger in a file, and its evidence unless the directory of that is None.

    `found` is told each finding as it is made, and `progress` the number of events checked, now and then; `noted` is a
    head that the ledger must still hold. Raises LedgerMissing, ForeignLedger or StoreUnreadable when there is no ledger
    that could be looked at.
    """
    tell, tail = _Counted(found), _read_tail(place)
    connection, findings = open_damaged(place)
    with closing(connection):
        tell.all(findings)
        tell.all(check_schema(connection))
        named = NamedEvidence() if evidence else None
        chain = Chain(tell, lambda command, index: _holder(connection, command, index), progress, named)
        chain.take(every_row(connection))
        tell.all(check_pages(connection))
        tell.all(check_marks(connection, chain.created.format_version if chain.created else FORMAT_VERSION))
        if noted is not None:
            tell.all(_check_head(connection, noted, chain.head))
        tell.all(_check_side_files(place, tail))
        counts = None
        if evidence and named:
            counts = check_evidence(evidence, named, tell, lambda sequence: _place(connection, sequence))
    return _report(chain, tell.counts, [*chain.notes.values(), *_notes(chain, tail, counts)], counts)


class _Counted:
    """Tells findings on and counts them by code."""

    def __init__(self, found: Callable[[Finding], None]) -> None:
        self._found = found
        self.counts: Counter[str] = Counter()

    def __call__(self, finding: Finding) -> None:
        self.counts[finding.code] += 1
        self._found(finding)

    def all(self, findings: Iterable[Finding]) -> None:
        """Tell several."""
        for finding in findings:
            self(finding)


def _check_head(connection: sqlite3.Connection, noted: Head, head: Head) -> Iterator[Finding]:
    """Whether the event that was the last one when the head was noted is still there, as it was."""
    stored = _select(connection, "SELECT digest, stream, position FROM events WHERE sequence=?", noted.sequence)
    if stored is None:
        what = f"{format_head(noted)} was noted, and the ledger ends at @{head.sequence}"
        yield Finding(code="head-missing", what=what, sequence=noted.sequence)
    elif stored[0] != noted.digest:
        yield Finding(
            code="head-differs",
            what=f"{format_head(noted)} was noted, and here is {stored[0]}",
            stream=str(stored[1]),
            position=stored[2],
            sequence=noted.sequence,
        )


def _check_side_files(place: Path, tail: Tail) -> Iterator[Finding]:
    if tail.damage:
        yield Finding(code="tail-damaged", what=tail.damage)
    if plan_of(place).exists():
        yield Finding(code="recovery-begun", what="run `ledger recover` again; it takes up where it was cut short")


def _read_tail(place: Path) -> Tail:
    try:
        return read_tail(place)
    except OSError as error:
        raise StoreUnreadable(f"{place}-wal cannot be read: {error.strerror}", "check its permissions") from error


def _notes(chain: Chain, tail: Tail, counts: EvidenceCounts | None) -> Iterator[Note]:
    """Notes about what is no event."""
    if tail.rejected and not tail.damage:
        yield Note(code="tail-unfinished", count=tail.rejected)
    if chain.created and chain.created.format_version > FORMAT_VERSION:
        yield Note(code="format-newer", count=1, sequence=1)
    if counts and counts.unreferenced:
        yield Note(code="evidence-unreferenced", count=counts.unreferenced)
    if counts and counts.leftover:
        yield Note(code="evidence-leftover", count=counts.leftover)


def _report(chain: Chain, counts: Counter[str], notes: list[Note], evidence: EvidenceCounts | None) -> Report:
    return Report(
        sound=not counts,
        ledger=chain.ledger,
        project=chain.created.project if chain.created else "",
        format_version=chain.created.format_version if chain.created else 0,
        events=chain.events,
        streams=chain.streams,
        evidence=None if evidence is None else evidence.read,
        head=format_head(chain.head),
        counts=dict(sorted(counts.items())),
        notes=tuple(notes),
    )


def _holder(connection: sqlite3.Connection, command: str, index: int) -> tuple[int, Digest] | None:
    """Sequence and digest of the row that has this command and index in its columns."""
    query = "SELECT sequence, digest FROM events WHERE command=? AND command_index=?"
    found = _select(connection, query, command, index)
    return (found[0], str(found[1])) if found else None


def _place(connection: sqlite3.Connection, sequence: int) -> tuple[str, int]:
    """Stream and position of the event with this sequence."""
    found = _select(connection, "SELECT stream, position FROM events WHERE sequence=?", sequence)
    return (str(found[0]), found[1]) if found else ("", 0)


def _select(connection: sqlite3.Connection, query: str, *arguments: object) -> Any:
    """One row, None when there is none or it cannot be read: that itself is found elsewhere."""
    try:
        return connection.execute(query, arguments).fetchone()
    except UNREADABLE:
        return None
