"""The archive of a release: what its manifest lists is there, nothing else is, and no link leads anywhere."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from commands.effects.release.archive import Place, check_archive, examine, write_manifest
from commands.messages.base import Refusal
from ledger.disk import FileOccupied
from tests.commands.release.archives import COMMIT, FILES, OLDER, aside, build, everything, without_rights, write


def refused(place: Place, commit: str = COMMIT) -> str:
    """The code that an archive is refused with; nothing that lies there may be different afterwards."""
    before = everything(place.root)
    with pytest.raises(Refusal) as refusal:
        check_archive(place, commit=commit)
    assert everything(place.root) == before
    return refusal.value.code


def test_an_archive_that_is_what_its_manifest_says_is_bound_by_a_digest_that_anybody_can_compute(
    tmp_path: Path,
) -> None:
    place = build(tmp_path, FILES | {"-": b"a name that programs take for their input", "z z/\u2028": b""})
    archive = check_archive(place, commit=COMMIT)
    command = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
    told = subprocess.run(["sh", "-c", command], cwd=place.path, check=True, capture_output=True, text=True)
    assert told.stdout.split()[0] == archive.digest
    assert archive.size_bytes == sum(path.stat().st_size for path in place.path.rglob("*") if path.is_file())
    assert archive.manifest == (place.path / "release.json").read_bytes()
    assert archive.files["web/assets/ä b.js"] == sha256(b"1\n").hexdigest()


def test_the_digest_is_another_for_another_byte_name_or_manifest(tmp_path: Path) -> None:
    digests = [
        check_archive(build(tmp_path / str(number), files, commit=commit), commit=commit).digest
        for number, (files, commit) in enumerate(
            [
                ({"a": b"1"}, COMMIT),
                ({"a": b"2"}, COMMIT),
                ({"b": b"1"}, COMMIT),
                ({"a": b"1"}, OLDER),
                ({"a": b"1", "b": b""}, COMMIT),
            ]
        )
    ]
    assert len(set(digests)) == 5
    assert check_archive(build(tmp_path / "again", {"a": b"1"}), commit=COMMIT).digest == digests[0]


Damage = Callable[[Path], object]


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    """Put something else in the place of a file or a directory."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path)


def listen(path: Path) -> None:
    """Leave a socket, by a name that is short enough for one."""
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "no directory": (shutil.rmtree, "archive-missing"),
    "no manifest": (lambda a: (a / "release.json").unlink(), "archive-missing"),
    "a file is gone": (lambda a: (a / "web/index.html").unlink(), "archive-file-missing"),
    "all of a directory is gone": (lambda a: replaced(a / "web/assets", Path.mkdir), "archive-file-missing"),
    "a file has other bytes": (lambda a: (a / "app.tgz").write_bytes(b"PACKED"), "archive-file-changed"),
    "a file has one byte more": (lambda a: (a / "app.tgz").write_bytes(b"packed!"), "archive-file-changed"),
    "a file more": (lambda a: (a / "web/extra").write_bytes(b""), "archive-file-unlisted"),
    "a hidden file more": (lambda a: (a / ".npmrc").write_bytes(b""), "archive-file-unlisted"),
    "an empty directory more": (lambda a: (a / "empty").mkdir(), "archive-file-unlisted"),
    "a directory for a file": (lambda a: replaced(a / "app.tgz", Path.mkdir), "archive-file-unlisted"),
    "a file for a directory": (lambda a: replaced(a / "web", Path.touch), "archive-file-unlisted"),
    "a name that is no text": (lambda a: Path(os.fsdecode(os.fsencode(a) + b"/\xff")).touch(), "archive-file-unlisted"),
    "a second manifest": (lambda a: (a / "web/release.json").touch(), "archive-file-unlisted"),
    "a link more": (lambda a: (a / "extra").symlink_to("app.tgz"), "archive-link"),
    "a link that leads nowhere": (lambda a: (a / "extra").symlink_to("nowhere"), "archive-link"),
    "a link for a file, to the same bytes": (
        lambda a: (shutil.move(a / "app.tgz", a.parent / "it"), (a / "app.tgz").symlink_to("../it")), "archive-link",
    ),
    "a link for a directory, to the same files": (
        lambda a: (shutil.move(a / "web", a.parent / "it"), (a / "web").symlink_to("../it")), "archive-link",
    ),
    "a link for the manifest": (
        lambda a: (shutil.move(a / "release.json", a.parent / "it"), (a / "release.json").symlink_to("../it")),
        "archive-link",
    ),
    "a link for the archive": (
        lambda a: (shutil.move(a, a.parent / "it"), a.symlink_to("it")), "archive-link",
    ),
    "a link for the version": (
        lambda a: (shutil.move(a.parent, a.parent.parent / "it"), a.parent.symlink_to("it")), "archive-link",
    ),
    "a link for the releases": (
        lambda a: (
            shutil.move(a.parent.parent, a.parent.parent.parent / "it"), a.parent.parent.symlink_to("it"),
        ),
        "archive-link",
    ),
    "a pipe more": (lambda a: os.mkfifo(a / "extra"), "archive-file-special"),
    "a pipe for a file": (lambda a: replaced(a / "app.tgz", os.mkfifo), "archive-file-special"),
    "a pipe for the manifest": (lambda a: replaced(a / "release.json", os.mkfifo), "archive-file-special"),
    "a socket for a file": (lambda a: replaced(a / "app.tgz", listen), "archive-file-special"),
    "a directory for the manifest": (lambda a: replaced(a / "release.json", Path.mkdir), "archive-file-special"),
    "a file for the archive": (lambda a: replaced(a, Path.touch), "archive-file-special"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_whatever_is_done_to_an_archive_is_refused_and_left_as_it_is(name: str, tmp_path: Path) -> None:
    damage, code = DAMAGES[name]
    place = build(tmp_path)
    damage(place.path)
    assert refused(place) == code


def test_an_archive_of_another_version_or_commit_is_refused(tmp_path: Path) -> None:
    assert refused(build(tmp_path / "commit", commit=OLDER)) == "archive-commit"
    place = build(tmp_path / "version")
    write(place, {"version": "8.3.1", "commit": COMMIT, "files": {"a": "0" * 64}})
    assert refused(place) == "archive-version"


@pytest.mark.parametrize("version", ["", ".", "..", "../8.3.0", "8.3.0/prepared", "/etc", "8\0"])
def test_a_version_that_leads_elsewhere_is_refused(version: str, tmp_path: Path) -> None:
    build(tmp_path)
    with pytest.raises(Refusal) as refusal:
        examine(Place(tmp_path, version))
    assert refusal.value.code == "archive-version"


def test_hard_links_count_as_what_they_hold_and_are_seen_when_that_changes(tmp_path: Path) -> None:
    place = build(tmp_path)
    os.link(place.path / "app.tgz", tmp_path / "other name")
    check_archive(place, commit=COMMIT)
    (tmp_path / "other name").write_bytes(b"PACKED")
    assert refused(place) == "archive-file-changed"


@pytest.mark.parametrize("target", ["app.tgz", "web", "release.json"])
@pytest.mark.parametrize(
    "make",
    [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, lambda path: None],
    ids=["a link", "a pipe", "nothing"],
)
def test_what_is_replaced_in_the_instant_before_it_is_opened_is_refused(
    target: str, make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = build(tmp_path)
    really_open = os.open

    def swap_and_open(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == target and dir_fd is not None and not (place.path / target).is_fifo():
            replaced(place.path / target, make)
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_and_open)
    with pytest.raises(Refusal) as refusal:
        check_archive(place, commit=COMMIT)
    assert refusal.value.code == "archive-file-changed"


def test_what_cannot_be_read_is_no_answer_about_an_archive(tmp_path: Path) -> None:
    (build(tmp_path).path / "app.tgz").chmod(0)
    _, told = without_rights(tmp_path, lambda: check_archive(Place(Path(), "8.3.0"), commit=COMMIT))
    assert "Permission denied: 'app.tgz'" in told


class TestWrittenManifest:
    """A manifest for a build that writes none."""

    def test_it_lists_everything_and_the_archive_is_then_in_order(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        before = check_archive(place, commit=COMMIT)
        (place.path / "release.json").unlink()
        write_manifest(place, commit=COMMIT)
        after = check_archive(place, commit=COMMIT)
        assert after.files == before.files
        assert sorted(os.listdir(place.path)) == ["app.tgz", "release.json", "web"]

    def test_it_is_written_once_and_never_over_another_one(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        before = everything(tmp_path)
        with pytest.raises(FileOccupied):
            write_manifest(place, commit=COMMIT)
        assert everything(tmp_path) == before
        (place.path / "release.json").unlink()
        write_manifest(place, commit=COMMIT)
        written = (place.path / "release.json").stat()
        write_manifest(place, commit=COMMIT)
        assert (place.path / "release.json").stat() == written

    @pytest.mark.parametrize(
        ("damage", "code"),
        [
            (lambda a: (a / "empty").mkdir(), "archive-file-unlisted"),
            (lambda a: (a / "web/line\nfeed").touch(), "archive-file-unlisted"),
            (lambda a: (a / "back\\slash").touch(), "archive-file-unlisted"),
            (lambda a: Path(os.fsdecode(os.fsencode(a) + b"/\xff")).touch(), "archive-file-unlisted"),
            (lambda a: (a / "/".join("d" * 64)).mkdir(parents=True), "archive-file-unlisted"),
            (lambda a: (a / "link").symlink_to("app.tgz"), "archive-link"),
            (lambda a: os.mkfifo(a / "pipe"), "archive-file-special"),
            (lambda a: replaced(a / "release.json", lambda path: path.symlink_to("app.tgz")), "archive-link"),
            (shutil.rmtree, "archive-missing"),
            (lambda a: replaced(a, Path.mkdir), "archive-missing"),
        ],
        ids=["empty", "line", "slash", "bytes", "deep", "link", "pipe", "manifest", "missing", "nothing built"],
    )
    def test_what_could_not_be_checked_later_is_refused(self, damage: Damage, code: str, tmp_path: Path) -> None:
        place = build(tmp_path)
        damage(place.path)
        before = everything(tmp_path)
        with pytest.raises(Refusal) as refusal:
            write_manifest(place, commit=COMMIT)
        assert refusal.value.code == code
        assert everything(tmp_path) == before

    def test_directories_deeper_than_can_be_held_open_are_refused(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        deep = place.path
        for _ in range(1500):
            deep = deep / "d"
            deep.mkdir()
        try:
            with pytest.raises(Refusal, match="deeper than 64 directories"):
                write_manifest(place, commit=COMMIT)
            with pytest.raises(Refusal, match="lists nothing in it"):
                check_archive(place, commit=COMMIT)
        finally:
            # Neither Python nor pytest can remove a tree that is as deep as this.
            subprocess.run(["rm", "-rf", str(place.path)], check=True)

    def test_the_deepest_path_that_it_lists_can_be_checked(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        deepest = place.path / "/".join("d" * 64)
        deepest.parent.mkdir(parents=True)
        deepest.touch()
        (place.path / "release.json").unlink()
        write_manifest(place, commit=COMMIT)
        check_archive(place, commit=COMMIT)


class TestExamined:
    """What stands at a place, before anything is decided about it."""

    def test_nothing_is_nothing(self, tmp_path: Path) -> None:
        place = Place(tmp_path / "none", "8.3.0")
        assert examine(place) is None
        place.path.parent.mkdir(parents=True)
        assert examine(place) is None

    def test_an_archive_is_told_by_its_manifest_and_its_directories(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        found = examine(place)
        assert found is not None
        manifest = (place.path / "release.json").read_bytes()
        assert (found.version, found.commit) == ("8.3.0", COMMIT)
        assert found.manifest_digest == sha256(manifest).hexdigest()
        inodes = [one.inode for one in (found.archive, found.release, found.releases)]
        assert inodes == [path.stat().st_ino for path in (place.path, *place.path.parents[:2])]

    def test_what_a_build_left_without_a_manifest_is_told_by_its_directories_alone(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        (place.path / "release.json").unlink()
        found = examine(place)
        assert found is not None
        assert (found.version, found.commit, found.manifest_digest) == ("", "", "")
        assert found.archive.inode == place.path.stat().st_ino

    def test_a_manifest_that_was_not_written_to_its_end_says_nothing_and_is_in_no_way(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        half = (place.path / "release.json").read_bytes()[:50]
        (place.path / "release.json").write_bytes(half)
        found = examine(place)
        assert found is not None
        assert (found.version, found.commit, found.manifest_digest) == ("", "", sha256(half).hexdigest())
        receipt = aside(place)
        assert (receipt.status, receipt.commit, receipt.size_status) == ("complete", "", "measured")
        assert (Path(receipt.to) / "release.json").read_bytes() == half


@pytest.mark.slow
def test_a_hundred_thousand_files_are_listed_checked_and_measured_in_little_memory(tmp_path: Path) -> None:
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from commands.effects.release.archive import Place, check_archive, write_manifest\n"
        "from tests.commands.release.archives import aside\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "place, before = Place(Path(sys.argv[1]), '8.3.0'), peak()\n"
        "write_manifest(place, commit='c')\n"
        "archive = check_archive(place, commit='c')\n"
        "assert len(archive.files) == 100_000, len(archive.files)\n"
        "assert aside(place).size_bytes == archive.size_bytes\n"
        "print((peak() - before) >> 10)\n"
    )
    place = Place(tmp_path, "8.3.0")
    for number in range(100_000):
        name = f"{number:05d}"
        if name.endswith("000"):
            (place.path / name[:2]).mkdir(parents=True, exist_ok=True)
        (place.path / name[:2] / name[2:]).touch()
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 150, f"{ended.stdout} MiB"
