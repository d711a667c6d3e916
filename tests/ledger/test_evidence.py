"""Evidence is named by what it holds, is on the disk when its name is given out, and is never trusted unread."""

import gzip
import os
import resource
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import EvidenceDamaged, StoreUnwritable
from ledger.evidence import EvidenceStore
from tests.ledger.stores import run_python

DATA = b"a report\n" * 1000
OPEN_FILES = Path("/proc/self/fd")
DIGEST = sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    """A store whose directory does not exist yet."""
    return EvidenceStore(tmp_path / "ledger" / "evidence")


@pytest.fixture
def path(store: EvidenceStore) -> Path:
    """Where the file of DATA belongs."""
    return store.directory / DIGEST[:2] / f"{DIGEST}.gz"


def files(store: EvidenceStore) -> list[str]:
    """Every file of the store, relative to it."""
    return sorted(str(file.relative_to(store.directory)) for file in store.directory.rglob("*") if file.is_file())


def test_bytes_come_back_under_the_digest_of_their_content(store: EvidenceStore, path: Path) -> None:
    assert store.put_bytes(DATA) == DIGEST
    assert store.get(DIGEST) == DATA
    assert files(store) == [f"{DIGEST[:2]}/{DIGEST}.gz"]
    assert gzip.decompress(path.read_bytes()) == DATA


@given(st.binary(max_size=2000))
@settings(max_examples=30, deadline=None)
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = EvidenceStore(tmp_path_factory.getbasetemp() / "any-bytes")
    digest = store.put_bytes(data)
    assert digest == sha256(data).hexdigest()
    assert store.get(digest) == data


def test_a_file_is_kept_under_the_same_digest_as_its_bytes(store: EvidenceStore, tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(DATA)
    assert store.put_file(tmp_path / "report") == store.put_bytes(DATA) == DIGEST
    assert len(files(store)) == 1


def test_the_same_content_is_the_same_file_wherever_it_is_put(store: EvidenceStore, path: Path, tmp_path: Path) -> None:
    other = EvidenceStore(tmp_path / "other")
    store.put_bytes(DATA)
    (tmp_path / "another-name").write_bytes(DATA)
    os.utime(tmp_path / "another-name", (0, 0))
    other.put_file(tmp_path / "another-name")
    assert (other.directory / path.relative_to(store.directory)).read_bytes() == path.read_bytes()
    time_in_the_file = path.read_bytes()[4:8]
    assert time_in_the_file == bytes(4)


def test_what_is_there_is_not_written_again(store: EvidenceStore, path: Path) -> None:
    store.put_bytes(DATA)
    before = path.stat()
    assert store.put_bytes(DATA) == DIGEST
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(files(store)) == 1


def test_a_stream_gives_the_bytes_piece_by_piece(store: EvidenceStore) -> None:
    store.put_bytes(DATA)
    with store.open(DIGEST) as content:
        assert content.read(8) == DATA[:8]
        assert content.read() == DATA[8:]


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="only Linux tells which file a descriptor is")
def test_a_name_is_given_out_only_when_the_file_and_then_its_name_are_on_the_disk(
    store: EvidenceStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sizes: list[int] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append(f"sync {os.path.realpath(OPEN_FILES / str(descriptor)).removeprefix(str(store.directory.parent))}")
        sizes.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    def noted_replace(source: str, target: str) -> None:
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    store.put_bytes(DATA)
    made, (written, *rest) = done[:2], done[2:]
    assert made == ["sync ", f"sync {store.directory.parent.parent}"]
    assert written.endswith(".tmp")
    assert sizes[2] == path.stat().st_size
    assert rest == ["rename", f"sync /evidence/{DIGEST[:2]}", "sync /evidence"]
    done.clear()
    store.put_bytes(DATA)
    assert done == [f"sync /evidence/{DIGEST[:2]}", "sync /evidence"]


@pytest.mark.slow
def test_a_large_file_is_kept_and_read_in_bounded_memory(store: EvidenceStore, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(100 << 20)
    code = """
import sys
from pathlib import Path
from ledger.evidence import EvidenceStore

def peak():
    # Of this program alone: `ru_maxrss` counts what its parent used before it was replaced, too.
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))

store = EvidenceStore(Path(sys.argv[2]))
before = peak()
digest = store.put_file(Path(sys.argv[1]))
assert store.has(digest)
print(peak() - before)
"""
    done = run_python(code, large, store.directory)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 20 << 10


def test_what_is_missing_is_said_to_be_missing(store: EvidenceStore) -> None:
    with pytest.raises(EvidenceDamaged, match="No such file"):
        store.get(DIGEST)
    assert not store.has(DIGEST)
    assert not store.directory.exists()


def damage_kinds(content: bytes) -> dict[str, bytes]:
    """What may be found in the place of a file of this content."""
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    return {
        "nothing": b"",
        "a half": content[: len(content) // 2],
        "without its end": content[:-1],
        "a changed bit": bytes(flipped),
        "no gzip": DATA,
        "more behind it": content + b"more",
        "another content": gzip.compress(b"another"),
        "its content twice": content + content,
        "only a head": content[:10],
    }


@pytest.mark.parametrize("kind", damage_kinds(b"x" * 20))
def test_a_damaged_file_is_never_given_out(store: EvidenceStore, path: Path, kind: str) -> None:
    store.put_bytes(DATA)
    path.write_bytes(damage_kinds(path.read_bytes())[kind])
    assert not store.has(DIGEST)
    for read in (store.get, store.open):
        with pytest.raises(EvidenceDamaged) as caught:
            read(DIGEST)
        assert str(path) in caught.value.message
        assert caught.value.hint


@pytest.mark.parametrize("kind", damage_kinds(b"x" * 20))
def test_a_damaged_file_is_set_aside_when_its_bytes_are_put_again(store: EvidenceStore, path: Path, kind: str) -> None:
    store.put_bytes(DATA)
    damaged = damage_kinds(path.read_bytes())[kind]
    path.write_bytes(damaged)
    assert store.put_bytes(DATA) == DIGEST
    assert store.get(DIGEST) == DATA
    (aside,) = [file for file in path.parent.iterdir() if file != path]
    assert aside.read_bytes() == damaged
    assert aside.name.startswith(f"{DIGEST}.damaged-")


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_file_with_any_bytes_changed_gives_its_content_or_is_damaged(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = EvidenceStore(tmp_path_factory.getbasetemp() / "any-change")
    store.put_bytes(DATA)
    path = store.directory / DIGEST[:2] / f"{DIGEST}.gz"
    content = path.read_bytes()
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    try:
        assert store.get(DIGEST) == DATA
    except EvidenceDamaged:
        assert not store.has(DIGEST)
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize(
    "digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 63 + "\n", "a/" + "b" * 62]
)
def test_what_is_no_digest_names_no_file(store: EvidenceStore, digest: str) -> None:
    with pytest.raises(EvidenceDamaged, match="is not a digest"):
        store.get(digest)
    assert not store.has(digest)


def test_a_store_that_cannot_be_made_is_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnwritable, match="cannot be written"):
        EvidenceStore(tmp_path / "file" / "evidence").put_bytes(DATA)


def test_evidence_that_does_not_fit_is_unwritable_and_leaves_nothing_behind(
    store: EvidenceStore, path: Path, tmp_path: Path
) -> None:
    store.put_bytes(DATA)
    noise = os.urandom(1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(StoreUnwritable, match="File too large") as caught:
            store.put_bytes(noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(store.directory) in caught.value.message
    assert files(store) == [str(path.relative_to(store.directory))]
    assert store.get(store.put_bytes(noise)) == noise


def test_a_source_that_is_not_there_is_not_a_fault_of_the_store(store: EvidenceStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.put_file(tmp_path / "missing")


def test_a_piece_of_another_store_is_copied_when_it_is_intact_there(
    store: EvidenceStore, path: Path, tmp_path: Path
) -> None:
    other = EvidenceStore(tmp_path / "other")
    store.put_bytes(DATA)
    other.put_from(store, DIGEST)
    copy = other.directory / path.relative_to(store.directory)
    assert copy.read_bytes() == path.read_bytes()
    path.write_bytes(b"damaged")
    assert other.get(DIGEST) == DATA
    with pytest.raises(EvidenceDamaged):
        EvidenceStore(tmp_path / "third").put_from(store, DIGEST)
    assert not (tmp_path / "third").exists()


def test_a_damaged_piece_is_replaced_from_another_store_and_set_aside(
    store: EvidenceStore, path: Path, tmp_path: Path
) -> None:
    other = EvidenceStore(tmp_path / "other")
    other.put_bytes(DATA)
    store.put_bytes(DATA)
    path.write_bytes(b"damaged")
    store.put_from(other, DIGEST)
    assert store.get(DIGEST) == DATA
    assert len([name for name in files(store) if ".damaged-" in name]) == 1


def test_what_is_read_in_pieces_is_kept_like_bytes(store: EvidenceStore) -> None:
    class Trickle:
        left = DATA

        def read(self, size: int, /) -> bytes:
            piece, self.left = self.left[:7], self.left[7:]
            return piece

    assert store.put_stream(Trickle()) == DIGEST
    assert store.get(DIGEST) == DATA
