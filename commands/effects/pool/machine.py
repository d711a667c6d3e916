"""This machine as a member of the pool: its memory, and what the runs of this user have booked of it.

A booking is a file that its owner holds a lock on, so it ends with its owner, however that ends. All of them are in one
directory, which every run on this machine looks into while it holds the directory's lock: no two book the same room.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from commands.render.words import count, memory

_LOCK_SECONDS = 30
_SUFFIX = ".booking"
_BUSY = "the list of what is booked on this machine is locked by others"
_CGROUP = Path("/sys/fs/cgroup")


class Booking(Struct, frozen=True):
    """What one job of one run has set aside."""

    name: str
    run: str
    pid: int
    memory_bytes: int


def shared_directory() -> Path:
    """Where every run of this user looks, whichever repository it is of."""
    from platformdirs import user_cache_path

    return Path(user_cache_path("release-ledger"))


def memory_total_bytes() -> int:
    """The memory of this machine, or of the container that this is."""
    import psutil

    limit = _number(_CGROUP / "memory.max")
    total = int(psutil.virtual_memory().total)
    return total if limit is None else min(total, limit)


def memory_free_bytes() -> int:
    """The memory that can be had now without taking it from anybody."""
    import psutil

    free = int(psutil.virtual_memory().available)
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if limit is None or used is None:
        return free
    return min(free, max(0, limit - used + _reclaimable_bytes()))


def _reclaimable_bytes() -> int:
    """The part of a container's memory that is only there as long as nobody wants it."""
    try:
        lines = (_CGROUP / "memory.stat").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))


def _number(path: Path) -> int | None:
    """The number in a file; None for a missing file, and for one that sets no limit."""
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


class Machine:
    """Books room for the jobs of one run, as long as this object lives."""

    def __init__(self, directory: Path, run: str, slots: int) -> None:
        self._directory = directory / f"bookings-{socket.gethostname()}"
        self._run, self._slots = run, slots
        self._held: dict[str, IO[bytes]] = {}

    def shortage(self, needed_bytes: int) -> str:
        """What keeps a job that needs so much memory from being started now; "" when nothing does."""
        with self._alone() as alone:
            return self._shortage(needed_bytes) if alone else _BUSY

    def book(self, name: str, needed_bytes: int) -> str:
        """Set room aside for a job, unless it has some; what keeps it from that, "" when nothing does."""
        if name in self._held:
            return ""
        with self._alone() as alone:
            shortage = self._shortage(needed_bytes) if alone else _BUSY
            if not shortage:
                self._hold(Booking(name, self._run, os.getpid(), needed_bytes))
            return shortage

    def release(self, name: str) -> None:
        """Give the room of a job back."""
        file = self._held.pop(name, None)
        if file is not None:
            Path(file.name).unlink(missing_ok=True)
            file.close()

    def close(self) -> None:
        """Give all room back."""
        for name in list(self._held):
            self.release(name)

    def _shortage(self, needed_bytes: int) -> str:
        booked = self._booked()
        others = sorted({booking.run for booking in booked if booking.run != self._run})
        holders = f" (also by {', '.join(others[:3])})" if others else ""
        if len(booked) >= self._slots:
            return f"all {count(self._slots, 'slot')} of this machine are taken{holders}"
        total, taken = memory_total_bytes(), sum(booking.memory_bytes for booking in booked)
        if taken + needed_bytes > total:
            return f"{memory(needed_bytes)} are needed; of {memory(total)} {memory(taken)} are booked{holders}"
        free = memory_free_bytes()
        if needed_bytes > free:
            return f"{memory(needed_bytes)} are needed; of {memory(total)} {memory(free)} are free"
        return ""

    def _booked(self) -> list[Booking]:
        """Every booking whose owner is alive; what the dead left is removed."""
        found = []
        for path in sorted(self._directory.glob("*" + _SUFFIX)):
            try:
                with path.open("rb") as file:
                    if _is_free(file):
                        path.unlink(missing_ok=True)
                    else:
                        found.append(msgspec.json.decode(file.read(), type=Booking))
            except (FileNotFoundError, msgspec.MsgspecError):
                continue
        return found

    def _hold(self, booking: Booking) -> None:
        path = self._directory / f"{booking.run}-{booking.pid}-{booking.name}{_SUFFIX}"
        file = path.open("w+b")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(msgspec.json.encode(booking))
        file.flush()
        self._held[booking.name] = file

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Hold the lock of the directory; False when others hold it for far longer than that ever takes."""
        from filelock import FileLock, Timeout

        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self._directory / "bookings.lock", fallback_to_soft=False)
        try:
            lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def _is_free(file: IO[bytes]) -> bool:
    """Whether nobody holds the lock on this file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
