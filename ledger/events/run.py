"""Events of a run: who drives it, where it stands, how it ended. The tags and field names are the file format."""

from typing import Literal

from ledger.events.base import Event, stored_as
from ledger.events.policy import GatePolicy
from ledger.values import Commit, EvidenceDigest, Verdict


@stored_as("run-started")
class RunStarted(Event, frozen=True, kw_only=True):
    """A run was asked for: two commits, how they were chosen, and the rules in force.

    `config` is the evidence that holds the runner's settings; `dirty` says that the checkout had uncommitted changes,
    which no commit holds and which therefore were not tested.
    """

    run: str
    kind: Literal["gate"]
    candidate: Commit
    candidate_ref: str
    baseline: Commit
    baseline_ref: str
    baseline_reason: str
    dirty: bool
    steps: tuple[str, ...]
    policy: GatePolicy
    config: EvidenceDigest


@stored_as("driver-started")
class DriverStarted(Event, frozen=True, kw_only=True, omit_defaults=True):
    """A process took the run. Terms count up; nothing is started or stopped under an old term.

    `process` tells apart processes that have the same number on the same host; "" where it was not recorded.
    """

    term: int
    host: str
    pid: int
    process: str = ""


@stored_as("driver-replaced")
class DriverReplaced(Event, frozen=True, kw_only=True, omit_defaults=True):
    """A later process took over from a driver that is gone (its lock was free)."""

    term: int
    previous_term: int
    host: str
    pid: int
    reason: Literal["died", "taken-over"]
    process: str = ""


@stored_as("step-started")
class StepStarted(Event, frozen=True, kw_only=True):
    """A step of the run began."""

    step: str


@stored_as("step-finished")
class StepFinished(Event, frozen=True, kw_only=True):
    """A step of the run ended with this outcome."""

    step: str
    outcome: Verdict


@stored_as("resume-started")
class ResumeStarted(Event, frozen=True, kw_only=True):
    """The run is taken up again from a step. `owed` names what is still to be measured, as `shard/side`."""

    step: str
    number: int
    owed: tuple[str, ...]


@stored_as("run-stopped")
class RunStopped(Event, frozen=True, kw_only=True):
    """The driver ended before the run was finished, on request or on a signal. What is owed stays owed."""

    reason: Literal["asked", "interrupted"]
    term: int


@stored_as("run-finished")
class RunFinished(Event, frozen=True, kw_only=True):
    """The run came to its end."""

    verdict: Verdict
