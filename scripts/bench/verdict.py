"""The verdict of many cases beside its limit: joining both sides and judging every case by the table, in CPU time.

Usage: python scripts/bench/verdict.py. Exit code 1 over a limit.
"""

import sys
import time

from ledger.tables import CaseRow, CaseTable, Inventory, InventoryTarget, TargetRow
from ledger.values import SIDES, Outcome, Side, TestId
from projections.gate.cases import SideEvidence, index, join
from projections.gate.verdict import Closer, judge_cases
from scripts.bench.measuring.lib import report

TARGETS, TESTS = 1000, 100
SECONDS_MAX = 1.0
REPETITIONS = 5
OUTCOMES: tuple[Outcome, ...] = ("passed", "passed", "passed", "skipped", "failed")


def evidence(side: Side) -> SideEvidence:
    """A side of which everything was measured; a few cases fail on both sides."""
    commit = "c" * 40
    names = [f"tests/test_{number:04}.py" for number in range(TARGETS)]
    tests = {name: tuple(TestId(name, (f"test_{number}",)) for number in range(TESTS)) for name in names}
    rows = tuple(
        CaseRow(test=test, outcome=OUTCOMES[number % 97 % 5], duration_seconds=0.01, line="")
        for number, test in enumerate(test for name in names for test in tests[name])
    )
    table = CaseTable(
        reader="bench",
        side=side,
        commit=commit,
        targets=tuple(TargetRow(target=name, cause=None, duration_seconds=1.0) for name in names),
        cases=rows,
    )
    targets = tuple(InventoryTarget(target=name, blob="b", cases=tests[name]) for name in names)
    return SideEvidence(inventory=Inventory(side=side, commit=commit, targets=targets), tables=(table,), missing={})


def verdict_seconds(sides: list[SideEvidence]) -> float:
    """The CPU time of one verdict."""
    began = time.process_time()
    candidate, baseline = map(index, sides)
    judged = judge_cases(join(candidate, baseline), flaky_blocks=False, closer=Closer({}, {}))
    seconds = time.process_time() - began
    if len(judged.table.rows) != TARGETS * TESTS:
        raise AssertionError("the verdict lost or added cases")
    return seconds


def main() -> int:
    """Measure; 1 when the limit is broken."""
    sides = [evidence(side) for side in SIDES]
    seconds = sorted(verdict_seconds(sides) for _ in range(REPETITIONS))
    unit = f"s of CPU for the verdict of {TARGETS * TESTS} cases on both sides"
    spread = (seconds[0], seconds[-1])
    return 0 if report("verdict.cases", seconds[len(seconds) // 2], unit=unit, limit=SECONDS_MAX, spread=spread) else 1


if __name__ == "__main__":
    sys.exit(main())
