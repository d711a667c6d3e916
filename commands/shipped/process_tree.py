"""The processes below this one, and the memory that they use.

It runs in foreign interpreters, beside the supervisor: Python 3.8, the standard library, and nothing of ours.
"""

from __future__ import annotations

import glob
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing it takes a tenth of the time that a short job costs.
    from typing import Any

LOOK_SHARE, MEASURE_SHARE = 0.05, 0.01
"""The part of one processor that looking at the tree may take, and that measuring it may take."""

SAMPLES_MAX = 2000
"""So many samples are kept; where there are more, neighbours become one that has the higher of their values."""


def identity(pid: int) -> dict[str, Any]:
    """What tells a process from every other that gets the same pid; no start time when it is gone."""
    fields = stat_of(pid)[1]
    boot_id = read_file("/proc/sys/kernel/random/boot_id").decode().strip()
    return {"pid": pid, "start_time": int(fields[19]) if fields else None, "boot_id": boot_id}


def processes() -> list[int]:
    """All process ids; none on a system without /proc."""
    return [int(os.path.basename(path)) for path in glob.glob("/proc/[0-9]*")]


def children(pid: int) -> list[int]:
    """The direct children of a process; one that comes or goes meanwhile may be missed."""
    if not os.path.exists("/proc/thread-self/children"):
        return [other for other in processes() if stat_of(other)[1][1:2] == [b"%d" % pid]]
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for task in tasks for child in read_file(f"/proc/{pid}/task/{task}/children").split()]


def descendants(pid: int) -> dict[int, int]:
    """The processes below this one with their parents; parents come first."""
    found: dict[int, int] = {}
    queue = [pid]
    for parent in queue:
        for child in children(parent):
            if child not in found:
                found[child] = parent
                queue.append(child)
    return found


def stat_of(pid: int) -> tuple[bytes, list[bytes]]:
    """The name of a process and the fields after it, from its state on; nothing when it is gone."""
    head, _, tail = read_file(f"/proc/{pid}/stat").rpartition(b")")
    return head.partition(b"(")[2], tail.split()


def read_file(path: str) -> bytes:
    """The bytes of a file, none when it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""


class Memory:
    """Measures the descendants of this process by proportional set size, so that shared pages count once.

    That is costly for big processes and so is done seldom, but at once when the growth of the resident set size, which
    is cheap to read, tells of a new peak. Where the kernel does not tell the former, the latter stands in.

    `samples` tells how it went: [first, last, bytes], monotonic times in seconds and the most that was used in between;
    where it was not measured, the growth of the resident set size is added to what was measured last.
    `sampling_seconds` is the longest time between two looks.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.peak_bytes = 0
        self.methods: set[str] = set()
        self.samples: list[list[float]] = []
        self.sampling_seconds = 0.0
        self.above_limit = False
        self._limit_bytes = limit_bytes
        self._used_bytes = self._resident_bytes = 0
        self._look_due = self._measure_due = 0.0

    def exceeded(self) -> bool:
        """Measure if it is time to; True when this and the measurement before it were above the limit."""
        now, before = time.monotonic(), time.process_time()
        if now < self._look_due:
            return False
        tree = descendants(os.getpid())
        resident = sum(resident_bytes(pid) for pid in tree)
        looked = time.process_time()
        self._look_due = now + (looked - before) / LOOK_SHARE
        estimate = self._used_bytes + resident - self._resident_bytes
        if now < self._measure_due and estimate < min(1.1 * self.peak_bytes, self._limit_bytes or float("inf")):
            self._sample(now, max(0, estimate))
            return False
        self._used_bytes, self._resident_bytes = self._measure(tree), resident
        self._measure_due = now + (time.process_time() - looked) / MEASURE_SHARE
        self.peak_bytes = max(self.peak_bytes, self._used_bytes)
        self._sample(now, self._used_bytes)
        was_above, self.above_limit = self.above_limit, 0 < self._limit_bytes < self._used_bytes
        if self.above_limit:
            self._look_due = self._measure_due = now
        return self.above_limit and was_above

    def _sample(self, now: float, used_bytes: int) -> None:
        if self.samples:
            self.sampling_seconds = max(self.sampling_seconds, now - self.samples[-1][1])
        self.samples.append([now, now, used_bytes])
        if len(self.samples) > SAMPLES_MAX:
            pairs = zip(self.samples[::2], self.samples[1::2])
            odd = self.samples[len(self.samples) // 2 * 2 :]
            self.samples = [[one[0], two[1], max(one[2], two[2])] for one, two in pairs] + odd

    def _measure(self, tree: dict[int, int]) -> int:
        total = 0
        spaces: dict[int, bytes] = {}
        for pid, parent in tree.items():
            method, spaces[pid], used = memory_of(pid)
            # A child between vfork and exec lives in its parent's memory, which must not count twice.
            if used and spaces.get(parent) != spaces[pid]:
                total += used
                self.methods.add(method)
        return total


def memory_of(pid: int) -> tuple[str, bytes, int]:
    """The method, what tells this memory from that of others, and its bytes in use, which are 0 when it is gone."""
    reading = read_file(f"/proc/{pid}/smaps_rollup")
    if b"\nPss:" in reading:
        fields = dict(line.split(b":", 1) for line in reading.splitlines()[1:])
        # The first line is the address range. The shares of others in the pages change at any time.
        space = reading.splitlines()[0] + fields[b"Rss"] + fields[b"Private_Dirty"]
        return "pss", space, int(fields[b"Pss"].split()[0]) * 1024
    return "rss", read_file(f"/proc/{pid}/statm"), resident_bytes(pid)


def resident_bytes(pid: int) -> int:
    """The resident set size of a process, 0 when it is gone."""
    fields = read_file(f"/proc/{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0
