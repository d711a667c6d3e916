"""Messages about a run as a whole."""

from typing import Literal

from commands.messages.base import Message
from ledger.events import GatePolicy, RecheckPlanned
from ledger.values import Commit, Digest


class CreateLedger(Message, frozen=True, kw_only=True, tag="create-ledger"):
    """Write the first event of a new ledger. `ledger_id` and `root_commit` were gathered."""

    ledger_id: str
    project: str
    root_commit: str | None


class StartRun(Message, frozen=True, kw_only=True, tag="start-run"):
    """Start a gate of `candidate` against `baseline`; how the two were found and the settings were gathered.

    `release` is the release that it is a step of, "" for a gate of its own; `recheck` is what of it is measured, when
    that is not all.
    """

    run: str
    candidate: Commit
    candidate_ref: str
    baseline: Commit
    baseline_ref: str
    baseline_reason: str
    dirty: bool
    policy: GatePolicy
    config: Digest
    release: str = ""
    recheck: RecheckPlanned | None = None


class TakeRun(Message, frozen=True, kw_only=True, tag="take-run"):
    """Become the driver of the run; the caller holds the run's lock, so the last driver is gone.

    `process` is a name that no other process ever had.
    """

    host: str
    pid: int
    process: str = ""


class BeginStep(Message, frozen=True, kw_only=True, tag="begin-step"):
    """Begin a step of the run."""

    step: str


class ResumeRun(Message, frozen=True, kw_only=True, tag="resume-run"):
    """Take the run up again from a step."""

    step: str


class StopRun(Message, frozen=True, kw_only=True, tag="stop-run"):
    """Record that the driver ends before the run is finished; every job has ended already."""

    reason: Literal["asked", "interrupted", "waiting"]
