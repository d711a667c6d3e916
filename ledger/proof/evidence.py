"""Evidence: is what the events name there, and does it have the digest that they name it by?"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ledger.errors import EvidenceDamaged
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding
from ledger.values import Digest

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"([0-9a-f]{64})\.gz")
_DIGEST_BYTES, _SEQUENCE_BYTES = 32, 8
_ENTRY_BYTES = _DIGEST_BYTES + _SEQUENCE_BYTES

Place = Callable[[int], tuple[str, int]]
"""Gives stream and position of the event with a sequence."""


class NamedEvidence:
    """The digests that events name, each with the sequence of the first event that does.

    Forty bytes per naming, in one array for each of the folders that the evidence is kept in: a ledger of a million
    events names millions of digests, and as objects they would not fit into the memory that verifying may take.
    """

    def __init__(self) -> None:
        self.malformed: list[tuple[str, int]] = []
        self._entries: dict[str, bytearray] = defaultdict(bytearray)

    def add(self, digest: Digest, sequence: int) -> None:
        """The event with this sequence names this digest. Sequences come in order."""
        if _DIGEST.fullmatch(digest):
            self._entries[digest[:2]] += bytes.fromhex(digest) + sequence.to_bytes(_SEQUENCE_BYTES, "big", signed=True)
        else:
            self.malformed.append((digest, sequence))

    def folders(self) -> set[str]:
        """The folders in which something has to be."""
        return set(self._entries)

    def of_folder(self, folder: str) -> dict[Digest, int]:
        """The digests of this folder, each with the first sequence, in the order of their first naming."""
        entries = self._entries.get(folder, b"")
        named: dict[Digest, int] = {}
        for start in range(0, len(entries), _ENTRY_BYTES):
            middle, end = start + _DIGEST_BYTES, start + _ENTRY_BYTES
            named.setdefault(entries[start:middle].hex(), int.from_bytes(entries[middle:end], "big", signed=True))
        return named


class EvidenceCounts(NamedTuple):
    """How many pieces were read and compared, how many are named by no event, and how many files are no evidence."""

    read: int
    unreferenced: int
    leftover: int


def check_evidence(
    directory: Path, named: NamedEvidence, found: Callable[[Finding], None], place: Place
) -> EvidenceCounts:
    """Read every named piece to its end, in bounded memory, and tell of each that is missing or altered."""
    store = EvidenceStore(directory)
    for digest, sequence in named.malformed:
        found(_finding("evidence-missing", f"{digest!r} is no digest", "", sequence, place))
    read, unreferenced = 0, 0
    kept, leftover = _folders(directory)
    for folder in sorted(named.folders() | kept):
        wanted = named.of_folder(folder)
        for digest, sequence in wanted.items():
            read += 1
            for code, what in _problem(store, digest):
                found(_finding(code, what, digest, sequence, place))
        files = [path.name for path in _listing(directory / folder)]
        evidence = {match[1] for match in map(_FILE.fullmatch, files) if match}
        unreferenced += len(evidence - wanted.keys())
        leftover += len(files) - len(evidence)
    return EvidenceCounts(read, unreferenced, leftover)


def _problem(store: EvidenceStore, digest: Digest) -> Iterator[tuple[str, str]]:
    try:
        store.open(digest).close()
    except EvidenceDamaged as damage:
        cause = damage.__cause__
        if isinstance(cause, FileNotFoundError | NotADirectoryError):
            yield "evidence-missing", "there is no such file"
        elif isinstance(cause, PermissionError):
            yield "evidence-unreadable", damage.message
        else:
            yield "evidence-altered", damage.message


def _finding(code: str, what: str, digest: Digest, sequence: int, place: Place) -> Finding:
    stream, position = place(sequence)
    return Finding(code=code, what=what, stream=stream, position=position, sequence=sequence, evidence=digest)


def _folders(directory: Path) -> tuple[set[str], int]:
    """The folders of the evidence, and how many other things lie beside them."""
    entries = _listing(directory)
    folders = {path.name for path in entries if path.is_dir()}
    return folders, len(entries) - len(folders)


def _listing(directory: Path) -> list[Path]:
    """What is in a directory; nothing when there is none."""
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
