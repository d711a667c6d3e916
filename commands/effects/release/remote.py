"""The remote that releases are pushed to: what it advertises, what is fetched from it, and its release branches.

What a push has come to is read from the remote, never from an error text: whoever dies between a push and its answer
asks again and is told that the branch is there already. Branches are created or continued, never overwritten.

Fetched commits are kept by references below `refs/ledger/remote/`, so that no branch and no tracking reference of the
user changes. (A push moves the tracking reference of the branch that was pushed, as a push by hand does.)
"""

import os
import re
import subprocess
from typing import Literal

from commands.effects.git import Git, GitFailed, said
from commands.effects.processes import Completed
from ledger.errors import LedgerError
from ledger.values import Commit
from projections.release.version import PrereleaseKind, branch_version

_LISTING_LIMIT_SECONDS = 120.0
_TRANSFER_LIMIT_SECONDS = 1800.0
_ANY_EXIT = range(-64, 256)

# How the user's git reaches a remote: programs and certificates. No other command of ours is given these.
_REACHING = (
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY",
)  # fmt: skip
# Nobody is there to answer: ssh asks a program that says no instead of waiting at the terminal.
_NOBODY = {"SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_USERINFO = re.compile(r"(?<=://)[^\s/]*@")
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class RemoteUnknown(LedgerError):
    """The repository has no remote of that name."""

    code = "remote-unknown"
    exit_code = 2


class RemoteUnreachable(LedgerError):
    """The remote gave no answer: the network, its host, or the access to it. Nothing is known of what it holds."""

    code = "remote-unreachable"
    exit_code = 4


class BranchInvalid(LedgerError):
    """The name is none of a branch, or, where something is pushed, none of a release (`release/VERSION`)."""

    code = "branch-invalid"
    exit_code = 2


class BranchMissing(LedgerError):
    """The remote has no such branch."""

    code = "branch-missing"
    exit_code = 4


class BranchExists(LedgerError):
    """The remote has the branch that should be created, and it ends in another commit. It is never overwritten."""

    code = "branch-exists"
    exit_code = 4


class TipRaced(LedgerError):
    """The branch on the remote has moved while it was read or pushed to. Nothing was overwritten."""

    code = "tip-raced"
    exit_code = 4


class NotFastForward(LedgerError):
    """The commit does not descend from the tip of the branch, which could only be overwritten."""

    code = "not-fast-forward"
    exit_code = 4


class PushRefused(LedgerError):
    """The remote was reached and did not take the commit: missing rights, a protected branch, or a hook of its own."""

    code = "push-refused"
    exit_code = 4


class Remote:
    """A remote of a repository, by its name there. Raises RemoteUnknown.

    `transport` tells how it is reached, such as `https` or `ssh`: all of its address that is safe to tell.
    Every method may raise RemoteUnreachable and GitFailed.
    """

    def __init__(self, git: Git, name: str) -> None:
        self.git = git
        self.name = name
        self.transport = _transport(git, name)

    def taken(self, base: str, kind: PrereleaseKind) -> tuple[str, ...]:
        """The full names of branches and tags on the remote that stand for prereleases of this base and kind."""
        prefixes = (f"refs/heads/release/{base}-{kind}.", f"refs/tags/v{base}-{kind}.")
        listed = self._listed(*(f"{prefix}*" for prefix in prefixes))
        return tuple(name for name in sorted(listed) if name.startswith(prefixes))

    def version_tags(self, version: str) -> frozenset[str]:
        """The tags on the remote that are called like this version."""
        names = (f"refs/tags/v{version}", f"refs/tags/{version}")
        return frozenset(name.removeprefix("refs/tags/") for name in self._listed(*names) if name in names)

    def tip(self, branch: str) -> Commit | None:
        """The commit that the branch has on the remote now; None when there is no such branch.

        Raises BranchInvalid.
        """
        name = self._full_name(branch)
        return self._listed(name).get(name)

    def fetch(self, branch: str) -> Commit:
        """The tip of the branch, with its history, which then is in this repository.

        Raises BranchInvalid, BranchMissing, and TipRaced when the branch moves meanwhile.
        """
        advertised = self.tip(branch)
        if advertised is None:
            raise BranchMissing(f"{self.name} has no branch {branch}", f"see `git ls-remote --heads {self.name}`")
        kept = f"refs/ledger/remote/{branch}"
        answer = self._bring(branch, kept)
        if answer.returncode:
            # Another process may have moved the reference at the same moment; now it is found where it should be.
            answer = self._bring(branch, kept)
        # Whether a fetch failed because the branch has moved or gone is asked of the remote.
        seen = self.tip(branch) if answer.returncode else self.git.resolve(kept)
        if seen != advertised:
            raise TipRaced(
                f"{branch} on {self.name} has moved from {advertised[:12]} while it was read", "run the command again"
            )
        if answer.returncode:
            raise GitFailed(
                f"{branch} cannot be fetched from {self.name}: {_reason(answer)}",
                f"see whether `git fetch {self.name} {branch}` works, then run the command again",
            )
        return seen

    def create(self, branch: str, commit: Commit) -> Literal["created", "existing"]:
        """Make a release's branch at a commit; `existing` when it is there already, at this commit.

        Raises BranchInvalid, BranchExists and PushRefused.
        """
        must_be_of_a_release(branch)
        # An empty lease lets the push succeed only as long as there is no such branch.
        answer = self._push(branch, commit, "")
        if answer.returncode == 0 and _change(answer, branch) == ("*", "[new branch]"):
            return "created"
        tip = self.tip(branch)
        if tip == commit:
            return "existing"
        if tip is not None:
            raise BranchExists(
                f"{self.name} has a branch {branch} already, at {tip[:12]} and not at {commit[:12]}",
                "a version is used once: take another one, or go on with the release that made this branch",
            )
        raise self._refused(branch, answer)

    def append(self, branch: str, expected: Commit, commit: Commit) -> Literal["appended", "existing"]:
        """Continue a release's branch from the tip it is expected to have; `existing` when it is at this commit.

        Raises BranchInvalid, NotFastForward, BranchMissing, TipRaced and PushRefused.
        """
        must_be_of_a_release(branch)
        if not self.is_ancestor(expected, commit):
            raise NotFastForward(
                f"{commit[:12]} does not descend from {expected[:12]}, the tip of {branch}",
                "build it on that tip; a release branch is never overwritten",
            )
        # A lease alone would overwrite; with the tip that it asks for, this commit can only be a fast-forward.
        answer = self._push(branch, commit, expected)
        flag, summary = _change(answer, branch)
        old, _, new = summary.partition("..")
        if answer.returncode == 0 and flag == " " and expected.startswith(old) and commit.startswith(new):
            return "appended"
        tip = self.tip(branch)
        if tip == commit:
            return "existing"
        if tip is None:
            raise BranchMissing(f"{self.name} has no branch {branch} any more", "was the release given up?")
        if tip != expected:
            raise TipRaced(
                f"{branch} on {self.name} is at {tip[:12]}, not at {expected[:12]}; it is never overwritten",
                "run the command again: it starts from what is there now",
            )
        raise self._refused(branch, answer)

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        """Whether `newer` is `older` or descends from it, both fetched before. Raises Shallow."""
        return self.git.is_ancestor(older, newer)

    def _listed(self, *patterns: str) -> dict[str, Commit]:
        """What the remote advertises under these names. They match ends of names too, so the caller looks again."""
        answer = self._talk("ls-remote", "--quiet", "--refs", self.name, *patterns, limit=_LISTING_LIMIT_SECONDS)
        if answer.returncode:
            raise self._unreachable(_reason(answer))
        lines = (line.partition("\t") for line in os.fsdecode(answer.stdout).split("\n") if line)
        return {name: oid for oid, _, name in lines if _OID.fullmatch(oid)}

    def _bring(self, branch: str, kept: str) -> Completed:
        return self._talk(
            "-c", "fetch.writeCommitGraph=false",
            "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            # Without this the tracking reference would be moved as well.
            "--refmap=",
            self.name, f"+{self._full_name(branch)}:{kept}",
        )  # fmt: skip

    def _push(self, branch: str, commit: Commit, lease: str) -> Completed:
        name = self._full_name(branch)
        return self._talk(
            "push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
            f"--force-with-lease={name}:{lease}", self.name, f"{commit}:{name}",
        )  # fmt: skip

    def _talk(self, *arguments: str, limit: float = _TRANSFER_LIMIT_SECONDS) -> Completed:
        """Run a git command that speaks with the remote; whatever its exit code is, the caller judges it."""
        given = {name: os.environ[name] for name in _REACHING if name in os.environ}
        try:
            return self.git.run(*arguments, accepted=_ANY_EXIT, timeout_seconds=limit, extra=_NOBODY | given)
        except GitFailed as failure:
            if not isinstance(failure.__cause__, subprocess.TimeoutExpired):
                raise
            raise self._unreachable(f"no answer within {limit:g} s") from None

    def _full_name(self, branch: str) -> str:
        """The reference of a branch. Raises BranchInvalid for what git allows no branch to be called."""
        name = f"refs/heads/{branch}"
        if "\0" in name or self.git.run("check-ref-format", name, accepted=(0, 1)).returncode:
            raise BranchInvalid(f"{branch!r} is no name of a branch", "name one that `git branch --remotes` shows")
        return name

    def _unreachable(self, reason: str) -> RemoteUnreachable:
        agent = ", without an agent" if self.transport == "ssh" and "SSH_AUTH_SOCK" not in os.environ else ""
        return RemoteUnreachable(
            f"{self.name} ({self.transport}{agent}) cannot be reached: {reason}",
            f"see whether `git ls-remote {self.name}` answers, then run the command again",
        )

    def _refused(self, branch: str, answer: Completed) -> PushRefused:
        return PushRefused(
            f"{self.name} did not take {branch}: {_reason(answer)}",
            "may you push to this branch? the remote's own rules decide that; then run the command again",
        )


def _transport(git: Git, name: str) -> str:
    # What is no plain name could be taken for an option, a path or a program.
    answer = git.run("remote", "get-url", name, accepted=_ANY_EXIT) if _NAME.fullmatch(name) else None
    if answer is None or answer.returncode:
        raise RemoteUnknown(f"there is no remote {name!r}", "see `git remote`; `git remote add` makes one")
    scheme, separator, _ = os.fsdecode(answer.stdout).partition("://")
    # Without a scheme it is `host:path`, unless a slash comes first.
    return scheme if separator else "ssh" if ":" in scheme.partition("/")[0] else "file"


def must_be_of_a_release(branch: str) -> None:
    """Raises BranchInvalid for every name but `release/VERSION`."""
    if branch_version(branch) is None:
        raise BranchInvalid(f"{branch!r} is no release branch", "only `release/VERSION` is ever pushed to")


def _change(answer: Completed, branch: str) -> tuple[str, str]:
    """The flag and the summary that a push printed for the branch; empty without exactly one line of a change."""
    lines = [line.split("\t") for line in os.fsdecode(answer.stdout).split("\n") if line.count("\t") == 2]
    if len(lines) != 1 or not lines[0][1].endswith(f":refs/heads/{branch}"):
        return "", ""
    return lines[0][0], lines[0][2]


def _reason(answer: Completed) -> str:
    """What the remote, or else git, gave as the reason: at most 500 characters, without anybody's credentials."""
    printed, complained = (_USERINFO.sub("", os.fsdecode(output)) for output in (answer.stdout, answer.stderr))
    refused = [line.split("\t")[2] for line in printed.split("\n") if line.startswith("!\t") and line.count("\t") == 2]
    told = [line.removeprefix("remote:").strip() for line in complained.split("\n") if line.startswith("remote:")]
    return ("; ".join([*refused, *filter(None, told)]) or said(os.fsencode(complained)))[:500]
