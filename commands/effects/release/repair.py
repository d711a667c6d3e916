"""Repairing a release: commits that are on the main branch are picked onto the branch of the release, and pushed.

A repair lands on the main branch first, so that the next release has it as well. Each commit is picked with `-x`, as
is usual for backports: its message ends in `(cherry picked from commit ...)`, which leads whoever reads the release
branch to the change that was reviewed, and which tells a repair that is already there.

The checks come in this order, and nothing is pushed unless all of them hold: the branch is one of a release; the main
branch can be fetched; every commit is known, is on the main branch, is named once, and has one parent; the release
branch is on the remote and stays where it is while it is read; no commit is on it already; every commit can be picked.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from commands.effects import worktrees
from commands.effects.git import Git, RefUnknown, said
from commands.effects.release.remote import Remote, must_be_of_a_release
from commands.effects.worktrees import Owner
from ledger.errors import LedgerError
from ledger.values import Commit

_PICK_LIMIT_SECONDS = 600.0
_FILES_SHOWN_MAX = 20

_HEXADECIMAL = re.compile(r"[0-9a-f]{7,64}")
_ORIGIN = re.compile(rb"\(cherry picked from commit ([0-9a-f]{40,64})\)")

# Who commits, where continuous integration tells it; else the user's configuration does.
_COMMITTER = ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


class PickUnknown(LedgerError):
    """What is to be picked is no commit of this repository, or is not named by 7 or more digits of its id."""

    code = "pick-unknown"
    exit_code = 2


class PickNotOnMain(LedgerError):
    """The commit is not on the main branch: a repair lands there first, or the next release would lose it."""

    code = "pick-not-on-main"
    exit_code = 4


class PickRepeated(LedgerError):
    """The same commit is to be picked twice."""

    code = "pick-repeated"
    exit_code = 2


class PickNotSingle(LedgerError):
    """The commit is a merge, or the first one of all: what it changes is no single difference."""

    code = "pick-not-single"
    exit_code = 4


class PickPresent(LedgerError):
    """The release branch holds the commit, or everything that it changes, already."""

    code = "pick-present"
    exit_code = 4


class PickConflict(LedgerError):
    """The commit does not fit onto the release branch. Nothing was pushed."""

    code = "pick-conflict"
    exit_code = 4


class PickFailed(LedgerError):
    """git could not pick the commit, for another reason than a conflict. Nothing was pushed."""

    code = "pick-failed"
    exit_code = 4


class Repair(Struct, frozen=True, kw_only=True):
    """What a repair has come to.

    `tip` is where the branch was, `commit` where it is now: None after a trial, which pushes nothing. `picked` are the
    commits of the main branch in the order in which they were picked. `existing` says that an earlier repair had
    pushed exactly these; then `tip` and `commit` are the same.
    """

    branch: str
    tip: Commit
    commit: Commit | None
    picked: tuple[Commit, ...]
    existing: bool = False


def repair(
    remote: Remote, branch: str, main: str, picks: Sequence[str], *, root: Path, owner: Owner, dry_run: bool
) -> Repair:
    """Pick commits of the main branch, in the given order, onto a release's branch and push the result.

    `main` is the name of the main branch on the remote; `picks` are ids, shortened to no less than 7 digits. The work
    is done in a worktree below `root`, which is removed at the end; the caller holds the lock of the owner's run. If
    this process is killed, `worktrees.reap` removes it later. With `dry_run` everything is tried and nothing pushed.

    Raises BranchInvalid, BranchMissing, TipRaced, the errors of this module, WorktreeFailed, and what `Remote` raises.
    """
    must_be_of_a_release(branch)
    wanted = _wanted(remote, remote.fetch(main), main, picks)
    tip = remote.fetch(branch)
    if _ends_in(remote.git, tip, wanted):
        return Repair(branch=branch, tip=tip, commit=tip, picked=wanted, existing=True)
    for pick in wanted:
        if remote.is_ancestor(pick, tip):
            raise PickPresent(f"{pick[:12]} is on {branch} already", "leave it out")
    with _worktree(remote.git, root, tip, owner) as tree:
        for pick in wanted:
            _pick(remote.git, tree, pick, branch)
        if dry_run:
            return Repair(branch=branch, tip=tip, commit=None, picked=wanted)
        commit = remote.git.run("-C", str(tree), "rev-parse", "HEAD").stdout.decode("ascii").strip()
        # The commit has no name but the HEAD of this worktree, so it is pushed before that is removed.
        remote.append(branch, tip, commit)
    return Repair(branch=branch, tip=tip, commit=commit, picked=wanted)


def _wanted(remote: Remote, main_tip: Commit, main: str, picks: Sequence[str]) -> tuple[Commit, ...]:
    """The full ids of the commits to pick, after the checks that need nothing but the main branch."""
    found: list[Commit] = []
    for given in picks:
        pick = _resolved(remote.git, given)
        if not remote.is_ancestor(pick, main_tip):
            raise PickNotOnMain(
                f"{given} is not on {main} of {remote.name}", "land it there first, then name the commit that landed"
            )
        if pick in found:
            raise PickRepeated(f"{given} is named twice", "name each commit once")
        if len(remote.git.parents(pick)) != 1:
            raise PickNotSingle(
                f"{given} does not have exactly one parent", "name the commits that were merged, one by one"
            )
        found.append(pick)
    return tuple(found)


def _resolved(git: Git, given: str) -> Commit:
    """The commit that a part of an id stands for. A branch or a tag whose name looks like one does not count."""
    pick = None
    if _HEXADECIMAL.fullmatch(given.lower()):
        try:
            pick = git.resolve(given.lower())
        except RefUnknown:
            pick = None
    if pick is None or not pick.startswith(given.lower()):
        raise PickUnknown(f"{given!r} is the id of no commit here", "name 7 or more digits, as `git log` shows them")
    return pick


def _ends_in(git: Git, tip: Commit, picks: Sequence[Commit]) -> bool:
    """Whether the last commits of the branch are these, picked in this order."""
    argv = ("log", "-z", f"--max-count={len(picks)}", "--first-parent", "--format=%B", "--end-of-options", tip)
    messages = git.run(*argv).stdout.split(b"\0")[:-1]
    # The last such line of a message is the newest: the commit may have been picked from elsewhere before.
    origins = [(_ORIGIN.findall(message) or [b""])[-1].decode("ascii") for message in reversed(messages)]
    return origins == list(picks)


@contextmanager
def _worktree(git: Git, root: Path, commit: Commit, owner: Owner) -> Iterator[Path]:
    path = root / owner.run / "repair"
    worktrees.add(git, root, path, commit, owner)
    try:
        yield path
    finally:
        worktrees.remove(git, root, path)


def _pick(git: Git, tree: Path, pick: Commit, branch: str) -> None:
    """Commit one change on top of the worktree. Raises PickConflict, PickPresent and PickFailed."""
    within = ("-C", str(tree))
    answer = git.run(
        # What somebody resolved once on this machine must not decide what is released.
        *within, "-c", "rerere.enabled=false", "cherry-pick", "-x", pick,
        accepted=range(-64, 256), timeout_seconds=_PICK_LIMIT_SECONDS,
        extra={name: os.environ[name] for name in _COMMITTER if name in os.environ},
    )  # fmt: skip
    if answer.returncode == 0:
        return
    unmerged = git.run(*within, "diff", "--name-only", "--diff-filter=U", "-z").stdout.split(b"\0")[:-1]
    if unmerged:
        files = sorted(map(os.fsdecode, unmerged))
        more = f" and {len(files) - _FILES_SHOWN_MAX} more" if len(files) > _FILES_SHOWN_MAX else ""
        raise PickConflict(
            f"{pick[:12]} conflicts with {branch} in {', '.join(files[:_FILES_SHOWN_MAX])}{more}; nothing was pushed",
            "name the commits that it builds on before it, or land a commit that fits both branches",
        )
    picking = git.run(*within, "rev-parse", "--verify", "--quiet", "CHERRY_PICK_HEAD", accepted=(0, 1))
    staged = git.run(*within, "diff", "--cached", "--quiet", accepted=(0, 1))
    if picking.returncode == 0 and staged.returncode == 0:
        raise PickPresent(f"{branch} has everything that {pick[:12]} changes already", "leave it out")
    raise PickFailed(
        f"{pick[:12]} could not be picked onto {branch}: {said(answer.stderr)}",
        "see what git names; it has to know `user.name` and `user.email`; then run the command again",
    )
