"""Reads the manifest of a prepared archive: which release of which commit it is, and the digest of every file in it."""

import json
import re
from hashlib import sha256
from typing import Any, NoReturn

from msgspec import Struct

from commands.messages.base import Refusal
from ledger.values import Commit, Digest

MANIFEST = "release.json"
MANIFEST_BYTES_MAX = 8 << 20
DEPTH_MAX = 64
"""So many names lead to a file at most; a reader holds every directory on the way to it open."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
# `sha256sum` writes such names otherwise than they are, and the digest of an archive has to be one that it can give.
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_HINT = f'repair what writes {MANIFEST}, or let it be written with `manifest = "write"`'


class Manifest(Struct, frozen=True):
    """What a manifest says: the SHA-256 of each file, by its path below the archive with `/` between the names."""

    version: str
    commit: Commit
    files: dict[str, Digest]


class FileId(Struct, frozen=True, array_like=True):
    """What a file or a directory is, whatever it is called: no two have both numbers in common at any one time."""

    device: int
    inode: int


class Standing(Struct, frozen=True):
    """What stands at the place of an archive, as it was looked at: its directories, and the manifest in it.

    `releases` is `releases/`, `release` the directory of the version below it, and `archive` the archive itself.
    `manifest_digest` is the SHA-256 of the manifest's bytes, "" when there is none. `version` and `commit` are what it
    says, "" when it says nothing that can be believed, as one that was not written to its end.
    """

    releases: FileId
    release: FileId
    archive: FileId
    version: str = ""
    commit: Commit = ""
    manifest_digest: Digest = ""


def read_manifest(data: bytes) -> Manifest:
    """Read a manifest strictly; keys other than `version`, `commit` and `files` are nobody's business here.

    Refused with `manifest-invalid`: what is no JSON object in UTF-8, a key that is there twice, a path that leads
    anywhere but to a file below the archive or is no portable text, a digest that is none, the manifest's own name, and
    no files at all.
    """
    if len(data) > MANIFEST_BYTES_MAX:
        _refuse(f"is larger than {MANIFEST_BYTES_MAX >> 20} MiB", "pack the files of the release into fewer ones")
    try:
        read = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal("manifest-invalid", f"{MANIFEST} is no strict JSON: {error}", _HINT) from error
    if not isinstance(read, dict):
        _refuse("is no JSON object")
    version, commit, files = read.get("version"), read.get("commit"), read.get("files")
    if not isinstance(version, str) or not isinstance(commit, str):
        _refuse("names no `version` and no `commit` as text")
    if not isinstance(files, dict) or not files:
        _refuse("has no `files` with a digest for each path")
    for path, digest in files.items():
        if problem := path_problem(path):
            _refuse(f"names {path!r}, which {problem}")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            _refuse(f"gives {path!r} a digest that is not SHA-256 in lower-case hexadecimal")
    return Manifest(version, commit, files)


def path_problem(path: str) -> str:
    """Why a manifest cannot list this path, in words that follow the path; "" when it can."""
    names = path.split("/")
    if path == MANIFEST:
        return "is the manifest itself"
    if "" in names or "." in names or ".." in names:
        return "is not a plain path below the archive"
    if _UNUSABLE.search(path):
        return "has a backslash, a control character or bytes that are no text in it"
    return f"lies deeper than {DEPTH_MAX} directories" if len(names) > DEPTH_MAX else ""


def write_manifest_text(manifest: Manifest) -> bytes:
    """A manifest as `read_manifest` reads it, a file a line, the same bytes for the same manifest."""
    files = dict(sorted(manifest.files.items()))
    shown = {"version": manifest.version, "commit": manifest.commit, "files": files}
    return (json.dumps(shown, ensure_ascii=False, indent=1) + "\n").encode()


def archive_digest(files: dict[str, Digest], manifest_digest: Digest) -> Digest:
    """The digest of an archive: the SHA-256 of a line for each file in it, the manifest included.

    A line is the file's SHA-256 in lower-case hexadecimal, two spaces, `./`, its path, and a line feed; the lines are
    sorted by the bytes of the paths. Anybody gets the same, in the directory of the archive, with
    `find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.
    """
    whole = sha256()
    for path, digest in sorted((files | {MANIFEST: manifest_digest}).items()):
        whole.update(f"{digest}  ./{path}\n".encode())
    return whole.hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Of a key that is there twice, two readers may see two things."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _refuse(problem: str, hint: str = _HINT) -> NoReturn:
    raise Refusal("manifest-invalid", f"{MANIFEST} {problem}", hint)
