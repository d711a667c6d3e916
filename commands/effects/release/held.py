"""Directories that are held open: what is in them is reached by its name in them, and no link is ever followed.

However the paths to such a directory are changed meanwhile, what is read and moved is in the directory that was opened.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

from commands.readers.archive_manifest import FileId
from ledger.values import Digest

Kind = Literal["file", "directory", "link", "special"]
"""What a name stands for; `special` is anything that is no file, as a pipe, a socket or a device."""

_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class NotPlain(OSError):
    """What was opened is not the plain file that it has to be."""


class Directory:
    """A directory that is held open until it is closed. Everything that is asked of it may raise OSError."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def at(cls, path: Path, *, follow: bool = False) -> Self:
        """The directory at a path, whose last name may be a link only when told so."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | (0 if follow else os.O_NOFOLLOW)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    @property
    def identity(self) -> FileId:
        """What this directory is, whatever leads to it."""
        found = os.fstat(self.descriptor)
        return FileId(found.st_dev, found.st_ino)

    def directory(self, name: str) -> "Directory":
        """The directory of this name in this one."""
        return Directory(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.descriptor))

    def kind(self, name: str) -> Kind | None:
        """What is there under a name; None for nothing."""
        try:
            mode = os.lstat(name, dir_fd=self.descriptor).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(mode):
            return "link"
        return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "special"

    def names(self) -> list[str]:
        """The names in it, sorted."""
        return sorted(os.listdir(self.descriptor))

    def read(self, name: str, bytes_max: int) -> bytes:
        """The bytes of a file, as far as one byte more than these."""
        with os.fdopen(self._file(name), "rb") as file:
            return file.read(bytes_max + 1)

    def hashed(self, name: str) -> tuple[Digest, int]:
        """The SHA-256 of a file's bytes and how many they are, in bounded memory."""
        with os.fdopen(self._file(name), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest, file.tell()

    def create(self, name: str, data: bytes) -> None:
        """Write a new file, mode 0600, and sync it. Raises FileExistsError, whatever has the name already."""
        created = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.descriptor)
        with os.fdopen(created, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def sync(self) -> None:
        """Bring the entries to the disk."""
        os.fsync(self.descriptor)

    def _file(self, name: str) -> int:
        """A file, opened; what is not one is never waited for, and never given."""
        opened = os.open(name, _PLAIN, dir_fd=self.descriptor)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise NotPlain(f"{name} is not a regular file")
        return opened


class Entry(NamedTuple):
    """A name in a directory below the one that is walked, and the path that leads to it from there."""

    path: str
    kind: Kind
    within: Directory
    name: str


def walk(top: Directory, enter: Callable[[str], bool], prefix: str = "") -> Iterator[Entry]:
    """Everything in a directory and in those below it whose paths `enter` lets through, sorted, links not followed.

    As many directories are held open as lie within each other on the way. Raises OSError.
    """
    for name in top.names():
        kind = top.kind(name)
        if kind is None:
            continue
        path = prefix + name
        yield Entry(path, kind, top, name)
        if kind == "directory" and enter(path):
            with top.directory(name) as inner:
                yield from walk(inner, enter, f"{path}/")
