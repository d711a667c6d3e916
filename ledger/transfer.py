"""A run goes from one ledger to another: exported into an archive, and imported from one after all of it was proved."""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice, zip_longest
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from msgspec import Struct

from ledger import archive
from ledger.archive import EVENTS, EVIDENCE_PREFIX, MANIFEST, ArchivedEvidence, ArchiveInvalid, ArchiveReader, Manifest
from ledger.disk import finished_file
from ledger.errors import ForeignLedger, LedgerDamaged, LedgerError, LedgerMissing, NewerFormat, RunUnknown
from ledger.events import FORMAT_VERSION, STREAM, Event, LedgerCreated, Unknown
from ledger.evidence import EvidenceStore
from ledger.record import Header
from ledger.store.api import EVIDENCE, LEDGER_FILE, Links
from ledger.store.reader import Reader
from ledger.store.rows import FIRST_ROW, SELECT_ROW, damaged, linked, verified_identity
from ledger.store.sqlite.connect import FAILURES, connect_read_only, read_failure
from ledger.values import Digest


class RunDiffers(LedgerError):
    """The ledger has a run of this id already, with other events than the archive."""

    code = "run-differs"
    exit_code = 4


class Imported(Struct, frozen=True, kw_only=True):
    """What came of an import; `already` says that the run was there before, so that no event was written. `restored`
    counts the evidence of such a run that was missing or damaged, and is there again."""

    manifest: Manifest
    already: bool
    restored: int = 0


def export_run(directory: Path, run: str, target: Path) -> Manifest:
    """Write the archive of a run of the ledger in this directory, as far as the run has come.

    Nothing happens to a file that is this archive already. Raises RunUnknown, LedgerDamaged, EvidenceDamaged,
    FileOccupied, StoreUnwritable, and NewerFormat for a run with events whose evidence this program does not know.
    """
    evidence = EvidenceStore(directory / EVIDENCE)
    with TemporaryFile() as lines:
        manifest = _gather(directory / LEDGER_FILE, evidence, run, lines)
        with finished_file(target) as file:
            encoded = archive.encode_manifest(manifest)
            archive.write_member(file, MANIFEST, len(encoded), iter((encoded,)))
            for piece in manifest.evidence:
                with evidence.open(piece.digest) as content:
                    name = EVIDENCE_PREFIX + piece.digest
                    archive.write_member(file, name, piece.size_bytes, archive.chunks_of(content))
            lines.seek(0)
            archive.write_member(file, EVENTS, manifest.events_bytes, archive.chunks_of(lines))
            archive.write_end(file)
    return manifest


def _gather(place: Path, evidence: EvidenceStore, run: str, lines: BinaryIO) -> Manifest:
    """Write the lines of the events, and find out what the archive will hold."""
    named: set[Digest] = set()
    created: LedgerCreated | None = None
    events, size, head = 0, 0, ""
    for header, payload, told, event, digest in _stored_events(place, run):
        if isinstance(event, Unknown):
            raise NewerFormat(
                f"{told.stream} #{told.position} is a {told.tag!r} event, whose evidence this version does not know",
                "export the run with the version of ledger that wrote it, or with a newer one",
            )
        if isinstance(event, LedgerCreated):
            created = event
        named |= archive.named_by(told, event)
        events, head = events + 1, digest
        size += lines.write(archive.encode_line(header, payload, digest))
    if created is None or events == 1:
        raise RunUnknown(f"this ledger has no run {run!r}", "`ledger query runs` lists its runs")
    return Manifest(
        archive_version=archive.ARCHIVE_VERSION,
        ledger_id=created.ledger_id,
        project=created.project,
        format_version=created.format_version,
        run=run,
        head=head,
        events=events,
        events_bytes=size,
        evidence=tuple(ArchivedEvidence(digest, _size(evidence, digest)) for digest in sorted(named)),
    )


def _stored_events(place: Path, run: str) -> Iterator[tuple[bytes, bytes, Header, Event, Digest]]:
    """The creation of the ledger and the events of a run, as stored and as read, of one state of the ledger."""
    try:
        with closing(connect_read_only(place)) as connection:
            connection.execute("BEGIN")
            first = connection.execute(FIRST_ROW).fetchone()
            if first is None:
                raise RunUnknown("this ledger has no runs yet", "start one with `ledger gate`")
            ledger_id = verified_identity(first).ledger_id
            rest = connection.execute(SELECT_ROW + "WHERE stream=? ORDER BY position", (run,))
            links: Links = {}
            for row in (first, *([] if run == STREAM else rest)):
                try:
                    told, event, digest = linked(row[1], row[2], links, ledger_id)
                except LedgerDamaged as error:
                    raise damaged(row, error.message) from error
                if digest != row[3] or told.stream != row[4]:
                    raise damaged(row, "the stored bytes do not have the stored digest")
                yield row[1], row[2], told, event, digest
    except FAILURES as error:
        raise read_failure(error, place) from error


def _size(evidence: EvidenceStore, digest: Digest) -> int:
    with evidence.open(digest) as content:
        return sum(map(len, archive.chunks_of(content)))


def import_run(source: Path, directory: Path) -> Imported:
    """Bring the run of an archive into the ledger in this directory, which is begun when there is none.

    The whole archive is proved first; whatever is wrong with it, nothing has been written then. Evidence comes before
    the events that name it, and the events come all at once, so that an import that was cut short is done again. Of a
    run that is here already, evidence that is missing or damaged is restored.
    Raises ArchiveInvalid, ForeignLedger for another ledger's directory, RunDiffers, NewerFormat and StoreUnwritable.
    """
    with source.open("rb") as file:
        manifest = archive.check_archive(file)
        if manifest.format_version > FORMAT_VERSION:
            raise NewerFormat(
                f"the archive is of a ledger of format {manifest.format_version}; this program writes {FORMAT_VERSION}",
                "import it with the version of ledger that wrote it; `ledger import --check` can prove it here",
            )
        begun, already = _compared(directory / LEDGER_FILE, manifest, file)
        restored = 0
        if already:
            evidence = EvidenceStore(directory / EVIDENCE)
            restored = sum(not evidence.has(piece.digest) for piece in manifest.evidence)
            if restored:
                _bring_evidence(ArchiveReader(_at_start(file)), evidence)
        else:
            _bring(file, directory, manifest, begun=begun)
    return Imported(manifest=manifest, already=already, restored=restored)


def _compared(place: Path, manifest: Manifest, file: BinaryIO) -> tuple[bool, bool]:
    """Whether there is a ledger already, and whether it has the events of the archive already."""
    try:
        with Reader.open(place) as reader:
            identity = reader.identity()
            if identity is None:
                return False, False
            if identity.ledger_id != manifest.ledger_id:
                raise ForeignLedger(
                    f"the ledger at {place.parent} has the id {identity.ledger_id}, the archive {manifest.ledger_id}",
                    "name another directory with --store; an archive can also begin a ledger in a new one",
                )
            return True, _has_run(reader, manifest, file)
    except LedgerMissing:
        return False, False


def _has_run(reader: Reader, manifest: Manifest, file: BinaryIO) -> bool:
    """Whether the run is here as in the archive. Raises RunDiffers when it is here otherwise."""
    here = reader.position(manifest.run)
    stored = (one.digest for one in reader.events(manifest.run))
    first = (one.digest for one in reader.events(STREAM, until=1))
    told = _rewound(file).events()
    creation = next(told).digest
    if creation != next(first, ""):
        raise ForeignLedger("the ledger was begun by another event than the archive's", "name another directory")
    if here == 0:
        return False
    for position, (ours, theirs) in enumerate(zip_longest(islice(stored, manifest.events - 1), told), start=1):
        if theirs is None or ours != theirs.digest:
            raise RunDiffers(
                f"the ledger here and the archive do not agree about {manifest.run} #{position}",
                "import the archive into another directory with --store, and compare with `ledger log`",
            )
    return True


def _bring(file: BinaryIO, directory: Path, manifest: Manifest, *, begun: bool) -> None:
    """Write evidence, then events."""
    from ledger.store.writer import Writer

    incoming = ArchiveReader(_at_start(file))
    _bring_evidence(incoming, EvidenceStore(directory / EVIDENCE))
    with Writer.open(directory / LEDGER_FILE, create=True) as writer:
        events = ((one.header.encode(), one.payload.encode()) for one in incoming.events())
        if begun:
            writer.append_stored(islice(events, 1, None), {manifest.run: 0})
        else:
            writer.append_stored(events, {STREAM: 0, manifest.run: 0})


def _bring_evidence(incoming: ArchiveReader, evidence: EvidenceStore) -> None:
    """Write evidence; what is there and damaged is set aside."""
    for digest, member in incoming.evidence():
        if evidence.put_stream(member) != digest:
            raise ArchiveInvalid("the archive was changed while it was read")


def _at_start(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


def _rewound(file: BinaryIO) -> ArchiveReader:
    """The archive again, standing before its events."""
    incoming = ArchiveReader(_at_start(file))
    for _, member in incoming.evidence():
        while member.read(2**18):
            pass
    return incoming
