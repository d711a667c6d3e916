"""Somebody else works at the place of an archive, at every instant of its move: what goes is the archive, or it stays.

Whatever comes of it, every byte that was there is still somewhere, and what a link leads to is never touched.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from commands.effects.release.archive import Place, check_archive, examine
from commands.effects.release.quarantine import STEPS, ArchiveSwapped, complete, leftovers
from commands.messages.base import Refusal
from ledger.errors import LedgerError
from tests.commands.release.archives import COMMIT, OLDER, aside, build, contents, everything

LOOKED_AT_AGAIN = ("opened", "private", "intended")
"""The steps after which an archive is looked at once more before it is moved."""


class Scene(NamedTuple):
    """An archive, a directory of somebody else's that looks the same, and where an attacker keeps what was taken."""

    place: Place
    twin: Place
    attic: Path

    def take(self, path: Path) -> None:
        """Take something away."""
        if os.path.lexists(path):
            shutil.move(path, self.attic / path.name)

    def swap(self, path: Path, other: Path) -> None:
        """Put something of somebody else's in the place of what was there."""
        self.take(path)
        shutil.move(other, path)

    def link(self, path: Path, other: Path) -> None:
        """Let a link lead to something of somebody else's."""
        self.take(path)
        path.symlink_to(other)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Everything of the scene is below one directory, so that nothing can get lost unseen."""
    (tmp_path / "attic").mkdir()
    return Scene(build(tmp_path / "ledger"), build(tmp_path / "twin"), tmp_path / "attic")


def archive_of(scene: Scene) -> Path:
    return scene.place.path


def release_of(scene: Scene) -> Path:
    return scene.place.path.parent


def releases_of(scene: Scene) -> Path:
    return scene.place.path.parent.parent


def twin_of(path: Path, scene: Scene) -> Path:
    """What somebody else has at the same place below a directory of theirs."""
    return scene.twin.root / path.relative_to(scene.place.root)


WHERE = {"archive": archive_of, "release": release_of, "releases": releases_of}
HOW: dict[str, tuple[Callable[[Scene, Path], object], str]] = {
    "swapped for a twin": (lambda scene, path: scene.swap(path, twin_of(path, scene)), "archive-changed"),
    "a link to a twin": (lambda scene, path: scene.link(path, twin_of(path, scene)), "archive-link"),
    "a link to where it is now": (lambda scene, path: scene.link(path, scene.attic / path.name), "archive-link"),
    "a file": (lambda scene, path: (scene.take(path), path.write_bytes(b"a file")), "archive-file-special"),
    "gone": (lambda scene, path: scene.take(path), "archive-missing"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("how", HOW)
def test_a_swap_at_any_instant_is_seen_and_nothing_is_lost(step: str, where: str, how: str, scene: Scene) -> None:
    attack, code_before = HOW[how]
    path = WHERE[where](scene)
    top = scene.place.root.parent
    original = scene.place.path.stat().st_ino
    twin = everything(scene.twin.root)
    done: list[str] = []

    def strike(name: str) -> None:
        if name == step:
            attack(scene, path)
            # What an attacker adds or is given back is none of ours, so counting begins after the attack.
            done.append("struck")
            after_attack.extend(contents(top))

    after_attack: list[bytes] = []
    if how == "gone" and where == "archive" and step in STEPS[STEPS.index("moved") :]:
        aside(scene.place, step=strike)
        assert done == ["struck"], "nothing was there any more that could be taken"
        return
    with pytest.raises(LedgerError) as failure:
        aside(scene.place, step=strike)
    expected = code_before if step in LOOKED_AT_AGAIN else "archive-swapped"
    if step == "verified" and how == "gone" and where == "archive":
        expected = "archive-changed"
    assert failure.value.code == expected
    assert contents(top) == after_attack
    assert original in {found.stat().st_ino for found in top.rglob("prepared")}
    if "twin" not in how or how == "a link to a twin":
        assert everything(scene.twin.root) == twin
    if isinstance(failure.value, ArchiveSwapped):
        assert os.path.lexists(failure.value.preserved / "prepared")
    for found in leftovers(scene.place.root / "quarantine"):
        assert complete(found.directory).status in ("complete", "swapped")
    assert contents(top) == after_attack


@pytest.mark.parametrize("step", STEPS[STEPS.index("verified") :])
@pytest.mark.parametrize("where", ["release", "releases"])
def test_an_empty_directory_where_the_archive_was_taken_from_is_seen(step: str, where: str, scene: Scene) -> None:
    path = WHERE[where](scene)

    def strike(name: str) -> None:
        if name == step:
            scene.take(path)
            (scene.place.root / "releases" / scene.place.version).mkdir(parents=True)

    with pytest.raises(ArchiveSwapped, match="is not what it was") as swapped:
        aside(scene.place, step=strike)
    assert sorted(os.listdir(swapped.value.preserved)) == ["prepared", "receipt.json"]


@pytest.mark.parametrize("step", [*LOOKED_AT_AGAIN, "verified"])
def test_a_manifest_that_is_replaced_meanwhile_is_seen(step: str, scene: Scene) -> None:
    manifest = scene.place.path / "release.json"

    def strike(name: str) -> None:
        if name == step:
            build(scene.place.root, commit=OLDER)

    with pytest.raises(LedgerError) as failure:
        aside(scene.place, step=strike)
    assert failure.value.code == ("archive-changed" if step in LOOKED_AT_AGAIN else "archive-swapped")
    assert manifest.exists() == (step in LOOKED_AT_AGAIN)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/etc/passwd")], ids=list("pdl"))
@pytest.mark.parametrize("step", [*LOOKED_AT_AGAIN, "verified", "moved"])
def test_a_manifest_that_becomes_something_else_is_seen(
    step: str, make: Callable[[Path], object], scene: Scene
) -> None:
    def strike(name: str) -> None:
        if name == step:
            (manifest,) = (scene.place.root).rglob("release.json")
            manifest.unlink()
            make(manifest)

    with pytest.raises(LedgerError) as failure:
        aside(scene.place, step=strike)
    before = ("archive-link", "archive-file-special")
    assert failure.value.code in (before if step in LOOKED_AT_AGAIN else ("archive-swapped",))


def test_what_was_swapped_in_the_last_instant_is_told_again_and_is_no_dead_end(scene: Scene) -> None:
    def strike(name: str) -> None:
        if name == "verified":
            scene.swap(scene.place.path, scene.twin.path)

    with pytest.raises(ArchiveSwapped) as swapped:
        aside(scene.place, step=strike)
    quarantine = scene.place.root / "quarantine"
    (found,) = leftovers(quarantine)
    assert (found.state, found.directory) == ("swapped", swapped.value.preserved)
    assert "another directory" in complete(found.directory).size_error
    assert leftovers(quarantine, recorded=[found.directory.name]) == ()
    build(scene.place.root)
    assert aside(scene.place).status == "complete"


def test_an_archive_in_the_quarantine_that_becomes_a_link_is_not_measured(scene: Scene) -> None:
    def strike(name: str) -> None:
        if name == "moved":
            (moved,) = (scene.place.root / "quarantine").rglob("prepared")
            scene.link(moved, scene.twin.path)

    with pytest.raises(ArchiveSwapped, match="is no directory"):
        aside(scene.place, step=strike)
    assert check_archive(scene.twin, commit=COMMIT)


def test_files_that_change_while_they_are_measured_are_in_no_way(scene: Scene) -> None:
    """A file that is gone, or a directory that becomes a link, in the middle of the walk."""
    victim = scene.attic / "victim"
    victim.mkdir()
    (victim / "large").write_bytes(b"x" * 5000)

    def strike(name: str) -> None:
        if name == "checked":
            (moved,) = (scene.place.root / "quarantine").rglob("prepared")
            scene.link(moved / "web", victim)
            scene.take(moved / "app.tgz")

    receipt = aside(scene.place, step=strike)
    assert receipt.size_bytes == (Path(receipt.to) / "release.json").stat().st_size
    assert everything(victim) == {"large": b"x" * 5000}


@pytest.mark.parametrize("where", WHERE)
def test_a_link_that_was_there_from_the_start_is_refused(where: str, scene: Scene) -> None:
    path = WHERE[where](scene)
    scene.link(path, scene.attic / path.name)
    before = everything(scene.place.root.parent)
    for ask in (lambda: examine(scene.place), lambda: check_archive(scene.place, commit=COMMIT)):
        with pytest.raises(Refusal) as refusal:
            ask()
        assert refusal.value.code == "archive-link"
    assert everything(scene.place.root.parent) == before


class TestQuarantineThatIsTamperedWith:
    """What somebody does in the quarantine is never believed."""

    @pytest.mark.parametrize(
        "receipt",
        [None, b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"status": "complete"}'],
        ids=["none", "empty", "cut off", "a list", "no fields", "deep", "few fields"],
    )
    def test_an_archive_without_a_receipt_that_can_be_read_is_told_and_kept(
        self, receipt: bytes | None, scene: Scene
    ) -> None:
        directory = Path(aside(scene.place).to).parent
        (directory / "receipt.json").unlink()
        if receipt is not None:
            (directory / "receipt.json").write_bytes(receipt)
        before = everything(directory)
        (found,) = leftovers(scene.place.root / "quarantine")
        assert (found.state, found.receipt) == ("unexplained", None)
        with pytest.raises(Refusal) as refusal:
            complete(found.directory)
        assert refusal.value.code == "quarantine-unexplained"
        assert everything(directory) == before

    def test_a_link_for_a_receipt_or_a_directory_is_not_followed(self, scene: Scene) -> None:
        quarantine = scene.place.root / "quarantine"
        directory = Path(aside(scene.place).to).parent
        scene.link(directory / "receipt.json", scene.attic / "receipt.json")
        (found,) = leftovers(quarantine)
        assert found.state == "unexplained"
        scene.link(directory, scene.attic / directory.name)
        assert leftovers(quarantine) == ()
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            complete(directory)

    def test_what_is_none_of_ours_in_the_quarantine_is_left_alone(self, scene: Scene) -> None:
        quarantine = scene.place.root / "quarantine"
        aside(scene.place)
        (quarantine / "notes.txt").write_text("of a person")
        (quarantine / "ledger-1").mkdir()
        (quarantine / ".quarantine-file").write_text("")
        assert len(leftovers(quarantine)) == 1
