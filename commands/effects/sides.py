"""The two sides of a gate, made ready on this machine: a worktree, what `prepare` installs, an interpreter, a probe."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from commands.config.settings import RunnerSettings
from commands.effects import processes, worktrees
from commands.effects.environment import child_environment, recorded_environment
from commands.effects.git import Git
from commands.effects.prepare import find_python, prepare_side
from commands.runners import pytest as adapter
from ledger.errors import LedgerError
from ledger.values import SIDES, Commit, Digest, Side

PROBE_LIMIT_SECONDS = 120.0


class ProbeFailed(LedgerError):
    """The project's interpreter could not say what it is."""

    code = "probe-failed"
    exit_code = 3


class PytestMissing(LedgerError):
    """The project's interpreter has no pytest."""

    code = "pytest-missing"
    exit_code = 3


class ReadySide(Struct, frozen=True, kw_only=True):
    """One side, ready to run: where its files are, what runs them, and what identifies the circumstances."""

    side: Side
    commit: Commit
    tree_id: str
    tree: Path
    python: Path
    probe: adapter.Probe
    import_paths: tuple[str, ...]
    first_party: tuple[str, ...]
    cache: Path


class Workplace:
    """Makes sides ready when they are first needed, and removes their worktrees at the end."""

    def __init__(
        self,
        git: Git,
        settings: RunnerSettings,
        root: Path,
        ledger_id: str,
        run: str,
        commits: dict[Side, Commit],
    ) -> None:
        self._git, self._settings, self._root = git, settings, root
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

    def environment(self, ready: ReadySide, attempt_directory: Path) -> dict[str, str]:
        """The environment of the tests of one attempt; its private directories are made."""
        home, temporary = attempt_directory / "home", attempt_directory / "tmp"
        for directory in (attempt_directory, home, temporary):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        other = SIDES[1 - SIDES.index(ready.side)]
        return child_environment(
            os.environ,
            self._settings,
            tree=ready.tree,
            checkout=self._git.toplevel,
            home=home,
            temporary=temporary,
            import_paths=(*ready.import_paths, str(adapter.PLUGIN_DIRECTORY)),
            extra=adapter.plugin_environment(
                record_directory=attempt_directory,
                tree=ready.tree,
                checkout=self._git.toplevel,
                other_tree=worktrees.side_directory(self._root, self._run, other),
                first_party=ready.first_party,
            ),
        )

    def evidence_key(
        self,
        ready: ReadySide,
        command: tuple[str, ...],
        environment: dict[str, str],
        attempt_directory: Path,
        memory_limit_bytes: int,
    ) -> adapter.EvidenceKey:
        """What a result of this side counts for."""
        recorded = recorded_environment(
            environment, tree=ready.tree, home=attempt_directory / "home", temporary=attempt_directory / "tmp"
        )
        lock = self._lock_digest(ready)
        return adapter.evidence_key(ready.tree_id, ready.probe, command, lock, recorded, memory_limit_bytes)

    def remove(self) -> str:
        """Take the worktrees and attempt directories of this run away; everything that counts is evidence by now.

        Returns what could not be removed, "" if all could: a verdict never depends on the tidying after it.
        """
        try:
            for side in SIDES:
                worktrees.remove(self._git, self._root, worktrees.side_directory(self._root, self._run, side))
            worktrees.delete_tree(self.directory)
        except (LedgerError, OSError) as failure:
            return f"{self.directory} could not be removed: {failure}"
        return ""

    def reap(self, drives: Callable[[str], bool]) -> worktrees.Reaped:
        """Remove the worktrees that dead runs of this ledger left; `drives` says whether a run has a living driver."""
        return worktrees.reap(self._git, self._root, lambda owner: drives(owner.run), time.time())

    def _prepare(self, side: Side) -> ReadySide:
        commit = self._commits[side]
        tree = worktrees.add(
            self._git, self._root, worktrees.side_directory(self._root, self._run, side), commit, self._owner
        ).path
        tree_id = self._git.tree_id(commit)
        cache = self._cache(side, tree, tree_id)
        python = find_python(
            self._settings, tree=tree, cache=cache, checkout=self._git.toplevel, parent=os.environ
        ).path
        probe = self._probe(side, python, tree)
        if not probe.pytest:
            raise PytestMissing(
                f"the interpreter {python} of the {side} cannot import pytest",
                "install pytest there, let `prepare` do it, or name another interpreter with `python` in [runner]",
            )
        tracked = sorted(self._git.blobs(commit))
        return ReadySide(
            side=side,
            commit=commit,
            tree_id=tree_id,
            tree=tree,
            python=python,
            probe=probe,
            import_paths=adapter.import_paths(self._settings, tracked, probe, self._git.toplevel),
            first_party=self._settings.first_party or self._first_party(tracked, probe, tree),
            cache=cache,
        )

    def _first_party(self, tracked: list[str], probe: adapter.Probe, tree: Path) -> tuple[str, ...]:
        by_tree = not self._settings.lock
        copied = adapter.copied_names(probe, self._git.toplevel, tree, self._root, by_tree=by_tree)
        return tuple(sorted({*adapter.first_party_names(tracked), *copied}))

    def _cache(self, side: Side, tree: Path, tree_id: str) -> Path:
        """The prepared directory of the side; an empty one that is shared by all when nothing is to be prepared."""
        cache_root = self._root / "prepared"
        if not self._settings.prepare:
            return cache_root
        environment = self._plain_environment(tree, f"prepare-{side}")
        base = find_python(
            RunnerSettings(), tree=tree, cache=cache_root, checkout=self._git.toplevel, parent=os.environ
        )
        version = processes.run(
            (str(base.path), "--version"),
            directory=tree,
            environment=environment,
            timeout_seconds=PROBE_LIMIT_SECONDS,
        )
        prepared = prepare_side(
            self._settings,
            tree=tree,
            tree_id=tree_id,
            cache_root=cache_root,
            python_version=version.stdout.decode("utf-8", "replace").strip(),
            environment=environment,
            owner={"run": self._run, "pid": os.getpid(), "host": self._owner.host},
        )
        return prepared.cache

    def _probe(self, side: Side, python: Path, tree: Path) -> adapter.Probe:
        argv = (str(python), str(adapter.PROBE))
        environment = self._plain_environment(tree, f"probe-{side}")
        try:
            answer = processes.run(argv, directory=tree, environment=environment, timeout_seconds=PROBE_LIMIT_SECONDS)
            return msgspec.json.decode(answer.stdout, type=adapter.Probe)
        except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError) as error:
            raise ProbeFailed(
                f"the interpreter {python} of the {side} could not be asked what it is: {error}",
                "does it run? `python` in [runner] names another one",
            ) from error

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

    def _lock_digest(self, ready: ReadySide) -> Digest:
        return adapter.lock_digest(
            {name: (ready.tree / name).read_bytes() for name in self._settings.lock if (ready.tree / name).is_file()}
        )
