"""Decisions about a run: start it, take it, resume it, stop it.

Rules:
- a ledger is created once; a run is started once; equal commits are refused.
- each driver has the next term; a later driver says that it replaces the one before.
- a run is resumed only from a step that it has; where nothing is owed there is nothing to resume.
"""

from msgspec import UNSET

from commands.decide.base import NOTHING, Decided, Documents
from commands.messages import BeginStep, CreateLedger, Refusal, ResumeRun, StartRun, StopRun, TakeRun
from ledger.events import (
    FORMAT_VERSION,
    DriverReplaced,
    DriverStarted,
    Event,
    LedgerCreated,
    ResumeStarted,
    RunStarted,
    RunStopped,
    StepStarted,
)
from projections.registry import RunViews
from projections.run.owed import owed

GATE_STEPS = ("gate",)


def create_ledger(message: CreateLedger, views: RunViews, documents: Documents) -> Decided:
    """The first event of the ledger; a ledger that has one is left alone."""
    if views.run.position:
        return NOTHING
    return Decided(
        (
            LedgerCreated(
                ledger_id=message.ledger_id,
                project=message.project,
                root_commit=message.root_commit,
                format_version=FORMAT_VERSION,
            ),
        )
    )


def start_run(message: StartRun, views: RunViews, documents: Documents) -> Decided:
    """A new gate; the same start twice is one start."""
    if views.run.started is not None:
        return NOTHING
    if message.candidate == message.baseline:
        raise Refusal(
            "equal-commits",
            f"candidate and baseline are the same commit ({message.candidate[:12]}), so there is nothing to compare",
            "name another baseline with --baseline REF, or commit the change first",
        )
    return Decided(
        (
            RunStarted(
                run=message.run,
                kind="gate",
                candidate=message.candidate,
                candidate_ref=message.candidate_ref,
                baseline=message.baseline,
                baseline_ref=message.baseline_ref,
                baseline_reason=message.baseline_reason,
                dirty=message.dirty,
                steps=GATE_STEPS,
                policy=message.policy,
                config=message.config,
                release=message.release or UNSET,
            ),
            *((message.recheck,) if message.recheck is not None else ()),
        )
    )


def take_run(message: TakeRun, views: RunViews, documents: Documents) -> Decided:
    """The next term. Taking it twice in the same process is one taking."""
    driver, process = views.run.driver, message.process
    if driver is None or views.run.status != "open":
        term = views.run.term + 1
        return Decided((DriverStarted(term=term, host=message.host, pid=message.pid, process=process),))
    if (driver.host, driver.pid, driver.process) == (message.host, message.pid, process):
        return NOTHING
    replaced = DriverReplaced(
        term=driver.term + 1,
        previous_term=driver.term,
        host=message.host,
        pid=message.pid,
        reason="died",
        process=process,
    )
    return Decided((replaced,))


def begin_step(message: BeginStep, views: RunViews, documents: Documents) -> Decided:
    """A step begins once; a step that already has an outcome or runs is left alone."""
    _known_step(message.step, views)
    if views.run.steps[message.step] is not None:
        return NOTHING
    return Decided((StepStarted(step=message.step),))


def resume_run(message: ResumeRun, views: RunViews, documents: Documents) -> Decided:
    """Resume from a step: what is owed gets its rounds anew. Nothing owed and a verdict: nothing to do."""
    _known_step(message.step, views)
    outstanding = tuple(entry.label for entry in owed(views.gate, views.run.policy))
    if views.run.status == "finished" and not outstanding:
        return NOTHING
    begun: list[Event] = [] if views.run.steps[message.step] is not None else [StepStarted(step=message.step)]
    resumed = ResumeStarted(step=message.step, number=views.run.resumes + 1, owed=outstanding)
    return Decided((*begun, resumed))


def stop_run(message: StopRun, views: RunViews, documents: Documents) -> Decided:
    """Only an open run can be stopped."""
    if views.run.status != "open":
        return NOTHING
    return Decided((RunStopped(reason=message.reason, term=views.run.term),))


def _known_step(step: str, views: RunViews) -> None:
    if step not in views.run.steps:
        steps = ", ".join(views.run.steps)
        raise Refusal("step-unknown", f"this run has no step {step!r}", f"its steps are: {steps}")
