"""Why a test has its class: the row of the class table, and what every attempt says of the test's target; or why a
side of a shard is not measured."""

from collections.abc import Iterable

from msgspec import Struct

from ledger.events import COLLECTION, AttemptRecorded
from ledger.parts import whole_target
from ledger.tables import CaseRow, CaseTable, ClassRow, ClassTable
from ledger.values import Digest, Side, TestId
from projections.gate.shards import Attempt, GateView, ShardSide


class WhyAttempt(Struct, frozen=True, kw_only=True):
    """One attempt that had something to say: its outcome for this test, or why it measured nothing."""

    shard: str
    side: Side
    attempt: int
    sequence: int
    member: str
    outcome: str
    cause: str
    detail: str
    duration_seconds: float | None
    message: str
    log: Digest | None
    record: Digest | None


class Why(Struct, frozen=True, kw_only=True):
    """The explanation of one case, or of a side of a shard of which nothing is known (`rule` is then "").

    `mute` names the muting that keeps the case from blocking, `note` is the code of what else there is to say of it; ""
    when there is none."""

    test: str
    case_class: str
    effect: str
    rule: str
    table: str
    cause: str
    line: str
    verdict_sequence: int
    attempts: tuple[WhyAttempt, ...]
    mute: str = ""
    note: str = ""


def matching(table: ClassTable, wanted: str) -> list[ClassRow]:
    """The rows whose test is meant: the exact text form, else the name as its runner writes it, else every test that
    contains the words."""
    exact = [row for row in table.rows if row.test.text() == wanted]
    exact = exact or [row for row in table.rows if row.test.plain() == wanted]
    return exact or [row for row in table.rows if wanted in row.test.text() or wanted in row.test.plain()]


def explain(row: ClassRow, table: str, gate: GateView, tables: dict[Digest, CaseTable]) -> Why:
    """Everything that led to this row; `tables` are the case tables of the gate's attempts."""
    return Why(
        test=row.test.text(),
        case_class=row.case_class,
        effect=row.effect,
        rule=row.rule,
        table=table,
        cause=row.cause,
        line=row.line,
        verdict_sequence=gate.verdict_sequence,
        attempts=tuple(_attempts(row.test, gate, tables)),
        mute=row.mute or "",
        note=row.note or "",
    )


def explain_side(wanted: str, table: str, gate: GateView) -> Why | None:
    """The explanation of a side of a shard that was judged as a whole, such as a collection; None for anything else."""
    unmeasured = gate.verdict.unmeasured if gate.verdict else ()
    judged = next((case for case in unmeasured if case.test == wanted), None)
    side = next((side for side in gate.sides.values() if f"{side.shard}/{side.side}" == wanted), None)
    if judged is None or side is None:
        return None
    records = [(attempt, attempt.recorded) for attempt in side.attempts]
    return Why(
        test=judged.test,
        case_class=judged.case_class,
        effect="unmeasured",
        rule="",
        table=table,
        cause=judged.line,
        line="",
        verdict_sequence=gate.verdict_sequence,
        attempts=tuple(_attempt(side, attempt, record, record.cause, None) for attempt, record in records if record),
    )


def _attempts(test: TestId, gate: GateView, tables: dict[Digest, CaseTable]) -> Iterable[WhyAttempt]:
    for state in gate.sides.values():
        for attempt in state.attempts:
            record = attempt.recorded
            table = tables.get(record.table) if record and record.table else None
            others = attempt.started.tests is not None and test.text() not in attempt.started.tests
            if state.shard == COLLECTION or record is None or table is None or others:
                continue
            target = next((row for row in table.targets if whole_target(row.target) == test.target), None)
            if target is not None:
                case = next((row for row in table.cases if row.test == test), None)
                yield _attempt(state, attempt, record, target.cause, case)


def _attempt(
    side: ShardSide, attempt: Attempt, record: AttemptRecorded, cause: str | None, case: CaseRow | None
) -> WhyAttempt:
    return WhyAttempt(
        shard=side.shard,
        side=side.side,
        attempt=record.attempt,
        sequence=attempt.sequence,
        member=attempt.started.member,
        outcome=_outcome(case),
        cause=cause or "",
        detail=record.detail if cause else "",
        duration_seconds=case.duration_seconds if case else None,
        message=case.message or case.reason if case else "",
        log=record.log,
        record=record.record,
    )


def _outcome(case: CaseRow | None) -> str:
    if case is None:
        return "not reported"
    return f"{case.outcome} after {case.reruns} re-runs" if case.reruns else case.outcome
