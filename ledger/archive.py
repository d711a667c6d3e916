"""An archive: one run of a ledger in one file, with all of its evidence, which is proved without that ledger.

The file is a plain tar of regular files: `manifest.json`; `evidence/<digest>`, uncompressed and in the order of the
digests; and `events.jsonl`, a line for each event with header, payload and digest exactly as they are stored, the
creation of the ledger first. The same run gives the same bytes on every machine, and no other bytes are an archive of
it: whoever reads one builds the header that each member must have and compares, so that a hostile file has nothing to
choose. The sequence of an event is outside its digest; it is left out, and counts anew where the run is imported.
"""

import re
import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ledger.errors import LedgerDamaged, LedgerError
from ledger.events import STREAM, Event, LedgerCreated, RunStarted, Unknown, evidence_of
from ledger.record import Header
from ledger.store.api import Links
from ledger.store.rows import linked
from ledger.values import Digest

ARCHIVE_VERSION = 1
BLOCK_BYTES = 512
MANIFEST, EVENTS, EVIDENCE_PREFIX = "manifest.json", "events.jsonl", "evidence/"

_MANIFEST_BYTES_MAX = 64 * 2**20
_LINE_BYTES_MAX = 64 * 2**20
_CHUNK_BYTES = 2**18
_END_BLOCKS = 2

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SIZE_FIELD = slice(124, 135)
_SIZE_MAX = 8**11
_TAR = struct.Struct("100s8s8s8s12s12s8sc100s6s2s32s32s8s8s155s12x")

_encoder = msgspec.json.Encoder(order="deterministic")


class ArchiveInvalid(LedgerError):
    """The file is no archive of a run, or not as it was written."""

    code = "archive-invalid"

    def __init__(self, message: str) -> None:
        super().__init__(message, "export the run again; nothing of this file was used")


class ArchivedEvidence(Struct, frozen=True, array_like=True):
    """A piece of evidence, and how large it is when it is not compressed."""

    digest: Digest
    size_bytes: int


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an archive holds. `head` is the digest of the run's last event; `events` counts them all, with that of the
    ledger's creation, and `events_bytes` is the size of their lines."""

    archive_version: int
    ledger_id: str
    project: str
    format_version: int
    run: str
    head: Digest
    events: int
    events_bytes: int
    evidence: tuple[ArchivedEvidence, ...]


class ArchivedEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the events: the stored text of header and payload, and the digest over both."""

    header: str
    payload: str
    digest: Digest


def encode_line(header: bytes, payload: bytes, digest: Digest) -> bytes:
    """The line of one event. Raises UnicodeDecodeError for bytes that are no text, which no program has stored."""
    return _encoder.encode(ArchivedEvent(header=header.decode(), payload=payload.decode(), digest=digest)) + b"\n"


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of the first member."""
    return _encoder.encode(manifest)


def named_by(header: Header, event: Event) -> set[Digest]:
    """The evidence that an event and its header name."""
    return {*evidence_of(event), *([header.message] if header.message else [])}


def write_member(file: BinaryIO, name: str, size: int, chunks: Iterator[bytes]) -> None:
    """Write one member: its header, its content and the zeros up to the next block."""
    if size >= _SIZE_MAX:
        raise ArchiveInvalid(f"{name} has {size} bytes, more than an archive can hold")
    file.write(member_header(name, size))
    written = sum(file.write(chunk) for chunk in chunks)
    if written != size:
        raise ArchiveInvalid(f"{name} had {size} bytes when it was looked at first, and has {written} now")
    file.write(bytes(_padding(size)))


def write_end(file: BinaryIO) -> None:
    """Write what a tar ends with."""
    file.write(bytes(_END_BLOCKS * BLOCK_BYTES))


def member_header(name: str, size: int) -> bytes:
    """The one header (of the format `ustar`) that a member of this name and size has."""

    def with_checksum(checksum: bytes) -> bytes:
        return _TAR.pack(
            name.encode("ascii"), b"0000644", b"0000000", b"0000000", b"%011o" % size, b"00000000000", checksum, b"0",
            b"", b"ustar", b"00", b"", b"", b"", b"", b"",
        )  # fmt: skip

    return with_checksum(b"%06o\0 " % sum(with_checksum(b" " * 8)))


def _padding(size: int) -> int:
    return -size % BLOCK_BYTES


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """What is read from a file, in pieces."""
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


class Member:
    """The content of one member while it is read; never more than its size, and less only with ArchiveInvalid."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self._file, self._name, self._left = file, name, size
        self._padding = _padding(size)

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""
        chunk = self._file.read(min(size, self._left))
        self._take(chunk, expected=bool(self._left and size))
        return chunk

    def line(self) -> bytes:
        """The next line with its end, empty at the end of the content."""
        line = self._file.readline(min(self._left, _LINE_BYTES_MAX))
        self._take(line, expected=bool(self._left))
        if line and not line.endswith(b"\n"):
            raise ArchiveInvalid(f"{self._name} holds a line that does not end")
        return line

    def end(self) -> None:
        """Read the zeros behind the content."""
        if self._left or self._file.read(self._padding) != bytes(self._padding):
            raise ArchiveInvalid(f"{self._name} does not end as it should")

    def _take(self, data: bytes, *, expected: bool) -> None:
        if expected and not data:
            raise ArchiveInvalid(f"the file ends within {self._name}")
        self._left -= len(data)


class ArchiveReader:
    """Reads an archive from its beginning to its end, member by member, in bounded memory.

    `manifest` is known at once; then `evidence` must be taken whole, then `events`, then `end`. Whatever is read has
    been checked against the manifest; that the parts agree with one another is what `checked_events` finds.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        member, size = self._open(MANIFEST)
        if size > _MANIFEST_BYTES_MAX:
            raise ArchiveInvalid(f"a manifest of {size} bytes is too large")
        data = b"".join(iter(lambda: member.read(_CHUNK_BYTES), b""))
        member.end()
        self.manifest = _read_manifest(data)

    def evidence(self) -> Iterator[tuple[Digest, Member]]:
        """Each piece with its content, which must be read to its end before the next one is asked for."""
        for piece in self.manifest.evidence:
            member, size = self._open(EVIDENCE_PREFIX + piece.digest)
            if size != piece.size_bytes:
                raise ArchiveInvalid(f"the evidence {piece.digest} does not have the size that the manifest gives")
            yield piece.digest, member
            member.end()

    def events(self) -> Iterator[ArchivedEvent]:
        """The events in their order, each as its line says."""
        member, size = self._open(EVENTS)
        if size != self.manifest.events_bytes:
            raise ArchiveInvalid("the events do not have the size that the manifest gives")
        for number, line in enumerate(iter(member.line, b""), start=1):
            try:
                event = msgspec.json.decode(line, type=ArchivedEvent)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ArchiveInvalid(f"event {number} is not readable: {error}") from error
            if _encoder.encode(event) + b"\n" != line:
                raise ArchiveInvalid(f"event {number} is not written as this program writes it")
            yield event
        member.end()

    def end(self) -> None:
        """Nothing may follow but the end."""
        if self._file.read(_END_BLOCKS * BLOCK_BYTES + 1) != bytes(_END_BLOCKS * BLOCK_BYTES):
            raise ArchiveInvalid("the file does not end after its last member")

    def _open(self, name: str) -> tuple[Member, int]:
        header = self._file.read(BLOCK_BYTES)
        try:
            size = int(header[_SIZE_FIELD], 8)
        except ValueError:
            size = -1
        if size < 0 or header != member_header(name, size):
            raise ArchiveInvalid(f"where {name} should be is something else")
        return Member(self._file, name, size), size


def _read_manifest(data: bytes) -> Manifest:
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveInvalid(f"the manifest is not readable: {error}") from error
    if manifest.archive_version > ARCHIVE_VERSION:
        raise ArchiveInvalid(f"an archive of version {manifest.archive_version} is of a newer program")
    digests = [piece.digest for piece in manifest.evidence]
    sound = (
        encode_manifest(manifest) == data
        and _RUN.fullmatch(manifest.run)
        and manifest.run != STREAM
        and all(_DIGEST.fullmatch(digest) for digest in digests)
        and digests == sorted(set(digests))
    )
    if not sound:
        raise ArchiveInvalid("the manifest is not one that this program writes")
    return manifest


def check_archive(file: BinaryIO) -> Manifest:
    """Read a whole archive and prove it: every event, every link, every piece of evidence, and that nothing is missing
    or too much. Raises ArchiveInvalid."""
    archive = ArchiveReader(file)
    for digest, member in archive.evidence():
        hashed = sha256()
        while chunk := member.read(_CHUNK_BYTES):
            hashed.update(chunk)
        if hashed.hexdigest() != digest:
            raise ArchiveInvalid(f"the evidence {digest} holds other bytes")
    _check_events(archive)
    archive.end()
    return archive.manifest


def _check_events(archive: ArchiveReader) -> None:
    manifest = archive.manifest
    links: Links = {}
    named: set[Digest] = set()
    unknown, count, head = False, 0, ""
    for count, archived in enumerate(archive.events(), start=1):
        try:
            told, event, head = linked(archived.header.encode(), archived.payload.encode(), links, manifest.ledger_id)
        except LedgerDamaged as damage:
            raise ArchiveInvalid(f"event {count}: {damage.message}") from damage
        if head != archived.digest:
            raise ArchiveInvalid(f"event {count} does not have its digest")
        _check_place(count, told, event, manifest)
        named |= named_by(told, event)
        unknown = unknown or isinstance(event, Unknown)
    if (count, head) != (manifest.events, manifest.head) or count == 1:
        raise ArchiveInvalid("the events are not those that the manifest tells of")
    kept = {piece.digest for piece in manifest.evidence}
    # Which evidence an event of a newer program names is not known here; then there may be more than what is known.
    if named - kept or (kept - named and not unknown):
        raise ArchiveInvalid("the evidence is not what the events name")


def _check_place(number: int, told: Header, event: Event, manifest: Manifest) -> None:
    """The first event is the creation of the ledger, the second the start of the run, and all others are the run's."""
    if told.stream != (STREAM if number == 1 else manifest.run):
        raise ArchiveInvalid(f"event {number} is of the stream {told.stream!r}")
    told_there = (manifest.ledger_id, manifest.project, manifest.format_version)
    if number == 1 and not (
        isinstance(event, LedgerCreated) and (event.ledger_id, event.project, event.format_version) == told_there
    ):
        raise ArchiveInvalid("event 1 is not the creation of the ledger that the manifest tells of")
    if (
        number == 2
        and not isinstance(event, Unknown)
        and not (isinstance(event, RunStarted) and event.run == manifest.run)
    ):
        raise ArchiveInvalid("event 2 is not the start of the run")
