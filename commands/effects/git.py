"""Reads the repository through the `git` program, 2.33 or newer. Nothing here changes the repository."""

import os
import subprocess
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from commands.effects import processes
from commands.effects.versions import parse_version
from ledger.errors import LedgerError
from ledger.values import Commit

# Hooks, maintenance and the file monitor are other programs that git would start in the user's name.
_OPTIONS = (
    "--no-pager", "--literal-pathspecs",
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false",
)  # fmt: skip

# Where git finds its configuration is the user's business; everything else named GIT_* could point it at
# another repository, index or object store, as happens when this program is started from a hook or an alias.
_KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")


class GitFailed(LedgerError):
    """git did not answer: its error is no answer about what the repository holds."""

    code = "git-failed"
    exit_code = 4


class NotARepository(LedgerError):
    """The directory is not in the checkout of a git repository."""

    code = "no-repository"
    exit_code = 2


class RefUnknown(LedgerError):
    """The repository has no commit of that name."""

    code = "ref-unknown"
    exit_code = 2


class Shallow(LedgerError):
    """The answer lies in history that this shallow clone does not have."""

    code = "shallow"
    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(message, "run `git fetch --unshallow --tags`, or name another commit or baseline")


class NoBaseline(LedgerError):
    """There is nothing to compare the commit with."""

    code = "no-baseline"
    exit_code = 2


class Baseline(NamedTuple):
    """What a candidate is compared with, under which name, and by which rule it was chosen."""

    commit: Commit
    ref: str
    reason: str


class Blob(NamedTuple):
    """A file in a commit: `mode` in octal (`100755`; `160000` is a submodule), `oid` names its content."""

    mode: str
    oid: str


class DirtyPaths(NamedTuple):
    """What no commit holds: the first of the changed and untracked paths, and how many there are in all."""

    paths: tuple[str, ...]
    total: int


class Git:
    """The repository that a directory belongs to. Every method may raise GitFailed."""

    def __init__(self, directory: Path, timeout_seconds: float = 120.0) -> None:
        self.directory = directory
        self.timeout_seconds = timeout_seconds

    @classmethod
    def discover(cls, path: Path) -> "Git":
        """The repository whose checkout holds this directory, seen from the top of that checkout.

        Raises NotARepository: also for a bare repository and for one that git does not trust.
        """
        try:
            answer = cls(path).run(
                "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", accepted=(0, 128)
            )
        except GitFailed as failure:
            raise NotARepository(f"{path} cannot be read: {failure.message}", failure.hint) from failure
        if answer.returncode:
            reason = said(answer.stderr)
            if "dubious ownership" in reason:
                hint = f"if you trust it: git config --global --add safe.directory {path}"
            else:
                hint = "change to a checkout of your project, or make one with `git init`"
            raise NotARepository(f"{path} is in no checkout of a git repository; git said: {reason}", hint)
        if answer.stdout.count(b"\n") != 2:
            # With a newline in a directory's name only a single answer can be read.
            return cls(_path(cls(path).run("rev-parse", "--show-toplevel").stdout))
        toplevel, common_directory, _ = answer.stdout.split(b"\n")
        git = cls(_path(toplevel))
        git.toplevel, git.common_directory = git.directory, _path(common_directory)
        return git

    @cached_property
    def toplevel(self) -> Path:
        """The top of this checkout."""
        return _path(self.run("rev-parse", "--show-toplevel").stdout)

    @cached_property
    def common_directory(self) -> Path:
        """The repository's own directory, which all of its worktrees share; absolute."""
        return _path(self.run("rev-parse", "--path-format=absolute", "--git-common-dir").stdout)

    def resolve(self, ref: str) -> Commit:
        """The full id of the commit that a name stands for. Raises RefUnknown, in a shallow clone Shallow."""
        argv = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        answer = None if "\0" in ref else self.run(*argv, accepted=(0, 1))
        if answer and answer.returncode == 0:
            return answer.stdout.decode("ascii").strip()
        if self.is_shallow():
            raise Shallow(f"{ref!r} names no commit of this repository, which is a shallow clone")
        raise RefUnknown(
            f"{ref!r} names no commit of this repository",
            "see `git log --oneline` and `git tag`; a name known only to the remote has to be fetched first",
        )

    def is_shallow(self) -> bool:
        """Whether the history was cut off when it was cloned or fetched."""
        return self.run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"

    def root_commit(self) -> Commit | None:
        """Where the first-parent line of HEAD begins; None without any commit, and in a shallow clone."""
        unborn = self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", accepted=(0, 1)).returncode
        if unborn or self.is_shallow():
            return None
        roots = self.run("rev-list", "--first-parent", "--max-parents=0", "HEAD").stdout
        return roots.decode("ascii").strip()

    def dirty_paths(self, limit: int = 20) -> DirtyPaths:
        """The paths with changes that are not committed, and those that git neither tracks nor ignores."""
        argv = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
        entries = [os.fsdecode(entry[3:]) for entry in self.run(*argv).stdout.split(b"\0") if entry]
        return DirtyPaths(tuple(entries[:limit]), len(entries))

    def parents(self, commit: Commit) -> tuple[Commit, ...]:
        """The parents of a commit, the first one first; without those that a shallow clone cut off."""
        line = self.run("rev-list", "--max-count=1", "--parents", "--end-of-options", commit).stdout
        return tuple(line.decode("ascii").split()[1:])

    def tree_id(self, commit: Commit) -> str:
        """The id of everything that a commit holds: equal for commits that differ in history only."""
        argv = ("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        return self.run(*argv).stdout.decode("ascii").strip()

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        """Whether `newer` is `older` or descends from it. Raises Shallow when missing history might tell."""
        descends = self.run("merge-base", "--is-ancestor", older, newer, accepted=(0, 1)).returncode == 0
        if not descends and self.is_shallow():
            raise Shallow(f"no path from {newer[:12]} to {older[:12]} is in this shallow clone")
        return descends

    def blobs(self, commit: Commit, paths: Collection[str] | None = None) -> dict[str, Blob]:
        """Every file of a commit by its path from the top, or those of `paths` that it has.

        A path that was asked for and is not in the answer is proven absent: not to find out raises GitFailed.
        """
        listing = self.run("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit).stdout
        wanted = None if paths is None else set(paths)
        found = {}
        for entry in listing.split(b"\0")[:-1]:
            header, _, name = entry.partition(b"\t")
            path = os.fsdecode(name)
            if wanted is None or path in wanted:
                mode, _, oid = header.decode("ascii").split(" ")
                found[path] = Blob(mode, oid)
        return found

    def file(self, commit: Commit, path: str) -> bytes | None:
        """The content of a file of a commit; None when it has no such file."""
        blob = self.blobs(commit, [path]).get(path)
        return None if blob is None else self.run("cat-file", "blob", blob.oid).stdout

    def version_tags(self, commit: Commit) -> list[str]:
        """The tags that look like versions on the ancestors of a commit, not on itself; the highest first."""
        merged = [f"--merged={parent}" for parent in self.parents(commit)]
        if not merged:
            return []
        listing = self.run("for-each-ref", *merged, "--format=%(refname:strip=2)", "refs/tags").stdout
        # Tag names may hold what Unicode counts as the end of a line, but never a newline.
        versions = [(parse_version(tag), tag) for tag in os.fsdecode(listing).split("\n")]
        return [tag for version, tag in sorted(((v, t) for v, t in versions if v is not None), reverse=True)]

    def all_version_tags(self) -> frozenset[str]:
        """Every tag that looks like a version, wherever it is."""
        listing = self.run("for-each-ref", "--format=%(refname:strip=2)", "refs/tags").stdout
        return frozenset(tag for tag in os.fsdecode(listing).split("\n") if parse_version(tag) is not None)

    def choose_baseline(self, commit: Commit, published: str | None) -> Baseline:
        """What to compare a commit with: the last published release, else the highest version, else a parent.

        `published` names the commit of the ledger's last release, None when there is none. Raises NoBaseline
        for a first commit, RefUnknown for a release that is gone, and Shallow when history is missing.
        """
        if published is not None and (released := self.resolve(published)) != commit:
            return Baseline(released, published, "last published release")
        if tags := self.version_tags(commit):
            return Baseline(self.resolve(f"refs/tags/{tags[0]}"), tags[0], "highest version tag")
        if self.is_shallow():
            # The parent may be there, but so may an unseen release between it and the first commit.
            raise Shallow(f"no earlier version is known for {commit[:12]}: this is a shallow clone")
        if parents := self.parents(commit):
            return Baseline(parents[0], f"{commit[:12]}^", "parent commit")
        raise NoBaseline(
            f"{commit[:12]} is the first commit of its history: there is nothing to compare it with",
            "commit a change first, or name a baseline with `--baseline REF`",
        )

    def run(
        self,
        *arguments: str,
        accepted: Collection[int] = (0,),
        timeout_seconds: float | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> processes.Completed:
        """Run one git command. Raises GitFailed unless its exit code is one of `accepted`.

        `extra` are variables that this command needs beside those that every command gets.
        """
        limit = timeout_seconds or self.timeout_seconds
        shown = f"`git {' '.join(arguments):.100}`"
        argv = ("git", *_OPTIONS, *arguments)
        try:
            completed = processes.run(
                argv,
                directory=self.directory,
                environment=git_environment(os.environ) | dict(extra or {}),
                timeout_seconds=limit,
            )
        except subprocess.TimeoutExpired as late:
            raise GitFailed(f"{shown} took more than {limit:g} s", "try again") from late
        except OSError as failure:
            if not self.directory.is_dir():
                raise GitFailed(f"there is no directory {self.directory}", "name another one") from failure
            raise GitFailed(f"git cannot be started: {failure}", "put git on PATH") from failure
        if completed.returncode not in accepted:
            raise GitFailed(
                f"{shown} failed with exit code {completed.returncode}: {said(completed.stderr)}",
                "check the repository with `git fsck`",
            )
        return completed


def git_environment(parent: Mapping[str, str]) -> dict[str, str]:
    """The user's environment for git, without what points elsewhere, prompts, translates or takes locks."""
    kept = {
        name: value
        for name, value in parent.items()
        if name in _KEPT_VARIABLES or not name.startswith("GIT_") or _is_given_configuration(name)
    }
    return kept | {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        # A replacement would show other content than the commit id stands for.
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def _is_given_configuration(name: str) -> bool:
    """Whether the variable is part of a configuration given in variables, as continuous integration does."""
    return name == "GIT_CONFIG_COUNT" or name.startswith(("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"))


def said(stderr: bytes) -> str:
    """What git gave as the reason, shortened: its fatal line, or else its last one."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    return (fatal[:1] or lines[-1:] or ["nothing"])[0][:500]


def _path(answer: bytes) -> Path:
    # Only the last newline is git's own; a directory name may end in others.
    return Path(os.fsdecode(answer.removesuffix(b"\n")))
