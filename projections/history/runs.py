"""One run among many: how it went and what it took, folded event by event, so that it can be put away in between."""

from msgspec import Struct, field

from ledger.events import AttemptRecorded, Event, ResumeStarted, Unknown, VerdictDecided
from ledger.record import RecordedEvent
from ledger.values import Commit, Verdict
from projections.run.state import RUN, RunStatus, RunView


class PastRun(Struct):
    """A run as far as its events were taken in. `unreadable_tables` counts the case tables that evidence did not give,
    `unknown_events` the events that this version does not know: with either, the counts may not be the whole truth."""

    run: RunView = field(default_factory=RunView)
    first_sequence: int = 0
    reason: str = ""
    attempts: int = 0
    duration_seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    blocking: int = 0
    unmeasured: int = 0
    unreadable_tables: int = 0
    unknown_events: int = 0

    def apply(self, recorded: RecordedEvent) -> None:
        """Take one event of the run's stream."""
        RUN.apply(self.run, recorded)
        self._count(recorded.event)
        self.first_sequence = self.first_sequence or recorded.sequence
        self.run.run = recorded.header.stream
        self.run.position, self.run.sequence = recorded.header.position, recorded.sequence

    def _count(self, event: Event) -> None:
        if isinstance(event, AttemptRecorded):
            self.attempts += 1
            self.duration_seconds += event.duration_seconds
        elif isinstance(event, VerdictDecided):
            self.reason, self.counts = event.reason, event.counts
            self.blocking, self.unmeasured = len(event.blocking), len(event.unmeasured)
        elif isinstance(event, ResumeStarted):
            self.reason, self.counts, self.blocking, self.unmeasured = "", {}, 0, 0
        elif isinstance(event, Unknown):
            self.unknown_events += 1


class RunRow(Struct, frozen=True, kw_only=True):
    """One run. `verdict` is None until it is decided, and `reason` its code; `cases`, `blocking` and `unmeasured` count
    those of the verdict. `duration_seconds` is over all recorded attempts, whatever ran at the same time.

    `sequence` is that of the run's last event. `unreadable_tables` and `unknown_events` say what could not be taken
    into account: case tables that are not in the evidence any more, events of a newer program."""

    run: str
    kind: str
    status: RunStatus
    verdict: Verdict | None
    reason: str
    candidate: Commit
    candidate_ref: str
    baseline: Commit
    baseline_ref: str
    dirty: bool
    started_at: str
    ended_at: str
    resumes: int
    attempts: int
    duration_seconds: float
    cases: int
    blocking: int
    unmeasured: int
    unreadable_tables: int
    unknown_events: int
    first_sequence: int
    sequence: int


def run_row(past: PastRun) -> RunRow:
    """The row of a run; without its start, which only a newer program's run can lack, there are no commits."""
    run, begun = past.run, past.run.started
    return RunRow(
        run=run.run,
        kind=begun.kind if begun else "",
        status=run.status,
        verdict=run.verdict,
        reason=past.reason or run.stop_reason,
        candidate=begun.candidate if begun else "",
        candidate_ref=begun.candidate_ref if begun else "",
        baseline=begun.baseline if begun else "",
        baseline_ref=begun.baseline_ref if begun else "",
        dirty=begun.dirty if begun else False,
        started_at=run.started_at,
        ended_at=run.ended_at,
        resumes=run.resumes,
        attempts=past.attempts,
        duration_seconds=past.duration_seconds,
        cases=sum(past.counts.values()),
        blocking=past.blocking,
        unmeasured=past.unmeasured,
        unreadable_tables=past.unreadable_tables,
        unknown_events=past.unknown_events,
        first_sequence=past.first_sequence,
        sequence=run.sequence,
    )
