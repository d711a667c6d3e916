"""What the loop and the driver need from the outside world; implementations are named only in the wiring."""

from pathlib import Path
from typing import Literal, Protocol

from commands.executors.api import Job, JobEnd
from commands.messages import RecordAttempt
from ledger.events import AttemptStarted
from projections.registry import RunViews

StopReason = Literal["asked", "interrupted"]


class Clock(Protocol):
    """Time and fresh names."""

    def utc_now(self) -> str:
        """The wall clock, UTC, ISO 8601 with microseconds."""

    def unique_id(self) -> str:
        """A name that was never given before."""


class Machine(Protocol):
    """Room for jobs: memory and slots, shared with every other run on this machine."""

    def shortage(self, needed_bytes: int) -> str:
        """What keeps a job that needs so much memory from being started now; "" when nothing does."""

    def book(self, name: str, needed_bytes: int) -> str:
        """Set room aside for a job, unless it has some; what keeps it from that, "" when nothing does."""

    def release(self, name: str) -> None:
        """Give the room of a job back."""


class Attempts(Protocol):
    """Turns a promised attempt into a job, and the end of a job into what is to be recorded."""

    def name(self, views: RunViews, attempt: AttemptStarted) -> str:
        """The job's name, derived from events alone."""

    def directory(self, views: RunViews, attempt: AttemptStarted) -> Path:
        """The directory that is allotted to this attempt and to no other."""

    def job(self, views: RunViews, attempt: AttemptStarted) -> Job:
        """Make the attempt ready to run. Raises LedgerError when its side cannot be prepared."""

    def record(self, views: RunViews, attempt: AttemptStarted, end: JobEnd) -> RecordAttempt:
        """Read what the job left, store it as evidence, and say what it gave."""
