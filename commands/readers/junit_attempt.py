"""Reads an attempt from its JUnit reports: what `readers/junit` says, as every reader says it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from commands.executors.api import JobEnd
from commands.readers.attempt import AttemptReading
from commands.readers.attempt_usage import AttemptUsage, TargetNeed
from commands.readers.junit import DIALECTS, Expectations, Reading, Report, read_reports
from commands.readers.junit.dialects import GENERIC
from ledger.events import FailureLine, MissingTarget
from ledger.tables import CaseRow, CaseTable, Inventory, MemoryBasis, TargetRow
from ledger.values import Commit, Side

_NOTABLE = ("failed", "error", "skipped", "xfailed")
_UNKNOWN_CODE = -1
"""What stands for an exit code that the settings do not name; no dialect has it."""


def read_junit_attempt(
    reports: Sequence[Report],
    end: JobEnd,
    *,
    side: Side,
    commit: Commit,
    requested: tuple[str, ...],
    inventory: Inventory,
    root: str,
    dialect: str = "",
    profile: str = "",
    exit_codes: Mapping[str, str] | None = None,
) -> AttemptReading:
    """Read an attempt at the `requested` targets, which ran in the directory `root`.

    A target whose cases were all skipped is measured: whether that is right is judged when both sides are known.
    `dialect` and `profile` may be empty; `exit_codes` says of each code, in decimal, whether the run passed or failed.
    """
    cases = {target.target: frozenset(target.cases) for target in inventory.targets if target.cases}
    expectations = Expectations(
        planned=requested,
        cases={target: cases[target] for target in requested if target in cases},
        may_skip=frozenset(requested),
        root=root,
    )
    told = _translated(end, dialect, exit_codes) if exit_codes else end
    reading = read_reports(reports, told, expectations, dialect=dialect or None, profile=profile or None)
    rows = tuple(reading.cases())
    causes = {one.target: one.cause for one in reading.targets}
    measured = sorted(target for target, cause in causes.items() if cause is None)
    cause, detail = _whole(reading, end, told)
    missing = tuple(MissingTarget(target, why) for target, why in sorted(causes.items()) if why is not None)
    usage = _usage(rows, end, requested)
    return AttemptReading(
        complete=cause is None,
        cause=cause,
        detail=detail,
        table=_table(reading, side, commit, rows, usage),
        # All are named, even where one cause holds for all: only what is named can be told apart and run alone.
        missing=missing,
        attention=_attention(measured, rows),
        counts=dict(sorted(Counter(row.outcome for row in rows).items())),
        failures=tuple(FailureLine(row.test.text(), row.line) for row in rows if row.outcome in ("failed", "error")),
        measured_targets=len(measured),
        usage=usage,
    )


def _translated(end: JobEnd, dialect: str, exit_codes: Mapping[str, str]) -> JobEnd:
    """The end with the exit code by which the dialect means what the settings say of the real one."""
    if end.exit_code is None:
        return end
    meaning = exit_codes.get(str(end.exit_code))
    exits = DIALECTS.get(dialect, GENERIC).exits
    code = next((code for code, means in exits.items() if means == meaning), _UNKNOWN_CODE)
    return replace(end, exit_code=code)


def _whole(reading: Reading, end: JobEnd, told: JobEnd) -> tuple[str | None, str]:
    """The cause and the detail of the attempt as a whole: its first trouble, else that of its first target."""
    if reading.troubles:
        first = reading.troubles[0]
        detail = f"{first.report}: {first.detail}" if first.report else first.detail
        if told.exit_code != end.exit_code:
            detail = f"{detail}; the real exit code is {end.exit_code}, which `exit_codes` names or leaves out"
        return first.code, detail
    unmeasured = [one for one in reading.targets if one.cause is not None]
    if not unmeasured:
        return None, ""
    return unmeasured[0].cause, f"{unmeasured[0].target}: {unmeasured[0].detail}"


def _table(reading: Reading, side: Side, commit: Commit, rows: tuple[CaseRow, ...], usage: AttemptUsage) -> CaseTable:
    targets = tuple(
        TargetRow(
            target=one.target,
            cause=one.cause,
            duration_seconds=usage.targets[one.target].seconds,
            memory_bytes=usage.targets[one.target].memory_bytes,
            memory_basis=usage.targets[one.target].memory_basis,
        )
        for one in sorted(reading.targets, key=lambda one: one.target)
    )
    return CaseTable(reader=reading.reader, side=side, commit=commit, targets=targets, cases=rows)


def _attention(measured: Iterable[str], rows: Iterable[CaseRow]) -> tuple[str, ...]:
    notable = {row.test.target for row in rows if row.outcome in _NOTABLE or row.reruns}
    return tuple(target for target in measured if target in notable)


def _usage(rows: Iterable[CaseRow], end: JobEnd, requested: tuple[str, ...]) -> AttemptUsage:
    """What can be known of targets from outside the runner: the times that it reports, and the memory of all.

    Times of targets that ran side by side are shared out, so that together they never take longer than the attempt.
    """
    seconds = dict.fromkeys(requested, 0.0)
    for row in rows:
        if row.test.target in seconds:
            seconds[row.test.target] += row.duration_seconds
    total = sum(seconds.values())
    share = min(1.0, end.duration_seconds / total) if total > 0 else 1.0
    exceeded = end.end == "memory-limit" and len(requested) == 1
    basis: MemoryBasis = "at-least" if exceeded else ("alone" if len(requested) == 1 else "upper-bound")
    memory = end.peak_memory_bytes
    return AttemptUsage(
        targets={
            target: TargetNeed(taken * share, memory, "none" if memory is None else basis)
            for target, taken in seconds.items()
        },
        session_seconds=max(0.0, end.duration_seconds - total * share),
        session_memory_bytes=None,
        exceeded=requested if exceeded else (),
    )
