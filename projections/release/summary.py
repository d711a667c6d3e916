"""The summary of a release: where it stands, what was let pass, what was built, who approved, and what to do next."""

from typing import Literal

from msgspec import Struct

from ledger.events import StepProbe
from ledger.steps import StepGraph
from ledger.values import Commit, Verdict
from projections.registry import RunViews
from projections.release.graph import main_steps
from projections.release.standing import Now, Standing, standings, valid_waivers
from projections.release.state import StepAttempt, archive_of

State = Literal["running", "waiting", "ready", "rejected", "interrupted", "stopped", "finished", "open"]


class AttemptRow(Struct, frozen=True, kw_only=True):
    """One attempt at a step. `outcome` is "" while it runs; `counts` is false for one that does not count any more."""

    number: int
    commit: Commit
    outcome: str
    verdict: str
    cause: str
    detail: str
    summary: str
    probes: tuple[StepProbe, ...]
    gate: str
    started_at: str
    ended_at: str
    counts: bool


class StepRow(Struct, frozen=True, kw_only=True):
    """Where a step stands, and every attempt at it, the newest last."""

    step: str
    uses: str
    state: str
    settled: bool
    why: str
    flags: tuple[str, ...]
    attempts: tuple[AttemptRow, ...]


class WaiverRow(Struct, frozen=True, kw_only=True):
    """A waiver; `holds` says whether it counts now."""

    waiver: str
    step: str
    commit: Commit
    outcome: str
    cause: str
    reason: str
    by: str
    time: str
    expires: str
    holds: bool


class IssueRow(Struct, frozen=True, kw_only=True):
    """A known issue that the release ships with."""

    issue: str
    note: str
    commit: Commit
    by: str
    time: str


class ApprovalRow(Struct, frozen=True, kw_only=True):
    """A request for an approval, and its answer; `decision` is "" while there is none."""

    step: str
    commit: Commit
    requested_at: str
    decision: str
    by: str
    actor: str
    reason: str
    decided_at: str


class ArchiveRow(Struct, frozen=True, kw_only=True):
    """An archive that was prepared, or set aside (`reason` says why, `place` where it is now)."""

    commit: Commit
    digest: str
    size_bytes: int
    place: str
    state: Literal["current", "earlier", "set-aside"]
    reason: str = ""


class ReleaseSummary(Struct, frozen=True, kw_only=True):
    """A release on one page. What was let pass stands first; `attempt` counts how often it was taken up again.

    `stop_reason` is why its driver left before the end, "" where it did not. `state` is waiting while a person has to
    answer, and ready when everything was answered and nobody drives it, or rejected.
    """

    release: str
    version: str
    state: State
    verdict: Verdict | None
    stop_reason: str
    ended_for: str
    waiting_for: str
    waivers: tuple[WaiverRow, ...]
    issues: tuple[IssueRow, ...]
    overrides: tuple[tuple[str, str], ...]
    candidate: Commit
    commit: Commit
    moves: tuple[tuple[Commit, Commit, str], ...]
    branch: str
    baseline: Commit
    baseline_ref: str
    steps: tuple[StepRow, ...]
    archives: tuple[ArchiveRow, ...]
    approvals: tuple[ApprovalRow, ...]
    attempt: int
    attempts_max: int
    started_at: str
    ended_at: str
    position: int
    sequence: int
    next_command: str
    as_of: str = ""


class ReleaseRow(Struct, frozen=True, kw_only=True):
    """A release on one line; `at` is the step that it ended for or waits at, `waivers` counts those that hold."""

    version: str
    run: str
    state: State
    verdict: Verdict | None
    at: str
    commit: Commit
    waivers: int
    resumed: int
    started_at: str


def row_of(summary: ReleaseSummary) -> ReleaseRow:
    """The release on one line."""
    return ReleaseRow(
        version=summary.version,
        run=summary.release,
        state=summary.state,
        verdict=summary.verdict,
        at=summary.ended_for or summary.waiting_for,
        commit=summary.commit,
        waivers=sum(waiver.holds for waiver in summary.waivers),
        resumed=summary.attempt,
        started_at=summary.started_at,
    )


def summarize_release(
    views: RunViews, graph: StepGraph, now: Now, *, alive: bool | None, as_of: str = ""
) -> ReleaseSummary:
    """The summary at this moment; `alive` says whether a driver holds the release, None when nobody can tell."""
    view, run = views.release, views.run
    standing = standings(view, graph, now)
    waiting = next((name for name, here in standing.items() if here.state == "awaiting"), "")
    if not waiting and run.status != "finished":
        waiting = next((one.content.step for one in views.questions.open()), "")
    state = _state(views, alive, waiting, as_of)
    holds = {waiver.waived.waiver for waiver in valid_waivers(view, graph, now.date).values()}
    begun = view.begun
    return ReleaseSummary(
        release=begun.run,
        version=str(begun.version),
        state=state,
        verdict=run.verdict,
        stop_reason=run.stop_reason,
        ended_for=_ended_for(graph, standing) if run.status == "finished" else "",
        waiting_for=waiting if state == "waiting" else "",
        waivers=tuple(
            WaiverRow(
                waiver=one.waived.waiver,
                step=one.waived.step,
                commit=one.waived.commit,
                outcome=one.waived.outcome,
                cause=one.waived.cause,
                reason=one.waived.reason,
                by=one.by,
                time=one.time,
                expires=one.waived.expires,
                holds=one.waived.waiver in holds,
            )
            for one in view.waivers.values()
        ),
        issues=tuple(
            IssueRow(
                issue=one.accepted.issue, note=one.accepted.note, commit=one.accepted.commit, by=one.by, time=one.time
            )
            for one in view.issues.values()
        ),
        overrides=tuple((one.what, one.reason) for one in view.overrides),
        candidate=begun.candidate,
        commit=view.commit,
        moves=tuple((move.previous, move.commit, move.time) for move in view.moves),
        branch=begun.branch or "",
        baseline=begun.baseline,
        baseline_ref=begun.baseline_ref,
        steps=tuple(_step_row(step.name, views, graph, standing[step.name]) for step in graph.steps),
        archives=_archives(views),
        approvals=_approvals(views),
        attempt=run.resumes,
        attempts_max=graph.attempts_max,
        started_at=run.started_at,
        ended_at=run.ended_at,
        position=run.position,
        sequence=run.sequence,
        next_command="" if as_of else _next_command(state, views, graph, standing, waiting),
        as_of=as_of,
    )


def _state(views: RunViews, alive: bool | None, waiting: str, as_of: str) -> State:
    if views.run.status == "finished":
        return "finished"
    if waiting:
        return "waiting"
    if views.run.status == "stopped":
        if views.run.stop_reason != "waiting":
            return "stopped"
        return "rejected" if _is_rejected(views) else "ready"
    if as_of:
        return "open"
    return "interrupted" if alive is False else "running"


def _is_rejected(views: RunViews) -> bool:
    answers = (asked[-1].decided for asked in views.release.approvals.values())
    return any(answer is not None and answer.decision == "rejected" for answer in answers)


def _ended_for(graph: StepGraph, standing: dict[str, Standing]) -> str:
    return next((step.name for step in main_steps(graph) if not standing[step.name].settled), "")


def _step_row(name: str, views: RunViews, graph: StepGraph, standing: Standing) -> StepRow:
    step, attempts = graph.step(name), views.release.steps[name].attempts
    named = ("waivable", "tolerated", "irreversible", "observer")
    return StepRow(
        step=name,
        uses=step.uses,
        state=standing.state,
        settled=standing.settled,
        why=standing.why,
        flags=tuple(flag for flag in named if getattr(step, flag)),
        attempts=tuple(
            _attempt_row(one, counts=one is attempts[-1] and standing.state not in ("stale", "pending"))
            for one in attempts
        ),
    )


def _attempt_row(attempt: StepAttempt, *, counts: bool) -> AttemptRow:
    report = attempt.report
    return AttemptRow(
        number=attempt.number,
        commit=attempt.commit,
        outcome=attempt.outcome or "",
        verdict=report.verdict,
        cause=report.cause,
        detail=report.detail,
        summary=report.summary,
        probes=report.probes,
        gate=attempt.gate,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        counts=counts,
    )


def _archives(views: RunViews) -> tuple[ArchiveRow, ...]:
    view, current = views.release, archive_of(views.release)
    kept = [
        ArchiveRow(
            commit=one.commit,
            digest=one.digest,
            size_bytes=one.size_bytes,
            place=one.place,
            state="current" if one is current else "earlier",
        )
        for one in view.archives
        if one.digest not in view.aside
    ]
    commits = {one.digest: one.commit for one in view.archives}
    moved = [
        ArchiveRow(
            commit=commits.get(one.digest, ""),
            digest=one.digest,
            size_bytes=one.size_bytes,
            place=one.place,
            state="set-aside",
            reason=one.reason,
        )
        for one in view.quarantined
    ]
    return (*moved, *kept)


def _approvals(views: RunViews) -> tuple[ApprovalRow, ...]:
    return tuple(
        ApprovalRow(
            step=name,
            commit=one.requested.commit,
            requested_at=one.requested_at,
            decision=one.decided.decision if one.decided else "",
            by=one.decided.by if one.decided else "",
            actor=one.actor,
            reason=one.decided.reason if one.decided else "",
            decided_at=one.decided_at,
        )
        for name, asked in views.release.approvals.items()
        for one in asked
    )


def _next_command(state: State, views: RunViews, graph: StepGraph, standing: dict[str, Standing], waiting: str) -> str:
    release = views.release.begun.run
    if state == "running":
        return f"ledger status {release}"
    if state == "waiting":
        return f"ledger approve {release}" if graph.step(waiting).uses == "approve" else f"ledger questions {release}"
    step = _ended_for(graph, standing)
    if step and graph.step(step).uses == "gate" and standing[step].state == "failed" and views.release.begun.branch:
        # To run it again would come to the same.
        return f"ledger release repair {views.release.begun.version} --pick SHA"
    return f"ledger resume {release} --from {step}" if step else ""
