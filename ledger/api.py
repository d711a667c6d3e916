"""Reading a ledger from another program: `from ledger import open_ledger`. Its stability is told in `docs/api.md`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from ledger.errors import LedgerMissing, NewerFormat, RunUnknown
from ledger.events import STREAM, Unknown
from ledger.evidence import EvidenceStore
from ledger.record import RecordedEvent
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Head, Reader
from ledger.tables import Document, decode_document
from ledger.values import Digest


def open_ledger(directory: Path | str) -> "Ledger":
    """Open the ledger in this directory for reading, for a `with` block.

    Nothing in the directory is changed, and whoever writes there is not disturbed. Raises LedgerMissing,
    StoreUnreadable, ForeignLedger for the database of another program, and LedgerDamaged.
    """
    return Ledger(Path(directory))


class Ledger:
    """A ledger opened for reading. Whatever it gives has been verified: digests, links, positions and sequences."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._reader = Reader.open(directory / LEDGER_FILE)
        self._evidence = EvidenceStore(directory / EVIDENCE)
        identity = self._reader.identity()
        if identity is None:
            self._reader.close()
            raise LedgerMissing(f"the ledger at {directory} holds nothing yet", "start a run with `ledger gate`")
        self.ledger_id, self.project = identity.ledger_id, identity.project

    def runs(self) -> list[str]:
        """The ids of all runs, in the order in which they began."""
        return [head.stream for head in self._reader.streams() if head.stream != STREAM]

    def events(self, run: str) -> Iterator[RecordedEvent]:
        """The events of a run, oldest first. Raises RunUnknown, LedgerDamaged at the place of a damage, and NewerFormat
        at an event that this version does not know."""
        if run == STREAM or self._reader.position(run) == 0:
            raise RunUnknown(f"this ledger has no run {run!r}", "`runs()` lists them")
        for recorded in self._reader.events(run):
            yield _known(recorded)

    def all_events(self, after: int = 0) -> Iterator[RecordedEvent]:
        """The events of the whole ledger behind a sequence, for programs that follow it. Raises as `events` does."""
        for recorded in self._reader.events(after=after):
            yield _known(recorded)

    def head(self) -> Head:
        """Sequence and digest of the last event: what to note elsewhere to be able to prove later that it was there."""
        return self._reader.head()

    def evidence(self, digest: Digest) -> bytes:
        """The bytes that an event names. Raises EvidenceDamaged when they are missing or altered."""
        return self._evidence.get(digest)

    def document(self, digest: Digest, kind: type[Document]) -> Document:
        """Evidence as a document of `ledger.tables`, such as `CaseTable`. Raises EvidenceDamaged."""
        return decode_document(self.evidence(digest), kind)

    def close(self) -> None:
        """Close it; leaving the `with` block does the same."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _known(recorded: RecordedEvent) -> RecordedEvent:
    """The event, which a program may then rely on to be of a type of `ledger.events`."""
    if isinstance(recorded.event, Unknown):
        header = recorded.header
        raise NewerFormat(
            f"{header.stream} #{header.position} is a {header.tag!r} event of a newer version",
            "use the version of ledger that wrote it, or a newer one",
        )
    return recorded
