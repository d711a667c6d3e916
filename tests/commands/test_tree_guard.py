"""The guard of a worktree: whatever is done to the tree, what differs from its commit is seen, and taken back."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from commands.effects.git import Git, GitFailed
from commands.effects.targets.guard import TreeGuard
from tests.commands.conftest import Repository

FILES: dict[str, str | bytes] = {
    "a.txt": "one\n",
    "dir/b.txt": "two\n",
    "sp ace/ü\n.txt": b"\x00\xff",
    "run.sh": "#!/bin/sh\n",
}


@pytest.fixture
def guard(make_repository: Callable[[str], Repository], tmp_path: Path) -> TreeGuard:
    """The guard of a worktree that is as its commit has it, with a file that was prepared, and one that was changed."""
    repository = make_repository("project")
    repository.write(".gitignore", "*.pyc\nbuilt/\n")
    commit = repository.commit({**FILES, "version.txt": "unknown\n"})
    tree = tmp_path / "tree"
    repository.git("worktree", "add", "--quiet", "--detach", str(tree), commit)
    (tree / "built").mkdir()
    (tree / "built" / "lib.so").write_text("built")
    (tree / "version.txt").write_text("1.0\n")
    made = TreeGuard(Git(repository.path).common_directory, tree, commit, tmp_path / "state")
    made.remember()
    return made


def content(tree: Path) -> dict[str, bytes]:
    """Every file of the tree but git's own."""
    files = (path for path in sorted(tree.rglob("*")) if path.is_file() and path.name != ".git")
    return {str(path.relative_to(tree)): path.read_bytes() for path in files}


def test_a_tree_that_nobody_touched_has_no_changes_and_nothing_is_taken_back(guard: TreeGuard) -> None:
    before = content(guard.tree)
    assert guard.changes() == ()
    guard.restore()
    assert content(guard.tree) == before


TAMPERINGS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "other content": (lambda tree: (tree / "a.txt").write_text("two\n"), ("a.txt",)),
    "same length": (lambda tree: (tree / "a.txt").write_text("ONE\n"), ("a.txt",)),
    "deleted": (lambda tree: (tree / "dir" / "b.txt").unlink(), ("dir/b.txt",)),
    "a directory is gone": (lambda tree: shutil.rmtree(tree / "dir"), ("dir/b.txt",)),
    "an odd name": (lambda tree: (tree / "sp ace" / "ü\n.txt").write_text(""), ("sp ace/ü\n.txt",)),
    "executable": (lambda tree: (tree / "run.sh").chmod(0o755), ("run.sh",)),
    "a link": (lambda tree: ((tree / "a.txt").unlink(), (tree / "a.txt").symlink_to("dir/b.txt")), ("a.txt",)),
    "a directory in its place": (lambda tree: ((tree / "a.txt").unlink(), (tree / "a.txt").mkdir()), ("a.txt",)),
    "committed": (
        lambda tree: ((tree / "a.txt").write_text("x"), os.system(f"git -C '{tree}' commit -qam changed")),
        ("a.txt",),
    ),
    "hidden in the index": (
        lambda tree: (
            os.system(f"git -C '{tree}' update-index --assume-unchanged a.txt"), (tree / "a.txt").write_text("x"),
        ),
        ("a.txt",),
    ),
    "git is gone": (lambda tree: ((tree / ".git").unlink(), (tree / "a.txt").write_text("x")), ("a.txt",)),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERINGS)
def test_every_change_of_a_tracked_file_is_seen_and_taken_back(guard: TreeGuard, how: str) -> None:
    before = content(guard.tree)
    tamper, expected = TAMPERINGS[how]
    tamper(guard.tree)
    assert guard.changes() == expected
    guard.restore()
    assert guard.changes() == ()
    assert content(guard.tree) == before


def test_a_file_that_was_written_anew_as_it_was_is_no_change(guard: TreeGuard) -> None:
    (guard.tree / "a.txt").write_text("one\n")
    os.utime(guard.tree / "a.txt", (1, 1))
    assert guard.changes() == ()


def test_what_tests_have_made_goes_away_and_what_was_prepared_stays(guard: TreeGuard) -> None:
    before = content(guard.tree)
    for name in ("new.txt", "dir/new.txt", "deep/er/new.txt", "built/new.so", "x.pyc", "__pycache__/kept.pyc"):
        (guard.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (guard.tree / name).write_text("new")
    os.system(f"git init -q '{guard.tree / 'nested'}'")
    (guard.tree / "nested" / "file").write_text("new")
    assert guard.changes() == ()
    guard.restore()
    left = content(guard.tree)
    assert left.pop("__pycache__/kept.pyc") == b"new"
    assert left == before


def test_what_was_compiled_goes_away_when_its_source_may_have_been_another(guard: TreeGuard) -> None:
    (guard.tree / "__pycache__").mkdir()
    (guard.tree / "__pycache__" / "a.pyc").write_text("of another source")
    (guard.tree / "a.txt").write_text("another")
    guard.restore()
    assert not (guard.tree / "__pycache__" / "a.pyc").exists()


def test_what_preparing_had_changed_is_known_and_a_change_of_it_is_seen_for_good(guard: TreeGuard) -> None:
    (guard.tree / "version.txt").write_text("2.0\n")
    assert guard.changes() == ("version.txt",)
    guard.restore()
    assert guard.changes() == ("version.txt",)
    (guard.tree / "version.txt").write_text("1.0\n")
    assert guard.changes() == ()


def test_names_that_are_no_text_are_seen_and_taken_back_like_others(guard: TreeGuard) -> None:
    left = guard.tree / os.fsdecode(b"left\xff")
    left.write_text("prepared")
    guard.remember()
    made = guard.tree / os.fsdecode(b"made\xfe")
    made.write_text("new")
    guard.restore()
    assert (left.exists(), made.exists()) == (True, False)


def test_a_later_driver_knows_how_the_tree_has_to_be(guard: TreeGuard) -> None:
    (guard.tree / "a.txt").write_text("changed")
    later = TreeGuard(guard.git_directory, guard.tree, guard.commit, guard.state)
    assert later.is_set
    assert later.changes() == ("a.txt",)


def test_a_tree_that_is_gone_is_no_tree_without_changes(guard: TreeGuard) -> None:
    shutil.rmtree(guard.tree)
    with pytest.raises(GitFailed):
        guard.changes()


def test_files_that_tests_may_change_are_not_told_and_still_taken_back(guard: TreeGuard) -> None:
    lenient, before = guard._replace(may_change=("dir/**", "*.sh")), content(guard.tree)
    (guard.tree / "dir" / "b.txt").write_text("new")
    (guard.tree / "run.sh").unlink()
    assert guard.changes() == ("dir/b.txt", "run.sh")
    assert lenient.changes() == ()
    (guard.tree / "a.txt").write_text("new")
    assert lenient.changes() == ("a.txt",)
    lenient.restore()
    assert content(guard.tree) == before
    assert guard.changes() == ()


def test_while_other_tests_run_only_what_they_may_change_is_taken_back(guard: TreeGuard) -> None:
    lenient = guard._replace(may_change=("dir/b.txt",))
    for name in ("dir/b.txt", "a.txt", "untracked.txt"):
        (guard.tree / name).write_text("new")
    lenient.put_back()
    assert (guard.tree / "dir" / "b.txt").read_text() == FILES["dir/b.txt"]
    assert (guard.tree / "a.txt").read_text() == (guard.tree / "untracked.txt").read_text() == "new"
    guard.put_back()
    assert guard.changes() == ("a.txt",)


def test_what_was_changed_before_the_tests_began_stays_guarded(guard: TreeGuard) -> None:
    lenient = guard._replace(may_change=("**",))
    (guard.tree / "version.txt").write_text("2.0\n")
    assert lenient.changes() == ("version.txt",)


def test_a_file_that_is_written_again_while_it_is_taken_back_is_told_before_tests_begin(guard: TreeGuard) -> None:
    class Disturbed(TreeGuard):
        def _put_back(self, paths: Iterable[str]) -> None:
            super()._put_back(paths)
            (self.tree / "dir" / "b.txt").write_text("again")

    disturbed = Disturbed(*guard._replace(may_change=("dir/*",)))
    (guard.tree / "dir" / "b.txt").write_text("new")
    for bring_back in (disturbed.put_back, disturbed.restore):
        with pytest.raises(GitFailed, match=r"dir/b\.txt"):
            bring_back()


def test_what_lies_behind_a_link_that_tests_made_is_left_alone(guard: TreeGuard, tmp_path: Path) -> None:
    before, outside = content(guard.tree), tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("precious")
    shutil.rmtree(guard.tree / "dir")
    (guard.tree / "dir").symlink_to(outside)
    assert guard.changes() == ("dir/b.txt",)
    guard.restore()
    assert content(guard.tree) == before
    assert (outside / "b.txt").read_text() == "precious"


def test_a_file_in_the_place_of_a_directory_is_taken_away(guard: TreeGuard) -> None:
    before = content(guard.tree)
    shutil.rmtree(guard.tree / "dir")
    (guard.tree / "dir").write_text("no directory")
    guard.restore()
    assert content(guard.tree) == before
