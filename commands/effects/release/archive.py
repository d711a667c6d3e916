"""The archive that a release prepares: where it lies, what its manifest says, and whether that is what is there.

An archive is checked as a whole: every file that the manifest lists is there with the bytes that it lists, and nothing
else is. No link is followed on the way to it or inside it, and nothing that is not a regular file is opened.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from commands.effects.release.held import Directory, Entry, Kind, NotPlain, walk
from commands.messages.base import Refusal
from commands.readers.archive_manifest import (
    DEPTH_MAX,
    MANIFEST,
    MANIFEST_BYTES_MAX,
    Manifest,
    Standing,
    archive_digest,
    path_problem,
    read_manifest,
    write_manifest_text,
)
from ledger.disk import finished_file
from ledger.values import Commit, Digest

RELEASES = "releases"
PREPARED = "prepared"

_REPLACED = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO)
"""How a name can be answered for that was something else a moment ago: a link, nothing, no directory, a pipe."""


class Place(NamedTuple):
    """Where the archive of a version lies: `releases/<version>/prepared` below `root`, the ledger's directory."""

    root: Path
    version: str

    @property
    def path(self) -> Path:
        """The directory of the archive."""
        return self.root / RELEASES / self.version / PREPARED


class Archive(NamedTuple):
    """An archive that is what its manifest says.

    `digest` stands for all of it, see `archive_digest`; `size_bytes` is that of its files, the manifest included;
    `manifest` are the manifest's bytes, and `files` what they list.
    """

    digest: Digest
    size_bytes: int
    files: dict[str, Digest]
    manifest: bytes


class Held(NamedTuple):
    """The directories of a place, held open: `releases/`, that of the version, and the archive."""

    releases: Directory
    release: Directory
    archive: Directory


def check_archive(place: Place, *, commit: Commit) -> Archive:
    """The archive of this version of this commit, all of its files read once.

    Raises OSError for what cannot be read, and Refusal:
    `archive-missing`        there is no directory, or no manifest in it
    `archive-link`           a link on the way to it or in it
    `archive-file-special`   something in its place, or in it, is no regular file and no directory
    `manifest-invalid`       the manifest is none
    `archive-version`        it is of another version, or `place` names none
    `archive-commit`         it was built of another commit
    `archive-file-missing`   a file that is listed is not there
    `archive-file-changed`   a file has other bytes than the manifest lists
    `archive-file-unlisted`  something is there that the manifest does not list; an empty directory is, too
    """
    with _steady(place), held(place) as directories:
        manifest_bytes = manifest_of(directories.archive, place)
        if manifest_bytes is None:
            raise Refusal("archive-missing", f"{place.path} has no {MANIFEST}", "let the step write one at its end")
        manifest = read_manifest(manifest_bytes)
        if manifest.version != place.version:
            raise Refusal("archive-version", f"{place.path} is of version {manifest.version!r}, not {place.version!r}")
        if manifest.commit != commit:
            raise Refusal("archive-commit", f"{place.path} was built of {manifest.commit!r}, not of {commit!r}")
        size_bytes = _compare(directories.archive, manifest, place)
    digest = archive_digest(manifest.files, sha256(manifest_bytes).hexdigest())
    return Archive(digest, len(manifest_bytes) + size_bytes, manifest.files, manifest_bytes)


def write_manifest(place: Place, *, commit: Commit) -> None:
    """Write the manifest of what a step has built, for a step that writes none; the same one twice is written once.

    Raises OSError, FileOccupied for another manifest that is there, StoreUnwritable, and Refusal: `archive-missing`,
    `archive-link`, `archive-file-special`, `archive-version`, `archive-file-unlisted` for what no manifest can list, as
    an empty directory, and `manifest-invalid` for more files than one may list.
    """
    files: dict[str, Digest] = {}
    entered: set[str] = set()

    def enter(path: str) -> bool:
        if path.count("/") >= DEPTH_MAX - 1:
            _unlisted(place, path, f"it lies deeper than {DEPTH_MAX} directories")
        entered.add(path)
        return True

    with _steady(place), held(place) as directories:
        for entry in _entries(directories.archive, place, enter):
            if problem := path_problem(entry.path):
                _unlisted(place, entry.path, f"its path {problem}")
            files[entry.path], _ = entry.within.hashed(entry.name)
    if empty := entered - _parents(files):
        _unlisted(place, min(empty), "an empty directory cannot be listed")
    if not files:
        raise Refusal("archive-missing", f"there is no file in {place.path}", "let the step build what is released")
    text = write_manifest_text(Manifest(place.version, commit, files))
    if len(text) > MANIFEST_BYTES_MAX:
        problem = f"{place.path} has too many files to list in {MANIFEST_BYTES_MAX >> 20} MiB: {len(files)}"
        raise Refusal("manifest-invalid", problem, "pack the files of the release into fewer ones")
    with finished_file(place.path / MANIFEST) as written:
        written.write(text)


def examine(place: Place) -> Standing | None:
    """What stands at the place of an archive; None when nothing does. Nothing but the manifest is read.

    A manifest that is none tells nothing, and is no reason to refuse: a build may have been ended while it wrote it.
    Raises OSError, and Refusal: `archive-link`, `archive-file-special`, `archive-version`, `archive-file-changed`.
    """
    try:
        with _steady(place), held(place) as directories:
            manifest_bytes = manifest_of(directories.archive, place)
            found = Standing(
                releases=directories.releases.identity,
                release=directories.release.identity,
                archive=directories.archive.identity,
            )
    except Refusal as refusal:
        if refusal.code == "archive-missing":
            return None
        raise
    if manifest_bytes is None:
        return found
    found = replace(found, manifest_digest=sha256(manifest_bytes).hexdigest())
    try:
        manifest = read_manifest(manifest_bytes)
    except Refusal:
        return found
    return replace(found, version=manifest.version, commit=manifest.commit)


@contextmanager
def held(place: Place) -> Iterator[Held]:
    """Hold the directories of a place open. Raises OSError, and Refusal as `examine` and with `archive-missing`."""
    if place.version in ("", ".", "..") or "/" in place.version or "\0" in place.version:
        raise Refusal("archive-version", f"{place.version!r} is no version that a directory can be named after")
    with ExitStack() as stack:
        try:
            within = stack.enter_context(Directory.at(place.root, follow=True))
        except FileNotFoundError:
            _missing(place.root)
        opened = []
        path = place.root
        for name in (RELEASES, place.version, PREPARED):
            path = path / name
            kind = within.kind(name)
            if kind is None:
                _missing(path)
            if kind != "directory":
                _not_plain(path, kind)
            within = stack.enter_context(within.directory(name))
            opened.append(within)
        yield Held(*opened)


def manifest_of(archive: Directory, place: Place) -> bytes | None:
    """The bytes of an archive's manifest, at most one more than it may have; None when there is none.

    Raises OSError, and Refusal: `archive-link`, `archive-file-special`.
    """
    kind = archive.kind(MANIFEST)
    if kind is None:
        return None
    if kind != "file":
        _not_plain(place.path / MANIFEST, kind)
    return archive.read(MANIFEST, MANIFEST_BYTES_MAX)


def _compare(archive: Directory, manifest: Manifest, place: Place) -> int:
    """Hold every file against the manifest; the bytes of all of them. Refuses as `check_archive`."""
    parents = _parents(manifest.files)

    def enter(path: str) -> bool:
        if path not in parents:
            _unlisted(place, path, f"{MANIFEST} lists nothing in it")
        return True

    missing = set(manifest.files)
    size_bytes = 0
    for entry in _entries(archive, place, enter):
        listed = manifest.files.get(entry.path)
        if listed is None:
            _unlisted(place, entry.path, f"{MANIFEST} does not list it")
        digest, file_bytes = entry.within.hashed(entry.name)
        if digest != listed:
            told = f"{place.path / entry.path} has the digest {digest}, and {MANIFEST} lists {listed}"
            raise Refusal("archive-file-changed", told, "prepare the release again")
        size_bytes += file_bytes
        missing.discard(entry.path)
    if missing:
        told = f"{place.path / min(missing)} is listed in {MANIFEST} and not there ({len(missing)} missing in all)"
        raise Refusal("archive-file-missing", told, "prepare the release again")
    return size_bytes


def _entries(archive: Directory, place: Place, enter: Callable[[str], bool]) -> Iterator[Entry]:
    """The files of an archive but for its manifest. Refuses what is neither a file nor a directory."""
    for entry in walk(archive, enter):
        if entry.kind not in ("file", "directory"):
            _not_plain(place.path / entry.path, entry.kind)
        if entry.kind == "file" and entry.path != MANIFEST:
            yield entry


def _parents(paths: Iterable[str]) -> set[str]:
    """The directories that lead to these files."""
    return {path[:end] for path in paths for end, letter in enumerate(path) if letter == "/"}


@contextmanager
def _steady(place: Place) -> Iterator[None]:
    """Refuse with `archive-file-changed` what was replaced between being looked at and being opened."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, NotPlain) and error.errno not in _REPLACED:
            raise
        what = f"something in {place.path} was replaced while it was read: {error}"
        raise Refusal(
            "archive-file-changed", what, "look who else works there, and prepare the release again"
        ) from error


def _missing(path: Path) -> NoReturn:
    raise Refusal("archive-missing", f"{path} is not there", "let a step of the release prepare it")


def _not_plain(path: Path, kind: Kind) -> NoReturn:
    hint = "look who put it there; it was left as it is"
    if kind == "link":
        raise Refusal("archive-link", f"{path} is a link to {os.readlink(path)!r}", hint)
    what = {"file": "a file", "directory": "a directory"}.get(kind, "no file and no directory")
    raise Refusal("archive-file-special", f"{path} is {what}", hint)


def _unlisted(place: Place, path: str, problem: str) -> NoReturn:
    told = f"{place.path / path} must not be in the archive: {problem}"
    raise Refusal("archive-file-unlisted", told, "let the build leave nothing there but what is released")
