"""Directories that survive a power cut: a new name is safe only when the directory that holds it has been synced."""

import os
from pathlib import Path


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
