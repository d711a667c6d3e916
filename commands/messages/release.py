"""Messages about a release: its steps, its resumption, what people let pass, its archive."""

from typing import ClassVar, Literal

from commands.messages.base import Message
from ledger.events import GatePolicy, RecheckPlanned, StepReport
from ledger.values import Commit, Digest, Verdict
from projections.release.trouble import Trouble


class StartRelease(Message, frozen=True, kw_only=True, tag="start-release"):
    """Start the release of a version. Gathered: the commits, the settings, the evidence `graph` that holds the steps,
    and `next_version`, what the version is when it is a prerelease whose number was to be found."""

    run: str
    version: str
    candidate: Commit
    candidate_ref: str
    baseline: Commit
    baseline_ref: str
    baseline_reason: str
    dirty: bool
    policy: GatePolicy
    config: Digest
    graph: Digest
    branch: str = ""
    remote: str = ""


class BeginReleaseStep(Message, frozen=True, kw_only=True, tag="begin-release-step"):
    """Begin an attempt at a step. Gathered: the day in UTC, the muted tests that kept something from blocking, the name
    of a new run for a gate, and the digest of the archive as it is on disk now ("" without one)."""

    step: str
    date: str
    mutes: tuple[str, ...] = ()
    gate: str = ""
    archive: Digest = ""


class EndReleaseStep(Message, frozen=True, kw_only=True, tag="end-release-step"):
    """Record what an attempt at a step came to. Of `prepare`, the fields from `digest` on are those of `prepared`."""

    observation: ClassVar[bool] = True

    step: str
    attempt: int
    commit: Commit
    outcome: Verdict
    report: StepReport
    output: Digest | None = None
    errors: Digest | None = None
    digest: Digest = ""
    size_bytes: int = 0
    files: int = 0
    place: str = ""

    def command(self) -> str:
        """One record per attempt, whoever reports it."""
        return f"step/{self.stream}/{self.step}/{self.attempt}"


class HealGate(Message, frozen=True, kw_only=True, tag="heal-gate"):
    """Decide what the program itself does about an attempt at a gate that did not pass. Gathered: what is wrong with
    it, as the views of its own run have it."""

    step: str
    attempt: int
    trouble: Trouble

    def command(self) -> str:
        """One decision per attempt."""
        return f"heal/{self.stream}/{self.step}/{self.attempt}"


class RecordQuarantine(Message, frozen=True, kw_only=True, tag="record-quarantine"):
    """Record that an archive of this release was moved aside; the fields are those of `quarantined`."""

    observation: ClassVar[bool] = True

    place: str
    digest: Digest
    size_bytes: int
    reason: str

    def command(self) -> str:
        """One record per move."""
        return f"quarantine/{self.stream}/{self.place}"


class FinishRelease(Message, frozen=True, kw_only=True, tag="finish-release"):
    """End the release, when nothing is left to do."""

    date: str
    mutes: tuple[str, ...] = ()


class ResumeRelease(Message, frozen=True, kw_only=True, tag="resume-release"):
    """Take the release up again from a step, with everything that was asked for besides, or nothing of it.

    Gathered: the tip of its branch as its remote has it (`tip` None where nobody could or had to ask), whether that is
    reached by going `forward`, who asks and the day in UTC; what a gate of another commit than the last would measure
    again (`recheck`), or why that is all of it (`full`, with the files that it is about). Of a gate: which shard goes
    to another member (`reroute`), the `shards` that it has, and the `members` of the pool.
    """

    step: str
    by: str
    date: str
    tip: Commit | None = None
    forward: bool = True
    waive: str = ""
    reason: str = ""
    expires: str = ""
    accept: tuple[tuple[str, str], ...] = ()
    allow_attempt: str = ""
    recheck: RecheckPlanned | None = None
    full: str = ""
    full_files: tuple[str, ...] = ()
    reroute: str = ""
    shards: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


class DecideApproval(Message, frozen=True, kw_only=True, tag="decide-approval"):
    """Approve of what was shown, or reject it. Gathered: the day in UTC and the muted tests of now."""

    step: str
    decision: Literal["approved", "rejected"]
    by: str
    reason: str
    date: str
    mutes: tuple[str, ...] = ()
