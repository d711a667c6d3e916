"""One line per event, for the log."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from commands.render.release.events import RELEASE_WORDS
from commands.render.words import count, counted, memory, moment, safe, seconds, short, size, told_counts
from ledger.events import (
    RERUN,
    Answered,
    Assumed,
    AttemptRecorded,
    AttemptStarted,
    AutoRecommended,
    Collected,
    DriverReplaced,
    DriverStarted,
    Event,
    LedgerCreated,
    Measured,
    Muted,
    Parked,
    Placed,
    Planned,
    Quarantined,
    QuestionAsked,
    QuestionDeferred,
    RerunsPlanned,
    RunFinished,
    RunStarted,
    RunStopped,
    Unknown,
    Unmuted,
    VerdictDecided,
)
from ledger.record import RecordedEvent


def event_line(recorded: RecordedEvent) -> str:
    """`#position @sequence time tag what`, safe for a terminal."""
    header = recorded.header
    where = f"#{header.position:<4} @{recorded.sequence:<5}"
    return f"{where} {moment(header.time)}  {header.tag:<17} {safe(describe(recorded.event))}".rstrip()


def describe(event: Event) -> str:
    """What the event says, in a few words."""
    return _WORDS[type(event)](event)


def _attempt(event: AttemptStarted | AttemptRecorded) -> str:
    return f"{event.shard}/{event.side} attempt {event.attempt}"


def _run_started(event: RunStarted) -> str:
    return (
        f"{event.kind} of {short(event.candidate)} ({event.candidate_ref}) against "
        f"{short(event.baseline)} ({event.baseline_ref}: {event.baseline_reason})"
    )


def _attempt_started(event: AttemptStarted) -> str:
    what = "" if event.targets is None else f", {count(len(event.targets), 'target')} still owed"
    if event.tests is not None:
        what = f", only {', '.join(event.tests[:3])}"
    elif event.shard.startswith(RERUN):
        what = f", {count(len(event.targets or ()), 'target')} again"
    return f"{_attempt(event)} on {event.member}{what}"


def _attempt_recorded(event: AttemptRecorded) -> str:
    outcome = "complete" if event.complete else f"unmeasured ({event.cause or 'some targets'})"
    took = seconds(event.duration_seconds)
    parts = [f"{_attempt(event)} {outcome}", counted(event.counts), took, event.detail]
    return "; ".join(part for part in parts if part)


def _planned(event: Planned) -> str:
    planned = (
        f"{count(sum(s.candidate_targets for s in event.shards), 'target')} in {count(len(event.shards), 'shard')}"
    )
    if event.makespan_seconds is None:
        return planned
    return f"{planned}, the longest {seconds(event.makespan_seconds)}; {counted(event.origins)}"


def _measured(event: Measured) -> str:
    what = f"{count(event.targets, 'target')} in {seconds(event.seconds)}, the session {seconds(event.session_seconds)}"
    peak = "" if event.peak_memory_bytes is None else f"; {memory(event.peak_memory_bytes)} ({event.memory_method})"
    exceeded = f"; out of memory: {', '.join(event.exceeded[:3])}" if event.exceeded else ""
    return f"{event.shard}/{event.side} attempt {event.attempt}: {what}{peak}{exceeded}"


def _verdict(event: VerdictDecided) -> str:
    counts = counted(told_counts(event.counts, event.blocking))
    return f"{event.verdict} ({event.reason}) by {event.table}" + (f": {counts}" if counts else "")


def _quarantined(event: Quarantined) -> str:
    if event.what == "archive":
        return f"archive {event.digest[:12]}, {size(event.size_bytes)}, is in {event.place}: {event.reason}"
    lost = sum(sum(stream.tags.values()) for stream in event.lost)
    kept = f"kept up to @{event.kept_sequence}, {count(lost, 'event')} lost"
    return f"{event.what} moved to {event.place} ({event.reason}); {kept}"


def _reruns_planned(event: RerunsPlanned) -> str:
    kinds = counted(Counter(rerun.kind for rerun in event.reruns)) or "nothing"
    return f"{kinds} to run again" + (f" ({event.stopped})" if event.stopped else "")


def _muted(event: Muted) -> str:
    where = "".join(f" where {name}={value}" for name, value in sorted(event.environment.items()))
    return f"{event.mute}: {event.test} until {event.expires}{where}, by {event.owner}: {event.reason}"


def _question(event: QuestionAsked | QuestionDeferred | Assumed) -> str:
    content = event.content
    return f"{event.question} ({content.impact}) of {content.step}, {content.key}: {content.prompt}"


def _question_asked(event: QuestionAsked) -> str:
    return f"{_question(event)} [{', '.join(option.label for option in event.content.options)}]"


def _answered(event: Answered) -> str:
    said = {"choice": repr(event.choice), "text": f"in words, {event.text!r}"}
    return f"{event.question} {said.get(event.outcome, event.outcome)}, by {event.by}"


def _collected(event: Collected) -> str:
    errors = f", {count(len(event.errors), 'target')} with errors" if event.errors else ""
    # A collection that lists no tests says nothing of how many there are.
    cases = f"{count(event.cases, 'case')} in " if event.cases else ""
    return f"{event.side}: {cases}{count(event.targets, 'target')}{errors}"


_WORDS: dict[type[Event], Callable[[Any], str]] = {
    **RELEASE_WORDS,
    LedgerCreated: lambda e: f"ledger {e.ledger_id} of {e.project}, format {e.format_version}",
    RunStarted: _run_started,
    DriverStarted: lambda e: f"term {e.term}, process {e.pid} on {e.host}",
    DriverReplaced: lambda e: (
        f"term {e.term}, process {e.pid} on {e.host}; the driver of term {e.previous_term} {e.reason}"
    ),
    RunStopped: lambda e: e.reason,
    RunFinished: lambda e: e.verdict,
    Collected: _collected,
    Planned: _planned,
    Placed: lambda e: f"{e.shard} on {e.member} ({e.reason})",
    AttemptStarted: _attempt_started,
    AttemptRecorded: _attempt_recorded,
    Measured: _measured,
    VerdictDecided: _verdict,
    Quarantined: _quarantined,
    RerunsPlanned: _reruns_planned,
    Muted: _muted,
    Unmuted: lambda e: f"{e.mute} by {e.by}: {e.reason}",
    QuestionAsked: _question_asked,
    QuestionDeferred: lambda e: f"{_question(e)} ({e.reason})",
    Assumed: lambda e: f"{_question(e)} {e.choice!r} ({e.reason})",
    Answered: _answered,
    AutoRecommended: lambda e: f"{e.question} {e.choice!r}: nobody answered in time",
    Parked: lambda e: f"{e.question}: nobody answered in time, and the run waits",
    Unknown: lambda e: f"an event of a newer version ({e.tag}, version {e.version})",
}
