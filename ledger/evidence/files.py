"""Evidence: compressed files that are named by the digest of their uncompressed bytes, and never trusted unread."""

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from ledger.disk import make_directory, sync_directory
from ledger.errors import EvidenceDamaged, StoreUnwritable
from ledger.values import Digest

_CHUNK_BYTES = 1 << 18
_DIGEST = re.compile(r"[0-9a-f]{64}")
_HINT = "put the same bytes again, or measure again what it is the evidence of"


class Readable(Protocol):
    """What can be read in pieces, up to empty bytes at its end."""

    def read(self, size: int, /) -> bytes: ...


class EvidenceStore:
    """A directory of evidence, `aa/<digest>.gz`. It is made when something is put; reading makes nothing.

    What was put is on the disk (file and directories synced) when its digest is returned. Nothing is ever removed: when
    the bytes of a damaged file are put again, the damaged one is set aside next to its place.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put_bytes(self, data: bytes) -> Digest:
        """Keep these bytes and return their digest. Raises StoreUnwritable."""
        digest = sha256(data).hexdigest()
        if not self.has(digest):
            return self.put_stream(BytesIO(data))
        with self._explained():
            self._sync(digest)
        return digest

    def put_file(self, path: Path) -> Digest:
        """Keep the content of a file, in bounded memory, and return its digest.

        Raises StoreUnwritable, and OSError when the file itself cannot be opened.
        """
        with path.open("rb") as source:
            return self.put_stream(source)

    def put_stream(self, source: Readable) -> Digest:
        """Keep what is read to its end, in bounded memory, and return its digest. Raises StoreUnwritable."""
        with self._explained():
            make_directory(self.directory)
            temporary = self.directory / f"{os.urandom(8).hex()}.tmp"
            try:
                digest = _compress(source, temporary)
                if not self.has(digest):
                    self._rename(temporary, digest)
                self._sync(digest)
            finally:
                temporary.unlink(missing_ok=True)
        return digest

    def put_from(self, other: "EvidenceStore", digest: Digest) -> None:
        """Keep a copy of a piece of another store. It is no second name of that file, which would share its fate.

        Raises EvidenceDamaged when it is not intact there, and StoreUnwritable.
        """
        other.open(digest).close()
        with self._explained():
            make_directory(self.directory)
            temporary = self.directory / f"{os.urandom(8).hex()}.tmp"
            try:
                _duplicate(other._path(digest), temporary)
                self._rename(temporary, digest)
                self._sync(digest)
            finally:
                temporary.unlink(missing_ok=True)

    def get(self, digest: Digest) -> bytes:
        """The bytes of this digest. Raises EvidenceDamaged when they are missing or altered."""
        import gzip

        path = self._path(digest)
        try:
            data = gzip.decompress(path.read_bytes())
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(path, error) from error
        if (actual := sha256(data).hexdigest()) != digest:
            raise EvidenceDamaged(f"{path} holds other bytes: their digest is {actual}", _HINT)
        return data

    def open(self, digest: Digest) -> BinaryIO:
        """The bytes of this digest as a stream that the caller closes, hashed to its end before it is given.

        Raises EvidenceDamaged when they are missing or altered.
        """
        import gzip

        path = self._path(digest)
        try:
            content = cast(BinaryIO, gzip.GzipFile(path))
        except OSError as error:
            raise _damaged(path, error) from error
        try:
            actual = _copy(content, None)
            content.seek(0)
        except (OSError, EOFError, zlib.error) as error:
            content.close()
            raise _damaged(path, error) from error
        if actual != digest:
            content.close()
            raise EvidenceDamaged(f"{path} holds other bytes: their digest is {actual}", _HINT)
        return content

    def has(self, digest: Digest) -> bool:
        """Whether the bytes of this digest are there and intact."""
        try:
            self.open(digest).close()
        except EvidenceDamaged:
            return False
        return True

    def _path(self, digest: Digest) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise EvidenceDamaged(f"{digest!r} is not a digest", "the event that names it is not one of this program")
        return self.directory / f"{digest[:2]}/{digest}.gz"

    def _rename(self, temporary: Path, digest: Digest) -> None:
        """Bring a written file to its place; a damaged one there gets a second name before it loses this one."""
        path = self._path(digest)
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            path.with_name(f"{digest}.damaged-{os.urandom(4).hex()}").hardlink_to(path)
        temporary.replace(path)

    def _sync(self, digest: Digest) -> None:
        """Make the name of a file safe, also of one that was there: who renamed it may not have come so far yet."""
        sync_directory(self._path(digest).parent)
        sync_directory(self.directory)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnwritable(
                f"evidence cannot be written to {self.directory}: {error.strerror}",
                "check the space, the quota and the permissions there, and try again",
            ) from error


def _damaged(path: Path, error: Exception) -> EvidenceDamaged:
    """What to say of a file that cannot be read, or not as what was written."""
    if isinstance(error, OSError) and error.strerror:
        return EvidenceDamaged(f"{path} cannot be read: {error.strerror}", _HINT)
    return EvidenceDamaged(f"{path} is damaged: {error}", _HINT)


def _compress(source: Readable, path: Path) -> Digest:
    """Write what is read as a new, synced file, the same bytes for the same content; give the content's digest."""
    import gzip

    with path.open("xb") as file:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as target:
            digest = _copy(source, cast(BinaryIO, target))
        file.flush()
        os.fsync(file.fileno())
    return digest


def _duplicate(source: Path, path: Path) -> None:
    """Copy a file as it is, into a new, synced one."""
    with source.open("rb") as original, path.open("xb") as file:
        while chunk := original.read(_CHUNK_BYTES):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _copy(source: Readable, target: BinaryIO | None) -> Digest:
    """Read to the end, write to the target if there is one, and give the digest of what was read."""
    hashed = sha256()
    while chunk := source.read(_CHUNK_BYTES):
        hashed.update(chunk)
        if target is not None:
            target.write(chunk)
    return hashed.hexdigest()
