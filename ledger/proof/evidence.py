"""Evidence: is what the events name there, and does it have the digest that they name it by?"""

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ledger.errors import EvidenceDamaged
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding
from ledger.values import Digest

_FILE = re.compile(r"([0-9a-f]{64})\.gz")
_DIGEST_BYTES = 32
_PENDING = 10_000

Place = Callable[[int], tuple[str, int]]
"""Gives stream and position of the event with a sequence."""


class NamedEvidence:
    """The digests that events name, each with the sequence of an event that does.

    Forty bytes per digest, in two arrays: a ledger of a million events names millions of them, and as objects they
    would not fit into the memory that verifying may take. One that is named again soon is kept once.
    """

    def __init__(self) -> None:
        self.malformed: list[tuple[str, int]] = []
        self._digests, self._sequences = bytearray(), array("q")
        self._pending: dict[Digest, int] = {}

    def add(self, digest: Digest, sequence: int) -> None:
        """The event with this sequence names this digest."""
        self._pending.setdefault(digest, sequence)
        if len(self._pending) == _PENDING:
            self._pack()

    def by_folder(self) -> "dict[str, array[int]]":
        """For each folder that something has to be in, where in here the digests are that belong there."""
        self._pack()
        found: dict[str, array[int]] = defaultdict(lambda: array("q"))
        for index, first in enumerate(self._digests[::_DIGEST_BYTES]):
            found[f"{first:02x}"].append(index)
        return found

    def at(self, indexes: Iterable[int]) -> dict[Digest, int]:
        """The digests that are at these places, each with the sequence of the first event of them that names it."""
        named: dict[Digest, int] = {}
        for index in indexes:
            start = index * _DIGEST_BYTES
            named.setdefault(self._digests[start : start + _DIGEST_BYTES].hex(), self._sequences[index])
        return named

    def _pack(self) -> None:
        """Move what is pending into the arrays; all at once is several times faster than one by one."""
        try:
            self._pack_all(self._pending)
        except ValueError:
            for digest, sequence in self._pending.items():
                try:
                    self._pack_all({digest: sequence})
                except ValueError:
                    self.malformed.append((digest, sequence))
        self._pending.clear()

    def _pack_all(self, pending: dict[Digest, int]) -> None:
        """Raises ValueError, and does nothing, when one of them is no digest."""
        joined = "".join(pending)
        packed = bytes.fromhex(joined)
        if packed.hex() != joined or set(map(len, pending)) - {2 * _DIGEST_BYTES}:
            raise ValueError("not a digest")
        self._digests += packed
        self._sequences.extend(pending.values())


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
    read, unreferenced = 0, 0
    kept, leftover = _folders(directory)
    places = named.by_folder()
    for digest, sequence in named.malformed:
        found(_finding("evidence-missing", f"{digest!r} is no digest", "", sequence, place))
    for folder in sorted(places.keys() | kept):
        wanted = named.at(places.get(folder, ()))
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
