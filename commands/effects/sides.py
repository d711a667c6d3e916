"""The two sides of a gate, made ready on this machine: a worktree, what `prepare` installs, the runner in it."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from commands.config.settings import RunnerSettings
from commands.effects import processes, worktrees
from commands.effects.environment import child_environment, recorded_environment
from commands.effects.git import Git
from commands.effects.prepare import find_python, prepare_side
from commands.effects.targets.guard import TreeGuard
from commands.runners.api import Answer, Circumstances, EvidenceKey, Ground, Launch, ReadyRunner, Runner, lock_digest
from ledger.errors import LedgerError
from ledger.values import SIDES, Commit, Side

HELPER_LIMIT_SECONDS = 120.0


class ReadySide(Struct, frozen=True, kw_only=True):
    """One side, ready to run: where its files are, and what runs them."""

    side: Side
    commit: Commit
    tree_id: str
    tree: Path
    runner: ReadyRunner


class Workplace:
    """Makes sides ready when they are first needed, and removes their worktrees at the end."""

    def __init__(
        self,
        git: Git,
        settings: RunnerSettings,
        runner: Runner,
        root: Path,
        ledger_id: str,
        run: str,
        commits: dict[Side, Commit],
    ) -> None:
        self._git, self._settings, self._runner, self._root = git, settings, runner, root
        self._owner = worktrees.Owner.here(ledger_id, run)
        self._run, self._commits = run, commits
        self._ready: dict[Side, ReadySide] = {}

    @property
    def directory(self) -> Path:
        """Where everything of this run goes."""
        return self._root / self._run

    def side(self, side: Side) -> ReadySide:
        """The side, made ready if it is not yet. Raises LedgerError with the reason why it cannot be."""
        if side not in self._ready:
            self._ready[side] = self._prepare(side)
        return self._ready[side]

    def tree(self, side: Side) -> Path:
        """Where the worktree of a side is, or will be."""
        return worktrees.side_directory(self._root, self._run, side)

    def guard(self, side: Side) -> TreeGuard:
        """What watches over the worktree of a side."""
        return TreeGuard(
            git_directory=self._git.common_directory,
            tree=self.tree(side),
            commit=self._commits[side],
            state=self.directory / f"guard-{side}",
            may_change=self._settings.changeable,
        )

    def environment(self, ready: ReadySide, attempt_directory: Path, launch: Launch) -> dict[str, str]:
        """The environment of the tests of one attempt; its private directories are made."""
        home, temporary = attempt_directory / "home", attempt_directory / "tmp"
        for directory in (attempt_directory, home, temporary):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return child_environment(
            os.environ,
            self._settings,
            tree=ready.tree,
            checkout=self._git.toplevel,
            home=home,
            temporary=temporary,
            import_paths=launch.import_paths,
            extra=launch.environment,
        )

    def evidence_key(
        self,
        ready: ReadySide,
        launch: Launch,
        environment: dict[str, str],
        attempt_directory: Path,
        memory_limit_bytes: int,
    ) -> EvidenceKey:
        """What a result of this side counts for."""
        recorded = recorded_environment(
            environment,
            tree=ready.tree,
            home=attempt_directory / "home",
            temporary=attempt_directory / "tmp",
        )
        files = (ready.tree / name for name in self._settings.lock)
        locks = {str(file.relative_to(ready.tree)): file.read_bytes() for file in files if file.is_file()}
        circumstances = Circumstances(
            tree_id=ready.tree_id,
            lock=lock_digest(locks),
            environment=recorded,
            memory_limit_bytes=memory_limit_bytes,
        )
        return ready.runner.evidence_key(launch, circumstances)

    def remove(self) -> str:
        """Take the worktrees and attempt directories of this run away; everything that counts is evidence by now.

        Returns what could not be removed, "" if all could: a verdict never depends on the tidying after it.
        """
        try:
            for side in SIDES:
                worktrees.remove(self._git, self._root, self.tree(side))
            worktrees.delete_tree(self.directory)
        except (LedgerError, OSError) as failure:
            return f"{self.directory} could not be removed: {failure}"
        return ""

    def reap(self, drives: Callable[[str], bool]) -> worktrees.Reaped:
        """Remove the worktrees that dead runs of this ledger left; `drives` says whether a run has a living driver."""
        return worktrees.reap(self._git, self._root, lambda owner: drives(owner.run), time.time())

    def _prepare(self, side: Side) -> ReadySide:
        commit, guard = self._commits[side], self.guard(side)
        tree = worktrees.add(self._git, self._root, self.tree(side), commit, self._owner).path
        if guard.is_set:
            # An earlier driver's tests may have left anything in it.
            guard.restore()
        tree_id = self._git.tree_id(commit)
        hands = _Hands(tree, side, self._git.toplevel, self._plain_environment)
        ground = Ground(
            side=side,
            tree=tree,
            other_tree=self.tree(SIDES[1 - SIDES.index(side)]),
            checkout=self._git.toplevel,
            work=self._root,
            cache=self._cache(side, tree, tree_id, hands),
            tracked=tuple(sorted(self._git.blobs(commit))),
        )
        runner = self._runner.make_ready(ground, hands)
        if not guard.is_set:
            guard.remember()
        return ReadySide(side=side, commit=commit, tree_id=tree_id, tree=tree, runner=runner)

    def _cache(self, side: Side, tree: Path, tree_id: str, hands: "_Hands") -> Path:
        """The prepared directory of the side; an empty one that is shared by all when nothing is to be prepared."""
        cache_root = self._root / "prepared"
        if not self._settings.prepare:
            return cache_root
        prepared = prepare_side(
            self._settings,
            tree=tree,
            tree_id=tree_id,
            cache_root=cache_root,
            version=self._runner.prepare_version(hands, cache_root),
            environment=self._plain_environment(tree, f"prepare-{side}"),
            owner={"run": self._run, "pid": os.getpid(), "host": self._owner.host},
        )
        return prepared.cache

    def _plain_environment(self, tree: Path, name: str) -> dict[str, str]:
        """The environment of programs that prepare a side; tests have their own."""
        home, temporary = self.directory / name / "home", self.directory / name / "tmp"
        for directory in (home, temporary):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return child_environment(
            os.environ,
            self._settings,
            tree=tree,
            checkout=self._git.toplevel,
            home=home,
            temporary=temporary,
            import_paths=(),
            extra={},
        )


class _Hands:
    """What the runner may do in the worktree of a side."""

    def __init__(
        self, tree: Path, side: Side, checkout: Path, environment: Callable[[Path, str], dict[str, str]]
    ) -> None:
        self._tree, self._side, self._checkout, self._environment = tree, side, checkout, environment

    def find_python(self, settings: RunnerSettings, cache: Path) -> Path:
        """The interpreter that these settings name or lead to. Raises PythonMissing."""
        return find_python(settings, tree=self._tree, cache=cache, checkout=self._checkout, parent=os.environ).path

    def ask(self, argv: Sequence[str], purpose: str) -> Answer:
        """Run a short helper program to its end. Raises OSError and subprocess.TimeoutExpired."""
        environment = self._environment(self._tree, f"{purpose}-{self._side}")
        ended = processes.run(argv, directory=self._tree, environment=environment, timeout_seconds=HELPER_LIMIT_SECONDS)
        return Answer(*ended)
