"""The state of a run: what it compares, under which rules, who drives it, and whether it has ended."""

from typing import Literal

from msgspec import UNSET, Struct, field

from ledger.events import (
    DriverReplaced,
    DriverStarted,
    GatePolicy,
    ResumeStarted,
    RunFinished,
    RunStarted,
    RunStopped,
    StepFinished,
    StepStarted,
)
from ledger.record import RecordedEvent
from ledger.values import Verdict
from projections.fold import View

RunStatus = Literal["unknown", "open", "stopped", "finished"]


class Driver(Struct, frozen=True):
    """The process that last took the run."""

    term: int
    host: str
    pid: int
    since: str
    process: str = ""


class RunView(Struct):
    """One run. `status` is open from its start until it is stopped or finished; whether a driver is alive is a lock's
    answer, not an event's. `steps` maps each step to its last outcome, "running" or None. `resumes` counts.
    `resumed_at` is the position of the last resume, 0 before one. `position` and `sequence` are those of the last event
    taken in."""

    run: str = ""
    status: RunStatus = "unknown"
    started: RunStarted | None = None
    started_at: str = ""
    ended_at: str = ""
    driver: Driver | None = None
    steps: dict[str, str | None] = field(default_factory=dict)
    verdict: Verdict | None = None
    stop_reason: str = ""
    resumes: int = 0
    resumed_at: int = 0
    position: int = 0
    sequence: int = 0

    @property
    def term(self) -> int:
        """The term of the last driver; 0 before there was one."""
        return self.driver.term if self.driver else 0

    @property
    def policy(self) -> GatePolicy:
        """The rules that the run was started under."""
        return self.begun.policy

    @property
    def begun(self) -> RunStarted:
        """The start of the run; it is an error of the caller to ask before there is one."""
        if self.started is None:
            raise LookupError("this stream has no run-started event")
        return self.started


def _started(view: RunView, event: RunStarted, recorded: RecordedEvent) -> None:
    view.run, view.started, view.started_at, view.status = event.run, event, recorded.header.time, "open"
    view.steps = dict.fromkeys(event.steps)


def _driven(view: RunView, event: DriverStarted | DriverReplaced, recorded: RecordedEvent) -> None:
    view.driver = Driver(event.term, event.host, event.pid, recorded.header.time, event.process)
    if view.status == "stopped":
        view.status, view.stop_reason, view.ended_at = "open", "", ""


def _step_started(view: RunView, event: StepStarted, recorded: RecordedEvent) -> None:
    view.steps[event.step] = "running"


def _step_finished(view: RunView, event: StepFinished, recorded: RecordedEvent) -> None:
    view.steps[event.step] = event.outcome


def _resumed(view: RunView, event: ResumeStarted, recorded: RecordedEvent) -> None:
    view.resumes, view.status, view.verdict, view.ended_at = event.number, "open", None, ""
    view.resumed_at = recorded.header.position
    view.steps[event.step] = "running" if event.again is UNSET or event.step in event.again else view.steps[event.step]


def _stopped(view: RunView, event: RunStopped, recorded: RecordedEvent) -> None:
    view.status, view.stop_reason, view.ended_at = "stopped", event.reason, recorded.header.time


def _finished(view: RunView, event: RunFinished, recorded: RecordedEvent) -> None:
    view.status, view.verdict, view.ended_at = "finished", event.verdict, recorded.header.time


RUN = View(
    "run",
    "what does this run compare, who drives it, where does it stand?",
    RunView,
    {
        RunStarted: _started,
        DriverStarted: _driven,
        DriverReplaced: _driven,
        StepStarted: _step_started,
        StepFinished: _step_finished,
        ResumeStarted: _resumed,
        RunStopped: _stopped,
        RunFinished: _finished,
    },
)
