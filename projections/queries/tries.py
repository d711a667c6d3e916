"""Every case of a run with what each attempt said of it, one after the other: a run may have very many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ledger.events import COLLECTION
from ledger.parts import whole_target
from ledger.tables import CaseRow, CaseTable, ClassRow, ClassTable, Plan
from ledger.values import SIDES, Side, TestId
from projections.gate.shards import Attempt, ShardSide
from projections.queries.rows import RunSource

UNDECIDED = "verdict-missing"
"""The reason code of every case while the run has no verdict: nobody knows yet what the case means."""


class Try(Struct, frozen=True, kw_only=True):
    """One attempt that was to run a case; `sequence` is that of its start.

    `row` is what it reported of the case, None for nothing. `cause` is the reason code of why it did not measure the
    target, "" when it did.
    """

    side: Side
    shard: str
    attempt: int
    sequence: int
    cause: str
    row: CaseRow | None


class TriedCase(Struct, frozen=True):
    """A case as it was judged, and what the attempts of both sides said of it, oldest first."""

    row: ClassRow
    tries: tuple[Try, ...]


class _Told(Struct, frozen=True):
    """What one attempt said of one target. `only` are the tests of it that the attempt was to run, None for all."""

    attempt: Attempt
    cause: str
    only: frozenset[TestId] | None
    rows: dict[TestId, CaseRow]


_Parts = Mapping[str, frozenset[TestId]]
"""The tests of each part of a target, by the name of the part."""


def tried_cases(source: RunSource) -> Iterator[TriedCase]:
    """Every case of the verdict that stands: shard by shard, then the others; by target in byte order in each of them.

    Without a verdict the cases that the candidate has reported so far, each of them unmeasured because of that. At any
    time only these are held: the class table, the tables of one shard, and those of re-runs and of split targets.
    """
    gate = source.views.gate
    judged = _judged(source)
    shards = source.load(gate.plan.plan, Plan).shards if gate.plan else ()
    whole = {shard.shard: shard for shard in shards if not shard.parts}
    sides = [side for side in gate.sides.values() if side.shard not in whole and side.shard != COLLECTION]
    parts = {part.part: frozenset((*part.candidate, *part.baseline)) for shard in shards for part in shard.parts}
    elsewhere = _told(source, sides, parts)
    done: set[str] = set()
    for shard in whole.values():
        told = _told(source, [gate.side(shard.shard, side) for side in SIDES], {})
        for target in sorted({*shard.candidate, *shard.baseline}):
            done.add(target)
            yield from _of_target(target, judged, [*told.get(target, ()), *elsewhere.get(target, ())])
    for target in sorted((elsewhere if judged is None else judged).keys() - done):
        yield from _of_target(target, judged, elsewhere.get(target, ()))


def _judged(source: RunSource) -> dict[str, list[ClassRow]] | None:
    """The rows of the class table by target; None without a verdict."""
    verdict = source.views.gate.verdict
    if verdict is None:
        return None
    judged: dict[str, list[ClassRow]] = {}
    for row in source.load(verdict.classes, ClassTable).rows:
        judged.setdefault(row.test.target, []).append(row)
    return judged


def _told(source: RunSource, sides: Iterable[ShardSide], parts: _Parts) -> dict[str, list[_Told]]:
    """What the attempts of these sides said, by target."""
    found: dict[str, list[_Told]] = {}
    for attempt in (attempt for side in sides for attempt in side.attempts):
        if attempt.recorded is None or attempt.recorded.table is None:
            continue
        table, asked = source.load(attempt.recorded.table, CaseTable), attempt.started.tests
        alone = None if asked is None else frozenset(map(TestId.parse, asked))
        told: dict[str, list[_Told]] = {}
        for row in table.targets:
            only = parts.get(row.target, alone)
            told.setdefault(whole_target(row.target), []).append(_Told(attempt, row.cause or "", only, {}))
        for case in table.cases:
            of_target = told.get(case.test.target, [])
            # A case that no part of its target was to run belongs to the attempt all the same.
            for one in [one for one in of_target if one.only is None or case.test in one.only][:1] or of_target[:1]:
                one.rows[case.test] = case
        for target, of_target in told.items():
            found.setdefault(target, []).extend(of_target)
    return found


def _of_target(
    target: str, judged: Mapping[str, Sequence[ClassRow]] | None, told: Iterable[_Told]
) -> Iterator[TriedCase]:
    ordered = sorted(told, key=lambda one: one.attempt.sequence)
    rows = _undecided(ordered) if judged is None else judged.get(target, ())
    yield from (_tried(row, ordered) for row in rows)


def _undecided(told: Iterable[_Told]) -> list[ClassRow]:
    newest: dict[TestId, CaseRow] = {}
    for one in told:
        if one.attempt.started.side == "candidate":
            newest.update(one.rows)
    return [_undecided_row(newest[test]) for test in sorted(newest, key=TestId.sort_key)]


def _undecided_row(row: CaseRow) -> ClassRow:
    return ClassRow(
        test=row.test,
        candidate=row.outcome,
        baseline="unmeasured",
        case_class="unmeasured",
        effect="unmeasured",
        rule="",
        line=row.line or row.reason,
        cause=UNDECIDED,
    )


def _tried(row: ClassRow, told: Iterable[_Told]) -> TriedCase:
    tries = tuple(
        Try(
            side=one.attempt.started.side,
            shard=one.attempt.started.shard,
            attempt=one.attempt.started.attempt,
            sequence=one.attempt.sequence,
            cause=one.cause,
            row=one.rows.get(row.test),
        )
        for one in told
        if one.only is None or row.test in one.only or row.test in one.rows
    )
    return TriedCase(row, tries)
