"""One owner at a time: an operating system lock that dies with its holder, and a note of who holds it."""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from commands.effects import clock
from ledger.errors import LedgerError, StoreUnwritable

# `is_held` takes the lock for an instant, which must not look like an owner to somebody who wants it: so it is tried
# often, and for a while, before anybody is refused.
_GRACE_SECONDS = 1.0
_POLL_SECONDS = 0.005


class LockHeld(LedgerError):
    """Another process is at work on the same thing."""

    code = "lock-held"
    exit_code = 4

    def __init__(self, path: Path, owner: Mapping[str, object]) -> None:
        known = {name: owner.get(name, "unknown") for name in ("run", "user", "host", "pid", "since")}
        super().__init__(
            "run {run} is held by {user} on {host}, process {pid}, since {since}".format(**known),
            f"wait until it has ended, or end it with `ledger stop`; the lock is {path}",
        )
        self.path, self.owner = path, dict(owner)


class OwnedLock:
    """A lock on a file that is never deleted, so that all who want it compete for the same one.

    The kernel frees it when its holder ends, however that happens; programs that the holder has started do not
    inherit it. Losing the last reference to this object frees it as well. The note beside it (`<name>.owner`)
    is for people: what a dead owner left blocks nobody.
    """

    def __init__(self, path: Path, owner: Mapping[str, object]) -> None:
        from filelock import FileLock

        self.path, self.owner = path, owner
        # The fall-back is a file whose mere existence locks; it would outlive a holder that was killed.
        self._lock = FileLock(path, thread_local=False, fallback_to_soft=False)

    def acquire(self, timeout_seconds: float = 0.0) -> None:
        """Take the lock, waiting at most about that long. Raises LockHeld with what is known of the owner."""
        from filelock import Timeout

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock.acquire(timeout=timeout_seconds + _GRACE_SECONDS, poll_interval=_POLL_SECONDS)
            self._write_note()
        except Timeout as held:
            raise LockHeld(self.path, read_owner(self.path)) from held
        except OSError as failure:
            self._lock.release()
            raise StoreUnwritable(
                f"the lock {self.path} cannot be taken: {failure}",
                "use a place that you may write to, on a file system that supports flock",
            ) from failure

    def release(self) -> None:
        """Give the lock back."""
        if self._lock.is_locked:
            _note(self.path).unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _write_note(self) -> None:
        temporary = _note(self.path).with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(dict(self.owner)), "utf-8")
        temporary.replace(_note(self.path))


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now. Raises StoreUnwritable when that cannot be found out."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as failure:
        raise StoreUnwritable(f"the lock {path} cannot be looked at: {failure}", "may you read it?") from failure
    return False


def owner_details(run: str, since: str) -> dict[str, object]:
    """This process as the owner of a run. `since` is UTC in ISO 8601."""
    # Whoever only looks whether a lock is held does not wait for these to load.
    import getpass
    import socket

    pid = os.getpid()
    user = ""
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return {
        "run": run,
        "since": since,
        "pid": pid,
        "started": clock.process_start(pid) or "",
        "boot": clock.boot_id(),
        "host": socket.gethostname(),
        "user": user or str(os.getuid()),
    }


def read_owner(path: Path) -> dict[str, object]:
    """The note on who took the lock last; empty when there is none, or none that can be read."""
    try:
        owner = json.loads(_note(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".owner")
