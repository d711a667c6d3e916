"""Mutings and verdicts: what a muting excuses, and everything that it does not."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledger.events import MuteUsed
from ledger.tables import ClassRow
from ledger.values import TestId
from projections.gate.cases import JoinedCase, index, join
from projections.gate.classes import (
    BASELINE_STATES,
    CANDIDATE_STATES,
    RERUN_STATES,
    BaselineState,
    CandidateState,
    RerunState,
    judge,
)
from projections.gate.verdict import Judged, judge_cases
from projections.people.mutes import covers, holds_in
from projections.people.muting import NO_MUTES, ValidMutes, fails_otherwise
from tests.support.makers import case, muted
from tests.support.sides import File, Files, joined
from tests.support.worlds import NAMES, TARGETS, World, right_verdict, worlds

DAY = "2030-01-15"
EVERY_TEST = [f"{target}::{name}" for target in TARGETS for name in ("t", "u", "u[1]", "C::m", "C", "x")]
PASSED = {"a.py": File({"t": "passed"})}
FAILED = {"a.py": File({"t": "failed"})}


def valid(*tests: str, day: str = DAY, environment: dict[str, str] | None = None) -> ValidMutes:
    """Each of these tests muted on its own."""
    mutings = [muted(name, mute=f"mute-{number}") for number, name in enumerate(tests, start=1)]
    return ValidMutes.of(mutings, day, environment or {})


def judged(candidate: Files, baseline: Files, mutes: ValidMutes, *, flaky_blocks: bool = False) -> Judged:
    return judge_cases(joined(candidate, baseline), flaky_blocks=flaky_blocks, mutes=mutes)


def judged_world(world: World, mutes: ValidMutes, *, flaky_blocks: bool) -> Judged:
    sides = (index(world.evidence(side)) for side in ("candidate", "baseline"))
    return judge_cases(join(*sides), flaky_blocks=flaky_blocks, mutes=mutes)


# One case.


def excused(candidate: CandidateState, baseline: BaselineState, rerun: RerunState, *, flaky_blocks: bool) -> bool:
    """Whether a muting excuses this case, told by what the test did instead of by its class.

    It must have failed in its own run; and either that is all that there is to know of it, or both of its re-runs could
    be read. A failure that the baseline shares, or that nobody could compare, is none of a muting's business.
    """
    if candidate == "flaky":
        return flaky_blocks
    if candidate != "failed" or baseline in ("failed", "uncollected", "unmeasured", "not-run"):
        return False
    return rerun != "unresolved" and (rerun != "passed-again" or flaky_blocks)


@pytest.mark.parametrize("flaky_blocks", [False, True])
@pytest.mark.parametrize("rerun", RERUN_STATES)
def test_a_muting_excuses_what_ran_and_failed_and_nothing_else(rerun: RerunState, flaky_blocks: bool) -> None:
    test = case("a.py::t")
    for candidate, baseline in product(CANDIDATE_STATES, BASELINE_STATES):
        judgement = judge(candidate, baseline, rerun, flaky_blocks=flaky_blocks)
        row = ClassRow(
            test=test, candidate=candidate, baseline=baseline, case_class=judgement.case_class,
            effect=judgement.effect, rule=judgement.rule, cause="why",
        )  # fmt: skip
        after = valid("a.py::t").applied(row, JoinedCase(test, candidate, baseline, collected=True))
        if excused(candidate, baseline, rerun, flaky_blocks=flaky_blocks):
            assert (after.case_class, after.effect, after.mute, after.cause) == ("muted", "none", "mute-1", "")
            assert (after.rule, after.candidate, after.baseline) == (row.rule, candidate, baseline)
        else:
            assert after is row, (candidate, baseline)
        assert NO_MUTES.applied(row, JoinedCase(test, candidate, baseline, collected=True)) is row


@pytest.mark.parametrize(
    ("name", "test", "covered"),
    [
        ("a.py::t", "a.py::t", True),
        ("a.py::t", "a.py::t[1]", True),
        ("a.py::t[1]", "a.py::t[1]", True),
        ("a.py::t[1]", "a.py::t[2]", False),
        ("a.py::t[1]", "a.py::t", False),
        ("a.py::t", "a.py::t2", False),
        ("a.py::t", "b.py::t", False),
        ("a.py::t", "a.py::C::t", False),
        ("a.py::C", "a.py::C::t", False),
    ],
)
def test_a_muting_covers_one_test_with_its_variants_or_one_variant(name: str, test: str, covered: bool) -> None:
    assert covers(muted(name), case(test)) is covered


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ({}, True),
        ({"platform": "linux"}, True),
        ({"platform": "linux", "python": "CPython 3.11*"}, True),
        ({"python": "CPython 3.1*"}, True),
        ({"python": "CPython 3.11"}, False),
        ({"python": "CPython 3.12*"}, False),
        ({"platform": "linux", "CI": "1"}, False),
        ({"CI": "*"}, False),
        ({"EMPTY": "*"}, True),
    ],
)
def test_a_condition_is_met_only_by_what_is_known(conditions: dict[str, str], holds: bool) -> None:
    known = {"platform": "linux", "python": "CPython 3.11.4", "EMPTY": ""}
    assert holds_in(muted("a.py::t", environment=conditions), known) is holds


@pytest.mark.parametrize(("expires", "counts"), [("2030-01-14", False), ("2030-01-15", True), ("2030-02-01", True)])
def test_a_muting_counts_through_its_last_day(expires: str, counts: bool) -> None:
    mutes = ValidMutes.of([muted("a.py::t", expires=expires)], DAY, {})
    assert judged(FAILED, PASSED, mutes).verdict == ("passed" if counts else "failed")


@pytest.mark.parametrize(
    ("lines", "line", "otherwise"),
    [
        (("assert 1 == 2",), "assert 1 == 2", False),
        (("assert 1 == 2",), "assert 17 == 3", False),
        (("assert 1 == 2",), "KeyError: x", True),
        (("assert 1 == 2", "KeyError: x"), "KeyError: x", False),
        ((), "KeyError: x", False),
        (("assert 1 == 2",), "", False),
    ],
)
def test_another_failure_is_told_from_the_one_that_was_muted(
    lines: tuple[str, ...], line: str, otherwise: bool
) -> None:
    assert fails_otherwise(muted("a.py::t", lines=lines), line) is otherwise


# The verdict.


def test_a_muted_regression_is_shown_with_its_muting_and_does_not_block() -> None:
    result = judged(FAILED, PASSED, valid("a.py::t"))
    assert (result.verdict, result.reason, result.counts) == ("passed", "no-regression", {"muted": 1})
    assert (result.blocking, result.unmeasured) == ((), ())
    assert result.muted == (MuteUsed("mute-1", "a.py::t", 1, 0, "failed: it said so"),)
    (row,) = result.table.rows
    assert (row.candidate, row.rule, row.mute, row.line) == (
        "failed", "failed x passed", "mute-1", "failed: it said so",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ({"a.py": File({"t": "skipped", "u": "passed"})}, "failed"),
        ({"a.py": File({"t": "xfailed", "u": "passed"})}, "failed"),
        ({"a.py": File({"u": "passed"})}, "failed"),
        ({"a.py": File({"t": None, "u": "passed"})}, "unmeasured"),
        ({"a.py": File({"t": "error", "u": "passed"})}, "passed"),
        ({"a.py": File({"t": "failed", "u": "passed"})}, "passed"),
    ],
    ids=["skipped", "expected to fail", "vanished", "unmeasured", "failed in its setup", "failed"],
)
def test_a_muted_test_has_to_run(candidate: Files, verdict: str) -> None:
    both = {"a.py": File({"t": "passed", "u": "passed"})}
    assert judged(candidate, both, valid("a.py::t")).verdict == verdict


def test_a_class_that_could_not_be_collected_is_no_test_that_failed() -> None:
    broken = {"a.py": File({"t": "passed"}, broken="C")}
    both = {"a.py": File({"t": "passed", "C::m": "passed"})}
    result = judged(broken, both, valid("a.py::C", "a.py::C::m"))
    assert (result.verdict, result.muted) == ("failed", ())


def test_one_muting_of_many_variants_is_used_once_and_the_first_that_covers_a_case_is_named() -> None:
    both = [{"a.py": File({f"u[{number}]": told for number in range(3)})} for told in ("failed", "passed")]
    mutes = ValidMutes.of(
        [muted("a.py::u[1]", mute="mute-1", lines=("KeyError",)), muted("a.py::u", mute="mute-2")], DAY, {}
    )
    result = judged(both[0], both[1], mutes)
    assert [row.mute for row in result.table.rows] == ["mute-2", "mute-1", "mute-2"]
    assert result.muted == (
        MuteUsed("mute-1", "a.py::u[1]", 1, 1, "failed: it said so"),
        MuteUsed("mute-2", "a.py::u", 2, 0, "failed: it said so"),
    )


some_tests = st.lists(st.sampled_from(EVERY_TEST), max_size=4, unique=True)
BETTER = {"failed": 0, "unmeasured": 1, "passed": 2}


@settings(max_examples=150, deadline=None)
@given(world=worlds(), tests=some_tests, flaky_blocks=st.booleans())
def test_a_muting_changes_nothing_but_what_failed_on_the_candidate(
    world: World, tests: list[str], flaky_blocks: bool
) -> None:
    before = judged_world(world, NO_MUTES, flaky_blocks=flaky_blocks)
    after = judged_world(world, valid(*tests), flaky_blocks=flaky_blocks)
    for old, new in zip(before.table.rows, after.table.rows, strict=True):
        if old != new:
            assert (old.effect, new.effect, new.case_class) == ("failed", "none", "muted")
            assert old.candidate in ("failed", "flaky")
            assert any(covers(muted(test), new.test) for test in tests)
    assert after.unmeasured == before.unmeasured
    assert BETTER[after.verdict] >= BETTER[before.verdict]
    if before.verdict == "unmeasured":
        assert (after.verdict, after.reason) == (before.verdict, before.reason)
    assert sum(used.cases for used in after.muted) == after.counts.get("muted", 0)


def forgiven(world: World, tests: list[str]) -> World:
    """The same world, had the muted tests that fail on the candidate passed there."""
    mutings = [muted(test) for test in tests]

    def told(target: str, name: str, outcome: str | None) -> str | None:
        hit = any(covers(one, case(f"{target}::{name}")) for one in mutings)
        return "passed" if outcome == "failed" and hit else outcome

    candidate = {
        target: replace(
            file,
            tests={name: told(target, name, outcome) for name, outcome in file.tests.items()},
            extra={name: told(target, name, outcome) or "" for name, outcome in file.extra.items()},
        )
        for target, file in world.candidate.items()
    }
    return replace(world, candidate=candidate)


@settings(max_examples=150, deadline=None)
@given(world=worlds(), tests=some_tests)
def test_the_verdict_is_the_one_that_it_would_be_had_the_muted_tests_passed(world: World, tests: list[str]) -> None:
    """But for errors, which are no run of the test itself, and failures that nobody could compare."""
    after = judged_world(world, valid(*tests), flaky_blocks=False)
    assume(not any(row.candidate == "failed" and row.effect == "unmeasured" for row in after.table.rows))
    reports = [told for file in world.candidate.values() for told in (*file.tests.values(), *file.extra.values())]
    assume("error" not in reports)
    assert after.verdict == right_verdict(forgiven(world, tests))


@settings(max_examples=80, deadline=None)
@given(world=worlds(), tests=some_tests, flaky_blocks=st.booleans())
def test_a_muting_that_is_over_or_is_for_another_place_changes_nothing(
    world: World, tests: list[str], flaky_blocks: bool
) -> None:
    before = judged_world(world, NO_MUTES, flaky_blocks=flaky_blocks)
    over = ValidMutes.of([muted(test, expires="2030-01-14") for test in tests], DAY, {})
    elsewhere = ValidMutes.of(
        [muted(test, environment={"platform": "win32"}) for test in tests], DAY, {"platform": "linux"}
    )
    assert judged_world(world, over, flaky_blocks=flaky_blocks) == before
    assert judged_world(world, elsewhere, flaky_blocks=flaky_blocks) == before


def test_the_names_of_the_worlds_are_those_that_are_muted() -> None:
    named = {test.partition("::")[2] for test in EVERY_TEST}
    assert set(NAMES) <= named | {f"{name}[2]" for name in named}
    assert all(TestId.parse(test).text() == test for test in EVERY_TEST)
