"""Decisions about the steps of a release: start it, begin a step, record what it came to, end the release.

Rules:
- a release is started once; its steps must not contradict each other, and its version must be one.
- a step begins when it is the next one: nothing runs, and everything that it needs, and that comes before, is settled.
- what cannot be taken back begins only while every approval that it needs holds for what would be released: the same
  commit, archive, waivers, known issues and muted tests, and the archive on disk is still the one that was approved.
- an attempt ends once. What passes when it is tried again at once is `flaky`.
- a release ends when nothing is left to do; it has passed only when every step is settled.
"""

from msgspec import UNSET
from msgspec.structs import replace

from commands.decide.base import NOTHING, Decided, Documents, Needs, stored
from commands.decide.release.next import CUT_OFF, Begin, Finish, next_move
from commands.messages import (
    BeginReleaseStep,
    EndReleaseStep,
    FinishRelease,
    RecordQuarantine,
    Refusal,
    StartRelease,
)
from ledger.events import (
    ApprovalRequested,
    Event,
    Prepared,
    Quarantined,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from ledger.steps import Step, StepGraph
from projections.registry import RunViews
from projections.release.approval import shown_now
from projections.release.graph import contradictions, needed_by
from projections.release.standing import Now, Standing, standings
from projections.release.state import STEP_ASKS, archive_of
from projections.release.version import is_release


def graph_needed(message: object, views: RunViews) -> Needs:
    """The steps of the release."""
    graph = views.run.begun.graph if views.run.started else UNSET
    return {graph: StepGraph} if graph is not UNSET else {}


def start_needs(message: StartRelease, views: RunViews) -> Needs:
    """The steps that the release is to have."""
    return {message.graph: StepGraph}


def graph_of(views: RunViews, documents: Documents) -> StepGraph:
    """The steps that this release was started with. Refused for a run that is no release."""
    graph = views.run.begun.graph
    if graph is UNSET:
        raise Refusal(
            "not-a-release", f"run {views.run.run} is a gate and no release", "`ledger release list` lists the releases"
        )
    return documents.get(graph, StepGraph)


def start_release(message: StartRelease, views: RunViews, documents: Documents) -> Decided:
    """A new release; the same start twice is one start."""
    if views.run.started is not None:
        return NOTHING
    graph = documents.get(message.graph, StepGraph)
    if not is_release(message.version):
        raise Refusal(
            "version-invalid",
            f"{message.version!r} is no version of a release",
            "use x.y.z, or x.y.z-rc.N (alpha, beta) for a prerelease",
        )
    found = contradictions(graph)
    if found:
        told = "; ".join(f"{one.step}: {one.message}" if one.step else one.message for one in found[:3])
        raise Refusal("steps-contradict", f"the steps cannot be run: {told}", "`ledger release check` lists everything")
    if message.candidate == message.baseline and any(step.uses == "gate" for step in graph.steps):
        raise Refusal(
            "equal-commits",
            f"candidate and baseline are the same commit ({message.candidate[:12]}), so there is nothing to compare",
            "name another baseline with --baseline REF",
        )
    return Decided(
        (
            RunStarted(
                run=message.run,
                kind="release",
                candidate=message.candidate,
                candidate_ref=message.candidate_ref,
                baseline=message.baseline,
                baseline_ref=message.baseline_ref,
                baseline_reason=message.baseline_reason,
                dirty=message.dirty,
                steps=graph.names(),
                policy=message.policy,
                config=message.config,
                version=message.version,
                graph=message.graph,
                branch=message.branch,
                remote=message.remote,
            ),
        )
    )


def begin_release_step(message: BeginReleaseStep, views: RunViews, documents: Documents) -> Decided:
    """A new attempt at a step, on the commit that counts. Nothing when it is not the next thing to do."""
    graph, view = graph_of(views, documents), views.release
    step = known_step(message.step, graph)
    shown, document = stored(shown_now(view, graph, message.date, message.mutes))
    now = Now(message.date, shown)
    standing = standings(view, graph, now)
    _check_needs(step, graph, standing)
    if next_move(views, graph, now) != Begin(step.name):
        return NOTHING
    if step.irreversible:
        _check_archive(views, message)
    state = view.steps[step.name]
    attempt = len(state.attempts) + 1
    gate = message.gate
    if step.uses == "gate" and state.last is not None and state.last.commit == view.commit:
        gate = state.last.gate
    started = StepStarted(
        step=step.name,
        attempt=attempt,
        commit=view.commit,
        term=views.run.term,
        gate=gate if step.uses == "gate" else UNSET,
    )
    if step.uses != "approve":
        return Decided((started,))
    asked = ApprovalRequested(step=step.name, attempt=attempt, commit=view.commit, shown=shown)
    return Decided((started, asked), (document,))


def _check_needs(step: Step, graph: StepGraph, standing: dict[str, Standing]) -> None:
    """Everything that the step needs, directly or not, has settled; approvals hold for what would be released now."""
    for name in needed_by(graph, step.name):
        here = standing[name]
        if graph.step(name).uses == "approve" and step.irreversible and here.state != "passed":
            raise Refusal(
                "approval-stale",
                f"{step.name} cannot be taken back, and the approval {name} does not hold: "
                f"{here.why or f'it is {here.state}'}",
                f"`ledger resume --from {name}` asks for it anew",
            )
        if not here.settled:
            raise Refusal("needs-unsettled", f"{step.name} needs {name}, which is {here.state}")


def _check_archive(views: RunViews, message: BeginReleaseStep) -> None:
    """The archive on disk is the one that was prepared and approved."""
    archive = archive_of(views.release)
    if archive is not None and archive.digest != message.archive:
        raise Refusal(
            "archive-changed",
            f"the archive in {archive.place} is not the one that was prepared and approved",
            f"move away what is there and look who changed it, then resume --from {archive.step}",
        )


def end_release_step(message: EndReleaseStep, views: RunViews, documents: Documents) -> Decided:
    """The end of an attempt; one that has ended already has ended. What an approval comes to is for people to say."""
    graph = graph_of(views, documents)
    state = views.release.steps[message.step]
    running = state.running
    if running is None or running.number != message.attempt or graph.step(message.step).uses == "approve":
        return NOTHING
    report = message.report
    if message.outcome == "passed" and _was_tried_at_once(graph.step(message.step), views):
        report = replace(report, verdict="flaky")
    ended = StepFinished(
        step=message.step,
        outcome=message.outcome,
        attempt=message.attempt,
        commit=message.commit,
        report=report,
        output=message.output if message.output is not None else UNSET,
        errors=message.errors if message.errors is not None else UNSET,
    )
    events: list[Event] = [ended]
    if message.digest:
        prepared = Prepared(
            step=message.step,
            version=str(views.run.begun.version),
            commit=message.commit,
            digest=message.digest,
            size_bytes=message.size_bytes,
            files=message.files,
            place=message.place,
        )
        events.insert(0, prepared)
    return Decided(tuple(events))


def _was_tried_at_once(step: Step, views: RunViews) -> bool:
    """Whether the try of this step before, which came to its end and did not ask instead, did not pass."""
    tries = [one for one in views.release.steps[step.name].attempts[:-1] if one.position > views.run.resumed_at]
    ended = [one for one in tries if one.report.cause not in (*CUT_OFF, STEP_ASKS)]
    return step.retries > 0 and bool(ended) and ended[-1].outcome != "passed"


def record_quarantine(message: RecordQuarantine, views: RunViews, documents: Documents) -> Decided:
    """An archive of this release lies elsewhere now."""
    moved = Quarantined(
        what="archive",
        place=message.place,
        digest=message.digest,
        size_bytes=message.size_bytes,
        reason=message.reason,
        kept_sequence=0,
        lost=(),
    )
    return Decided((moved,))


def finish_release(message: FinishRelease, views: RunViews, documents: Documents) -> Decided:
    """The end of the release, as its steps have it."""
    if views.run.status == "finished":
        return NOTHING
    graph = graph_of(views, documents)
    shown, _ = stored(shown_now(views.release, graph, message.date, message.mutes))
    move = next_move(views, graph, Now(message.date, shown))
    if not isinstance(move, Finish):
        raise Refusal("release-unfinished", f"there is still something to do: {move.step}")
    return Decided((RunFinished(verdict=move.verdict),))


def known_step(name: str, graph: StepGraph) -> Step:
    """The step of this name, or a refusal that lists what there is."""
    if name not in graph.names():
        raise Refusal(
            "step-unknown", f"this release has no step {name!r}", f"its steps are: {', '.join(graph.names())}"
        )
    return graph.step(name)
