"""The side's own checkouts: git worktrees below a work root, and the removal of those that dead runs left.

The work root is a cache directory of the user, not the ledger's place in `.git`: many tools leave out every
path that holds `.git`, and a test runner among them would find nothing there and report that all is well.
Content filters (Git LFS) run as in the user's checkout, because tests that read pointers instead of content
would fail on both sides and so hide a regression. Submodules are not fetched; they are named in the answer.
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from commands.config.settings import Settings
from commands.effects import clock
from commands.effects.git import Git, GitFailed
from ledger.errors import LedgerError
from ledger.values import Commit, Side

_CHECKOUT_LIMIT_SECONDS = 1800.0
_MARK = "release-ledger "

# The reason that git itself gives while it makes a worktree; it stays when git is killed meanwhile.
_HALF_MADE = "initializing"


class WorktreeFailed(LedgerError):
    """A worktree could not be made or removed."""

    code = "worktree-failed"
    exit_code = 4


class WorkRootRefused(LedgerError):
    """The place is not one where worktrees may be made or removed."""

    code = "work-root-refused"
    exit_code = 2


class Owner(Struct, frozen=True, kw_only=True):
    """Who made a worktree: the ledger, the run, and the process by number, start time, boot and host."""

    ledger: str
    run: str
    pid: int
    started: str
    boot: str
    host: str

    @classmethod
    def here(cls, ledger: str, run: str) -> "Owner":
        """This process."""
        pid = os.getpid()
        return cls(
            ledger=ledger, run=run, pid=pid, started=clock.process_start(pid) or "",
            boot=clock.boot_id(), host=socket.gethostname(),
        )  # fmt: skip

    def reason(self) -> str:
        """The reason that git shows for the lock on the worktree; `parse` reads it."""
        return _MARK + msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, reason: str) -> "Owner | None":
        """Read what `reason` wrote; None for anything else."""
        if not reason.startswith(_MARK):
            return None
        try:
            return msgspec.json.decode(reason.removeprefix(_MARK), type=cls)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None

    def provably_dead(self) -> bool:
        """Whether the process belongs to this host and boot and is gone."""
        here = self.host == socket.gethostname()
        return here and clock.process_alive(self.pid, self.started, self.boot) is False


class Worktree(NamedTuple):
    """A checkout of its own. `submodules` are the paths of submodules, which are empty directories in it."""

    path: Path
    commit: Commit
    submodules: tuple[str, ...]


class Reaped(Struct, frozen=True, kw_only=True):
    """What a call to `reap` found and did. `listed` counts all linked worktrees, `candidates` our own.

    `kept_foreign` were locked by someone else; `deferred` waits for the next call because of the limit.
    """

    listed: int = 0
    candidates: int = 0
    removed: int = 0
    kept_live: int = 0
    kept_young: int = 0
    kept_foreign: int = 0
    deferred: int = 0
    failed: int = 0
    orphans_removed: int = 0


class Record(NamedTuple):
    """What git has registered: the checkout, the reason of its lock, if any, and when, in epoch seconds."""

    path: Path
    reason: str
    recorded_at: float


def work_root(settings: Settings, ledger_id: str, checkout: Path) -> Path:
    """Where the worktrees of a ledger go: a directory of its own in the configured place or the user's cache.

    Raises WorkRootRefused for a place in the user's checkout: there, tests would pick up its files as well.
    """
    from platformdirs import user_cache_path

    base = Path(settings.work) if settings.work else user_cache_path("release-ledger")
    root = Path(os.path.realpath(base)) / ledger_id
    if root.is_relative_to(os.path.realpath(checkout)):
        raise WorkRootRefused(
            f"the work directory {base} lies in the checkout {checkout}",
            "name a place outside of it with `work` in the configuration or with LEDGER_WORK",
        )
    return root


def side_directory(root: Path, run: str, side: Side) -> Path:
    """Where the worktree of one side of a run goes."""
    return root / run / side


def add(git: Git, root: Path, path: Path, commit: Commit, owner: Owner) -> Worktree:
    """Check the commit out at a path below the root, registered as locked by its owner.

    What an earlier process of the same run left there is removed first; the caller holds the run's lock.
    Hooks do not run, and every file is there even if the user's own checkout is a sparse one.
    Raises WorkRootRefused and WorktreeFailed.
    """
    path = _below(root, path)
    _clear(git, root, path, owner)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        git.run(
            "-c", "core.sparseCheckout=false",
            "worktree", "add", "--detach", "--lock", "--reason", owner.reason(), str(path), commit,
            timeout_seconds=_CHECKOUT_LIMIT_SECONDS,
        )  # fmt: skip
    except (OSError, GitFailed) as failure:
        raise WorktreeFailed(
            f"no worktree of {commit[:12]} could be made at {path}: {failure}",
            "is there space, and may you write there? `work` or LEDGER_WORK names another place",
        ) from failure
    modules = [name for name, blob in git.blobs(commit).items() if blob.mode == "160000"]
    return Worktree(path, commit, tuple(sorted(modules)))


def remove(git: Git, root: Path, path: Path) -> None:
    """Delete a checkout below the root and its registration; it is no error that either is already gone.

    Symbolic links are deleted, never followed. Raises WorkRootRefused and WorktreeFailed.
    """
    path = _below(root, path)
    try:
        delete_tree(path)
        if any(record.path == path for record in registered(git)):
            # The first --force is for a missing or changed checkout, the second for a locked one.
            git.run("worktree", "remove", "--force", "--force", str(path))
    except (OSError, GitFailed) as failure:
        raise WorktreeFailed(
            f"the worktree {path} could not be removed: {failure}",
            "end what still uses it, then remove it by hand",
        ) from failure
    with suppress(OSError):
        path.parent.rmdir()


def reap(
    git: Git,
    root: Path,
    is_alive: Callable[[Owner], bool],
    now: float,
    younger_than_seconds: float = 7200.0,
    limit: int = 20,
) -> Reaped:
    """Remove the worktrees below the root that dead owners left, at most `limit` of them.

    `is_alive` is asked first, and must say True while it cannot know (the lock of the run tells on any host).
    An owner that is not alive is believed at once when its process is provably gone from this host and boot;
    else its worktree has to be older than `younger_than_seconds` at `now` (epoch seconds). What someone else
    locked or unlocked is kept. Of directories that are not registered, only old and empty ones are removed.
    """
    counts = dict.fromkeys(Reaped.__struct_fields__, 0)
    records = registered(git)
    ours = [record for record in records if _is_below(root, record.path)]
    counts |= {"listed": len(records), "candidates": len(ours)}
    for record in ours:
        fate = _fate(record, is_alive, now - younger_than_seconds)
        if fate != "dead":
            counts[fate] += 1
        elif counts["removed"] + counts["failed"] >= limit:
            counts["deferred"] += 1
        else:
            counts[_try_remove(git, root, record.path)] += 1
    known = {record.path for record in ours}
    orphans = [path for path in _directories(root) if path not in known]
    counts["orphans_removed"] = sum(_remove_orphan(path, now - younger_than_seconds) for path in orphans)
    return Reaped(**counts)


def registered(git: Git) -> list[Record]:
    """The linked worktrees of the repository, as its own records tell, in the order of their names."""
    found = []
    for directory in sorted((git.common_directory / "worktrees").glob("*")):
        try:
            pointer = os.fsdecode((directory / "gitdir").read_bytes().rstrip(b"\n"))
            recorded_at = (directory / "gitdir").stat().st_mtime
        except OSError:
            continue
        reason = ""
        with suppress(FileNotFoundError):
            reason = os.fsdecode((directory / "locked").read_bytes()).strip()
        # The pointer names the `.git` file of the checkout; newer versions of git may write it relative.
        checkout = Path(os.path.normpath(directory / pointer)).parent
        found.append(Record(checkout, reason, recorded_at))
    return found


def _fate(
    record: Record, is_alive: Callable[[Owner], bool], old_before: float
) -> Literal["dead", "kept_live", "kept_young", "kept_foreign"]:
    owner = Owner.parse(record.reason)
    if owner is None and record.reason != _HALF_MADE:
        return "kept_foreign"
    if owner is not None and is_alive(owner):
        return "kept_live"
    if owner is not None and owner.provably_dead():
        return "dead"
    return "dead" if record.recorded_at < old_before else "kept_young"


def _try_remove(git: Git, root: Path, path: Path) -> Literal["removed", "failed"]:
    try:
        remove(git, root, path)
    except LedgerError:
        return "failed"
    return "removed"


def _clear(git: Git, root: Path, path: Path, owner: Owner) -> None:
    """Make room for a new worktree. Refuses to remove what this run has not made."""
    for record in registered(git):
        earlier = Owner.parse(record.reason)
        same_run = earlier is not None and (earlier.ledger, earlier.run) == (owner.ledger, owner.run)
        if record.path == path and not same_run and record.reason != _HALF_MADE:
            raise WorktreeFailed(
                f"{path} is a worktree that is not of this run: {record.reason or 'not locked'}",
                f"look at it, then `git worktree remove --force --force {path}`",
            )
        if record.path == path:
            remove(git, root, path)


def _below(root: Path, path: Path) -> Path:
    """The path with its directories resolved. Raises WorkRootRefused unless that is below the root."""
    resolved = Path(os.path.realpath(path.parent), path.name)
    if path.name in ("", "..") or not _is_below(root, resolved) or resolved.is_symlink():
        raise WorkRootRefused(f"{path} is not a directory below the work directory {root}", "nothing was touched")
    return resolved


def _is_below(root: Path, path: Path) -> bool:
    real_root = Path(os.path.realpath(root))
    return path != real_root and path.is_relative_to(real_root)


def delete_tree(path: Path) -> None:
    """Delete a directory of ours with everything in it, read-only directories too; no error if it is gone."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:
        # Tests leave read-only directories behind, whose entries only become deletable by a change of mode.
        _make_writable(path)
        shutil.rmtree(path)


def _make_writable(directory: Path) -> None:
    pending = [str(directory)]
    while pending:
        current = pending.pop()
        os.chmod(current, 0o700)
        with os.scandir(current) as entries:
            pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _directories(root: Path) -> Iterator[Path]:
    """The places of worktrees and then those of runs, as far as they are real directories."""
    for pattern in ("*/*", "*"):
        for path in sorted(root.glob(pattern)):
            if path.is_dir() and not path.is_symlink() and not path.parent.is_symlink():
                yield path


def _remove_orphan(path: Path, old_before: float) -> bool:
    """Remove a directory that is old and empty; anything that is in it might be somebody's work."""
    try:
        if path.stat().st_mtime >= old_before:
            return False
        path.rmdir()
    except OSError:
        return False
    return True
