"""What resuming a release would do, before anything is done: the same answer for a dry run and for the real one."""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ledger.events import RecheckPlanned, StepReport
from ledger.steps import Step, StepGraph
from ledger.values import Commit
from projections.release.graph import dependents, main_steps
from projections.release.healing import rerouted, rerouted_by, told
from projections.release.standing import Now, Standing, pinned_by, standings
from projections.release.state import ReleaseView
from projections.reuse.partial import Full

Action = Literal["again", "run", "kept", "waived", "awaiting"]
GateMode = Literal["full", "owed", "partial", "not-run"]


class Tip(Struct, frozen=True, kw_only=True):
    """The branch of the release as its remote has it. `commit` is None where there is no branch, or nobody asked;
    `forward` says that it can be reached from the commit that counted by going forward."""

    commit: Commit | None = None
    forward: bool = True


class StepPlan(Struct, frozen=True, kw_only=True):
    """What becomes of one step: run `again`, `run` for the first time, `kept` as it stands, `waived`, or `awaiting` an
    answer; and why."""

    step: str
    action: Action
    why: str


class ReleasePlan(Struct, frozen=True, kw_only=True):
    """What resuming would do. `boundary` is the earliest step whose result does not count on the commit `to`, "" when
    all do. `pinned` names what was begun on `previous` and cannot be taken back: from then on the branch is not
    followed, "" before. `gate` says how much of the gate would be run, and `gate_reason` why. `attempt` numbers this
    resume, 0 when the release merely goes on; `attempts_max` is the most. `retired` are the waivers that would not
    count any more.
    `healing` is what was decided last about the gate that is taken up again, in words, "" for nothing. `reroute` is the
    shard that the gate moves to another member of the pool, `auto` for those that the pool chooses, "" for none."""

    release: str
    version: str
    step: str
    branch: str
    previous: Commit
    to: Commit
    moved: bool
    boundary: str
    steps: tuple[StepPlan, ...]
    gate: GateMode
    gate_reason: str
    attempt: int
    attempts_max: int
    retired: tuple[str, ...] = ()
    pinned: str = ""
    healing: str = ""
    reroute: str = ""
    recheck: RecheckPlanned | None = None

    @property
    def again(self) -> tuple[str, ...]:
        """The steps that are asked for again."""
        return tuple(one.step for one in self.steps if one.action == "again")


def moved_to(view: ReleaseView, commit: Commit) -> ReleaseView:
    """The release as it would be were this the commit that counts."""
    return view if commit == view.commit else replace(view, commit=commit)


SETTLED = ("run", "prepare")
"""What a driver that died has ended with it; all else is taken up where it was."""


def as_if_settled(view: ReleaseView, graph: StepGraph) -> ReleaseView:
    """The release as it will be when the commands of a dead driver have been brought to rest, as far as that can be
    told beforehand: whether one had said something until then is seen only afterwards."""
    steps = dict(view.steps)
    for step in graph.steps:
        state = steps[step.name]
        if step.uses in SETTLED and state.running is not None:
            ended = replace(state.running, outcome="unmeasured", report=StepReport(cause="step-driver-died"))
            steps[step.name] = replace(state, attempts=[*state.attempts[:-1], ended])
    return replace(view, steps=steps)


def plan_release(
    view: ReleaseView,
    graph: StepGraph,
    step: str,
    tip: Tip,
    date: str,
    *,
    waive: str = "",
    regate: RecheckPlanned | Full | None = None,
    reroute: str = "",
    members: Collection[str] = (),
    accepts: bool = False,
    ended: bool = False,
) -> ReleasePlan:
    """What resuming from this step would do. It says so of requests that are refused, too.

    `regate` is how much of a gate of another commit than the last would be measured again; None for all of it.
    `reroute` is the shard that somebody wants on another of the `members` of the pool; "" leaves that to what was
    decided last. `accepts`: known issues are accepted as well, which changes what an approval is about. `ended`: the
    release has come to an end, which takes an attempt to be undone.
    """
    pinned = pinned_by(view, graph)
    to = view.commit if pinned else tip.commit or view.commit
    then = moved_to(view, to)
    standing = standings(then, graph, Now(date))
    steps = _plan_steps(graph, step, standing, waive)
    if accepts and not pinned:
        steps = tuple(_shown_anew(one) if graph.step(one.step).uses == "approve" else one for one in steps)
    again = {one.step for one in steps if one.action == "again"}
    goes_on = not (waive or again or reroute or ended) and to == view.commit
    mode, reason = _gate(then, graph, steps, regate)
    decided = view.healing_of(step)
    decided = decided if decided is not None and decided.commit == to else None
    moves = rerouted(reroute) or (rerouted_by(decided) if len(members) > 1 else "")
    return ReleasePlan(
        release=view.begun.run,
        version=str(view.begun.version),
        step=step,
        branch=view.begun.branch or "",
        previous=view.commit,
        to=to,
        moved=to != view.commit,
        boundary=_boundary(graph, standing),
        steps=steps,
        gate=mode,
        gate_reason=reason,
        recheck=regate if mode == "partial" and isinstance(regate, RecheckPlanned) else None,
        attempt=0 if goes_on else len(view.resumes) + 1,
        attempts_max=graph.attempts_max,
        retired=tuple(name for name, one in view.waivers.items() if not one.retired and one.waived.step in again),
        pinned=pinned,
        healing=told(decided) if decided is not None else "",
        reroute=moves,
    )


def _boundary(graph: StepGraph, standing: dict[str, Standing]) -> str:
    stale = (step.name for step in main_steps(graph) if not step.observer and standing[step.name].state == "stale")
    return next(stale, "")


def _plan_steps(graph: StepGraph, start: str, standing: dict[str, Standing], waive: str) -> tuple[StepPlan, ...]:
    """What becomes of every step of a release that goes well, when it is taken up again at `start`."""
    first = _start(graph.step(start), standing[start], waive)
    # Who gave an approval says nothing about the steps after it; what is waived was not run again.
    forces = first.action == "again" and graph.step(start).uses != "approve"
    forced = dependents(graph, start) if forces else frozenset[str]()
    names = graph.names()
    found = []
    for step in main_steps(graph):
        if step.name == start:
            found.append(first)
        elif names.index(step.name) < names.index(start):
            found.append(StepPlan(step=step.name, action="kept", why=_said(standing[step.name])))
        else:
            why = f"it needs {start}, directly or not" if step.name in forced else ""
            found.append(_later(step, standing[step.name], why))
    return tuple(found)


def _start(step: Step, here: Standing, waive: str) -> StepPlan:
    """The step to start from is run again, unless it has not ended yet, or is an approval that has not been refused."""
    if step.name == waive:
        return StepPlan(step=step.name, action="waived", why="as asked for")
    if here.state == "running":
        return StepPlan(step=step.name, action="run", why="it has begun, and is brought to its end first")
    return _not_run_again(step, here) or StepPlan(step=step.name, action="again", why=_said(here))


def _later(step: Step, here: Standing, forced: str) -> StepPlan:
    """A step after that is run again when it has to, or when its result does not count."""
    found = _not_run_again(step, here)
    if found is not None:
        return found
    if step.irreversible and here.state == "unmeasured" and here.why:
        # Only who resumes from it says that it is to be done again.
        return StepPlan(step=step.name, action="kept", why=_said(here))
    if forced:
        return StepPlan(step=step.name, action="again", why=forced)
    unsettled = not here.settled or here.state == "stale"
    return StepPlan(step=step.name, action="again" if unsettled else "kept", why=_said(here))


def _not_run_again(step: Step, here: Standing) -> StepPlan | None:
    """What becomes of a step by itself, wherever the release is taken up again; None when that depends."""
    if here.attempt == 0:
        return StepPlan(step=step.name, action="run", why="it was not run yet")
    if here.state == "pending":
        return StepPlan(step=step.name, action="run", why="it was asked for again already")
    if step.uses != "approve":
        return None
    if here.state == "awaiting":
        return StepPlan(step=step.name, action="awaiting", why="nobody has answered yet")
    if here.state == "passed":
        return StepPlan(step=step.name, action="kept", why="the approval holds while nothing of what was shown changes")
    if here.state == "stale":
        return StepPlan(step=step.name, action="run", why=_said(here))
    return None


def _shown_anew(plan: StepPlan) -> StepPlan:
    """An approval that was asked for is asked for again when something is accepted besides."""
    if plan.action not in ("kept", "awaiting"):
        return plan
    return StepPlan(step=plan.step, action="run", why="what is accepted changes what was shown")


def _said(standing: Standing) -> str:
    return f"{standing.state}: {standing.why}" if standing.why else standing.state


def _gate(
    then: ReleaseView, graph: StepGraph, steps: tuple[StepPlan, ...], regate: RecheckPlanned | Full | None
) -> tuple[GateMode, str]:
    """How much of the gate is run: what is owed where the commit is the same; else the part that may have changed, if
    that can be told, or everything."""
    gates = [one for one in steps if graph.step(one.step).uses == "gate"]
    for one in gates:
        if one.action not in ("again", "run"):
            continue
        last = then.steps[one.step].last
        if last is None:
            return "full", "there was no gate of this release yet"
        if last.commit != then.commit and isinstance(regate, RecheckPlanned):
            targets = f"{len(regate.targets)} target{'' if len(regate.targets) == 1 else 's'}"
            return "partial", f"{targets}; the rest is carried from gate {regate.gate} of {regate.commit[:12]}"
        if last.commit != then.commit:
            why = f", {regate.words()}" if isinstance(regate, Full) else ""
            return "full", f"the last one was of {last.commit[:12]}{why}"
        return "owed", "the commit is the same, so what was measured stands"
    told = ", ".join(f"{one.step} is {one.action}" for one in gates)
    return "not-run", told or "no step of this release is a gate"
