"""What every executor offers, and the shapes that pass between it and the driver."""

from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

End = Literal[
    "exited", "signalled", "time-limit", "idle-limit", "memory-limit", "stopped", "driver-died", "not-started", "lost"
]
"""How a job ended. `stopped`: on request; `driver-died`: the supervisor saw its parent go; `not-started`: the command
could not be executed; `lost`: the supervisor itself is gone and left no result."""


class Job(Struct, frozen=True, kw_only=True):
    """One side of one attempt, ready to run. `name` is derived from events, so starting the same job twice is harmless.

    `attempt_directory` is allotted to this job alone: its output, its record and its result are written there.
    `activity` are globs, relative to it, of files whose growth counts as a sign of life. `stdout_file`, a name in it,
    gets standard output alone; otherwise both streams are the output. Limits of 0 mean none.
    """

    name: str
    argv: tuple[str, ...]
    directory: Path
    environment: dict[str, str]
    attempt_directory: Path
    activity: tuple[str, ...]
    time_limit_seconds: float
    idle_limit_seconds: float
    memory_limit_bytes: int
    stdout_file: str = ""


class JobEnd(Struct, frozen=True, kw_only=True):
    """How a job ended. `started_at` is UTC in ISO 8601, `duration_seconds` monotonic; None means not known.

    `memory_samples` are (first, last, bytes): monotonic times in seconds of the machine that it ran on, and the most
    that its processes used in between; `sampling_seconds` is the longest time between two looks at them.
    `left_running`: the command ended by itself while processes that it had started had not; they were ended after it.
    """

    name: str
    end: End
    exit_code: int | None
    signal: int | None
    started_at: str
    duration_seconds: float
    peak_memory_bytes: int | None
    memory_method: str
    detail: str = ""
    memory_samples: tuple[tuple[float, float, int], ...] = ()
    sampling_seconds: float | None = None
    left_running: bool = False


class Executor(Protocol):
    """Starts, observes and stops jobs by name. Every call may be repeated."""

    def start(self, job: Job) -> None:
        """Start the job unless a job of this name was started before; returns at once."""

    def observe(self) -> list[JobEnd]:
        """The jobs that have ended since they were last reported by this object; each is reported once."""

    def settle(self, name: str, attempt_directory: Path) -> JobEnd:
        """Bring a job of a dead driver to rest: end whatever of it is still alive, and say how it ended."""

    def stop(self, name: str) -> None:
        """Ask the job to end now, with all of its descendants; its end is observed as usual."""

    def wait(self, timeout_seconds: float) -> None:
        """Sleep until something may have changed, at most this long."""

    def close(self) -> None:
        """End every job that is still running and wait until it is gone."""
