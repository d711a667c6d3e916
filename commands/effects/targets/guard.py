"""Watches over the worktree of a side: what tests leave in it must not reach the tests after them.

Git tells what is different, by an index of our own, so that nothing counts that tests do to the index or the branches
of the worktree. How the tree was when it had been made ready is kept in a file, so that a later driver knows it too.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from commands.effects import processes
from commands.effects.git import GitFailed, git_environment
from ledger.values import Commit

_LIMIT_SECONDS = 120.0
_COMPILED = "__pycache__"
_AT_ONCE = 200
"""So many paths fit on any command line."""


class _Remembered(Struct, frozen=True):
    """The tracked files that were not those of the commit, with the digests of their bytes, and the other files."""

    changed: dict[str, str]
    others: frozenset[str]


class TreeGuard(NamedTuple):
    """The guard of one worktree of a commit; `git_directory` is that of the repository, `state` a directory of ours.

    `may_change` are globs, as git understands them, of tracked files that tests may change. Nobody is told of such a
    change, but it is taken back as every other is.
    """

    git_directory: Path
    tree: Path
    commit: Commit
    state: Path
    may_change: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether it is known how the tree has to be."""
        return self._file.exists()

    @property
    def _file(self) -> Path:
        return self.state / "tree.json"

    def remember(self) -> None:
        """Take the tree as it is now for how it has to be. Raises GitFailed."""
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._git("read-tree", self.commit)
        changed = {path: _digest(self.tree / path) for path in self._changed()}
        remembered = _Remembered(changed, frozenset(self._others()))
        temporary = self._file.with_suffix(".new")
        # In ASCII, because names may be bytes that are no text.
        temporary.write_text(json.dumps(msgspec.to_builtins(remembered)), "ascii")
        temporary.replace(self._file)

    def changes(self) -> tuple[str, ...]:
        """The tracked files that tests must not change and that are not as they have to be, in byte order.

        Raises GitFailed.
        """
        differing = self._differing(self._remembered())
        return tuple(sorted(differing - self._changeable() if differing else differing))

    def restore(self) -> None:
        """Bring the tree back to how it has to be; what cannot be brought back shows in `changes`. Raises GitFailed.

        Files that tests have made go away. What an interpreter compiled stays, unless tracked files had been changed.
        """
        remembered = self._remembered()
        differing = self._differing(remembered)
        self._put_back(differing - remembered.changed.keys())
        for path in set(self._others()) - remembered.others:
            if differing or _COMPILED not in path.split("/"):
                _remove(self.tree, path)
        self._require_put_back(differing)

    def put_back(self) -> None:
        """Bring only those files back that tests may change, for tests that start while others run in the tree: what a
        test has written must not let it pass when it is run again. Raises GitFailed when that cannot be done."""
        if self.may_change:
            changed = self._differing(self._remembered()) & self._changeable()
            self._put_back(changed)
            self._require_put_back(changed)

    def _put_back(self, paths: Iterable[str]) -> None:
        ours = sorted(paths)
        for path in ours:
            _remove(self.tree, path)
        for start in range(0, len(ours), _AT_ONCE):
            self._git("checkout-index", "--force", "--", *ours[start : start + _AT_ONCE])

    def _require_put_back(self, changed: Iterable[str]) -> None:
        """Nobody is told later of a file that tests may change, so it is looked at before they begin."""
        left = self._changeable().intersection(changed)
        if left and (left := left & self._differing(self._remembered())):
            raise GitFailed(f"{min(left)!r} cannot be brought back to its commit", "look at its permissions")

    def _differing(self, remembered: _Remembered) -> set[str]:
        """The tracked files that are not as they have to be, whether tests may change them or not."""
        known, now = remembered.changed, {path: _digest(self.tree / path) for path in self._changed()}
        return {path for path in now.keys() | known.keys() if now.get(path) != known.get(path)}

    def _changeable(self) -> set[str]:
        """The tracked files that tests may change. What had been changed before they began cannot be brought back."""
        if not self.may_change:
            return set()
        globs = (f":(glob){pattern}" for pattern in self.may_change)
        return set(self._names("ls-files", "--cached", "-z", "--", *globs)) - self._remembered().changed.keys()

    def _remembered(self) -> _Remembered:
        return msgspec.convert(json.loads(self._file.read_bytes()), _Remembered)

    def _changed(self) -> list[str]:
        # It finds that some files differ, which is no failure.
        self._git("update-index", "-q", "--refresh", accepted=(0, 1))
        return self._names("diff-files", "--name-only", "-z", "--ignore-submodules=all")

    def _others(self) -> list[str]:
        return self._names("ls-files", "--others", "-z")

    def _names(self, *arguments: str) -> list[str]:
        return [os.fsdecode(name) for name in self._git(*arguments).split(b"\0") if name]

    def _git(self, *arguments: str, accepted: tuple[int, ...] = (0,)) -> bytes:
        argv = ("git", f"--git-dir={self.git_directory}", f"--work-tree={self.tree}", "-c", "core.quotePath=false")
        environment = git_environment(os.environ) | {"GIT_INDEX_FILE": str(self.state / "index")}
        try:
            ended = processes.run(
                (*argv, *arguments),
                directory=self.tree,
                environment=environment,
                timeout_seconds=_LIMIT_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise GitFailed(f"the files of {self.tree} cannot be looked at: {failure}", "is it there?") from failure
        if ended.returncode not in accepted:
            said = ended.stderr.decode("utf-8", "replace").strip()[:300]
            raise GitFailed(f"`git {arguments[0]}` failed in {self.tree}: {said}", "check the repository and the disk")
        return ended.stdout


def _digest(path: Path) -> str:
    """What identifies the content of a file, or where a link leads; "" when there is none."""
    try:
        content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
    except OSError:
        return ""
    return sha256(content).hexdigest()


def _remove(tree: Path, path: str) -> None:
    """Delete what is at a path of the tree, as far as that is possible: a file, a link or a directory.

    Where tests have put a link or a file in the place of a directory above it, that is what goes: behind a link lie the
    files of other people.
    """
    place = tree
    for part in path.split("/"):
        place /= part
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            return
    shutil.rmtree(place, ignore_errors=True)
