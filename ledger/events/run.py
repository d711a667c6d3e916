"""Events of a run: who drives it, where it stands, how it ended. The tags and field names are the file format."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ledger.events.base import Event, stored_as
from ledger.events.policy import GatePolicy
from ledger.values import Commit, EvidenceDigest, Verdict


@stored_as("run-started")
class RunStarted(Event, frozen=True, kw_only=True):
    """A run was asked for: two commits, how they were chosen, and the rules in force.

    `config` is the evidence that holds the runner's settings; `dirty` says that the checkout had uncommitted changes,
    which no commit holds and which therefore were not tested.

    Of a release, `version` is what is released, `graph` the evidence that holds its steps with their flags, and
    `branch` the branch of `remote` that it is cut as ("" when it is cut by commit). A gate that is a step of a release
    names the `release`.
    """

    run: str
    kind: Literal["gate", "release"]
    candidate: Commit
    candidate_ref: str
    baseline: Commit
    baseline_ref: str
    baseline_reason: str
    dirty: bool
    steps: tuple[str, ...]
    policy: GatePolicy
    config: EvidenceDigest
    version: str | UnsetType = UNSET
    graph: EvidenceDigest | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    remote: str | UnsetType = UNSET
    release: str | UnsetType = UNSET


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
    """A step of the run began: of a release, which attempt at it this is, on which commit, under which driver's term.

    `gate` is the run that this attempt of a gate drives.
    """

    step: str
    attempt: int | UnsetType = UNSET
    commit: Commit | UnsetType = UNSET
    term: int | UnsetType = UNSET
    gate: str | UnsetType = UNSET


class StepProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a step looked at by the way."""

    name: str
    outcome: Literal["ok", "warning", "unmeasured"]
    detail: str = ""


class StepReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt at a step of a release came to, besides its outcome.

    `cause` is the reason code of a failure or of what was not measured, `detail` its first line. `verdict` is what the
    step says of itself (`flaky`: it passed when it was tried once more), `summary` its own line, `keys` what else it
    said, as JSON texts. `probes` are observations that count for nothing.
    """

    cause: str = ""
    detail: str = ""
    verdict: Literal["", "pass", "flaky", "fail"] = ""
    summary: str = ""
    keys: dict[str, str] = {}
    probes: tuple[StepProbe, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    duration_seconds: float = 0.0


@stored_as("step-finished")
class StepFinished(Event, frozen=True, kw_only=True):
    """A step of the run ended with this outcome; of a release, this attempt at it, on this commit.

    `output` and `errors` are the evidence of what it printed, as far as it was kept.
    """

    step: str
    outcome: Verdict
    attempt: int | UnsetType = UNSET
    commit: Commit | UnsetType = UNSET
    report: StepReport | UnsetType = UNSET
    output: EvidenceDigest | UnsetType = UNSET
    errors: EvidenceDigest | UnsetType = UNSET


@stored_as("resume-started")
class ResumeStarted(Event, frozen=True, kw_only=True):
    """The run is taken up again from a step. `owed` names what is still to be measured, as `shard/side`.

    Of a release: `commit` is the one that it goes on with, `again` are the steps that are run again, `plan` is the
    evidence of what was planned and shown.
    """

    step: str
    number: int
    owed: tuple[str, ...]
    commit: Commit | UnsetType = UNSET
    again: tuple[str, ...] | UnsetType = UNSET
    plan: EvidenceDigest | UnsetType = UNSET


@stored_as("run-stopped")
class RunStopped(Event, frozen=True, kw_only=True):
    """The driver ended before the run was finished: on request, on a signal, or because the run waits for somebody.
    What is owed stays owed."""

    reason: Literal["asked", "interrupted", "waiting"]
    term: int


@stored_as("run-finished")
class RunFinished(Event, frozen=True, kw_only=True):
    """The run came to its end."""

    verdict: Verdict
