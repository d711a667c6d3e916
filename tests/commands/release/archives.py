"""Prepared archives for tests: how to build one, what is in it, and everything that is anywhere below a directory."""

import json
import os
import traceback
import warnings
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from commands.effects.release.archive import PREPARED, Place, examine
from commands.effects.release.quarantine import Receipt, set_aside

COMMIT = "c" * 40
OLDER = "a" * 40
FILES: dict[str, bytes] = {"app.tgz": b"packed", "web/index.html": b"<html>", "web/assets/ä b.js": b"1\n"}


def build(root: Path, files: Mapping[str, bytes] = FILES, *, version: str = "8.3.0", commit: str = COMMIT) -> Place:
    """An archive as a step of a release leaves it, with its manifest."""
    place = Place(root, version)
    for path, data in files.items():
        (place.path / path).parent.mkdir(parents=True, exist_ok=True)
        (place.path / path).write_bytes(data)
    listed = {path: sha256(data).hexdigest() for path, data in files.items()}
    write(place, {"version": version, "commit": commit, "files": listed})
    return place


def write(place: Place, manifest: object) -> None:
    """Put a manifest into an archive, whatever it says."""
    (place.path / "release.json").write_text(json.dumps(manifest), "utf-8")


def aside(place: Place, quarantine: Path | None = None, **changes: object) -> Receipt:
    """Set the archive aside that stands at a place, into the quarantine next to `releases` if no other is named."""
    arguments = {
        "expected": examine(place),
        "digest": "d" * 64,
        "reason": "the tip has moved",
        "moved_at": "2026-01-31",
    }
    return set_aside(place, quarantine or place.root / "quarantine", **(arguments | changes))


def everything(directory: Path) -> dict[str, str | bytes]:
    """All that lies below a directory: the bytes of files, where links lead, and the kind of anything else."""
    found: dict[str, str | bytes] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "directory" if path.is_dir() else "special"
    return found


def archives_in(directory: Path) -> list[Path]:
    """Every archive below a directory that has the files of `FILES` and its manifest."""
    found = (path for path in directory.rglob(PREPARED) if path.is_dir() and not path.is_symlink())
    return [path for path in found if all((path / name).is_file() for name in ("release.json", *FILES))]


def contents(directory: Path) -> list[bytes]:
    """The bytes of every file below a directory but for receipts, each under each of its names, sorted."""
    paths = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path.read_bytes() for path in paths if not path.name.startswith("receipt.json"))


def in_child(work: Callable[[], object]) -> tuple[int, str]:
    """Run something in a forked process: its exit code, and as text what it gave or raised.

    A process that ends itself gives nothing.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child does nothing with the threads that a runner of tests may have.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            told = str(work())
        except BaseException as error:
            told = getattr(error, "code", "") or traceback.format_exc()
        os.write(writing, told.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told


def without_rights(directory: Path, work: Callable[[], object]) -> tuple[int, str]:
    """The same, in this directory, which anybody may look into, and without the superuser's rights to everything."""
    directory.chmod(0o755)

    def there() -> object:
        os.chdir(directory)
        if os.getuid() == 0:
            os.setuid(65534)
        return work()

    return in_child(there)
