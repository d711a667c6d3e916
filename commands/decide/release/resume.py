"""The decision to take a release up again: everything that was asked for in one append, or a refusal and nothing.

Rules, in this order:
- the release has not passed, and its steps are those that it was started with.
- the step is one of them, is run in a release that goes well, and is neither the cut nor an approval to be repeated.
- the branch is the release's own, is there, and went forward if it went anywhere; once something was begun that cannot
  be taken back, the branch is not followed any more, unless it failed.
- everything before the step is settled on the commit that counts then; a stale step before it is named.
- the cut, and what was done and cannot be taken back, are not done again.
- a waiver has its step and its reason, which is fit for the public; the step is the one to resume from, did not pass,
  may be waived, and ended the release; a gate that was measured is never waived; the branch has not moved.
- known issues have a name each, which none has yet, and a note.
- a shard goes to another member only when its gate is taken up again on the same commit, and the pool has another
  member.
- who waives may do so, and the resume is not one too many, unless somebody says why it is allowed.
"""

from datetime import date

from commands.decide.base import Decided, Documents, stored
from commands.decide.release.steps import graph_of, known_step
from commands.messages import Refusal, ResumeRelease
from ledger.events import (
    Event,
    OverrideUsed,
    RegressionAccepted,
    ResumeStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.steps import Step, StepGraph
from projections.people.public_text import public_fault
from projections.registry import RunViews
from projections.release.graph import handlers, main_steps
from projections.release.healing import AUTO
from projections.release.resume import ReleasePlan, Tip, moved_to, plan_release
from projections.release.standing import Now, standings
from projections.release.state import ReleaseView
from projections.reuse.partial import Full


def resume_release(message: ResumeRelease, views: RunViews, documents: Documents) -> Decided:
    """Take it up again. Nothing is recorded when it merely goes on, because then nothing has to be decided."""
    plan = plan_or_refuse(message, views, documents)
    view, number = views.release, views.run.resumes + 1
    events: list[Event] = []
    if plan.moved:
        events.append(TipMoved(previous=plan.previous, commit=plan.to, branch=plan.branch))
    events.extend(WaiverRetired(waiver=name, why="run-again") for name in plan.retired)
    if message.waive:
        events.append(_waived(message, view))
    events.extend(RegressionAccepted(issue=name, note=note, commit=plan.to) for name, note in message.accept)
    if plan.attempt > plan.attempts_max:
        events.append(OverrideUsed(what="attempts", reason=message.allow_attempt))
    if not plan.attempt:
        return Decided(tuple(events))
    digest, document = stored(plan)
    resumed = ResumeStarted(step=plan.step, number=number, owed=(), commit=plan.to, again=plan.again, plan=digest)
    return Decided((*events, resumed), (document,))


def plan_or_refuse(message: ResumeRelease, views: RunViews, documents: Documents) -> ReleasePlan:
    """What this resume does. Raises Refusal when a rule says no."""
    graph, view = graph_of(views, documents), views.release
    if views.run.status == "finished" and views.run.verdict == "passed":
        raise Refusal("release-passed", f"release {view.begun.version} has passed; there is nothing to take up again")
    step = known_step(message.step, graph)
    _check_step(step, graph, view)
    tip = Tip(commit=message.tip, forward=message.forward)
    regate = message.recheck or (Full(message.full, message.full_files) if message.full else None)
    plan = plan_release(
        view,
        graph,
        step.name,
        tip,
        message.date,
        waive=message.waive,
        regate=regate,
        reroute=message.reroute,
        members=message.members,
        accepts=bool(message.accept),
        ended=views.run.status == "finished",
    )
    if not plan.pinned:
        _check_tip(message, view)
    if bool(message.waive) != bool(message.reason):
        raise Refusal("waiver-pair", "--waive STEP and --reason TEXT go together")
    if message.waive:
        _check_waiver(message, graph, views, plan)
    _check_before(step, graph, moved_to(view, plan.to), message.date, plan)
    _check_nothing_twice(graph, view, plan)
    _check_issues(message, view)
    if message.reroute:
        _check_reroute(message, step, view, plan)
    if plan.attempt > plan.attempts_max and not message.allow_attempt.strip():
        taken = f"{len(view.resumes)} of {plan.attempts_max} times"
        raise Refusal(
            "attempts-exhausted",
            f"release {view.begun.version} was taken up again {taken} already",
            "--allow-attempt --reason TEXT allows one more, and is recorded",
        )
    return plan


def _check_step(step: Step, graph: StepGraph, view: ReleaseView) -> None:
    if step.name in handlers(graph):
        raise Refusal("step-aside", f"{step.name} runs only when another step went wrong; it is no step to resume from")
    if step.uses == "cut" and _has_passed(step.name, view):
        _refuse_a_second_cut(step.name)


def _refuse_a_second_cut(step: str) -> None:
    raise Refusal(
        "restart-at-cut",
        f"{step} has made the cut; a release is cut once",
        "`ledger release start` with the next version cuts anew",
    )


def _has_passed(step: str, view: ReleaseView) -> bool:
    last = view.steps[step].last
    return last is not None and last.outcome == "passed"


def _check_tip(message: ResumeRelease, view: ReleaseView) -> None:
    begun = view.begun
    if message.tip is None or message.tip == view.commit:
        return
    if not begun.branch:
        raise Refusal("not-own-branch", "this release was cut by commit, so there is no branch that could move")
    if not message.forward:
        raise Refusal(
            "not-fast-forward",
            f"{begun.branch} is at {message.tip[:12]}, which does not come after {view.commit[:12]}",
            "a release branch only goes forward; `ledger release repair` appends to it",
        )


def _check_before(step: Step, graph: StepGraph, then: ReleaseView, date: str, plan: ReleasePlan) -> None:
    """Everything before the step is settled. An approval is asked for again by itself when it does not hold."""
    standing = standings(then, graph, Now(date))
    for before in main_steps(graph):
        if before.name == step.name:
            return
        here = standing[before.name]
        if here.settled or (before.uses == "approve" and here.state == "stale"):
            continue
        if here.state == "stale":
            raise Refusal(
                "after-consumer",
                f"{step.name} comes after {plan.boundary}, whose result does not count any more: {here.why}",
                f"resume --from {plan.boundary}",
            )
        if before.uses == "approve" and here.state == "awaiting":
            raise Refusal(
                "approval-open", f"{before.name} waits for an answer", "`ledger approve` or `ledger reject` gives it"
            )
        raise Refusal(
            "predecessor-unsettled",
            f"{before.name}, which comes before {step.name}, is {here.state}",
            f"resume --from {before.name}",
        )


def _check_nothing_twice(graph: StepGraph, view: ReleaseView, plan: ReleasePlan) -> None:
    for name in plan.again:
        if graph.step(name).uses == "cut" and _has_passed(name, view):
            _refuse_a_second_cut(name)
        if graph.step(name).irreversible and (_has_passed(name, view) or view.steps[name].running):
            raise Refusal(
                "irreversible-done",
                f"{name} was done or begun and cannot be taken back, so nothing before it can be done again",
                "resume from a step after it, or start the release of the next version",
            )


def _check_waiver(message: ResumeRelease, graph: StepGraph, views: RunViews, plan: ReleasePlan) -> None:
    if not message.waive.strip() or not message.reason.strip():
        raise Refusal("waiver-blank", "--waive names no step, or --reason says nothing")
    if message.waive != message.step:
        raise Refusal(
            "waiver-from", f"{message.waive} is waived, so the release is resumed from it: --from {message.waive}"
        )
    fault = public_fault(message.reason)
    if fault:
        raise Refusal("waiver-reason-unsafe", f"the reason is shown to the public, and {fault}")
    if plan.moved:
        raise Refusal(
            "waiver-moved-tip",
            f"{plan.branch} has moved to {plan.to[:12]}; what is waived is the result on {plan.previous[:12]}",
            f"resume --from {plan.boundary or message.step} without a waiver first",
        )
    if message.expires and not is_day_from(message.expires, message.date):
        raise Refusal(
            "waiver-expired",
            f"a waiver counts to the end of a day that is not over, and not of {message.expires!r}",
            f"give a date from {message.date} on, or how many days it is to count",
        )
    step, last = graph.step(message.waive), views.release.steps[message.waive].last
    if not step.waivable:
        raise Refusal("waiver-protected", f"{step.name} may not be waived; its `waivable` is not set")
    if graph.may_waive and message.by not in graph.may_waive:
        raise Refusal("waiver-not-yours", f"{message.by} may not waive; these may: {', '.join(graph.may_waive)}")
    if last is None or last.outcome not in ("failed", "unmeasured"):
        raise Refusal("waiver-not-failed", f"{step.name} has not failed, so there is nothing to waive")
    if last.commit != views.release.commit or views.release.steps[step.name].again:
        raise Refusal("waiver-not-failed", f"{step.name} has not failed on the commit that counts")
    if step.uses == "gate" and last.outcome == "failed":
        raise Refusal(
            "waiver-protected",
            f"{step.name} was measured and failed; only a gate that could not be measured may be waived",
            "mute single tests with `ledger mute`, or repair the release",
        )


def is_day_from(text: str, today: str) -> bool:
    """Whether the text is a day, in ISO 8601, that is not before today."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return False
    return day.isoformat() == text and text >= today


def _check_issues(message: ResumeRelease, view: ReleaseView) -> None:
    names = [name for name, _ in message.accept]
    for name, note in message.accept:
        if not name.strip() or not note.strip():
            raise Refusal("issues-invalid", "every known issue needs a name and a note")
        fault = public_fault(note)
        if fault:
            raise Refusal("issues-invalid", f"the note of {name} is shown to the public, and {fault}")
    for name in names:
        if names.count(name) > 1 or name in view.issues:
            raise Refusal("issues-duplicate", f"there is a known issue {name!r} already")


def _check_reroute(message: ResumeRelease, step: Step, view: ReleaseView, plan: ReleasePlan) -> None:
    if step.uses != "gate" or message.waive:
        raise Refusal(
            "reroute-not-gate", f"only a gate has shards that can go elsewhere; {step.name} is not run as one"
        )
    last = view.steps[step.name].last
    if last is not None and last.commit != plan.to:
        raise Refusal(
            "reroute-moved-tip",
            f"{plan.branch} has moved to {plan.to[:12]}, whose gate has no shards yet that could go elsewhere",
            f"resume --from {step.name} without --reroute",
        )
    if plan.reroute != AUTO and plan.reroute not in message.shards:
        raise Refusal(
            "reroute-unknown",
            f"the gate has no shard {plan.reroute!r}",
            f"its shards are: {', '.join(message.shards) or 'none yet'}; `auto` leaves the choice to the pool",
        )
    if len(message.members) < 2:
        raise Refusal(
            "reroute-no-member",
            "the pool has no other member that a shard could go to",
            f"resume --from {step.name} without --reroute runs what is owed here",
        )


def _waived(message: ResumeRelease, view: ReleaseView) -> Waived:
    last = view.steps[message.waive].last
    assert last is not None
    return Waived(
        waiver=f"waiver-{len(view.waivers) + 1}",
        step=message.waive,
        attempt=last.number,
        commit=last.commit,
        outcome=last.outcome or "unmeasured",
        cause=last.report.cause,
        reason=message.reason.strip(),
        expires=message.expires,
    )
