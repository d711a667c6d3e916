"""What a release has to do next, seen from where it stands. Level-triggered: the same state gives the same answer."""

from msgspec import Struct

from ledger.steps import Step, StepGraph
from ledger.values import Verdict
from projections.registry import RunViews
from projections.release.graph import main_steps
from projections.release.standing import Now, Standing, standings
from projections.release.state import STEP_ASKS, ReleaseView


class Begin(Struct, frozen=True):
    """Begin an attempt at a step."""

    step: str


class Execute(Struct, frozen=True):
    """Carry out the attempt that was promised under this driver's term."""

    step: str


class Settle(Struct, frozen=True):
    """Bring to rest what an earlier driver left of an attempt."""

    step: str


class Heal(Struct, frozen=True):
    """Decide what the program itself does about a gate that did not pass."""

    step: str


class Wait(Struct, frozen=True):
    """A person has to answer first."""

    step: str


class Finish(Struct, frozen=True):
    """Nothing is left to do; `step` is the one that it ends for, "" when all have settled."""

    verdict: Verdict
    step: str = ""


Move = Begin | Execute | Settle | Heal | Wait | Finish

CUT_OFF = ("step-driver-died", "step-stopped")
"""Why an attempt was not let come to its end, so that it says nothing about the step."""


def next_move(views: RunViews, graph: StepGraph, now: Now) -> Move:
    """The next thing to do. What runs comes first: under this driver's term it is carried out (Execute), under an older
    one it is brought to rest (Settle). Else the steps are looked at in order; the first that has not settled decides:

    | the step                                              | next    |
    |---|---|
    | is pending or stale                                   | Begin   |
    | awaits an answer, to an approval or a question        | Wait    |
    | asked something, and has its answer                   | Begin   |
    | did not pass, and may be tried again at once          | Begin   |
    | is a gate that did not pass, and nothing was decided yet about that | Heal |
    | did not pass, and leads to a step that was not run since | that step |
    | did not pass                                          | Finish  |

    What is decided to be healed is pending from then on. An observer is run like any other step, but whatever it comes
    to, the next one follows.
    """
    standing = standings(views.release, graph, now)
    running = next((name for name, here in standing.items() if here.state == "running"), None)
    if running is not None:
        return _running(running, views)
    moves = (_of_step(step, standing[step.name], views, graph) for step in main_steps(graph))
    return next((move for move in moves if move is not None), Finish("passed"))


def _of_step(step: Step, here: Standing, views: RunViews, graph: StepGraph) -> Move | None:
    if here.state in ("pending", "stale"):
        # An observer or a tolerated step whose result does not count any more is looked at anew as well.
        return Begin(step.name)
    if here.settled:
        return None
    if here.state == "awaiting":
        return Wait(step.name)
    if views.release.steps[step.name].has_asked:
        return _asked(step, views)
    # What cannot be taken back is done again only when somebody asks for it.
    if step.uses != "approve" and not step.irreversible and _tries(step, views) <= step.retries:
        return Begin(step.name)
    if is_to_be_healed(step, views.release, graph):
        return Heal(step.name)
    return _ended(step, "failed" if here.state == "failed" else "unmeasured", views)


def is_to_be_healed(step: Step, view: ReleaseView, graph: StepGraph) -> bool:
    """Whether the newest attempt at a gate came to its end and did not pass, and nothing was decided about that."""
    last = view.steps[step.name].last
    if not graph.autoheal or step.uses != "gate" or last is None or last.outcome in (None, "passed"):
        return False
    return last.report.cause not in CUT_OFF and view.healing_of(step.name) is None


def _asked(step: Step, views: RunViews) -> Move:
    """A step that asked is begun again when there is something to go on with; what was put off leaves it unmeasured."""
    asked = (one for one in reversed(views.questions.questions.values()) if one.content.step == step.name)
    record = next(asked, None)
    if record is None or not (record.is_open or record.choice or record.text):
        return _ended(step, "unmeasured", views)
    return Wait(step.name) if record.is_open else Begin(step.name)


def _running(step: str, views: RunViews) -> Move:
    attempt = views.release.steps[step].running
    own = attempt is not None and attempt.term == views.run.term
    return Execute(step) if own else Settle(step)


def _tries(step: Step, views: RunViews) -> int:
    """How often the step was tried since the release was last taken up, or was moved; to ask is no try."""
    attempts = (one for one in views.release.steps[step.name].attempts if one.report.cause != STEP_ASKS)
    return sum(one.position > views.run.resumed_at for one in attempts)


def _ended(step: Step, verdict: Verdict, views: RunViews) -> Move:
    """The step ends the release, after the step that it leads to."""
    name = step.on_failed if verdict == "failed" else step.on_unmeasured
    if name:
        handler, ended = views.release.steps[name].last, views.release.steps[step.name].last
        if handler is None or (ended is not None and handler.position < ended.position):
            return Begin(name)
    return Finish(verdict, step.name)
