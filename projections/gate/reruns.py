"""What re-runs show of a test that failed and did not fail before.

Each such test is run alone, on the candidate and, where the baseline has it, there. What that does not decide is
decided by its bundle: the attempt that saw it fail, as it was. First match wins:

| alone, candidate     | alone, baseline | in its bundle        | shown               |
|---|---|---|---|
| not asked for        |                 |                      | none                |
| not read, or hidden  |                 |                      | unresolved          |
| failed               | not read        |                      | unresolved          |
| failed               | not failed      |                      | failed-again        |
| failed               | failed          | failed               | failed-again        |
| passed               |                 | failed               | failed-among-others |
| passed, failed       |                 | passed               | passed-again        |
| passed, failed       |                 | not read, hidden, no | unresolved          |

A test that fails alone on both sides cannot be run alone; only its bundle tells of it. *Hidden* is a skip or an
expected failure. What passes only after an attempt at it ran out of time is marked by `load`.

The collection of a target (an empty path) has failed where that was reported, and passed where any test of the target
was. A measured target of which nothing was reported has skipped all of itself, so that its collection is hidden.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from ledger.events import PlannedRerun
from ledger.parts import whole_target
from ledger.tables import CaseRow, CaseTable
from ledger.values import Digest, Outcome, Side, TestId
from projections.gate.cases import PROVING
from projections.gate.classes import RerunState
from projections.gate.shards import GateView, ShardSide

Told = Literal["nothing", "passed", "failed", "hidden", "not-read"]
"""What one re-run says of a test; `nothing` when it was not asked for."""

Rows = Mapping[Digest, Mapping[TestId, CaseRow]]
"""By table, the rows of what it measured, and of what it proves of the rest."""

HIDDEN, NOT_READ = "rerun-hidden", "rerun-not-read"
_TOLD: dict[str, Told] = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "failed",
    "skipped": "hidden",
    "xfailed": "hidden",
}
_OUT_OF_TIME = frozenset({"time-limit", "idle-limit"})


class Seen(Struct, frozen=True):
    """What a re-run says of a test: why it says nothing more, the row that it is read from, and whether an attempt
    before that ran out of time."""

    told: Told = "nothing"
    cause: str = ""
    row: CaseRow | None = None
    relaxed: bool = False


class Rerun(Struct, frozen=True):
    """What all re-runs show of a test. `cause` is the reason code of what is unresolved."""

    state: RerunState = "none"
    cause: str = ""
    load: bool = False


class TestReruns(Struct, frozen=True):
    """The re-runs of one test, each side by itself and its bundle."""

    __test__ = False

    alone: Seen = Seen()
    alone_baseline: Seen = Seen()
    bundle: Seen = Seen()

    @property
    def needs_bundle(self) -> bool:
        """Whether the test alone left open what only its bundle can tell."""
        return self.alone.told == "passed" or (self.alone.told == self.alone_baseline.told == "failed")

    def shown(self) -> Rerun:
        """What they show together, by the table above."""
        alone, bundle = self.alone, self.bundle
        if alone.told == "nothing":
            return Rerun()
        if alone.told in ("hidden", "not-read"):
            return _unresolved(alone)
        if not self.needs_bundle:
            unread = self.alone_baseline.told == "not-read"
            return _unresolved(self.alone_baseline) if unread else Rerun("failed-again")
        if bundle.told == "failed":
            return Rerun("failed-again" if alone.told == "failed" else "failed-among-others")
        if bundle.told == "passed":
            return Rerun("passed-again", load=alone.relaxed or bundle.relaxed)
        return _unresolved(bundle)


def _unresolved(seen: Seen) -> Rerun:
    return Rerun("unresolved", HIDDEN if seen.told == "hidden" else seen.cause or NOT_READ)


def observed(gate: GateView, tables: Mapping[Digest, CaseTable]) -> dict[TestId, TestReruns]:
    """The re-runs of every test that was run again alone, from the tables of all of their attempts."""
    rows = {digest: _measured_rows(table) for digest, table in tables.items()}
    bundles = {(rerun.of, rerun.attempt): rerun for rerun in gate.reruns.values() if rerun.kind == "bundle"}
    found: dict[TestId, TestReruns] = {}
    for rerun in gate.reruns.values():
        if rerun.kind == "alone":
            test, bundle = TestId.parse(rerun.test), bundles.get((rerun.of, rerun.attempt))
            found[test] = TestReruns(
                alone=_seen(gate, rerun, "candidate", test, rows),
                alone_baseline=_seen(gate, rerun, "baseline", test, rows) if rerun.baseline else Seen(),
                bundle=_seen(gate, bundle, "candidate", test, rows) if bundle else Seen(),
            )
    return found


def _seen(gate: GateView, rerun: PlannedRerun, side: Side, test: TestId, rows: Rows) -> Seen:
    """What the newest attempt that measured the test's target says of the test."""
    state = gate.side(rerun.shard, side)
    relaxed, seen = False, Seen("not-read", _cause(state))
    for attempt in state.attempts:
        record = attempt.recorded
        row = rows.get(record.table or "", {}).get(test) if record is not None else None
        if row is not None:
            seen = Seen(_TOLD[row.outcome], row=row, relaxed=relaxed)
        relaxed |= record is not None and record.cause in _OUT_OF_TIME
    return seen


def _measured_rows(table: CaseTable) -> dict[TestId, CaseRow]:
    """The rows of the measured targets, with one for the collection of each of which no such row was reported.

    A failure of a test of the candidate that is beyond doubt counts although its target was not measured.
    """
    measured = {whole_target(target.target) for target in table.targets if target.cause is None}
    rows = {row.test: row for row in table.cases if row.test.target in measured}
    collected = {test.target for test in rows if test.path}
    if table.side == "candidate":
        proving = {whole_target(target.target) for target in table.targets if target.cause in PROVING}
        failed = (row for row in table.cases if row.outcome in ("failed", "error") and row.test.path)
        rows.update((row.test, row) for row in failed if row.test.target in proving - measured)
    for target in measured:
        outcome: Outcome = "passed" if target in collected else "skipped"
        rows.setdefault(TestId(target), CaseRow(test=TestId(target), outcome=outcome, duration_seconds=0.0))
    return rows


def _cause(state: ShardSide) -> str:
    return (state.last.cause if state.last else None) or NOT_READ


def shown(runs: Mapping[TestId, TestReruns]) -> dict[TestId, Rerun]:
    """What the re-runs of each test show."""
    return {test: reruns.shown() for test, reruns in runs.items()}


def rows_that_failed_again(runs: Iterable[TestReruns]) -> Iterator[CaseRow]:
    """The rows of the tests that failed again when they were run alone."""
    return (one.alone.row for one in runs if one.alone.told == "failed" and one.alone.row is not None)
