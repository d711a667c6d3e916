"""The manifest of an archive: strict JSON, paths that lead to files below the archive, and nothing read two ways."""

import json
from hashlib import sha256

import pytest

from commands.messages.base import Refusal
from commands.readers.archive_manifest import (
    MANIFEST_BYTES_MAX,
    Manifest,
    archive_digest,
    read_manifest,
    write_manifest_text,
)

D = "d" * 64
SOUND: dict[str, object] = {"version": "8.3.0", "commit": "c" * 40, "files": {"a": D}}


def refused(data: bytes) -> str:
    """The sentence that a manifest is refused with."""
    with pytest.raises(Refusal) as refusal:
        read_manifest(data)
    assert refusal.value.code == "manifest-invalid"
    return refusal.value.message


def test_a_manifest_is_read_and_what_else_it_says_is_let_through() -> None:
    told = SOUND | {"files": {"a/b c/ä.js": D, "..a": D, "~": D}, "built_at": [1.5, None]}
    assert read_manifest(json.dumps(told).encode()) == Manifest("8.3.0", "c" * 40, {"a/b c/ä.js": D, "..a": D, "~": D})


def test_what_is_written_is_read_again_and_the_same_for_any_order() -> None:
    manifest = Manifest("8.3.0", "c" * 40, {"b": D, "a/ä": D})
    assert read_manifest(write_manifest_text(manifest)) == manifest
    turned = Manifest("8.3.0", "c" * 40, {"a/ä": D, "b": D})
    assert write_manifest_text(turned) == write_manifest_text(manifest)


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../a", "a/../b", "..", ".", "./a", "a/./b", "a//b", "a/", "/", "a\0b", "a\nb", "a\rb", "a\x7f",
     "a\\b", "\ud800", "release.json", "/".join("d" * 65)],
    ids=ascii,
)  # fmt: skip
def test_a_path_that_does_not_plainly_lead_to_a_file_below_the_archive_is_refused(path: str) -> None:
    told = refused(json.dumps(SOUND | {"files": {"a": D, path: D}}).encode())
    assert repr(path) in told


@pytest.mark.parametrize("digest", ["", "d" * 63, "D" * 64, "g" * 64, D + "\n", None, 7])
def test_a_digest_that_is_none_is_refused(digest: object) -> None:
    assert "SHA-256" in refused(json.dumps(SOUND | {"files": {"a": digest}}).encode())


@pytest.mark.parametrize(
    "change",
    [{"version": None}, {"version": 8}, {"commit": None}, {"commit": ["c"]}, {"files": None}, {"files": ["a"]},
     {"files": {}}],
    ids=str,
)  # fmt: skip
def test_a_manifest_that_lacks_something_is_refused(change: dict[str, object]) -> None:
    refused(json.dumps(SOUND | change).encode())
    refused(json.dumps({key: value for key, value in SOUND.items() if key not in change}).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b"{", b'{"version": "8.3.0",}', json.dumps(SOUND).encode("utf-16"),
        b"\xef\xbb\xbf" + json.dumps(SOUND).encode(), json.dumps(SOUND).encode() + b"\xff",
        json.dumps(SOUND).encode() * 2, json.dumps(SOUND | {"x": float("nan")}).encode(),
        json.dumps(SOUND)[:-1].encode() + b', "x": ' + b"9" * 10_000 + b"}", b"[" * 200_000,
        json.dumps(SOUND)[:-1].encode() + b', "commit": "other"}',
        json.dumps(SOUND | {"files": {}}).encode().replace(b"{}", f'{{"a": "{D}", "a": "{"e" * 64}"}}'.encode()),
    ],
    ids=range(14),
)  # fmt: skip
def test_what_two_readers_may_read_differently_is_refused(data: bytes) -> None:
    refused(data)


def test_a_manifest_that_is_too_large_is_refused_and_one_that_just_fits_is_read() -> None:
    text = json.dumps(SOUND).encode()
    assert read_manifest(text.ljust(MANIFEST_BYTES_MAX)).version == "8.3.0"
    assert "8 MiB" in refused(text.ljust(MANIFEST_BYTES_MAX + 1))


def test_the_digest_of_an_archive_is_over_lines_in_the_order_of_the_bytes_of_their_paths() -> None:
    files = {"a/b": "1" * 64, "a.b": "2" * 64, "ä": "3" * 64, "Z": "4" * 64, "z": "5" * 64}
    lines = [("4", "Z"), ("2", "a.b"), ("1", "a/b"), ("0", "release.json"), ("5", "z"), ("3", "ä")]
    text = "".join(f"{digit * 64}  ./{path}\n" for digit, path in lines)
    assert archive_digest(files, "0" * 64) == sha256(text.encode()).hexdigest()
