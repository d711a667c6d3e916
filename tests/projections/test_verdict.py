"""The verdict over all cases. The property that less evidence never makes a pass is the promise of the product."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledger.values import TestId, Verdict
from projections.gate.cases import JoinedCase, SideEvidence, index, join
from projections.gate.classes import WITHOUT_RERUNS
from projections.gate.verdict import Judged, judge_cases, judge_nothing
from tests.support.sides import File, Files, evidence, joined
from tests.support.worlds import World, poorer, right_verdict, without_baseline_run, worlds

PASSED = {"a.py": File({"t": "passed", "u": "passed"})}


def judged(candidate: SideEvidence | Files, baseline: SideEvidence | Files, *, flaky_blocks: bool = False) -> Judged:
    return judge_cases(joined(candidate, baseline), flaky_blocks=flaky_blocks)


def verdict_of(candidate: SideEvidence, baseline: SideEvidence, *, flaky_blocks: bool = False) -> Verdict:
    return judge_cases(join(index(candidate), index(baseline)), flaky_blocks=flaky_blocks).verdict


@settings(max_examples=150, deadline=None)
@given(world=worlds(), flaky_blocks=st.booleans())
def test_the_verdict_is_the_one_that_follows_from_knowing_both_sides(world: World, flaky_blocks: bool) -> None:
    found = verdict_of(world.evidence("candidate"), world.evidence("baseline"), flaky_blocks=flaky_blocks)
    assert found == right_verdict(world, flaky_blocks=flaky_blocks)


@settings(max_examples=120, deadline=None)
@given(world=worlds(), flaky_blocks=st.booleans())
def test_less_evidence_never_makes_a_pass(world: World, flaky_blocks: bool) -> None:
    candidate, baseline = world.evidence("candidate"), world.evidence("baseline")
    if verdict_of(candidate, baseline, flaky_blocks=flaky_blocks) == "passed":
        return
    for less in poorer(candidate):
        assert verdict_of(less, baseline, flaky_blocks=flaky_blocks) != "passed"
    for less in poorer(baseline):
        assert verdict_of(candidate, less, flaky_blocks=flaky_blocks) != "passed"
    for target in world.baseline:
        left_out = without_baseline_run(world, target).evidence("baseline")
        assert verdict_of(candidate, left_out, flaky_blocks=flaky_blocks) != "passed"


@settings(max_examples=80, deadline=None)
@given(world=worlds())
def test_a_candidate_that_lost_a_measurement_is_never_passed(world: World) -> None:
    """A file with a collection error has nothing to lose: its collection proves that it is broken."""
    assume(not any(file.error or file.broken for file in world.candidate.values()))
    for less in poorer(world.evidence("candidate")):
        assert verdict_of(less, world.evidence("baseline")) != "passed"


@settings(max_examples=120, deadline=None)
@given(world=worlds())
def test_every_case_of_either_side_is_in_exactly_one_row(world: World) -> None:
    candidate, baseline = index(world.evidence("candidate")), index(world.evidence("baseline"))
    rows = judge_cases(join(candidate, baseline), flaky_blocks=False).table.rows
    tests = [row.test for row in rows]
    assert tests == sorted(set(tests), key=TestId.sort_key)
    here, there = {*candidate.collected, *candidate.reported}, {*baseline.collected, *baseline.reported}
    broken = {target for target, file in world.candidate.items() if file.error is not None or file.broken}
    assert here | {test for test in there if not test.path or test.target not in broken} <= set(tests)
    # A file that could not be collected stands for its tests, and one that was lost for those that it may have.
    assert all(not test.path for test in set(tests) - here - there)


@settings(max_examples=80, deadline=None)
@given(world=worlds())
def test_counts_blocking_and_unmeasured_agree_with_the_rows(world: World) -> None:
    result = judge_cases(
        join(index(world.evidence("candidate")), index(world.evidence("baseline"))), flaky_blocks=False
    )
    rows = result.table.rows
    assert sum(result.counts.values()) == len(rows)
    assert [case.test for case in result.blocking] == [row.test.text() for row in rows if row.effect == "failed"]
    listed = {case.test for case in result.unmeasured}
    for row in (row for row in rows if row.effect == "unmeasured"):
        assert row.test.text() in listed or TestId(row.test.target).text() in listed
        assert row.cause, "an unmeasured case without a reason code"
    assert all(case.line for case in result.unmeasured)
    assert bool(listed) == any(row.effect == "unmeasured" for row in rows)
    assert result.table.table == WITHOUT_RERUNS


def test_all_passed_is_passed() -> None:
    result = judged(PASSED, PASSED)
    assert (result.verdict, result.reason, result.counts) == ("passed", "no-regression", {"passed": 2})
    assert result.blocking == result.unmeasured == ()


def test_a_regression_fails_even_while_something_else_is_unmeasured() -> None:
    candidate = {"a.py": File({"t": "failed"}), "b.py": File({"t": None})}
    result = judged(candidate, {"a.py": File({"t": "passed"}), "b.py": File({"t": "passed"})})
    assert (result.verdict, result.reason) == ("failed", "regression")
    assert [(case.test, case.case_class, case.line) for case in result.blocking] == [
        ("a.py::t", "introduced", "failed: it said so")
    ]
    assert [(case.test, case.line) for case in result.unmeasured] == [("b.py", "not-measured")]


def test_a_target_that_was_not_measured_is_listed_once_and_a_failure_without_comparison_by_itself() -> None:
    dead = evidence("candidate", PASSED, missing={"a.py": "signalled"})
    result = judged(dead, PASSED)
    assert (result.verdict, result.reason) == ("unmeasured", "cases-unmeasured")
    assert [(case.test, case.line) for case in result.unmeasured] == [("a.py", "signalled")]
    failing = {"a.py": File({"t": "failed", "u": "failed"})}
    lost = evidence("baseline", PASSED, missing={"a.py": "time-limit"})
    assert [(case.test, case.line) for case in judged(failing, lost).unmeasured] == [
        ("a.py::t", "time-limit"),
        ("a.py::u", "time-limit"),
    ]


@pytest.mark.parametrize("told", ["skipped", "xfailed"])
def test_a_candidate_of_which_nothing_ran_is_unmeasured_though_nothing_speaks_against_it(told: str) -> None:
    hidden = {"a.py": File({"t": told})}
    result = judged(hidden, hidden)
    assert (result.verdict, result.reason) == ("unmeasured", "nothing-ran")
    assert result.unmeasured == ()


def test_collecting_a_file_is_not_running_it() -> None:
    result = judged({"a.py": File({"t": "skipped"})}, {"a.py": File({}, error="SyntaxError")})
    assert (result.verdict, result.reason) == ("unmeasured", "nothing-ran")


def test_no_case_at_all_is_unmeasured() -> None:
    result = judge_cases([], flaky_blocks=False)
    assert (result.verdict, result.reason, result.counts) == ("unmeasured", "nothing-ran", {})


@pytest.mark.parametrize(("flaky_blocks", "verdict"), [(False, "passed"), (True, "failed")])
def test_the_policy_says_whether_a_flaky_test_blocks(flaky_blocks: bool, verdict: str) -> None:
    there = {"a.py": File({"t": "passed"})}
    assert judged({"a.py": File({"t": "rerun"})}, there, flaky_blocks=flaky_blocks).verdict == verdict


def test_the_reason_code_stands_only_where_something_is_unmeasured() -> None:
    case = JoinedCase(TestId("a.py", ("t",)), "passed", "unmeasured", cause="signalled")
    (row,) = judge_cases([case], flaky_blocks=False).table.rows
    assert (row.effect, row.cause) == ("none", "")


def test_when_nothing_could_be_judged_the_first_cause_is_the_reason_and_all_are_listed() -> None:
    result = judge_nothing({"collection/candidate": "signalled", "collection/baseline": "lost"})
    assert (result.verdict, result.reason, result.table.rows) == ("unmeasured", "signalled", ())
    assert [(case.test, case.case_class, case.line) for case in result.unmeasured] == [
        ("collection/candidate", "unmeasured", "signalled"),
        ("collection/baseline", "unmeasured", "lost"),
    ]
    assert judge_nothing({}).verdict == "unmeasured"
    assert judge_nothing({}).reason == "nothing-collected"
