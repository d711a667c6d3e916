"""A backup: a second ledger directory that holds everything up to one moment, made while others go on writing.

The events are copied in one step, which sees one state of the ledger, and are read and verified as copied; then comes
every piece of evidence that they name; last the events get their name. So there is never a copy that names what it does
not hold, and one that was cut short is taken up by asking for it again. A later backup into the same directory brings
it up to date.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ledger.disk import make_directory, sync_directory
from ledger.errors import EvidenceDamaged, LedgerError, LedgerMissing, StoreUnwritable
from ledger.events import evidence_of
from ledger.evidence import EvidenceStore
from ledger.proof.evidence import NamedEvidence
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Head, Reader
from ledger.store.sqlite.connect import FAILURES, connect_read_only, read_failure
from ledger.values import Digest

MARK = "backup.json"
"""Says that a directory is a backup, and of which ledger; nothing else is ever written over."""

_UNFINISHED = "unfinished.sqlite"
_SIDE_FILES = ("", "-journal", "-wal", "-shm")


class DestinationOccupied(LedgerError):
    """The directory of a backup holds something else, or more than the ledger that is to be backed up."""

    code = "destination-occupied"
    exit_code = 4


class Mark(Struct, frozen=True):
    """Which ledger a directory is a backup of."""

    backup_of: str


class Backup(Struct, frozen=True, kw_only=True):
    """What a backup holds: the last of its events, how many pieces of evidence those name, how many of them came anew,
    and those that are missing or damaged where they came from."""

    ledger_id: str
    head_sequence: int
    head_digest: Digest
    evidence: int
    added: int
    damaged: tuple[Digest, ...]


def back_up(directory: Path, destination: Path) -> Backup:
    """Copy the ledger in a directory to another directory, and verify the copy.

    Raises DestinationOccupied, LedgerMissing, LedgerDamaged for events that do not verify, and StoreUnwritable. Damaged
    evidence is left out and told of: what is whole is safer in two places.
    """
    with Reader.open(directory / LEDGER_FILE) as reader:
        identity = reader.identity()
    if identity is None:
        raise LedgerMissing(f"the ledger at {directory} holds nothing yet", "start a run first")
    try:
        _claim(directory, destination, identity.ledger_id)
        unfinished = destination / _UNFINISHED
        _copy_events(directory / LEDGER_FILE, unfinished)
        head = _require_later(unfinished, destination)
        named, added, damaged = 0, 0, []
        source, copies = EvidenceStore(directory / EVIDENCE), EvidenceStore(destination / EVIDENCE)
        for digest in _evidence_named(unfinished):
            named += 1
            if copies.has(digest):
                continue
            try:
                copies.put_from(source, digest)
                added += 1
            except EvidenceDamaged:
                damaged.append(digest)
        unfinished.replace(destination / LEDGER_FILE)
        sync_directory(destination)
    except OSError as error:
        what = error.strerror or error
        raise StoreUnwritable(f"{destination} cannot be written: {what}", "check its space and permissions") from error
    return Backup(
        ledger_id=identity.ledger_id,
        head_sequence=head.sequence,
        head_digest=head.digest,
        evidence=named,
        added=added,
        damaged=tuple(damaged),
    )


def _claim(directory: Path, destination: Path, ledger_id: str) -> None:
    """Make the directory a backup of this ledger, unless it is one already."""
    make_directory(destination)
    ours = msgspec.json.encode(Mark(backup_of=ledger_id))
    mark = destination / MARK
    if destination.resolve() == directory.resolve() or (any(destination.iterdir()) and not mark.exists()):
        raise DestinationOccupied(f"{destination} is not empty, and no backup", "name a new directory for the backup")
    written = mark.read_bytes() if mark.exists() else b""
    if written == ours:
        return
    if written:
        raise DestinationOccupied(f"{destination} is the backup of another ledger", "name another directory")
    with mark.open("wb") as file:
        file.write(ours)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(destination)


def _copy_events(place: Path, copy: Path) -> None:
    """Copy the whole database in one step, and keep the copy in one file, on the disk."""
    for suffix in _SIDE_FILES:
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    try:
        with closing(connect_read_only(place)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
    except FAILURES as error:
        raise read_failure(error, place) from error
    with copy.open("rb") as file:
        os.fsync(file.fileno())


def _require_later(unfinished: Path, destination: Path) -> Head:
    """The head of the new copy, which must hold all that an earlier one does. Raises DestinationOccupied."""
    with Reader.open(unfinished) as copy:
        head = copy.head()
        with suppress(LedgerMissing), Reader.open(destination / LEDGER_FILE) as earlier:
            before = earlier.head()
            same = list(copy.events(after=before.sequence - 1, until=before.sequence))
            log = destination / f"{LEDGER_FILE}-wal"
            if [one.digest for one in same] != [before.digest] or (log.exists() and log.stat().st_size):
                raise DestinationOccupied(
                    f"{destination} has events of its own: somebody has written there since it was a backup",
                    "keep it, and name another directory for the backup",
                )
    return head


def _evidence_named(place: Path) -> Iterator[Digest]:
    """Every piece that the events name, once; the events are verified on the way."""
    named = NamedEvidence()
    with Reader.open(place) as reader:
        for recorded in reader.events():
            for digest in evidence_of(recorded.event):
                named.add(digest, recorded.sequence)
            if recorded.header.message:
                named.add(recorded.header.message, recorded.sequence)
    for _, places in sorted(named.by_folder().items()):
        yield from named.at(places)
    yield from (digest for digest, _ in named.malformed)
