"""Which new failures are run again, before the verdict.

Rules:
- nothing is run again before everything is settled, and nothing when the policy says so or no test failed.
- each test of which the failure is new is run again alone once.
- so is a target that an attempt could not collect, all of it, unless its inventory shows the same already; runs whose
  policy does not say `ladder/2` run none again.
- they are planned in windows of at most 32 targets and 64 tests, in byte order; each window comes to its end before the
  next one.
- when no window is left, the attempts that saw failures which a test alone does not explain are run again as they were.
- when more than half of at least 8 tests fail again with the same fingerprint, it is the change: no further window is
  planned, and the failures that were not run again stand as they are. So they do when 256 tests were run again.
- when nothing is left to run again, that is recorded; only then comes the verdict.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby, islice

from msgspec import UNSET

from commands.decide.attempts.settled import attempts_settled, reruns_due
from commands.decide.base import NOTHING, Decided, Documents, Needs
from commands.decide.verdict import both_sides, evidence_needed, rerun_tables
from commands.messages import PlanReruns, Refusal
from ledger.events import RERUN, AttemptRecorded, PlannedRerun, RerunsPlanned
from ledger.parts import whole_target
from ledger.tables import CaseTable, Plan
from ledger.values import TestId
from projections.gate.cases import PROVING, JoinedCase, SideCases, join
from projections.gate.classes import NEW_FAILURES, judge
from projections.gate.fingerprint import fingerprint
from projections.gate.reruns import TestReruns, observed, rows_that_failed_again
from projections.registry import RunViews

WINDOW_TARGETS = 32
WINDOW_TESTS = 64
TESTS_MOST = 256
SAME_FAILURE_LEAST = 8
SAME_FAILURE, TOO_MANY = "same-failure", "too-many-failures"

Origin = tuple[str, int, tuple[str, ...]]
"""The planned shard, the attempt and its targets that saw a test fail."""


def plan_needs(message: PlanReruns, views: RunViews) -> Needs:
    """What is new is decided on what the verdict is decided on."""
    return evidence_needed(views.gate)


def plan_reruns(message: PlanReruns, views: RunViews, documents: Documents) -> Decided:
    """The next re-runs, or that none is left."""
    if not reruns_due(views):
        return NOTHING
    if not attempts_settled(views):
        raise Refusal("not-settled", "attempts are still owed or running, so nothing can be run again yet")
    candidate, baseline = both_sides(views, documents)
    origins = _origins(views, documents)
    cases = join(candidate, baseline, proven=views.run.policy.retry is not UNSET)
    collections = views.run.policy.collections_rerun
    failed = [case for case in cases if _is_new(case, candidate, collections=collections) and case.test in origins]
    runs = observed(views.gate, rerun_tables(views.gate, documents))
    stopped = SAME_FAILURE if same_failure(runs) else TOO_MANY if len(runs) >= TESTS_MOST else ""
    waiting = [case for case in failed if case.test not in runs]
    reruns = () if stopped else tuple(_alone(waiting, origins, views))
    if not reruns:
        reruns = tuple(_bundles(runs, origins, views))
    left_out = stopped if waiting and not reruns else ""
    return Decided((RerunsPlanned(commit=views.run.begun.candidate, reruns=reruns, stopped=left_out),))


def same_failure(runs: Mapping[TestId, TestReruns]) -> bool:
    """Whether the change itself, and no test, is what fails: most of what was run again fails again in the same way."""
    prints = Counter(fingerprint(row.line or row.message) for row in rows_that_failed_again(runs.values()))
    most = max(prints.values(), default=0)
    return most >= SAME_FAILURE_LEAST and 2 * most > len(runs)


def _is_new(case: JoinedCase, candidate: SideCases, *, collections: bool) -> bool:
    return (
        (bool(case.test.path) or (collections and not candidate.uncollected(case.test.target)))
        and (case.test in candidate.reported or case.test in candidate.proven)
        and judge(case.candidate, case.baseline).case_class in NEW_FAILURES
    )


def _origins(views: RunViews, documents: Documents) -> dict[TestId, Origin]:
    """The newest attempt that saw the test fail, beyond doubt."""
    found: dict[TestId, Origin] = {}
    plan = documents.get(views.gate.plan.plan, Plan) if views.gate.plan else None
    for shard in plan.shards if plan else ():
        for attempt in views.gate.side(shard.shard, "candidate").attempts:
            targets = attempt.started.targets or shard.candidate
            for test in _failures(attempt.recorded, documents):
                found[test] = (shard.shard, attempt.started.attempt, targets)
    return found


def _failures(record: AttemptRecorded | None, documents: Documents) -> Iterator[TestId]:
    if record is None or record.table is None:
        return
    table = documents.get(record.table, CaseTable)
    told = {whole_target(row.target) for row in table.targets if row.cause is None or row.cause in PROVING}
    yield from (row.test for row in table.cases if row.outcome in ("failed", "error") and row.test.target in told)


def _alone(waiting: list[JoinedCase], origins: Mapping[TestId, Origin], views: RunViews) -> Iterator[PlannedRerun]:
    """The next window: a re-run for each test of its targets."""
    targets = islice(groupby(waiting, key=lambda case: case.test.target), WINDOW_TARGETS)
    window = islice((case for _, cases in targets for case in cases), WINDOW_TESTS)
    for number, case in enumerate(window, start=_last_number(views, "alone") + 1):
        of, attempt, _ = origins[case.test]
        yield PlannedRerun(
            shard=f"{RERUN}alone-{number}",
            kind="alone",
            of=of,
            attempt=attempt,
            targets=(case.test.target,),
            test=case.test.text(),
            baseline=case.baseline != "absent",
        )


def _bundles(
    runs: Mapping[TestId, TestReruns], origins: Mapping[TestId, Origin], views: RunViews
) -> Iterator[PlannedRerun]:
    """A re-run for each attempt whose failures the tests alone do not explain, unless there is one."""
    number = _last_number(views, "bundle")
    done = {(rerun.of, rerun.attempt) for rerun in views.gate.reruns.values() if rerun.kind == "bundle"}
    due = {origins[test] for test, one in runs.items() if one.needs_bundle and test in origins}
    for of, attempt, targets in sorted(due):
        if (of, attempt) not in done:
            number += 1
            yield PlannedRerun(shard=f"{RERUN}bundle-{number}", kind="bundle", of=of, attempt=attempt, targets=targets)


def _last_number(views: RunViews, kind: str) -> int:
    return sum(rerun.kind == kind for rerun in views.gate.reruns.values())
