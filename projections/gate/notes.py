"""Notes on cases: what a person should know beside the class. A note never changes a class or a verdict.

| note | the case |
|---|---|
| `fails-differently` | fails on both sides, with messages of which the fingerprints differ |
| `unstable-variant` | is a variant that only one side has, although the sides share other variants of the same test |
| `load` | failed, and passed again only after an attempt at that ran out of time (see `projections/gate/reruns.py`) |
"""

from collections.abc import Iterator

from ledger.tables import CaseRow
from ledger.values import TestId
from projections.gate.cases import SideCases
from projections.gate.fingerprint import fingerprint

DIFFERENTLY, UNSTABLE, LOAD = "fails-differently", "unstable-variant", "load"
_FAILURES = frozenset({"failed", "error"})


def notes_of(candidate: SideCases, baseline: SideCases) -> dict[TestId, str]:
    """The note of each case that has one, from what both sides show of it."""
    return {**dict.fromkeys(_unstable(candidate, baseline), UNSTABLE)} | dict.fromkeys(
        _fails_differently(candidate, baseline), DIFFERENTLY
    )


def _fails_differently(candidate: SideCases, baseline: SideCases) -> Iterator[TestId]:
    for test, row in candidate.reported.items():
        other = baseline.reported.get(test)
        if other is not None and {row.outcome, other.outcome} <= _FAILURES and _print(row) != _print(other):
            yield test


def _print(row: CaseRow) -> str:
    return fingerprint(row.line or row.message)


def _unstable(candidate: SideCases, baseline: SideCases) -> Iterator[TestId]:
    """The variants of one side alone, of tests of which both sides have some variant."""
    ours, theirs = _variants(candidate), _variants(baseline)
    shared = {(test.target, test.path) for test in ours & theirs}
    yield from (test for test in ours ^ theirs if (test.target, test.path) in shared)


def _variants(side: SideCases) -> set[TestId]:
    return {test for test in (*side.collected, *side.reported) if test.variant is not None}
