"""The state of a release, as its events have it: attempts at steps, the commit that counts, what was let pass.

Nothing is forgotten: what is run again keeps its earlier attempts. Which results count is `standing.py`'s answer.
"""

from typing import Literal

from msgspec import UNSET, Struct, field

from ledger.events import (
    ApprovalDecided,
    ApprovalRequested,
    AutohealDecided,
    OverrideUsed,
    Prepared,
    Quarantined,
    RegressionAccepted,
    ResumeStarted,
    RunStarted,
    StepFinished,
    StepReport,
    StepStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.record import RecordedEvent
from ledger.values import Commit, Digest, Verdict
from projections.fold import View
from projections.release.healing import heals

STEP_ASKS = "step-asks"
"""The reason code of an attempt that ended with a question."""


class StepAttempt(Struct, kw_only=True):
    """One attempt at a step; `outcome` is None until it has ended. `gate` is the run of a gate, "" of other steps.

    `position` is that of its start in the stream.
    """

    number: int
    position: int
    commit: Commit
    term: int
    gate: str
    started_at: str
    outcome: Verdict | None = None
    report: StepReport = StepReport()
    ended_at: str = ""
    output: Digest = ""
    errors: Digest = ""


class StepState(Struct):
    """All attempts at a step, in order; `again` says that it is to be run once more whatever the last came to."""

    attempts: list[StepAttempt] = field(default_factory=list)
    again: bool = False

    @property
    def last(self) -> StepAttempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def has_asked(self) -> bool:
        """Whether the newest attempt asked something instead of coming to an end."""
        return self.last is not None and self.last.report.cause == STEP_ASKS

    @property
    def running(self) -> StepAttempt | None:
        """The attempt that has not ended."""
        return self.last if self.last and self.last.outcome is None else None


class Move(Struct, frozen=True):
    """One move of the tip; `time` is when it was recorded."""

    previous: Commit
    commit: Commit
    time: str


class Waiver(Struct):
    """A waiver, who gave it and when; `retired` is why it does not count any more."""

    waived: Waived
    by: str
    time: str
    retired: Literal["", "run-again"] = ""


class Issue(Struct, frozen=True):
    """A known issue that was accepted."""

    accepted: RegressionAccepted
    by: str
    time: str


class Approval(Struct):
    """A request for an approval, and its answer; `actor` is the account under which it was given."""

    requested: ApprovalRequested
    requested_at: str
    decided: ApprovalDecided | None = None
    decided_at: str = ""
    actor: str = ""


class ReleaseView(Struct):
    """A release. `commit` is the one that counts now; `moves` how it came to be that. `aside` are the digests of the
    archives that were moved aside and not built again since."""

    started: RunStarted | None = None
    commit: Commit = ""
    moves: list[Move] = field(default_factory=list)
    steps: dict[str, StepState] = field(default_factory=dict)
    waivers: dict[str, Waiver] = field(default_factory=dict)
    issues: dict[str, Issue] = field(default_factory=dict)
    archives: list[Prepared] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    aside: set[Digest] = field(default_factory=set)
    approvals: dict[str, list[Approval]] = field(default_factory=dict)
    resumes: list[ResumeStarted] = field(default_factory=list)
    overrides: list[OverrideUsed] = field(default_factory=list)
    heals: list[AutohealDecided] = field(default_factory=list)

    @property
    def begun(self) -> RunStarted:
        """The start of the release; it is an error of the caller to ask before there is one."""
        if self.started is None:
            raise LookupError("this stream holds no release")
        return self.started

    def healing_of(self, step: str) -> AutohealDecided | None:
        """What was decided about the newest attempt at a step, if anything was."""
        last = self.steps[step].last
        found = (one for one in reversed(self.heals) if one.step == step and last and one.attempt == last.number)
        return next(found, None)

    def commits(self) -> tuple[Commit, ...]:
        """Every commit that ever counted, the newest last."""
        return (*(move.previous for move in self.moves[:1]), *(move.commit for move in self.moves)) or (self.commit,)


def archive_of(view: ReleaseView) -> Prepared | None:
    """The archive that was built from the commit that counts and is still in its place, if there is one."""
    for archive in reversed(view.archives):
        if archive.commit == view.commit and archive.digest not in view.aside:
            return archive
    return None


def _started(view: ReleaseView, event: RunStarted, recorded: RecordedEvent) -> None:
    if event.kind == "release":
        view.started, view.commit = event, event.candidate
        view.steps = {name: StepState() for name in event.steps}


def _step_started(view: ReleaseView, event: StepStarted, recorded: RecordedEvent) -> None:
    if view.started is None:
        return
    state = view.steps[event.step]
    state.again = False
    state.attempts.append(
        StepAttempt(
            number=len(state.attempts) + 1 if event.attempt is UNSET else event.attempt,
            position=recorded.header.position,
            commit=view.commit if event.commit is UNSET else event.commit,
            term=0 if event.term is UNSET else event.term,
            gate="" if event.gate is UNSET else event.gate,
            started_at=recorded.header.time,
        )
    )


def _step_finished(view: ReleaseView, event: StepFinished, recorded: RecordedEvent) -> None:
    if view.started is None:
        return
    attempt = view.steps[event.step].attempts[-1]
    attempt.outcome, attempt.ended_at = event.outcome, recorded.header.time
    attempt.report = StepReport() if event.report is UNSET else event.report
    attempt.output = "" if event.output is UNSET else event.output
    attempt.errors = "" if event.errors is UNSET else event.errors


def _tip_moved(view: ReleaseView, event: TipMoved, recorded: RecordedEvent) -> None:
    view.moves.append(Move(event.previous, event.commit, recorded.header.time))
    view.commit = event.commit


def _resumed(view: ReleaseView, event: ResumeStarted, recorded: RecordedEvent) -> None:
    if view.started is None:
        return
    view.resumes.append(event)
    for name in () if event.again is UNSET else event.again:
        view.steps[name].again = True


def _waived(view: ReleaseView, event: Waived, recorded: RecordedEvent) -> None:
    view.waivers[event.waiver] = Waiver(event, recorded.header.actor.who, recorded.header.time)


def _retired(view: ReleaseView, event: WaiverRetired, recorded: RecordedEvent) -> None:
    view.waivers[event.waiver].retired = event.why


def _accepted(view: ReleaseView, event: RegressionAccepted, recorded: RecordedEvent) -> None:
    view.issues[event.issue] = Issue(event, recorded.header.actor.who, recorded.header.time)


def _prepared(view: ReleaseView, event: Prepared, recorded: RecordedEvent) -> None:
    view.archives.append(event)
    view.aside.discard(event.digest)


def _quarantined(view: ReleaseView, event: Quarantined, recorded: RecordedEvent) -> None:
    if view.started is not None:
        view.quarantined.append(event)
        view.aside.add(event.digest)


def _requested(view: ReleaseView, event: ApprovalRequested, recorded: RecordedEvent) -> None:
    view.approvals.setdefault(event.step, []).append(Approval(event, recorded.header.time))


def _decided(view: ReleaseView, event: ApprovalDecided, recorded: RecordedEvent) -> None:
    approval = view.approvals[event.step][-1]
    approval.decided, approval.decided_at = event, recorded.header.time
    approval.actor = recorded.header.actor.who


def _override(view: ReleaseView, event: OverrideUsed, recorded: RecordedEvent) -> None:
    view.overrides.append(event)


def _healed(view: ReleaseView, event: AutohealDecided, recorded: RecordedEvent) -> None:
    view.heals.append(event)
    state = view.steps.get(event.step)
    if state is not None and state.last is not None and state.last.number == event.attempt and heals(event):
        state.again = True


RELEASE = View(
    "release",
    "where does each step of this release stand, on which commit, and what was let pass?",
    ReleaseView,
    {
        RunStarted: _started,
        StepStarted: _step_started,
        StepFinished: _step_finished,
        TipMoved: _tip_moved,
        ResumeStarted: _resumed,
        Waived: _waived,
        WaiverRetired: _retired,
        RegressionAccepted: _accepted,
        Prepared: _prepared,
        Quarantined: _quarantined,
        ApprovalRequested: _requested,
        ApprovalDecided: _decided,
        OverrideUsed: _override,
        AutohealDecided: _healed,
    },
)
