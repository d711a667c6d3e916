"""Setting an archive aside: it is moved whole, its receipt says from where and why, and nothing is ever deleted."""

import errno
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from commands.effects.release import quarantine
from commands.effects.release.archive import Place, check_archive, examine
from commands.effects.release.quarantine import STEPS, ArchiveSwapped, QuarantineFailed, complete, leftovers
from commands.messages.base import Refusal
from tests.commands.release.archives import COMMIT, FILES, aside, build, contents, everything, without_rights

RECEIPT_BYTES = 64
"""A file of this size holds no receipt."""


def test_an_archive_is_moved_as_it_is_and_its_place_is_free(tmp_path: Path) -> None:
    place = build(tmp_path)
    inode, before = place.path.stat().st_ino, everything(place.path)
    receipt = aside(place)
    assert not place.path.exists()
    moved = Path(receipt.to)
    assert (moved.stat().st_ino, everything(moved)) == (inode, before)
    build(tmp_path, {"app.tgz": b"next"}, commit="b" * 40)
    assert check_archive(place, commit="b" * 40)
    assert everything(moved) == before


def test_the_receipt_says_what_was_moved_from_where_to_where_when_and_why(tmp_path: Path) -> None:
    place = build(tmp_path)
    archive = check_archive(place, commit=COMMIT)
    expected = examine(place)
    assert expected is not None
    receipt = aside(place, digest=archive.digest)
    file = Path(receipt.to).parent / "receipt.json"
    assert json.loads(file.read_bytes()) == {
        "status": "complete",
        "version": "8.3.0",
        "commit": COMMIT,
        "from": str(place.path),
        "to": str(file.parent / "prepared"),
        "moved_at": "2026-01-31",
        "reason": "the tip has moved",
        "digest": archive.digest,
        "manifest_digest": expected.manifest_digest,
        "inode": expected.archive.inode,
        "size_status": "measured",
        "size_bytes": archive.size_bytes,
        "size_error": "",
    }
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert sorted(os.listdir(file.parent)) == ["prepared", "receipt.json"]


def test_every_step_is_told_in_the_order_that_is_documented(tmp_path: Path) -> None:
    told: list[str] = []
    aside(build(tmp_path), step=told.append)
    assert tuple(told) == STEPS


def test_many_archives_are_kept_side_by_side(tmp_path: Path) -> None:
    commits = [letter * 40 for letter in "abc"]
    receipts = [aside(build(tmp_path, commit=commit)) for commit in commits]
    assert len({receipt.to for receipt in receipts}) == 3
    found = leftovers(tmp_path / "quarantine")
    assert {one.receipt.commit for one in found if one.receipt} == set(commits)
    assert {one.state for one in found} == {"complete"}
    recorded = [Path(receipts[1].to).parent.name]
    assert len(leftovers(tmp_path / "quarantine", recorded=recorded)) == 2


def test_what_a_build_left_without_a_manifest_can_be_set_aside_too(tmp_path: Path) -> None:
    place = build(tmp_path)
    (place.path / "release.json").unlink()
    receipt = aside(place)
    assert (receipt.status, receipt.version, receipt.manifest_digest) == ("complete", "", "")
    assert receipt.size_bytes == sum(map(len, FILES.values()))


def test_links_and_pipes_in_an_archive_are_moved_with_it_and_never_followed(tmp_path: Path) -> None:
    place = build(tmp_path)
    (tmp_path / "victim").write_bytes(b"x" * 5000)
    (place.path / "link").symlink_to(tmp_path / "victim")
    (place.path / "up").symlink_to(tmp_path)
    (place.path / "loop").symlink_to("loop")
    os.mkfifo(place.path / "pipe")
    os.link(place.path / "app.tgz", place.path / "again")
    listed = (place.path / "release.json").stat().st_size + sum(map(len, FILES.values()))
    receipt = aside(place)
    assert (receipt.size_status, receipt.size_bytes) == ("measured", listed + len(FILES["app.tgz"]))
    assert (Path(receipt.to) / "pipe").is_fifo()
    assert (tmp_path / "victim").read_bytes() == b"x" * 5000


def test_an_archive_that_cannot_be_measured_is_moved_and_its_receipt_says_so(tmp_path: Path) -> None:
    place = build(tmp_path)
    deep = "/".join("d" * 300)
    (place.path / deep).mkdir(parents=True)
    receipt = aside(place)
    assert (receipt.status, receipt.size_status) == ("complete", "unmeasured")
    assert "too deep" in receipt.size_error
    assert (Path(receipt.to) / deep).is_dir()


def test_a_name_that_is_no_text_is_in_no_way(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    receipt = aside(build(root))
    (found,) = leftovers(root / "quarantine")
    assert found.receipt == receipt
    assert complete(found.directory) == receipt


class TestRefused:
    """Whatever is refused before the move leaves the archive as it was."""

    @pytest.mark.parametrize("mounts_told", [True, False])
    def test_a_quarantine_on_another_file_system_is_refused_before_anything_changes(
        self, mounts_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not mounts_told:
            monkeypatch.setattr(quarantine, "_mount", lambda directory: "")
        memory = Path("/dev/shm")
        if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("/dev/shm is no file system of its own here")
        place = build(tmp_path)
        other = Path(tempfile.mkdtemp(dir=memory))
        try:
            for home in (other, other / "made"):
                code = refused_into(place, home)
                assert (code, os.listdir(other)) == ("quarantine-cross-device", [])
        finally:
            shutil.rmtree(other)

    def test_another_mount_of_the_same_file_system_is_refused_before_anything_changes(self, tmp_path: Path) -> None:
        build(tmp_path)
        (tmp_path / "quarantine").mkdir()
        (tmp_path / "elsewhere").mkdir()
        script = (
            "import sys\nfrom pathlib import Path\nfrom tests.commands.release.archives import Place, aside\n"
            "try: aside(Place(Path(sys.argv[1]), '8.3.0'))\n"
            "except Exception as error: print(error.code)\n"
        )
        mount = 'mount --bind "$1/elsewhere" "$1/quarantine" || exit 9; exec "$2" -c "$3" "$1"'
        command = ["unshare", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, script]
        try:
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no `unshare` here")
        if ended.returncode in (1, 9) and not ended.stdout:
            pytest.skip(f"mounting is not allowed here: {ended.stderr.strip()[:80]}")
        assert ended.stdout == "quarantine-cross-device\n", ended.stderr
        assert os.listdir(tmp_path / "elsewhere") == []
        assert check_archive(Place(tmp_path, "8.3.0"), commit=COMMIT)

    def test_a_system_that_will_not_rename_after_all_leaves_the_archive_and_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = build(tmp_path)
        before = everything(place.root / "releases")
        really_rename = os.rename

        def rename(source: str, target: str, **directories: int) -> None:
            if source == "prepared":
                raise OSError(errno.EXDEV, "a layer below that cannot be changed")
            really_rename(source, target, **directories)

        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(Refusal) as refusal:
            aside(place)
        assert refusal.value.code == "quarantine-cross-device"
        assert everything(place.root / "releases") == before
        assert leftovers(tmp_path / "quarantine") == ()

    @pytest.mark.parametrize("what", ["a file", "a link", "inside the archive"])
    def test_a_quarantine_that_is_none_is_refused(self, what: str, tmp_path: Path) -> None:
        place = build(tmp_path)
        home = tmp_path / "quarantine"
        if what == "a file":
            home.write_text("in the way")
        elif what == "a link":
            (tmp_path / "elsewhere").mkdir()
            home.symlink_to("elsewhere")
        else:
            home = place.path / "quarantine"
        assert refused_into(place, home) == "quarantine-failed"
        assert not (tmp_path / "elsewhere").exists() or os.listdir(tmp_path / "elsewhere") == []

    def test_an_archive_that_is_not_the_one_that_was_looked_at_stays(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        expected = examine(place)
        shutil.copytree(place.path, tmp_path / "copy")
        shutil.rmtree(place.path)
        (tmp_path / "copy").rename(place.path)
        before = everything(tmp_path)
        with pytest.raises(Refusal) as refusal:
            aside(place, expected=expected)
        assert refusal.value.code == "archive-changed"
        assert everything(tmp_path) == before


def refused_into(place: Place, home: Path) -> str:
    """The code that setting aside fails with, after which every file of the archive is where it was."""
    expected = examine(place)
    before = contents(place.path)
    with pytest.raises((Refusal, QuarantineFailed)) as failure:
        aside(place, home)
    assert contents(place.path) == before
    assert examine(place) == expected
    return failure.value.code


class TestReceiptThatCannotBeWritten:
    """A receipt is written before the move, so that its failure can only keep an archive where it is."""

    def full_from(self, place: Place, step: str) -> QuarantineFailed:
        """What setting aside fails with when the disk takes nothing more after a step."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

        def fill(name: str) -> None:
            if name == step:
                resource.setrlimit(resource.RLIMIT_FSIZE, (RECEIPT_BYTES, hard))

        try:
            with pytest.raises(QuarantineFailed, match="File too large") as failure:
                aside(place, step=fill)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return failure.value

    def test_without_room_for_the_first_one_the_archive_is_untouched(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        before = everything(place.path)
        failure = self.full_from(place, "private")
        assert failure.preserved == place.path
        assert str(place.path) in failure.message
        assert everything(place.path) == before
        assert leftovers(tmp_path / "quarantine") == ()
        assert aside(place).status == "complete"

    @pytest.mark.parametrize("step", ["intended", "verified", "moved", "checked", "measured"])
    def test_without_room_for_the_last_one_the_archive_is_preserved_where_it_says(
        self, step: str, tmp_path: Path
    ) -> None:
        place = build(tmp_path)
        before = everything(place.path)
        failure = self.full_from(place, step)
        assert everything(failure.preserved / "prepared") == before
        assert str(failure.preserved) in failure.message
        (found,) = leftovers(tmp_path / "quarantine")
        assert (found.directory, found.state) == (failure.preserved, "moved")
        assert complete(found.directory).size_status == "measured"
        assert sorted(os.listdir(found.directory)) == ["prepared", "receipt.json"]

    def test_a_quarantine_that_may_not_be_written_to_leaves_the_archive_untouched(self, tmp_path: Path) -> None:
        build(tmp_path)
        (tmp_path / "quarantine").mkdir(mode=0o555)
        before = everything(tmp_path)
        assert without_rights(tmp_path, lambda: aside(Place(Path(), "8.3.0"))) == (0, "quarantine-failed")
        assert everything(tmp_path) == before

    def test_an_archive_that_may_not_be_moved_stays_and_is_not_waited_for(self, tmp_path: Path) -> None:
        place = build(tmp_path)
        (tmp_path / "quarantine").mkdir()
        (tmp_path / "quarantine").chmod(0o777)
        place.path.parent.chmod(0o555)
        before = everything(place.path)
        assert without_rights(tmp_path, lambda: aside(Place(Path(), "8.3.0"))) == (0, "quarantine-failed")
        assert everything(place.path) == before
        assert leftovers(tmp_path / "quarantine") == ()


def test_what_is_being_moved_is_nobody_elses_business(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(step: str) -> None:
        home = tmp_path / "quarantine"
        assert leftovers(home) == ()
        for directory in home.iterdir():
            with pytest.raises(Refusal) as refusal:
                complete(directory)
            seen.append(refusal.value.code)

    aside(build(tmp_path), step=look)
    assert seen == ["quarantine-busy"] * (len(STEPS) - 1)


def test_a_place_that_is_taken_again_at_once_is_told_and_the_archive_is_kept(tmp_path: Path) -> None:
    place = build(tmp_path)
    with pytest.raises(ArchiveSwapped, match="was taken by something else") as swapped:
        aside(place, step=lambda step: place.path.mkdir() if step == "completed" else None)
    (found,) = leftovers(tmp_path / "quarantine")
    assert (found.state, found.directory) == ("complete", swapped.value.preserved)
