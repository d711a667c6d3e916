"""Reports that real producers wrote, with what a person knows about each run."""

import re
from typing import Any

import pytest

from commands.readers.junit import Reading
from tests.commands.junit.conftest import REAL, codes, reading_of, truth

SPOKEN = {
    "pytest": "pytest", "pytest7": "pytest", "bun": "bun", "vitest": "vitest", "jest": "jest-junit",
    "gotestsum": "gotestsum", "nextest": "cargo-nextest", "surefire": "surefire",
}  # fmt: skip
"""The dialects of which every truth must come out, by the first word of the run."""

RUNS = sorted(folder.name for folder in REAL.iterdir())
OURS = [run for run in RUNS if run.partition("-")[0] in SPOKEN]

DOUBTED = {
    # The record of the same run says that every test of these three passed at last, and the two of the nested classes
    # at once; a failure in the class around them is none of theirs.
    ("surefire-rerun-mix", "t.FlakyTest"): "unmeasured",
    ("surefire-rerun-mix", "t.MixTest$Inner"): "passed",
    ("surefire-rerun-mix", "t.MixTest$Inner$Deeper"): "passed",
}
"""Where the truth contradicts what else is known of the run, and what comes out instead."""

PROFILES = {
    "pytest-subtests-pass": "pytest-subtests/1",
    "pytest7-subtests-pass": "pytest-subtests/1",
    "jest-pass-with-todo": "jest-todo/1",
    "surefire-rerun-flaky-pass": "surefire-reruns/1",
    "mocha-pass-with-skip": "mocha-pending/1",
}


def read_run(run: str, dialect: str | None, **more: Any) -> tuple[dict[str, Any], Reading]:
    """The truth of a run, and the reading of its reports."""
    expected = truth(REAL / run, "expected.json")
    documents = [(REAL / run / name).read_bytes() for name in expected["reports"] if (REAL / run / name).exists()]
    reading = reading_of(*documents, planned=expected["plan"], exit_code=expected["exit_code"], dialect=dialect, **more)
    return expected, reading


def root_of(run: str) -> str:
    """The directory that the paths in a run's report begin with, "" when they are relative."""
    expected = truth(REAL / run, "expected.json")
    text = (REAL / run / "report.xml").read_text("utf-8") if (REAL / run / "report.xml").exists() else ""
    found = re.search(f'file="(/[^"]*)/{re.escape(expected["plan"][0])}"', text)
    return found[1] if found else ""


def seen(reading: Reading) -> dict[str, str]:
    """The targets in the words of the truth."""
    return {one.target: "skipped-only" if one.cause == "only-skipped" else one.verdict for one in reading.targets}


@pytest.mark.parametrize("named", [True, False], ids=["named", "recognised"])
@pytest.mark.parametrize("run", OURS)
def test_a_report_in_a_known_dialect_comes_out_as_it_is(run: str, named: bool) -> None:
    expected, reading = read_run(run, SPOKEN[run.partition("-")[0]] if named else None)
    targets = {
        target: DOUBTED.get((run, target), found.partition(" ")[0])
        for target, found in expected["gate"]["per_file"].items()
    }
    assert (reading.verdict, seen(reading)) == (expected["gate"]["verdict"], targets)
    if list(reading.cases()):
        assert reading.dialect == SPOKEN[run.partition("-")[0]]


@pytest.mark.parametrize("run", RUNS)
def test_no_run_is_accepted_that_should_not_be(run: str) -> None:
    expected, reading = read_run(run, "generic")
    if expected["gate"]["verdict"] != "accepted":
        assert reading.verdict != "accepted"
    for target in reading.targets:
        if target.verdict == "passed" and (run, target.target) not in DOUBTED:
            assert expected["gate"]["per_file"][target.target].startswith("passed")


@pytest.mark.parametrize("run", PROFILES)
def test_a_profile_explains_what_without_it_is_a_contradiction(run: str) -> None:
    root = root_of(run)
    _, strict = read_run(run, None, root=root)
    assert (strict.verdict, strict.suggested) == ("unmeasured", (PROFILES[run],))
    expected, reading = read_run(run, None, profile=PROFILES[run], root=root)
    assert expected["gate"]["verdict_with_profile"].startswith(reading.verdict)
    assert reading.verdict == "accepted"


def test_a_skip_that_may_hide_subtests_is_flagged() -> None:
    _, reading = read_run("pytest-subtests-pass", "pytest", profile="pytest-subtests/1")
    assert [(one.target, one.flags) for one in reading.targets] == [
        ("subok/test_subok.py", ()), ("subok/test_subskip.py", ("skipped-only",)),
    ]  # fmt: skip


def test_targets_that_may_skip_are_accepted_with_a_flag() -> None:
    plan = truth(REAL / "pytest-only-skips", "expected.json")["plan"]
    _, reading = read_run("pytest-only-skips", "pytest", may_skip=frozenset(plan[:2]))
    assert [(one.verdict, one.flags) for one in reading.targets] == [
        ("passed", ("skipped-only",)), ("passed", ("skipped-only",)), ("unmeasured", ()),
    ]  # fmt: skip
    _, allowed = read_run("pytest-only-skips", "pytest", may_skip=frozenset(plan))
    assert allowed.verdict == "accepted"


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        ("node24-pass", "accepted"),
        ("mocha-pass", "accepted"),
        ("node24-none", "unmeasured"),
        ("node24-process-exit-0", "unmeasured"),
    ],
)
def test_absolute_paths_are_read_from_the_declared_root(run: str, verdict: str) -> None:
    assert read_run(run, "generic", root=root_of(run))[1].verdict == verdict
    assert read_run(run, "generic", root=root_of(run) + "/")[1].verdict == verdict
    for other in ("", root_of(run)[:-1], root_of(run).rpartition("/")[0]):
        assert read_run(run, "generic", root=other)[1].verdict == "unmeasured"


def test_a_case_that_is_named_as_its_file_is_no_test() -> None:
    _, reading = read_run("node24-process-exit-0", "generic", root=root_of("node24-process-exit-0"))
    assert codes(reading) == {"case-is-file"}


def test_what_is_read_of_a_run_has_the_identities_of_the_runner() -> None:
    _, reading = read_run("pytest-xunit1", "pytest")
    rows = {row.test.text(): row for row in reading.cases()}
    assert rows["basic/test_mix.py::TestBox::TestInner::test_deep"].outcome == "passed"
    assert rows["basic/test_mix.py::test_param[x\\[y\\]]"].outcome == "passed"
    assert rows["basic/test_mix.py::test_xfail"].outcome == "xfailed"
    assert (rows["basic/test_mix.py::test_bad"].outcome, rows["basic/test_mix.py::test_bad"].line) == (
        "failed", "assert 1 == 2",
    )  # fmt: skip
    _, without_files = read_run("pytest-xunit2", "pytest")
    assert [row.test for row in without_files.cases()] == [row.test for row in reading.cases()]


def test_two_phases_of_one_pytest_test_are_one_test() -> None:
    _, reading = read_run("pytest-teardown", "pytest")
    assert [(row.test.path[-1], row.outcome) for row in reading.cases()] == [
        ("test_fail_then_td", "failed"), ("test_fine", "passed"), ("test_pass_then_td", "error"),
        ("test_skip_then_td", "error"),
    ]  # fmt: skip


def test_tests_of_one_name_in_bun_are_numbered_and_nested_describes_are_a_path() -> None:
    _, reading = read_run("bun-mix", "bun")
    rows = [row.test for row in reading.cases() if row.test.target == "mix.test.ts"]
    assert [(test.path, test.variant) for test in rows if test.path == ("dup",)] == [
        (("dup",), None), (("dup",), "#2"),
    ]  # fmt: skip
    assert ("outer", "inner ✓ 日本", "deep") in [test.path for test in rows]


def test_tries_that_a_runner_repeated_are_counted() -> None:
    _, nextest = read_run("nextest-mix", "cargo-nextest")
    assert {row.test.path[0]: row.reruns for row in nextest.cases() if row.reruns} == {
        "aborts": 1, "flaky": 1, "slow": 1, "tests::bad": 1,
    }  # fmt: skip
    assert [one.flags for one in nextest.targets if one.target == "widget::flaky"] == [("flaky",)]
