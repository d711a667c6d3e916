"""Where each step of a release stands now, by its flags and by the commit that counts.

The newest attempt of a step decides. First match wins:

| the newest attempt                                            | standing   |
|---|---|
| is running                                                    | running    |
| does not exist, or the step was asked for again               | pending    |
| consumes the candidate, and ran on a commit that does not count any more | stale |
| built an archive, which was moved aside since                 | stale      |
| did not pass, and a waiver for it on this commit holds        | waived     |
| of an approval: it was rejected, on the commit that counts    | failed     |
| of an approval: what was shown is not what is so now          | stale      |
| of an approval: nobody answered yet                           | awaiting   |
| otherwise                                                     | its outcome: passed, failed, unmeasured |

A step is *settled* when it passed or is waived; when it is tolerated and has ended on the commit that counts; and
always when it is an observer. Only what is settled lets the steps that need it go on. A waived step never passes.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ledger.steps import Step, StepGraph
from ledger.values import Commit, Digest, Verdict
from projections.release.graph import needed_by
from projections.release.state import ReleaseView, StepAttempt, StepState, Waiver, archive_of

State = Literal["pending", "running", "stale", "waived", "awaiting", "passed", "failed", "unmeasured"]


class Standing(Struct, frozen=True, kw_only=True):
    """Where a step stands. `attempt` counts its attempts, 0 for none; `commit` is that of the newest.

    `why` says why it is stale or waived. `waiver` names the waiver that holds.
    """

    step: str
    state: State
    settled: bool
    attempt: int = 0
    commit: Commit = ""
    why: str = ""
    waiver: str = ""


class Now(Struct, frozen=True):
    """What of the present the standing depends on: the day in UTC, and the digest of what would be shown to somebody
    who had to approve now ("" when that is not known)."""

    date: str
    shown: Digest = ""


def standings(view: ReleaseView, graph: StepGraph, now: Now) -> dict[str, Standing]:
    """The standing of every step, in the order of the steps.

    An approval stands, whatever changes on that commit, from when everything irreversible that needs it was done. A
    missing archive is of no account any more from when anything irreversible was done: it cannot be built anew.
    """
    used = _used(view, graph)
    return {step.name: standing(view, step, now, used=step.name in used) for step in graph.steps}


def pinned_by(view: ReleaseView, graph: StepGraph) -> str:
    """The first irreversible step that was done on the commit that counts, is being done, or may have been done: from
    then on that commit stays the one that counts. "" before. One that says itself that it failed was not done."""
    steps = (step for step in graph.steps if step.irreversible)
    return next((one.name for one in steps if view.steps[one.name].running or _may_be_done(view, one)), "")


NEVER_BEGAN = frozenset({"secret-missing", "worktree-failed", "work-root-refused", "step-not-started"})
"""Why an attempt is unmeasured of which nothing was carried out."""


def _may_be_done(view: ReleaseView, step: Step) -> bool:
    return _was_done(view, step) or is_unknown(view.steps[step.name], view.commit)


def is_unknown(state: StepState, commit: Commit) -> bool:
    """Whether the newest attempt may or may not have done what it was to do."""
    last = state.last
    if last is None or last.commit != commit or last.outcome != "unmeasured":
        return False
    return last.report.cause not in NEVER_BEGAN


def _used(view: ReleaseView, graph: StepGraph) -> set[str]:
    done = {step.name for step in graph.steps if step.irreversible and _was_done(view, step)}
    needs = {step.name: needed_by(graph, step.name) for step in graph.steps if step.irreversible}
    approvals = {need for name in done for need in needs[name] if graph.step(need).uses == "approve"}
    approvals -= {need for name, found in needs.items() if name not in done for need in found}
    return approvals | {step.name for step in graph.steps if step.uses == "prepare" and done}


def _was_done(view: ReleaseView, step: Step) -> bool:
    last = view.steps[step.name].last
    return last is not None and last.outcome == "passed" and last.commit == view.commit


def standing(view: ReleaseView, step: Step, now: Now, *, used: bool = False) -> Standing:
    """The standing of one step, by the table above; `used` is one whose approval or archive served its purpose."""
    state = view.steps[step.name]
    found, why, waiver = _state(view, step, state, now, used=used)
    attempt = state.last
    return Standing(
        step=step.name,
        state=found,
        settled=_settles(step, found, attempt),
        attempt=attempt.number if attempt else 0,
        commit=attempt.commit if attempt else "",
        why=why,
        waiver=waiver,
    )


def _state(view: ReleaseView, step: Step, state: StepState, now: Now, *, used: bool) -> tuple[State, str, str]:
    attempt = state.last
    if state.running is not None and step.uses != "approve":
        return "running", "", ""
    if attempt is None or state.again:
        return "pending", "", ""
    if step.uses == "approve":
        return _approval(view, step, attempt, Now(now.date) if used else now)
    if step.consumes_candidate and attempt.commit != view.commit:
        return "stale", f"it ran on {attempt.commit[:12]}, and {view.commit[:12]} counts now", ""
    if step.uses == "prepare" and attempt.outcome == "passed" and not used and _lost_its_archive(view):
        return "stale", "its archive was moved aside", ""
    waiver = None if attempt.outcome == "passed" else valid_waiver(view, step.name, now.date)
    if waiver is not None:
        return "waived", waiver.waived.reason, waiver.waived.waiver
    doubt = (
        "it may have been done: look before it is run again"
        if step.irreversible and is_unknown(state, view.commit)
        else ""
    )
    return _ended(attempt.outcome), doubt, ""


def _lost_its_archive(view: ReleaseView) -> bool:
    return archive_of(view) is None and any(one.commit == view.commit for one in view.archives)


def _ended(outcome: Verdict | None) -> State:
    return outcome or "running"


def _approval(view: ReleaseView, step: Step, attempt: StepAttempt, now: Now) -> tuple[State, str, str]:
    """An approval holds for what was shown, whatever else has happened since."""
    asked = [one for one in view.approvals.get(step.name, ()) if one.requested.attempt == attempt.number]
    if not asked:
        return "pending", "", ""
    requested, decided = asked[-1].requested, asked[-1].decided
    changed = requested.commit != view.commit or (bool(now.shown) and now.shown != requested.shown)
    if decided is None:
        return ("stale", "what would have to be approved has changed", "") if changed else ("awaiting", "", "")
    if decided.decision == "rejected" and requested.commit == view.commit:
        return "failed", f"rejected by {decided.by}: {decided.reason}", ""
    if changed:
        return "stale", "what was decided on is not what would be released now", ""
    return "passed", "", ""


def _settles(step: Step, state: State, attempt: StepAttempt | None) -> bool:
    if step.observer or state in ("passed", "waived"):
        return True
    return step.tolerated and state in ("failed", "unmeasured")


def valid_waiver(view: ReleaseView, step: str, date: str) -> Waiver | None:
    """The waiver that holds for the newest attempt at a step, if there is one: it was given for this attempt, on the
    commit that counts now, was not retired, and its last day is not over."""
    last = view.steps[step].last
    for waiver in reversed(view.waivers.values()):
        given = waiver.waived
        holds = not waiver.retired and given.commit == view.commit and (not given.expires or date <= given.expires)
        if given.step == step and last is not None and given.attempt == last.number and holds:
            return waiver
    return None


def valid_waivers(view: ReleaseView, graph: StepGraph, date: str) -> Mapping[str, Waiver]:
    """The waivers that hold now, by step."""
    found = ((step.name, valid_waiver(view, step.name, date)) for step in graph.steps)
    return {name: waiver for name, waiver in found if waiver is not None}
