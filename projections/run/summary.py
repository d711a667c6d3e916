"""The summary of a run: one document that answers where it stands, what decided it and what to do next."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from ledger.errors import EvidenceDamaged
from ledger.events import JudgedCase, MuteUsed
from ledger.tables import ClassTable
from ledger.values import Commit, Digest, Verdict
from projections.gate.ladder import SAME_CAUSE
from projections.gate.progress import Progress, gate_progress
from projections.gate.remaining import Remaining, remaining_time
from projections.gate.shards import GateView
from projections.registry import RunViews
from projections.run.owed import owed


class SummarySide(Struct, frozen=True, kw_only=True):
    """One of the two commits, how it was named and why it was chosen."""

    commit: Commit
    ref: str
    reason: str = ""


class SummaryDriver(Struct, frozen=True, kw_only=True):
    """The process that last took the run; `alive` is the lock's answer, None when nobody asked it."""

    term: int
    host: str
    pid: int
    since: str
    alive: bool | None


class SummaryOwed(Struct, frozen=True, kw_only=True):
    """One side of a shard that is still to be measured; `targets` None means all of them. `cause` and `detail` are
    those of its last record, "" without one."""

    what: str
    status: str
    targets: int | None
    cause: str
    detail: str


class RunSummary(Struct, frozen=True, kw_only=True):
    """Where a run stands. `state` is running, interrupted (its driver is gone), stopped or finished; `verdict` is None
    until it is decided; `counts` is cases per class; `next_command` is what to type next, "" for nothing.
    `remaining` is how long it still takes while it is driven, None when it is not. `muted` are the mutings that kept
    cases from blocking. `cut_short` are the codes of why less was tried again than could have been. `flaky` are the
    cases that failed and passed and do not block; () also when their evidence was not asked for, or cannot be read.

    `as_of` is "" for now, else the moment in the past that is looked at, in UTC. The state may then also be open: it
    had not ended, and whether its driver was alive is not known."""

    run: str
    state: str
    verdict: Verdict | None
    reason: str
    candidate: SummarySide
    baseline: SummarySide
    dirty: bool
    started_at: str
    ended_at: str
    driver: SummaryDriver | None
    steps: dict[str, str | None]
    resumes: int
    counts: dict[str, int]
    blocking: tuple[JudgedCase, ...]
    unmeasured: tuple[JudgedCase, ...]
    owed: tuple[SummaryOwed, ...]
    failing_so_far: int
    progress: Progress
    position: int
    sequence: int
    next_command: str
    as_of: str
    remaining: Remaining | None = None
    muted: tuple[MuteUsed, ...] = ()
    cut_short: tuple[str, ...] = ()
    flaky: tuple[JudgedCase, ...] = ()


LoadClasses = Callable[[Digest, type[ClassTable]], ClassTable]
"""Gives a class table of the evidence. Raises EvidenceDamaged."""


def summarize_run(
    views: RunViews, now: datetime, *, alive: bool | None, as_of: str = "", load: LoadClasses | None = None
) -> RunSummary:
    """The summary at this moment; `alive` says whether the run's lock is held, `as_of` that the moment is past.

    Events do not name the cases that do not decide; with `load` the evidence is asked for those that are flaky.
    """
    run, verdict = views.run, views.gate.verdict
    outstanding = owed_entries(views)
    state = "open" if as_of and run.status == "open" else _state(views, alive)
    return RunSummary(
        run=run.run,
        state=state,
        verdict=run.verdict,
        reason=verdict.reason if verdict else run.stop_reason,
        candidate=SummarySide(commit=run.begun.candidate, ref=run.begun.candidate_ref),
        baseline=SummarySide(commit=run.begun.baseline, ref=run.begun.baseline_ref, reason=run.begun.baseline_reason),
        dirty=run.begun.dirty,
        started_at=run.started_at,
        ended_at=run.ended_at,
        driver=_driver(views, alive),
        steps=dict(run.steps),
        resumes=run.resumes,
        counts=verdict.counts if verdict else {},
        blocking=verdict.blocking if verdict else (),
        unmeasured=verdict.unmeasured if verdict else (),
        owed=outstanding,
        failing_so_far=failing_so_far(views),
        progress=gate_progress(run, views.gate, now),
        position=run.position,
        sequence=run.sequence,
        next_command="" if as_of else _next_command(state, bool(outstanding), run.run),
        as_of=as_of,
        remaining=remaining_time(run, views.gate, now) if state in ("running", "open") and not verdict else None,
        muted=verdict.muted if verdict else (),
        cut_short=_cut_short(views.gate),
        flaky=_flaky(views.gate, load) if load else (),
    )


def _flaky(gate: GateView, load: LoadClasses) -> tuple[JudgedCase, ...]:
    if gate.verdict is None or "flaky" not in gate.verdict.counts:
        return ()
    try:
        rows = load(gate.verdict.classes, ClassTable).rows
    except EvidenceDamaged:
        # Where a run stands can be told without it; whoever asks for the cases themselves is told of the damage.
        return ()
    flaky = (row for row in rows if row.case_class == "flaky" and row.effect == "none")
    return tuple(JudgedCase(row.test.text(), row.case_class, row.line) for row in flaky)


def _cut_short(gate: GateView) -> tuple[str, ...]:
    same_cause = SAME_CAUSE if gate.tripped else ""
    return tuple(code for code in (same_cause, gate.reruns_stopped) if code)


def failing_so_far(views: RunViews) -> int:
    """How many failures the candidate's records show; before the verdict nobody knows which of them are regressions."""
    records = (a.recorded for s in views.gate.sides.values() if s.side == "candidate" for a in s.attempts)
    return len({failure.test for record in records if record for failure in record.failures})


def _state(views: RunViews, alive: bool | None) -> str:
    if views.run.status != "open":
        return views.run.status
    return "interrupted" if alive is False else "running"


def _driver(views: RunViews, alive: bool | None) -> SummaryDriver | None:
    driver = views.run.driver
    if driver is None:
        return None
    return SummaryDriver(term=driver.term, host=driver.host, pid=driver.pid, since=driver.since, alive=alive)


def owed_entries(views: RunViews) -> tuple[SummaryOwed, ...]:
    """What is owed, as it is shown."""
    found = []
    for entry in owed(views.gate, views.run.policy):
        last = views.gate.side(entry.shard, entry.side).last
        found.append(
            SummaryOwed(
                what=entry.label,
                status=entry.status,
                targets=None if entry.targets is None else len(entry.targets),
                cause=(last.cause or "") if last else "",
                detail=last.detail if last else "",
            )
        )
    return tuple(found)


def _next_command(state: str, outstanding: bool, run: str) -> str:
    if state in ("interrupted", "stopped") or (state == "finished" and outstanding):
        return f"ledger resume {run} --from gate"
    if state == "running":
        return f"ledger status {run} --watch"
    return ""
