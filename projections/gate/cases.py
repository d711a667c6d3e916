"""Cases: what every test did on both sides, joined by identity from inventories, plan and the tables of attempts."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace as copy

from ledger.parts import whole_target
from ledger.tables import CaseRow, CaseTable, Inventory, InventoryTarget, Plan
from ledger.values import TestId
from projections.gate.classes import BaselineState, CandidateState

RowState = Literal["passed", "failed", "skipped", "xfailed", "flaky"]

_STATES: dict[str, RowState] = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "failed",
    "skipped": "skipped",
    "xfailed": "xfailed",
}


class SideEvidence(Struct, kw_only=True):
    """What is known of one side: its inventory, the tables of its attempts in order, and the targets still missing; a
    target of which any part is missing is.

    `missing` maps a target to its reason code; `not_run` are the targets that the policy left out.
    """

    inventory: Inventory
    tables: tuple[CaseTable, ...]
    missing: Mapping[str, str]
    not_run: frozenset[str] = frozenset()


UNTRUSTED = frozenset({"wrong-tree", "tree-changed", "record-damaged", "foreign-tests"})
"""Reasons why a target was not measured that leave doubt whether what was seen was a failure of this tree at all."""


PROVING = frozenset({
    "signalled", "worker-crashed", "session-ended-early", "interrupted", "cases-missing", "exit-contradicts-cases",
    "counts-disagree", "count-invalid", "count-unknown", "target-missing", "not-run",
})  # fmt: skip
"""Reasons why a target was not measured that take nothing from a failure that was reported of one of its tests: the
attempt came to its end by itself. What is ended from outside may fail tests by that, so such an end proves nothing; nor
does an exit code that is not one of the runner's, because some book what killed them on the test that was running."""


class SideCases(Struct):
    """One side, indexed: the inventory's targets and cases, the newest row of each case of a measured target.

    `failed_before` are the tests that failed in an attempt that did not measure their target: no later attempt makes
    that undone. `proven` are the rows of tests whose failure is beyond doubt although their target is still missing.
    `idle` are the measured targets of which nothing but skips was seen and nothing else is known.
    """

    evidence: SideEvidence
    targets: dict[str, InventoryTarget] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)
    collected: dict[TestId, None] = field(default_factory=dict)
    reported: dict[TestId, CaseRow] = field(default_factory=dict)
    failed_before: set[TestId] = field(default_factory=set)
    proven: dict[TestId, CaseRow] = field(default_factory=dict)
    idle: set[str] = field(default_factory=set)

    def knows(self, test: TestId) -> bool:
        """Whether this side has the case, from its collection or from a report."""
        return test in self.collected or test in self.reported

    def uncollected(self, target: str) -> bool:
        """Whether the target is there but could not be collected."""
        found = self.targets.get(target)
        return found is not None and found.error is not None


_RAN = frozenset({"passed", "failed", "xpassed"})
"""Outcomes of the test's own call; an error, a skip or an expected failure does not show that the test did its work."""


class JoinedCase(Struct, frozen=True):
    """A case with its state on both sides, the first line to show for it, and why it was not measured, if so.

    `ran`: the test itself was run on the candidate. `collected`: the candidate's collection has found it.
    """

    test: TestId
    candidate: CandidateState
    baseline: BaselineState
    line: str = ""
    cause: str = ""
    ran: bool = False
    collected: bool = False


def index(evidence: SideEvidence) -> SideCases:
    """Index one side. A target that was measured by an earlier attempt keeps that attempt's rows."""
    side = SideCases(evidence)
    for target in evidence.inventory.targets:
        side.targets[target.target] = target
        side.collected.update(dict.fromkeys(target.cases))
        if target.error is not None:
            side.collected[TestId(target.target)] = None
    for table in evidence.tables:
        causes = {whole_target(row.target): row.cause for row in table.targets}
        for row in table.cases:
            cause = causes.get(row.test.target, "")
            if cause is None:
                side.reported[row.test] = row
            elif row.outcome in ("failed", "error") and cause and cause not in UNTRUSTED:
                side.failed_before.add(row.test)
            if row.test.path and (cause is None or cause in PROVING):
                _note_proven(side, row)
        side.measured.update(target for target, cause in causes.items() if cause is None)
    ran = {test.target for test, row in side.reported.items() if row.outcome != "skipped"}
    unlisted = {target for target in side.measured & side.targets.keys() if not side.targets[target].is_listed}
    side.idle = unlisted - ran
    return side


def _note_proven(side: SideCases, row: CaseRow) -> None:
    """The newest word on a test counts: one that failed and passed later is flaky, which proves no failure."""
    if row.outcome in ("failed", "error"):
        side.proven[row.test] = row
    else:
        side.proven.pop(row.test, None)


def join(candidate: SideCases, baseline: SideCases, *, proven: bool = False) -> list[JoinedCase]:
    """Every case that either side has, in byte order, with its states.

    With `proven`, a failure on the candidate that is beyond doubt counts although its target was not measured; that the
    target was not stays a case of its own then. Runs of older programs are judged without.

    A target that cannot be collected on a side is one case there (an empty path), which stands for the tests that are
    hidden by that, unless it had an error on both sides; so is a target of the candidate that was not measured and has
    no case, lest it be lost.
    """
    tests = {**candidate.collected, **candidate.reported, **baseline.collected, **baseline.reported}
    named = {test.target for test in (*candidate.collected, *candidate.reported)}
    lost = candidate.evidence.missing.keys() | candidate.targets.keys() - candidate.measured
    tests.update((TestId(target), None) for target in lost - named)
    missing = candidate.evidence.missing
    rows = {test: row for test, row in candidate.proven.items() if proven and test.target in missing}
    candidate = copy(candidate, proven=rows)
    tests.update((one, None) for test in rows for one in (test, TestId(test.target)))
    variants: Variants = {}
    for test in (*candidate.collected, *candidate.reported):
        row, name = candidate.reported.get(test), (test.target, test.path)
        variants[name] = variants.get(name, True) and row is not None and row.outcome == "skipped"
    return [
        _join_one(test, candidate, baseline, variants)
        for test in sorted(tests, key=TestId.sort_key)
        if not _hidden(test, candidate) or baseline.uncollected(test.target)
    ]


Variants = dict[tuple[str, tuple[str, ...]], bool]
"""Targets with the names of the tests that the candidate has in them, and whether each of its variants was skipped."""


def _join_one(test: TestId, candidate: SideCases, baseline: SideCases, variants: Variants) -> JoinedCase:
    state, cause = _candidate_state(test, candidate, baseline, variants)
    other = _baseline_state(test, baseline)
    if state == "skipped" and other == "absent" and test.target in candidate.idle - baseline.idle:
        # Nothing of the target was executed, and the baseline does not let it skip by skipping all of it, too.
        state, cause = "unmeasured", "only-skipped"
    row = candidate.proven.get(test) or candidate.reported.get(test)
    line = row.line or row.reason if row else ""
    if other in ("unmeasured", "not-run") and not cause:
        cause = baseline.evidence.missing.get(test.target, "not-measured")
    ran = row is not None and row.outcome in _RAN
    collected = test in candidate.collected or (bool(test.path) and _only_reported(test, candidate))
    return JoinedCase(test, state, other, line, cause, ran=ran, collected=collected)


def _candidate_state(
    test: TestId, candidate: SideCases, baseline: SideCases, variants: Variants
) -> tuple[CandidateState, str]:
    if not test.path:
        return _collection_state(test, candidate)
    if test in candidate.proven:
        return "failed", ""
    hidden = _hidden(test, candidate)
    if not candidate.knows(test) and not hidden and not _unlisted(test, candidate, baseline):
        return _gone(test, candidate, baseline, variants)
    if test.target in candidate.evidence.missing:
        return "unmeasured", candidate.evidence.missing[test.target]
    if hidden and test.target in candidate.measured:
        return "failed", ""
    row = candidate.reported.get(test)
    return (_row_state(row, candidate), "") if row else ("unmeasured", "not-measured")


def _unlisted(test: TestId, candidate: SideCases, baseline: SideCases) -> bool:
    """Whether the candidate may have the test: its target is still to be measured, and its collection lists none.

    Where the baseline's collection lists tests of the target, the runner can, and the candidate has none of them.
    """
    found = candidate.targets.get(test.target)
    if found is None or found.is_listed or test in baseline.collected:
        return False
    return test.target in candidate.evidence.missing


def _hidden(test: TestId, candidate: SideCases) -> bool:
    """Whether the candidate may have the test, but could not collect the file or the class that it is in."""
    if not test.path or candidate.knows(test) or not candidate.uncollected(test.target):
        return False
    return test.target not in candidate.measured or _broken_above(test, candidate)


def _broken_above(test: TestId, side: SideCases) -> bool:
    """Whether an attempt reported that the file or a class that the test is in could not be collected."""
    above = (side.reported.get(TestId(test.target, test.path[:length])) for length in range(len(test.path)))
    return any(row is not None and row.outcome == "error" for row in above)


def _collection_state(test: TestId, candidate: SideCases) -> tuple[CandidateState, str]:
    """The candidate's collection of a whole target."""
    if test.target not in candidate.targets:
        return "removed", ""
    if test.target in candidate.evidence.missing:
        return "unmeasured", candidate.evidence.missing[test.target]
    if test.target not in candidate.measured:
        return "unmeasured", "not-measured"
    return _collected_as(test, candidate), ""


def _collected_as(test: TestId, side: SideCases) -> RowState:
    """How the collection of a target went: by the inventory if that had an error, else as an attempt reported it."""
    row = side.reported.get(test)
    if side.uncollected(test.target):
        return "failed"
    return _row_state(row, side) if row else "passed"


def _gone(test: TestId, candidate: SideCases, baseline: SideCases, variants: Variants) -> tuple[CandidateState, str]:
    """A case that the candidate does not have: hidden by a skip of its whole target, vanished, or removed.

    A test of the same bytes whose variants that are left are all skipped is hidden too: pytest leaves one that it skips
    when there are no parameters any more. Only what the baseline collected can vanish, so that the answer does not
    depend on whether the baseline was run; where a collection lists no tests, only what the baseline reported.
    """
    ours, theirs = candidate.targets.get(test.target), baseline.targets.get(test.target)
    if ours is not None and ours.skipped is not None:
        return "skipped", ""
    identical = theirs is not None and (theirs.kept is True or _same_bytes(ours, theirs))
    if not identical or not (test in baseline.collected or _only_reported(test, baseline)):
        return "removed", ""
    all_skipped = variants.get((test.target, test.path))
    if all_skipped is None:
        return "vanished", ""
    return ("skipped" if all_skipped else "removed"), ""


def _only_reported(test: TestId, side: SideCases) -> bool:
    """Whether reports are all that can tell which tests the target has, and they tell of this one."""
    target = side.targets.get(test.target)
    return target is not None and not target.is_listed and test in side.reported


def _same_bytes(ours: InventoryTarget | None, theirs: InventoryTarget) -> bool:
    return ours is not None and ours.blob is not None and ours.blob == theirs.blob


def _baseline_state(test: TestId, baseline: SideCases) -> BaselineState:
    target, missing = test.target, baseline.evidence.missing
    if target not in baseline.targets:
        return "absent"
    if target in baseline.evidence.not_run:
        return "not-run"
    if target in missing or target not in baseline.measured:
        return "unmeasured"
    if not test.path:
        return _collected_as(test, baseline)
    row = baseline.reported.get(test)
    if row is not None:
        return _row_state(row, baseline)
    if test in baseline.collected:
        return "unmeasured"
    return "uncollected" if _broken_above(test, baseline) else "absent"


def _row_state(row: CaseRow, side: SideCases) -> RowState:
    state = _STATES[row.outcome]
    return "flaky" if state == "passed" and (row.reruns or row.test in side.failed_before) else state


def not_run_targets(plan: Plan, missing: Mapping[str, str], asked: Iterable[str]) -> frozenset[str]:
    """The baseline targets of a plan that were neither asked for nor are missing: what `on-failure` left out."""
    known = {target for shard in plan.shards for target in shard.baseline}
    return frozenset(known - set(asked) - set(missing))
