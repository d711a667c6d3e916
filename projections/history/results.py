"""What one attempt says of its targets and cases, as rows that stand beside those of every other attempt."""

from collections.abc import Iterator

from msgspec import Struct

from ledger.events import COLLECTION, RERUN, AttemptRecorded, Event
from ledger.parts import whole_target
from ledger.tables import CaseTable, MemoryBasis
from ledger.values import Commit, Outcome, Side
from projections.gate.cases import UNTRUSTED

LINE_MAX = 500
"""The characters that are kept of the first line of a failure."""


class TargetRow(Struct, frozen=True, kw_only=True):
    """One target in one attempt. `cause` is None when it was measured, else the reason code of why not.

    `peak_memory_bytes` is the most that the attempt's processes used while the target was at work, beyond what they
    used before; `memory_basis` says what that tells of the target. `sequence` is that of the attempt's record."""

    run: str
    target: str
    side: Side
    shard: str
    attempt: int
    commit: Commit
    cause: str | None
    duration_seconds: float
    peak_memory_bytes: int | None
    memory_basis: MemoryBasis
    sequence: int


class OutcomeRow(Struct, frozen=True, kw_only=True):
    """One case in one attempt; `test` is its text form, `reruns` counts the failed tries before its outcome.

    `sequence` is that of the attempt's record."""

    run: str
    test: str
    side: Side
    shard: str
    attempt: int
    commit: Commit
    outcome: Outcome
    duration_seconds: float
    reruns: int
    sequence: int


def has_results(event: Event) -> bool:
    """Whether the event names a case table with results of tests."""
    return isinstance(event, AttemptRecorded) and event.table is not None and event.shard != COLLECTION


def target_results(
    event: AttemptRecorded, table: CaseTable
) -> Iterator[tuple[str, str | None, float, int | None, MemoryBasis]]:
    """Target, cause, seconds, peak memory and its basis of each target of an attempt.

    The tables of older programs name no memory; there, that of the attempt is a lone target's own. A re-run says
    nothing: it may have run a single test, and is not what a plan is about.
    """
    if event.shard.startswith(RERUN):
        return
    lone_bytes = event.peak_memory_bytes if len(table.targets) == 1 else None
    for row in table.targets:
        memory: tuple[int | None, MemoryBasis] = (row.memory_bytes, row.memory_basis)
        if row.memory_basis == "none" and lone_bytes is not None:
            memory = (lone_bytes, "alone")
        yield row.target, row.cause, row.duration_seconds, *memory


def case_results(table: CaseTable) -> Iterator[tuple[str, Outcome, float, int, str, bool]]:
    """Test in text form, outcome, seconds, re-runs and first line of a failure of each case of an attempt, and whether
    there is no doubt that it was a test of this commit."""
    doubtful = {whole_target(row.target) for row in table.targets if row.cause in UNTRUSTED}
    for row in table.cases:
        line = row.line[:LINE_MAX] if row.outcome in ("failed", "error") else ""
        yield row.test.text(), row.outcome, row.duration_seconds, row.reruns, line, row.test.target not in doubtful
