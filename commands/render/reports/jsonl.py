"""A report as JSON lines, for other programs: a header, then every case with what every attempt said of it.

Fields are only added. `ledger schema report-header` and `ledger schema report-case` describe them.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from commands.render.reports.report import Report
from commands.render.rows import json_text
from ledger.values import Side, Verdict
from projections.queries.tries import TriedCase, Try
from projections.run.summary import SummarySide


class ReportHeader(Struct, frozen=True, kw_only=True):
    """The first line: the run as `ledger status` tells it. `verdict` is null while there is none; every case is then
    unmeasured. `table` names the decision table, `counts` is cases per class, `next_command` what to type next.
    `as_of` is "" for now, else the moment in the past that is looked at; `sequence` is that of the last event that was
    taken into account."""

    kind: Literal["header"] = "header"
    run: str
    state: str
    verdict: Verdict | None
    reason: str
    candidate: SummarySide
    baseline: SummarySide
    dirty: bool
    started_at: str
    ended_at: str
    table: str
    counts: dict[str, int]
    position: int
    sequence: int
    as_of: str
    next_command: str


class ReportTry(Struct, frozen=True, kw_only=True):
    """One attempt that was to run the case. `outcome` and `duration_seconds` are null when it did not report
    the case; `cause` is the reason code of why it did not measure the target, "" when it did; `reruns` counts the
    failed tries that came before its outcome; `message` is a bounded part of what the case said."""

    side: Side
    shard: str
    attempt: int
    sequence: int
    cause: str
    outcome: str | None
    duration_seconds: float | None
    reruns: int
    line: str
    message: str


class ReportCase(Struct, frozen=True, kw_only=True):
    """One case. `test` is its name in the reversible text form of `target`, `path` and `variant`. `case_class`,
    `effect` and `rule` are the answer of the decision table for its states on `candidate` and `baseline`; `cause` is
    the reason code of why it is unmeasured, `line` the first line of what was seen. `mute` names the muting that keeps
    it from blocking, `note` is the code of what else there is to say of it; both are "" where there is none."""

    kind: Literal["case"] = "case"
    test: str
    target: str
    path: tuple[str, ...]
    variant: str | None
    case_class: str
    effect: str
    rule: str
    candidate: str
    baseline: str
    cause: str
    line: str
    mute: str
    note: str
    tries: tuple[ReportTry, ...]


def jsonl_pieces(report: Report) -> Iterator[str]:
    """The report, line by line, in ASCII."""
    yield json_text(_header(report)) + "\n"
    for case in report.cases:
        yield json_text(_case(case)) + "\n"


def _header(report: Report) -> ReportHeader:
    told = report.summary
    return ReportHeader(
        run=told.run,
        state=told.state,
        verdict=told.verdict,
        reason=told.reason,
        candidate=told.candidate,
        baseline=told.baseline,
        dirty=told.dirty,
        started_at=told.started_at,
        ended_at=told.ended_at,
        table=report.table,
        counts=told.counts,
        position=told.position,
        sequence=told.sequence,
        as_of=told.as_of,
        next_command=told.next_command,
    )


def _case(case: TriedCase) -> ReportCase:
    row = case.row
    return ReportCase(
        test=row.test.text(),
        target=row.test.target,
        path=row.test.path,
        variant=row.test.variant,
        case_class=row.case_class,
        effect=row.effect,
        rule=row.rule,
        candidate=row.candidate,
        baseline=row.baseline,
        cause=row.cause,
        line=row.line,
        mute=row.mute or "",
        note=row.note or "",
        tries=tuple(_try(one) for one in case.tries),
    )


def _try(one: Try) -> ReportTry:
    row = one.row
    return ReportTry(
        side=one.side,
        shard=one.shard,
        attempt=one.attempt,
        sequence=one.sequence,
        cause=one.cause,
        outcome=row.outcome if row else None,
        duration_seconds=row.duration_seconds if row else None,
        reruns=row.reruns if row else 0,
        line=row.line or row.reason if row else "",
        message=row.message if row else "",
    )
