"""One line per event of a release, for the log."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from commands.render.words import count, short, size
from ledger.events import (
    ApprovalDecided,
    ApprovalRequested,
    AutohealDecided,
    Carried,
    Event,
    OverrideUsed,
    Prepared,
    RecheckPlanned,
    RegressionAccepted,
    ResumeStarted,
    StepFinished,
    StepStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from projections.release.healing import told


def _step_started(event: StepStarted) -> str:
    if event.attempt is UNSET or event.commit is UNSET:
        return event.step
    gate = f", gate {event.gate}" if event.gate is not UNSET else ""
    return f"{event.step} attempt {event.attempt} on {short(event.commit)}{gate}"


def _step_finished(event: StepFinished) -> str:
    if event.report is UNSET:
        return f"{event.step}: {event.outcome}"
    report = event.report
    outcome = "flaky" if report.verdict == "flaky" else event.outcome
    cause = f" ({report.cause})" if report.cause else ""
    said = report.summary or report.detail
    return f"{event.step} attempt {event.attempt}: {outcome}{cause}{f'; {said}' if said else ''}"


def _resumed(event: ResumeStarted) -> str:
    if event.again is UNSET or event.commit is UNSET:
        return f"from {event.step}, number {event.number}, {count(len(event.owed), 'job')} owed"
    again = f"; again: {', '.join(event.again)}" if event.again else ""
    return f"from {event.step} on {short(event.commit)}, number {event.number}{again}"


def _waived(event: Waived) -> str:
    cause = f" ({event.cause})" if event.cause else ""
    return f"{event.waiver}: {event.step} {event.outcome}{cause} on {short(event.commit)}: {event.reason}"


def _prepared(event: Prepared) -> str:
    what = f"{event.digest[:12]} of {event.version} from {short(event.commit)}"
    return f"{what}, {count(event.files, 'file')}, {size(event.size_bytes)}, in {event.place}"


def _decided(event: ApprovalDecided) -> str:
    said = f": {event.reason}" if event.reason else ""
    return f"{event.step} {event.decision} by {event.by} for {short(event.commit)}{said}"


def _gate_of(event: RecheckPlanned | Carried) -> str:
    return f"gate {event.gate} of {short(event.commit)}"


RELEASE_WORDS: dict[type[Event], Callable[[Any], str]] = {
    StepStarted: _step_started,
    StepFinished: _step_finished,
    ResumeStarted: _resumed,
    TipMoved: lambda e: f"{e.branch}: {short(e.previous)} -> {short(e.commit)}",
    Waived: _waived,
    WaiverRetired: lambda e: f"{e.waiver}: its step runs again",
    RegressionAccepted: lambda e: f"{e.issue}: {e.note}",
    Prepared: _prepared,
    ApprovalRequested: lambda e: f"{e.step} for {short(e.commit)}",
    ApprovalDecided: _decided,
    OverrideUsed: lambda e: f"{e.what}: {e.reason}",
    AutohealDecided: lambda e: f"{e.step} attempt {e.attempt}: {told(e)}",
    RecheckPlanned: lambda e: (
        f"{count(len(e.targets), 'target')} again, the rest from gate {e.gate} of {short(e.commit)}"
    ),
    Carried: lambda e: (
        f"{count(e.cases, 'case')} of {count(e.targets, 'target')} from gate {e.gate} of {short(e.commit)}"
    ),
}
