"""Files and directories that survive a power cut: a new name is safe only when its directory has been synced."""

import filecmp
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ledger.errors import LedgerError, StoreUnwritable


class FileOccupied(LedgerError):
    """What is to be written has a name that something else has already; nothing is ever written over."""

    code = "file-occupied"
    exit_code = 4


@contextmanager
def finished_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name only when it is complete and on the disk.

    Nothing happens to a file there that holds the same bytes. Raises FileOccupied when it holds others, and
    StoreUnwritable.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists() or path.is_symlink():
            if not path.is_file() or not filecmp.cmp(path, temporary, shallow=False):
                raise FileOccupied(f"{path} exists and is something else", "move it away, or name another file")
        else:
            temporary.rename(path)
            sync_directory(path.parent)
    except OSError as error:
        what = error.strerror or error
        raise StoreUnwritable(f"{path} cannot be written: {what}", "check its directory and the space there") from error
    finally:
        temporary.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """Make a directory with all of its parents, and sync each directory that got a new entry. Raises OSError."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """Bring the entries of a directory to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
