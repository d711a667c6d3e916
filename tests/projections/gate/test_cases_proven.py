"""A failure that was reported counts although its target was not measured to its end."""

import pytest

from projections.gate.cases import PROVING, UNTRUSTED, SideEvidence, index, join
from projections.gate.verdict import judge_cases
from tests.support.sides import File, Files, evidence, table_of

BASELINE: Files = {"a.py": File({"t": "passed", "u": "passed"})}
FAILED: Files = {"a.py": File({"t": "failed", "u": None})}
PASSED: Files = {"a.py": File({"t": "passed", "u": None})}
OUTSIDE = ("stopped", "driver-died", "time-limit", "idle-limit", "memory-limit", "exit-code-unexpected")


def dead(*attempts: Files, cause: str = "signalled") -> SideEvidence:
    """A candidate of which no attempt came past the file."""
    tables = tuple(table_of("candidate", files, {"a.py": cause}) for files in attempts)
    return evidence("candidate", attempts[-1], missing={"a.py": cause}, tables=tables)


def judged(candidate: SideEvidence, baseline: Files | SideEvidence = BASELINE, *, proven: bool = True):  # type: ignore[no-untyped-def]
    other = baseline if isinstance(baseline, SideEvidence) else evidence("baseline", baseline)
    return judge_cases(join(index(candidate), index(other), proven=proven), flaky_blocks=False)


@pytest.mark.parametrize("cause", sorted(PROVING))
def test_a_new_failure_of_a_target_that_was_not_measured_blocks_and_the_target_is_still_owed(cause: str) -> None:
    found = judged(dead(FAILED, cause=cause))
    assert (found.verdict, found.reason) == ("failed", "regression")
    assert [(one.test, one.case_class) for one in found.blocking] == [("a.py::t", "introduced")]
    assert [(one.test, one.line) for one in found.unmeasured] == [("a.py", cause)]
    classes = {row.test.text(): row.case_class for row in found.table.rows}
    assert classes == {"a.py": "unmeasured", "a.py::t": "introduced", "a.py::u": "unmeasured"}


@pytest.mark.parametrize("cause", [*sorted(UNTRUSTED), *OUTSIDE])
def test_what_was_ended_from_outside_or_is_doubted_proves_no_failure(cause: str) -> None:
    assert judged(dead(FAILED, cause=cause)).verdict == "unmeasured"


def test_a_failure_that_the_baseline_has_too_does_not_block() -> None:
    found = judged(dead(FAILED), {"a.py": File({"t": "failed", "u": "passed"})})
    assert (found.verdict, found.counts) == ("unmeasured", {"preexisting": 1, "unmeasured": 2})


def test_a_failure_on_the_baseline_of_which_the_target_was_not_measured_exonerates_nobody() -> None:
    lost = evidence("baseline", {"a.py": File({"t": "failed", "u": None})}, missing={"a.py": "signalled"})
    found = judged(dead(FAILED), lost)
    assert (found.verdict, found.counts) == ("unmeasured", {"unmeasured": 3})


def test_a_test_that_failed_and_passed_later_is_proven_neither_way() -> None:
    assert judged(dead(FAILED, PASSED)).verdict == "unmeasured"
    assert judged(dead(PASSED, FAILED)).verdict == "failed"


def test_a_part_that_was_measured_proves_its_failures_while_another_part_is_missing() -> None:
    table = table_of("candidate", FAILED)
    half = evidence("candidate", FAILED, missing={"a.py": "signalled"}, tables=(table,))
    assert [one.test for one in judged(half).blocking] == ["a.py::t"]


def test_runs_of_older_programs_are_judged_without_it() -> None:
    assert judged(dead(FAILED), proven=False).verdict == "unmeasured"
