"""The rules one by one: what makes an attempt unmeasured, what fails it, and how names and counts are read."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.causes import CAUSES
from commands.executors.api import End
from commands.readers.junit import DIALECTS, PROFILES, Expectations, Report, read_reports
from ledger.values import TestId
from tests.commands.junit.conftest import codes, ended, reading_of, suite

PASS = '<testcase name="a"/>'
FAILURE = '<testcase name="b"><failure message="no"/></testcase>'
GREEN = suite(PASS)
ONE = f'<testsuite file="t.x" tests="1">{PASS}'
LONG = "n" * 20_000

REFUSED: list[tuple[str, str | bytes | None, dict[str, Any]]] = [
    ("report-missing", None, {}),
    ("report-empty", b" \n", {}),
    ("report-malformed", "<testsuites><testsuite>", {}),
    ("report-doctype", f"<!DOCTYPE x>{GREEN}", {}),
    ("report-encoding", f'<?xml version="1.0" encoding="gbk"?>{GREEN}', {}),
    ("report-too-large", suite(f'<testcase name="{LONG}"/>'), {}),
    ("report-not-junit", "<html/>", {}),
    ("case-unnamed", suite(PASS + "<testcase/>"), {}),
    ("case-is-file", suite('<testcase name="t.x"/>'), {}),
    ("cases-unattributed", f"<testsuites>{PASS}</testsuites>", {}),
    ("foreign-tests", suite(PASS, file="other.x"), {}),
    ("status-unclear", suite('<testcase name="a" status="exploded"/>'), {}),
    ("element-unknown", suite('<testcase name="a"><aborted/></testcase>'), {}),
    ("count-invalid", suite(PASS, 'tests="1e0"'), {}),
    ("count-unknown", suite(PASS, 'failed="1"'), {}),
    ("counts-disagree", suite(PASS, 'tests="2"'), {}),
    ("target-missing", GREEN, {"planned": ("t.x", "u.x")}),
    ("cases-missing", GREEN, {"cases": {"t.x": frozenset({TestId("t.x", ("a",)), TestId("t.x", ("gone",))})}}),
    ("only-skipped", suite('<testcase name="a"><skipped/></testcase>'), {}),
    ("plan-missing", GREEN, {"planned": None}),
    ("plan-empty", "<testsuites/>", {"planned": ()}),
    ("exit-unknown", GREEN, {"exit_code": None}),
    ("exit-code-unexpected", GREEN, {"exit_code": 137}),
    ("exit-contradicts-cases", GREEN, {"exit_code": 1}),
    ("interrupted", GREEN, {"exit_code": 2, "dialect": "pytest"}),
    ("runner-internal-error", GREEN, {"exit_code": 3, "dialect": "pytest"}),
    ("runner-usage-error", GREEN, {"exit_code": 4, "dialect": "pytest"}),
    ("nothing-collected", GREEN, {"exit_code": 5, "dialect": "pytest"}),
]


def test_a_clean_report_is_accepted() -> None:
    reading = reading_of(suite(PASS, 'tests="1" failures="0" errors="0" skipped="0" time="1"'))
    assert (reading.verdict, reading.troubles, codes(reading)) == ("accepted", (), set())


@pytest.mark.parametrize(("code", "document", "given_too"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_is_not_complete_is_unmeasured_for_its_reason(
    code: str, document: str | bytes | None, given_too: dict[str, Any]
) -> None:
    reading = reading_of(document, **given_too)
    assert reading.verdict == "unmeasured"
    assert code in codes(reading)
    assert code in CAUSES


def test_every_reason_is_explained_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reading.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.MULTILINE))
    told = {code for code, _, _ in REFUSED} | {code for dialect in DIALECTS.values() for code in dialect.exits.values()}
    expected = {code: CAUSES[code] for code in (told | set(ENDS)) - {"passed", "failed"}}
    assert {code: rows.get(code) for code in expected} == {
        code: f"{cause.meaning} | {cause.next_step}" for code, cause in expected.items()
    }
    for name in (*DIALECTS, *PROFILES):
        assert f"`{name}`" in page


ENDS: tuple[End, ...] = (
    "signalled", "time-limit", "idle-limit", "memory-limit", "stopped", "driver-died", "not-started", "lost",
)  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_a_process_without_an_ordinary_end_measures_nothing_and_fails_what_it_proves(end: End) -> None:
    for document, verdict in ((GREEN, "unmeasured"), (suite(PASS + FAILURE), "failed")):
        report = Report("r", (document.encode(),))
        reading = read_reports([report], ended(None, end=end, signal=9), Expectations(planned=("t.x",)))
        assert (reading.verdict, reading.targets[0].cause) == (verdict, end)
        assert reading.troubles[0].detail == ("killed by signal 9" if end == "signalled" else "")


def test_an_exit_code_is_told_with_the_runner_that_it_is_read_for() -> None:
    details = {code: reading_of(GREEN, exit_code=code).troubles[0].detail for code in (137, 1, None)}
    assert details == {
        137: "the runner (generic) exited with 137",
        1: "the runner (generic) exited with 1, but no failure is reported",
        None: "the runner (generic) exited with a code that is not known",
    }


@pytest.mark.parametrize("exit_code", [None, 0, 1, 2, 137])
@pytest.mark.parametrize(
    "document",
    [
        suite(FAILURE),
        suite('<testcase name="a"><error/></testcase>'),
        suite('<testcase name="a"><skipped/><error/></testcase>'),
        suite('<testcase name="a"><system-out><failure/></system-out></testcase>'),
        suite('<testcase name="a" status="passed"><failure/></testcase>', 'tests="1" failures="0"'),
        suite(PASS + "<error/>"),
        f"<testsuites><failure/>{GREEN}</testsuites>",
        suite("<group><testcase><failure/></testcase></group>"),
        suite(FAILURE, file="elsewhere.x"),
    ],
)
def test_a_failure_at_any_level_is_a_failure_whatever_else_is_said(document: str, exit_code: int | None) -> None:
    assert reading_of(document, exit_code=exit_code).verdict == "failed"


@pytest.mark.parametrize(
    "document",
    [
        suite(f"<group>{PASS}</group>"),
        suite(PASS + '<TestCase name="b" result="failed"/>'),
        suite(PASS + "<skipped/>"),
        suite(PASS + "<aborted/>"),
        suite(PASS + "<flakyFailure/>"),
        suite(PASS + "<system-out><testsuite/></system-out>"),
        suite(PASS + '<summary failures="3"/>'),
        suite(PASS + '<group tests="2"/>'),
        suite(PASS + '<note outcome="red"/>'),
        suite(f'{PASS}<system-out><testcase name="b"/></system-out>'),
        suite('<testcase name="a"><testcase name="b"/></testcase>'),
        suite('<testcase name="a"><rerunFailure/></testcase>'),
        suite('<testcase name="a" status="fail"/>'),
        suite('<testcase name="a" failure="it broke"/>'),
        suite('<testcase name="a" skipped="true"/>'),
        suite('<testcase name="a" status="notrun" result="suppressed"/>'),
        suite(PASS, 'result="Failed"'),
        suite(PASS, 'aborted="yes"'),
        suite(PASS, 'tests="1" Tests="2"'),
        suite(PASS, 'tests="0"'),
        suite(PASS, 'tests="1" skipped="1"'),
        suite(PASS, 'tests="1" errors="1"'),
        suite(PASS, 'tests="-1"'),
        suite(PASS, 'tests="+1"'),
        suite(PASS, 'tests="\u0661"'),
        suite(PASS, 'tests=""'),
        f'<testsuites tests="3">{suite(PASS, chr(32))[12:]}',
    ],
)
def test_what_may_say_that_not_all_is_well_is_never_accepted(document: str) -> None:
    assert reading_of(document).verdict == "unmeasured"


@pytest.mark.parametrize(
    "document",
    [
        suite(PASS + '<description text="3 tests"/><system-err>failure</system-err>'),
        suite('<testcase name="a" status="run" result="completed" assertions="0" line="7"><properties/></testcase>'),
        suite('<testcase name="a" disabled="false"><system-out>&lt;failure/&gt;</system-out></testcase>'),
        suite(PASS + '<group tests="0"/>'),
        suite(PASS, 'id="7" port="8080" assertions="4" timestamp="1970-01-01T00:00:00" time=""'),
        suite(PASS + "<testsuite name='empty' tests='0'/>"),
        f'<testsuite file="./t.x">{PASS}</testsuite>',
        f'<testsuite filepath="t.x">{PASS}</testsuite>',
        f'<testsuite file="t.x" xmlns:q="urn:q" q:n="7" q:failed="yes">{PASS}</testsuite>',
        '<testsuite><testcase name="a" filepath="t.x"/></testsuite>',
        f'<testsuites tests="3">{ONE}{ONE}{ONE}{3 * "</testsuite>"}</testsuites>',
        f'<n:testsuites xmlns:n="urn:x">{GREEN[12:-13]}</n:testsuites>',
    ],
)
def test_what_says_nothing_about_a_verdict_is_overlooked(document: str) -> None:
    assert reading_of(document).verdict == "accepted"


def test_a_target_of_a_suite_whose_counts_disagree_is_not_measured_and_others_are() -> None:
    one = '<testsuite file="a.x" tests="2"><testcase name="a"/></testsuite>'
    two = '<testsuite file="b.x" tests="1"><testcase name="b"/></testsuite>'
    reading = reading_of(f'<testsuites tests="3">{one}{two}</testsuites>', planned=("a.x", "b.x"))
    assert [(target.verdict, target.cause) for target in reading.targets] == [
        ("unmeasured", "counts-disagree"), ("passed", None),
    ]  # fmt: skip
    assert reading.verdict == "unmeasured"


def test_a_suite_is_not_blamed_again_for_what_a_suite_in_it_declares() -> None:
    two = '<testsuite file="b.x" tests="1"><testcase name="b"/><testcase name="c"/></testsuite>'
    reading = reading_of(
        f'<testsuites tests="2"><testsuite><testcase name="a" file="a.x"/>{two}</testsuite></testsuites>',
        planned=("a.x", "b.x"),
    )
    assert [(target.verdict, target.cause) for target in reading.targets] == [
        ("passed", None), ("unmeasured", "counts-disagree"),
    ]  # fmt: skip


@pytest.mark.parametrize(("element", "count"), [("skipped", "skipped"), ("failure", "failures"), ("error", "errors")])
def test_a_count_may_be_that_of_cases_or_of_elements(element: str, count: str) -> None:
    document = suite(f'{PASS}<testcase name="b"><{element}/><{element}/></testcase>', 'tests="2" {}="{}"')
    readings = {
        number: reading_of(document.format(count, number), exit_code=int(element != "skipped")) for number in range(4)
    }
    agreed = [number for number, reading in readings.items() if not codes(reading)]
    assert agreed == [1, 2]


def test_what_is_wrong_with_a_case_of_no_target_is_told_too() -> None:
    reading = reading_of('<testsuites><testcase name="a" status="?"><aborted/></testcase></testsuites>')
    assert codes(reading) == {"element-unknown", "status-unclear", "cases-unattributed"}


def test_the_first_reason_of_a_target_is_told() -> None:
    for counts, code in (
        ('result="red" tests="7"', "status-unclear"),
        ('tests="x" failed="1"', "count-invalid"),
        ('failed="1" tests="7"', "count-unknown"),
        ('skipped="1" tests="7"', "counts-disagree"),
    ):
        reading = reading_of(suite(PASS, counts))
        assert reading.targets[0].cause == code
        assert (str(counts.split('"')[1]) in reading.targets[0].detail) is True


def test_an_unreadable_report_beside_a_failing_one_takes_nothing_away() -> None:
    reading = reading_of(
        suite(FAILURE), "<testsuites>", GREEN.replace("t.x", "u.x"), planned=("t.x", "u.x"), exit_code=1
    )
    assert reading.verdict == "failed"
    assert [(one.target, one.verdict, one.cause) for one in reading.targets] == [
        ("t.x", "failed", "report-malformed"), ("u.x", "unmeasured", "report-malformed"),
    ]  # fmt: skip


def test_what_a_broken_report_said_before_it_broke_is_forgotten() -> None:
    broken = suite("".join(f'<testcase name="c{number}"/>' for number in range(2000)) + FAILURE)[:-5]
    reading = reading_of(GREEN, broken)
    assert [row.test.path for row in reading.cases()] == [("a",)]
    assert (reading.verdict, reading.targets[0].cases) == ("unmeasured", 1)


@pytest.mark.parametrize(("element", "count"), [("error", "errors"), ("failure", "failures")])
def test_a_suite_that_failed_as_a_whole_is_one_failed_case_of_its_target(element: str, count: str) -> None:
    document = f'<testsuite file="t.x" name="s" {count}="1"><{element} message="no load"/></testsuite>'
    reading = reading_of(document, exit_code=1)
    assert [(one.verdict, one.cause, one.flags) for one in reading.targets] == [("failed", None, ())]
    assert [(row.test, row.outcome, row.line) for row in reading.cases()] == [(TestId("t.x"), "error", "no load")]


def test_a_target_that_failed_or_was_skipped_in_part_is_not_flagged() -> None:
    for cases, flags in (
        (FAILURE + '<testcase name="s"><skipped/></testcase>', ()),
        (PASS + '<testcase name="f"><flakyFailure/></testcase>', ("flaky",)),
        ('<testcase name="s"><skipped/></testcase>', ("skipped-only",)),
    ):
        reading = reading_of(suite(cases), exit_code=int("failure/" in cases or "no" in cases), may_skip={"t.x"})
        assert [one.flags for one in reading.targets] == [flags]


def test_names_in_a_namespace_are_names() -> None:
    document = f'<testsuites xmlns="urn:x">{suite(PASS)[12:]}'
    assert reading_of(document).verdict == "accepted"
    assert reading_of(document.replace(PASS, PASS + FAILURE), exit_code=1).verdict == "failed"


def test_the_words_of_a_broken_report_stick_to_no_case_of_another() -> None:
    reading = reading_of(suite(FAILURE)[:-5], GREEN, suite('<testcase name="c"><skipped message="why"/></testcase>'))
    assert [(row.test.path, row.line, row.message, row.reason) for row in reading.cases()] == [
        (("a",), "", "", ""), (("c",), "", "", "why"),
    ]  # fmt: skip


def test_no_report_at_all_is_a_missing_one() -> None:
    assert codes(reading_of()) == {"report-missing"}


def test_names_that_repeat_are_numbered_or_are_one_test_by_the_dialect() -> None:
    document = suite('<testcase name="a"/><testcase name="a"><failure message="x"/></testcase><testcase name="a"/>')
    numbered = reading_of(document, exit_code=1, dialect="bun")
    assert [(row.test.variant, row.outcome) for row in numbered.cases()] == [
        (None, "passed"), ("#2", "failed"), ("#3", "passed"),
    ]  # fmt: skip
    worst = reading_of(document, exit_code=1, dialect="pytest")
    assert [(row.test.variant, row.outcome, row.line) for row in worst.cases()] == [(None, "failed", "x")]


def test_tries_that_were_repeated_are_one_pass_with_reruns() -> None:
    tries = 3 * '<testcase name="t" classname="m" file="m.py"/>'
    document = f'<testsuites><testsuite name="pytest" tests="1">{tries}</testsuite></testsuites>'
    strict = reading_of(document, planned=("m.py",))
    assert (strict.verdict, strict.suggested) == ("unmeasured", ("pytest-reruns/1",))
    reading = reading_of(document, planned=("m.py",), profile="pytest-reruns/1")
    assert [(row.test.text(), row.outcome, row.reruns) for row in reading.cases()] == [("m.py::t", "passed", 2)]
    assert reading.verdict == "accepted"
    lost = document.replace('tests="1"', 'tests="4"')
    assert reading_of(lost, planned=("m.py",), profile="pytest-reruns/1").verdict == "unmeasured"


def test_a_todo_that_looks_like_a_pass_measures_no_target() -> None:
    todo = '<testcase name="later" time="0" file="{}"/>'
    document = (
        '<testsuites name="jest tests" tests="1"><testsuite tests="0">' + todo.format("a.js") + "</testsuite>"
        '<testsuite tests="1"><testcase name="b" time="0.1" file="b.js"/></testsuite></testsuites>'
    )
    reading = reading_of(document, planned=("a.js", "b.js"), profile="jest-todo/1")
    assert [(one.verdict, one.cause) for one in reading.targets] == [("unmeasured", "only-skipped"), ("passed", None)]


def test_a_module_that_skips_itself_hides_no_subtests() -> None:
    skip = '<testcase classname="" name="a" file="a.py"><skipped/></testcase>'
    other = '<testcase classname="b" name="test" file="b.py"/>'
    document = f'<testsuites><testsuite name="pytest" tests="9" skipped="1">{skip}{other}</testsuite></testsuites>'
    reading = reading_of(document, planned=("a.py", "b.py"), profile="pytest-subtests/1")
    assert [(one.verdict, one.cause) for one in reading.targets] == [("unmeasured", "only-skipped"), ("passed", None)]


@pytest.mark.parametrize(("declared", "verdict"), [(4, "accepted"), (3, "unmeasured"), (2, "unmeasured")])
def test_skips_stand_for_tests_that_ran_only_as_far_as_subtests_are_counted(declared: int, verdict: str) -> None:
    skip = '<testcase classname="a" name="{}" file="a.py"><skipped/></testcase>'
    cases = skip.format("one") + skip.format("two")
    document = f'<testsuites><testsuite name="pytest" tests="{declared}" skipped="2">{cases}</testsuite></testsuites>'
    reading = reading_of(document, planned=("a.py",), profile="pytest-subtests/1")
    assert (reading.verdict, codes(reading)) == (verdict, set() if verdict == "accepted" else {"only-skipped"})


@pytest.mark.parametrize("counts", ['failures="3"', 'errors="3"', 'skipped="3"', 'flakes="3"', 'disabled="3"'])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_explains_no_count_but_its_own(profile: str, counts: str) -> None:
    (dialect, *_) = PROFILES[profile].dialects
    cases = '<testcase classname="t" name="a" file="t" time="0"/>' * 2
    document = (
        f'<testsuites tests="2" skipped="0"><testsuite file="t" tests="2" {counts}>{cases}</testsuite></testsuites>'
    )
    explained = {"catch2-assertions/1": ("failures", "errors"), "mocha-pending/1": ("skipped",)}
    accepted = counts.partition("=")[0] in explained.get(profile, ())
    reading = reading_of(document, planned=("t",), dialect=dialect, profile=profile)
    assert (reading.verdict, codes(reading)) == (
        ("accepted", set()) if accepted else ("unmeasured", {"counts-disagree"})
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_lets_tests_differ_one_way_and_only_as_far_as_it_says(profile: str) -> None:
    (dialect, *_) = PROFILES[profile].dialects
    kinds = {
        "pytest-skips/1": '<testcase classname="t" name="s" file="t"><skipped/></testcase>',
        "pytest-reruns/1": '<testcase classname="t" name="a" file="t" time="1"/>',
        "jest-todo/1": '<testcase classname="t" name="todo" file="t" time="0"/>',
        "surefire-reruns/1": '<testcase classname="t" name="f" time="1"><flakyFailure/></testcase>',
    }
    above = {"pytest-subtests/1": [1, 2, 3, 4], "catch2-assertions/1": [1, 2, 3, 4], "mocha-pending/1": [1, 2]}
    root = 'tests="{0}" skipped="1"' if profile == "mocha-pending/1" else ""
    cases = '<testcase classname="t" name="a" file="t" time="1"/>' + kinds.get(profile, "")
    document = f'<testsuites {root}><testsuite file="t" tests="{{0}}">{cases}</testsuite></testsuites>'
    accepted = [
        tests
        for tests in range(5)
        if reading_of(document.format(tests), planned=("t",), dialect=dialect, profile=profile).verdict == "accepted"
    ]
    assert accepted == above.get(profile, [1, 2])


@pytest.mark.parametrize("root", ["", 'tests="3"', 'skipped="2"', 'tests="4" skipped="2"', 'tests="3" skipped="1"'])
def test_pending_tests_are_believed_only_as_far_as_the_root_declares_them(root: str) -> None:
    document = f'<testsuites {root}><testsuite file="t" tests="3"><testcase name="a"/></testsuite></testsuites>'
    reading = reading_of(document, planned=("t",), dialect="mocha", profile="mocha-pending/1")
    assert (reading.verdict, codes(reading)) == ("unmeasured", {"counts-disagree"})


def test_a_module_that_begins_two_planned_ones_is_nobodys() -> None:
    case = '<testcase classname="a.test_x.test_y" name="t"/>'
    document = f'<testsuites><testsuite name="pytest" tests="1">{case}</testsuite></testsuites>'
    both = reading_of(document, planned=("a/test_x.py", "a/test_x/test_y.py"))
    assert codes(both) == {"cases-unattributed"}
    one = reading_of(document, planned=("a/test_x/test_y.py",))
    assert (one.verdict, [row.test.text() for row in one.cases()]) == ("accepted", ["a/test_x/test_y.py::t"])


def test_a_nested_class_belongs_to_the_planned_class_around_it() -> None:
    document = '<testsuite><testcase classname="p.Outer$In$Deep" name="t"/></testsuite>'
    for planned, path in (("p.Outer", ("In", "Deep", "t")), ("p.Outer$In", ("Deep", "t"))):
        reading = reading_of(document, planned=(planned,), dialect="surefire")
        assert [(row.test.target, row.test.path) for row in reading.cases()] == [(planned, path)]
        assert reading.verdict == "accepted"
    assert codes(reading_of(document, planned=("p.Out",), dialect="surefire")) == {"foreign-tests"}


def test_a_path_from_another_system_is_the_planned_one_only_turned() -> None:
    document = suite(PASS, file="src\\t.x")
    assert reading_of(document, planned=("src/t.x",)).verdict == "accepted"
    for other in ("src/../src/t.x", "/src/t.x", "SRC/t.x", "src//t.x", "../src/t.x"):
        assert codes(reading_of(suite(PASS, file=other), planned=("src/t.x",))) == {"foreign-tests"}


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ('<testcase classname="a.b" name="t" file="a/b.py"/>', "a/b.py::t"),
        ('<testcase classname="a.b.C.D" name="t[x-1]" file="a/b.py"/>', "a/b.py::C::D::t[x-1]"),
        ('<testcase name="t" file="a/b.py"/>', "a/b.py::t"),
        ('<testcase classname="elsewhere" name="t]" file="a/b.py"/>', "a/b.py::elsewhere::t\\]"),
        ('<testcase classname="" name="a.b"><error/></testcase>', "a/b.py"),
        ('<testcase classname="" name="a.b" file="a/b.py"><skipped/></testcase>', "a/b.py"),
    ],
)
def test_python_names_are_those_of_the_test(case: str, text: str) -> None:
    document = f'<testsuites><testsuite name="pytest">{case}</testsuite></testsuites>'
    reading = reading_of(document, planned=("a/b.py",), exit_code=1)
    assert [row.test.text() for row in reading.cases()] == [text]
    assert reading.targets[0].cases == 1


def test_what_belongs_to_no_planned_target_is_shown_as_it_is_written() -> None:
    document = '<testsuite name="s"><error/><testcase classname="c" name="a"/><testcase name="b"/></testsuite>'
    reading = reading_of(document, planned=("t.x",))
    assert [row.test for row in reading.cases()] == [
        TestId("", ("b",)), TestId("", ("c", "a")), TestId("", ("s",)),
    ]  # fmt: skip
    assert (reading.verdict, reading.targets[0].verdict) == ("failed", "unmeasured")


def test_a_target_may_be_planned_as_the_report_writes_it() -> None:
    for path in ("./t.x", "a\\t.x", "/srv/t.x", "../t.x"):
        assert reading_of(suite(PASS, file=path), planned=(path,), root="/srv").verdict == "accepted"


@pytest.mark.parametrize("document", [PASS, FAILURE, "<failure/>", "<skipped/>", "<system-out/>", "<report/>"])
def test_only_suites_may_be_the_root(document: str) -> None:
    assert codes(reading_of(document)) == {"report-not-junit"}


def test_a_table_of_evidence_names_causes_and_times() -> None:
    case = '<testcase name="{}" time="{}" file="{}"/>'
    cases = case.format("a", "1.5", "a.x") + case.format("b", "nan", "a.x") + case.format("c", "-1", "a.x")
    table = reading_of(suite(cases), planned=("b.x", "a.x")).table("candidate", "c" * 40)
    assert [(row.target, row.cause, row.duration_seconds) for row in table.targets] == [
        ("a.x", None, 1.5), ("b.x", "target-missing", 0.0),
    ]  # fmt: skip
    assert [row.test.path for row in table.cases] == [("a",), ("b",), ("c",)]
    assert (table.reader, table.side, table.commit) == ("junit/1", "candidate", "c" * 40)


Cases = list[tuple[str, str]]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b", "c d"]), st.sampled_from(["pass", "fail", "error", "skip"]))),
        max_size=4,
    ),
    st.booleans(),
)
def test_any_honest_report_is_judged_as_a_plain_count_says(files: list[Cases], recursive: bool) -> None:
    element = {"pass": "", "fail": "<failure/>", "error": "<error/>", "skip": "<skipped/>"}
    suites, outcomes = "", [outcome for cases in files for _, outcome in cases]
    for number, cases in enumerate(files):
        inside = "".join(f'<testcase name="{name}">{element[outcome]}</testcase>' for name, outcome in cases)
        suites += f'<testsuite file="f{number}" tests="{len(cases)}" {counts_of(cases)}>{inside}</testsuite>'
    total = len(outcomes) if recursive else 0
    reading = reading_of(
        f'<testsuites tests="{total}">{suites}</testsuites>',
        planned=[f"f{number}" for number in range(len(files))],
        exit_code=int("fail" in outcomes or "error" in outcomes),
    )
    failed = [bool({"fail", "error"} & {outcome for _, outcome in cases}) for cases in files]
    ran = [any(outcome != "skip" for _, outcome in cases) for cases in files]
    assert reading.verdict == ("failed" if any(failed) else "accepted" if files and all(ran) else "unmeasured")
    assert [one.verdict for one in reading.targets] == [
        "failed" if bad else "passed" if good else "unmeasured" for bad, good in zip(failed, ran, strict=True)
    ]
    assert sum(1 for _ in reading.cases()) == len(outcomes)


def counts_of(cases: Cases) -> str:
    """The counts of a suite, as its producer would declare them."""
    outcomes = [outcome for _, outcome in cases]
    named = {"failures": "fail", "errors": "error", "skipped": "skip"}
    return " ".join(f'{name}="{outcomes.count(outcome)}"' for name, outcome in named.items())
