"""The verdict of a gate: every case judged by the table, then one answer over all of them.

While rounds remain nothing is decided. At the end, first match wins:

| found among the cases                              | verdict    |
|---|---|
| a case whose class blocks                          | failed     |
| a case, a collection or a side that is unmeasured  | unmeasured |
| no case ran on the candidate                       | unmeasured |
| otherwise                                          | passed     |
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ledger.events import JudgedCase
from ledger.tables import ClassRow, ClassTable
from ledger.values import TestId, Verdict
from projections.gate.cases import JoinedCase
from projections.gate.classes import TABLE_VERSION, judge


class Judged(Struct, frozen=True, kw_only=True):
    """The answer: verdict, its reason code, the class table, and the cases that decide."""

    verdict: Verdict
    reason: str
    table: ClassTable
    counts: dict[str, int]
    blocking: tuple[JudgedCase, ...]
    unmeasured: tuple[JudgedCase, ...]


def judge_cases(cases: Iterable[JoinedCase], *, flaky_blocks: bool) -> Judged:
    """Judge every case and decide."""
    ran, rows = False, []
    for case in cases:
        ran |= case.ran
        rows.append(_row(case, flaky_blocks))
    counts = Counter(row.case_class for row in rows)
    blocking = tuple(JudgedCase(r.test.text(), r.case_class, r.line) for r in rows if r.effect == "failed")
    unmeasured = _unmeasured(row for row in rows if row.effect == "unmeasured")
    verdict, reason = _decide(blocking, unmeasured, ran=ran)
    return Judged(
        verdict=verdict,
        reason=reason,
        table=ClassTable(table=TABLE_VERSION, rows=tuple(rows)),
        counts=dict(sorted(counts.items())),
        blocking=blocking,
        unmeasured=unmeasured,
    )


def judge_nothing(causes: Mapping[str, str]) -> Judged:
    """The answer when no case could be judged at all: `causes` maps what failed to its reason code."""
    return Judged(
        verdict="unmeasured",
        reason=next(iter(causes.values()), "nothing-collected"),
        table=ClassTable(table=TABLE_VERSION, rows=()),
        counts={},
        blocking=(),
        unmeasured=tuple(JudgedCase(what, "unmeasured", cause) for what, cause in causes.items()),
    )


def _row(case: JoinedCase, flaky_blocks: bool) -> ClassRow:
    judgement = judge(case.candidate, case.baseline, flaky_blocks=flaky_blocks)
    return ClassRow(
        test=case.test,
        candidate=case.candidate,
        baseline=case.baseline,
        case_class=judgement.case_class,
        effect=judgement.effect,
        rule=judgement.rule,
        line=case.line,
        cause=case.cause if judgement.effect == "unmeasured" else "",
    )


def _unmeasured(rows: Iterable[ClassRow]) -> tuple[JudgedCase, ...]:
    """A target that was not measured is listed once; a failure that lacks its baseline is listed by itself."""
    listed: dict[TestId, str] = {}
    for row in rows:
        whole_target = row.candidate == "unmeasured"
        listed.setdefault(TestId(row.test.target) if whole_target else row.test, row.cause)
    return tuple(JudgedCase(test.text(), "unmeasured", cause) for test, cause in listed.items())


def _decide(blocking: tuple[JudgedCase, ...], unmeasured: tuple[JudgedCase, ...], *, ran: bool) -> tuple[Verdict, str]:
    if blocking:
        return "failed", "regression"
    if unmeasured:
        return "unmeasured", "cases-unmeasured"
    if not ran:
        return "unmeasured", "nothing-ran"
    return "passed", "no-regression"
