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
from collections.abc import Collection, Iterable, Mapping

from msgspec import UNSET, Struct

from ledger.events import JudgedCase, MuteUsed
from ledger.tables import ClassRow, ClassTable
from ledger.values import TestId, Verdict
from projections.gate.cases import JoinedCase
from projections.gate.classes import WITH_RERUNS, WITHOUT_RERUNS, judge
from projections.gate.notes import LOAD
from projections.gate.reruns import Rerun
from projections.people.muting import NO_MUTES, ValidMutes

_NO_RERUN = Rerun()


class Judged(Struct, frozen=True, kw_only=True):
    """The answer: verdict, its reason code, the class table, the cases that decide, and the mutings that were used."""

    verdict: Verdict
    reason: str
    table: ClassTable
    counts: dict[str, int]
    blocking: tuple[JudgedCase, ...]
    unmeasured: tuple[JudgedCase, ...]
    muted: tuple[MuteUsed, ...] = ()


class Closer(Struct, frozen=True):
    """What a closer look at some cases showed: their re-runs, and the notes on them."""

    reruns: Mapping[TestId, Rerun]
    notes: Mapping[TestId, str]

    def rerun_of(self, case: JoinedCase) -> Rerun:
        """What the re-runs of a case showed; only what failed is ever looked up, because most cases pass."""
        return self.reruns.get(case.test, _NO_RERUN) if case.candidate == "failed" else _NO_RERUN


def judge_cases(
    cases: Iterable[JoinedCase],
    *,
    flaky_blocks: bool,
    closer: Closer | None = None,
    mutes: ValidMutes = NO_MUTES,
    carried: Collection[ClassRow] = (),
) -> Judged:
    """Judge every case and decide; without a closer look by the version of the table that knows no re-runs.

    `carried` are judgements of an earlier gate that still count; they settle what they are about. Of those only a pass
    of a test shows that it ran: a failure may have been one before the test.
    """
    rows = list(carried)
    ran = any(row.candidate == "passed" and row.test.path for row in rows)
    for case in cases:
        ran |= case.ran
        rows.append(mutes.applied(_row(case, flaky_blocks, closer), case))
    if carried:
        rows.sort(key=lambda row: row.test.sort_key())
    counts = Counter(row.case_class for row in rows)
    blocking = tuple(JudgedCase(r.test.text(), r.case_class, r.line) for r in rows if r.effect == "failed")
    unmeasured = _unmeasured(row for row in rows if row.effect == "unmeasured")
    verdict, reason = _decide(blocking, unmeasured, ran=ran)
    return Judged(
        verdict=verdict,
        reason=reason,
        table=ClassTable(table=table_version(reruns=closer is not None), rows=tuple(rows)),
        counts=dict(sorted(counts.items())),
        blocking=blocking,
        unmeasured=unmeasured,
        muted=mutes.used(rows),
    )


def table_version(*, reruns: bool) -> str:
    """The version of the table for runs with or without re-runs."""
    return WITH_RERUNS if reruns else WITHOUT_RERUNS


def judge_nothing(causes: Mapping[str, str], *, reruns: bool = False) -> Judged:
    """The answer when no case could be judged at all: `causes` maps what failed to its reason code."""
    return Judged(
        verdict="unmeasured",
        reason=next(iter(causes.values()), "nothing-collected"),
        table=ClassTable(table=table_version(reruns=reruns), rows=()),
        counts={},
        blocking=(),
        unmeasured=tuple(JudgedCase(what, "unmeasured", cause) for what, cause in causes.items()),
    )


def _row(case: JoinedCase, flaky_blocks: bool, closer: Closer | None) -> ClassRow:
    rerun = closer.rerun_of(case) if closer else _NO_RERUN
    judgement = judge(case.candidate, case.baseline, rerun.state, flaky_blocks=flaky_blocks)
    noted = closer.notes.get(case.test) if closer and closer.notes else None
    cause = case.cause
    if judgement.case_class in ("interference", "unresolved"):
        cause = rerun.cause or judgement.case_class
    return ClassRow(
        test=case.test,
        candidate=case.candidate,
        baseline=case.baseline,
        case_class=judgement.case_class,
        effect=judgement.effect,
        rule=judgement.rule,
        line=case.line,
        cause=cause if judgement.effect == "unmeasured" else "",
        note=noted or (LOAD if rerun.load else UNSET),
    )


def _unmeasured(rows: Iterable[ClassRow]) -> tuple[JudgedCase, ...]:
    """A target that was not measured is listed once; a failure that could not be judged is listed by itself."""
    listed: dict[TestId, JudgedCase] = {}
    for row in rows:
        what = TestId(row.test.target) if row.candidate == "unmeasured" else row.test
        listed.setdefault(what, JudgedCase(what.text(), row.case_class, row.cause))
    return tuple(listed.values())


def _decide(blocking: tuple[JudgedCase, ...], unmeasured: tuple[JudgedCase, ...], *, ran: bool) -> tuple[Verdict, str]:
    if blocking:
        return "failed", "regression"
    if unmeasured:
        return "unmeasured", "cases-unmeasured"
    if not ran:
        return "unmeasured", "nothing-ran"
    return "passed", "no-regression"
