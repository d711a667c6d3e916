"""The numbers of a report: which of them every count may declare, and what each case is counted as."""

import re

import pytest

from commands.readers.junit import PROFILES
from commands.readers.junit.document.encoding import Unreadable
from commands.readers.junit.rows import Rows
from ledger.values import TestId
from tests.commands.junit.conftest import codes, reading_of, suite

MIXED = (
    '<testcase name="f1"><failure/><failure/></testcase><testcase name="f2"><failure/><error/></testcase>'
    '<testcase name="e1"><error/><error/></testcase><testcase name="e2"><error/><rerunError/></testcase>'
    '<testcase name="s1"><skipped/><skipped/></testcase><testcase name="s2"><skipped/></testcase>'
    '<testcase name="n1" status="notrun"/><testcase name="n2" result="suppressed"/><testcase name="n3" state="Todo"/>'
    '<testcase name="n4" outcome="ignored"/>'
    '<testcase name="r1"><flakyFailure/><flakyFailure/></testcase><testcase name="r2"><flakyError/></testcase>'
    '<testcase name="p1" status="run" time="0"/><testcase name="p2" time="2"/>'
)
"""Two failures in three elements, one of them also an error; two errors more; two skips in three elements; four that
did not run; three that ran again; two plain passes."""


def agreeing(document: str, most: int = 20, **options: object) -> list[int]:
    """The numbers that a document may declare in place of `{}` without being contradicted by its cases."""
    readings = {number: reading_of(document.format(number), exit_code=1, **options) for number in range(most)}  # type: ignore[arg-type]
    return [number for number, reading in readings.items() if "counts-disagree" not in codes(reading)]


@pytest.mark.parametrize(
    ("count", "numbers"),
    [
        ("tests", [14]),
        ("failures", [2, 3]),
        ("errors", [2, 3, 4]),
        ("skipped", [3, 6]),
        ("disabled", [4, 6]),
        ("flakes", [3]),
    ],
)
def test_a_count_is_the_number_of_cases_or_of_elements_and_no_other(count: str, numbers: list[int]) -> None:
    assert agreeing(suite(MIXED, f'{count}="{{}}"')) == numbers


@pytest.mark.parametrize(("count", "numbers"), [("failures", [0, 2]), ("errors", [0, 3])])
def test_failures_beside_the_cases_are_elements_of_their_own(count: str, numbers: list[int]) -> None:
    assert agreeing(suite("<failure/><failure/><error/><error/><error/>", f'{count}="{{}}"')) == numbers


INNER = (
    '<testsuite file="t.x" tests="2"><testcase name="a"/><testcase name="b"/></testsuite>'
    '<testsuite file="t.x" tests="1"><testcase name="c"/><testsuite tests="1"><testcase name="d"/></testsuite>'
    "</testsuite>"
    '<testsuite file="t.x"><testcase name="e"/><testsuite tests="1"><testcase name="f"/></testsuite></testsuite>'
)
"""Six cases. What declares a number declares what stands directly in it; what declares none holds two: five in all."""


@pytest.mark.parametrize(
    ("inside", "numbers"),
    [
        (INNER, [0, 5, 6]),
        (f'<testcase name="g" file="t.x"/><testcase name="h" file="t.x"/>{INNER}', [2, 7, 8]),
        ('<testsuite file="t.x"><testcase name="c"/></testsuite>', [0, 1]),
    ],
)
def test_a_count_is_of_what_stands_directly_in_a_suite_or_below_or_declared_there(
    inside: str, numbers: list[int]
) -> None:
    assert agreeing(f'<testsuites><testsuite tests="{{}}">{inside}</testsuite></testsuites>', 12) == numbers


def test_every_target_in_a_suite_is_blamed_for_its_counts_and_no_other_report_is() -> None:
    one = '<testsuite file="{0}.x" tests="1"><testcase name="a"/></testsuite>'
    both = f'<testsuites tests="9">{one.format("a")}{one.format("b")}</testsuites>'
    reading = reading_of(both, one.format("c"), planned=("a.x", "b.x", "c.x"))
    assert [(target.verdict, target.cause) for target in reading.targets] == [
        ("unmeasured", "counts-disagree"), ("unmeasured", "counts-disagree"), ("passed", None),
    ]  # fmt: skip
    assert reading.troubles == ()


@pytest.mark.parametrize(("count", "number"), [("failures", 0), ("errors", 0), ("failures", 2), ("errors", 2)])
@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "catch2-assertions/1"])
def test_a_profile_lets_failures_and_errors_be_neither_above_nor_below(profile: str, count: str, number: int) -> None:
    (dialect, *_) = PROFILES[profile].dialects
    cases = '<testcase classname="t" name="{}" file="t"><{}/></testcase>'
    cases = cases.format("a", "failure") + cases.format("b", "error")
    document = (
        f'<testsuites tests="2" skipped="0"><testsuite file="t" {count}="{number}">{cases}</testsuite></testsuites>'
    )
    reading = reading_of(document, planned=("t",), dialect=dialect, profile=profile, exit_code=1)
    assert (reading.verdict, reading.targets[0].cause) == ("failed", "counts-disagree")


def test_subtests_are_what_exceeds_the_count_that_fits_best() -> None:
    inside = (
        '<testcase classname="a" name="t" file="a.py"><skipped/></testcase>'
        '<testsuite name="in" tests="1"><testcase classname="b" name="t" file="b.py"/></testsuite>'
    )
    for declared, cause in ((1, "only-skipped"), (2, "only-skipped"), (3, None)):
        document = f'<testsuite name="pytest" tests="{declared}">{inside}</testsuite>'
        reading = reading_of(document, planned=("a.py", "b.py"), profile="pytest-subtests/1", dialect="pytest")
        assert [one.cause for one in reading.targets] == [cause, None]


def test_a_count_that_disagrees_is_told_with_all_that_it_might_have_been() -> None:
    cases = '<testcase name="a"><skipped/><skipped/></testcase>'
    (target,) = reading_of(suite(cases, 'skipped="7"')).targets
    assert "skipped=7" in target.detail
    assert "1 or 2" in target.detail


@pytest.mark.parametrize(("skips", "accepted"), [(0, [0, 1]), (1, [0, 1, 2]), (2, [0, 1, 2, 3])])
def test_pending_tests_are_as_many_as_the_root_says(skips: int, accepted: list[int]) -> None:
    document = '<testsuites tests="{0}" skipped="{1}"><testsuite file="t"><testcase name="a"/></testsuite></testsuites>'
    readings = {
        number: reading_of(document.format(number, skips), planned=("t",), dialect="mocha", profile="mocha-pending/1")
        for number in range(6)
    }
    assert [number for number, reading in readings.items() if reading.verdict == "accepted"] == accepted


@pytest.mark.parametrize(("declared", "verdict"), [(1, "accepted"), (0, "unmeasured"), (3, "unmeasured")])
def test_only_passes_in_no_time_may_be_todos(declared: int, verdict: str) -> None:
    document = (
        f'<testsuites name="jest tests"><testsuite tests="{declared}"><testcase name="later" time="0" file="a.js"/>'
        '<testcase name="done" time="0.1" file="a.js"/></testsuite></testsuites>'
    )
    assert reading_of(document, planned=("a.js",), profile="jest-todo/1").verdict == verdict


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1.5", 1.5), ("0.5", 0.5), ("0", 0.0), ("", 0.0), ("soon", 0.0), ("-1", 0.0), ("nan", 0.0), ("inf", 0.0),
        ("999999999", 999_999_999.0), ("1e9", 0.0), ("1000000000.5", 0.0),
    ],
)  # fmt: skip
def test_a_time_that_is_none_is_no_time(time: str, seconds: float) -> None:
    (row,) = reading_of(suite(f'<testcase name="a" time="{time}"/>')).cases()
    assert row.duration_seconds == seconds
    (untimed,) = reading_of(suite('<testcase name="a"/>')).cases()
    assert untimed.duration_seconds == 0.0


def test_every_failure_is_counted_wherever_it_stands() -> None:
    failure = '<testcase name="{}"><failure/><failure/></testcase>'
    document = suite(failure.format("a") + failure.format("b") + '<testcase name="c"/><failure/><error/><error/>')
    reading = reading_of(document, document.replace("t.x", "u.x"))
    assert re.findall("[0-9]+", reading.troubles[-1].detail) == ["0", "10"]
    assert [trouble.code for trouble in reading.troubles] == ["foreign-tests", "exit-contradicts-cases"]


def test_a_failing_case_and_a_failing_suite_are_two_failures_of_one_target() -> None:
    for inside in (
        '<testcase name="a"><failure/></testcase><error/>',
        '<error/><testcase name="a"><error/></testcase>',
    ):
        reading = reading_of(suite(inside), exit_code=1)
        assert (reading.verdict, [one.verdict for one in reading.targets]) == ("failed", ["failed"])


def test_a_suite_that_failed_is_a_row_without_time_or_tries() -> None:
    (row,) = reading_of(suite("<error message='no load'/>"), exit_code=1).cases()
    assert (row.test, row.outcome, row.line) == (TestId("t.x"), "error", "no load")
    assert (row.duration_seconds, row.reruns, row.reason) == (0.0, 0, "")


AGAIN = '<testcase name="r"><flakyFailure/></testcase>'
FAILED_AGAIN = '<testcase name="f"><failure/><rerunFailure/></testcase>'
PLAIN = '<testcase name="p"/><testcase name="q"><failure/></testcase>'


@pytest.mark.parametrize(
    ("cases", "flags"),
    [
        (PLAIN, ()),
        (AGAIN + PLAIN, ("flaky",)),
        (PLAIN + AGAIN, ("flaky",)),
        (FAILED_AGAIN + PLAIN, ("flaky",)),
        (PLAIN + FAILED_AGAIN, ("flaky",)),
        (AGAIN + FAILED_AGAIN + PLAIN, ("flaky",)),
    ],
)
def test_one_case_that_was_tried_again_marks_its_target(cases: str, flags: tuple[str, ...]) -> None:
    (target,) = reading_of(suite(cases), exit_code=1).targets
    assert (target.flags, target.cases) == (flags, cases.count("<testcase"))


def test_a_test_that_is_not_run_is_a_skip_and_its_neighbours_stand() -> None:
    cases = (
        '<testcase name="a" status="notrun"/><testcase name="b" result="Skipped"/><testcase name="c" log="skip" x="7"/>'
    )
    reading = reading_of(suite(cases, 'tests="3" skipped="2"'))
    assert [row.outcome for row in reading.cases()] == ["skipped", "skipped", "passed"]
    assert (reading.verdict, codes(reading)) == ("accepted", set())


def test_an_expected_failure_is_told_from_a_skip_by_its_type() -> None:
    kinds = {"x": "pytest.xfail", "s": "pytest.skip", "n": ""}
    skips = "".join(f'<testcase name="{name}"><skipped type="{kind}"/></testcase>' for name, kind in kinds.items())
    outcomes = {row.test.path: row.outcome for row in reading_of(suite(skips)).cases()}
    assert outcomes == {("x",): "xfailed", ("s",): "skipped", ("n",): "skipped"}


def test_repeated_tries_are_looked_for_in_each_report_by_itself() -> None:
    document = (
        '<testsuites><testsuite name="pytest" tests="{1}"><testcase name="t" classname="{0}" file="{0}.py"/>'
        '<testcase name="t" classname="{0}" file="{0}.py"/><testcase name="u" classname="{0}" file="{0}.py"/>'
        "</testsuite></testsuites>"
    )
    for declared, verdict in ((2, "accepted"), (1, "unmeasured")):
        documents = document.format("a", 2), document.format("b", declared)
        reading = reading_of(*documents, planned=("a.py", "b.py"), profile="pytest-reruns/1")
        assert reading.verdict == verdict
    assert reading.suggested == ()


def test_tries_without_a_class_are_tries_of_one_test() -> None:
    tries = 3 * '<testcase name="t" file="m.py"/>'
    document = f'<testsuites><testsuite name="pytest" tests="1">{tries}</testsuite></testsuites>'
    assert reading_of(document, planned=("m.py",), profile="pytest-reruns/1").verdict == "accepted"


def test_only_passes_count_as_tries_of_a_test_that_was_repeated() -> None:
    document = suite('<testcase name="a"><failure/></testcase><testcase name="a"/><testcase name="a"/>')
    (row,) = reading_of(document, dialect="pytest", exit_code=1).cases()
    assert (row.outcome, row.reruns) == ("failed", 0)


def test_collected_tests_that_share_a_name_are_found_by_their_numbers() -> None:
    document = suite(2 * '<testcase name="a" file="t.x"/>')
    two = {TestId("t.x", ("a",)), TestId("t.x", ("a",), "#2")}
    for wanted, dialect, lost in (
        (two, "bun", False),
        ({*two, TestId("t.x", ("a",), "#3")}, "bun", True),
        ({TestId("t.x", ("a",))}, "pytest", False),
        (two, "pytest", True),
    ):
        reading = reading_of(document, dialect=dialect, cases={"t.x": frozenset(wanted)})
        assert codes(reading) == ({"cases-missing"} if lost else set())


def test_what_was_dropped_makes_room_and_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commands.readers.junit.rows.ROW_BYTES", 100_000)
    rows = Rows()
    place = rows.place("t.x", ())

    def fill(name: str, times: int) -> tuple[int, int]:
        """Add cases that take about 22,000 bytes each time."""
        mark = rows.mark()
        for number in range(times * 1024):
            rows.add(place, f"{name}{number:05}", None, "passed", 0.0, 0)
        return mark

    fill("kept", 1)
    rows.back_to(fill("lost", 3))
    fill("more", 2)
    assert len(rows) == 3072
    with pytest.raises(Unreadable, match="the names of the cases take more than"):
        fill("much", 2)


RUN = '<testcase name="{}" classname="m" file="m.py"/>'


@pytest.mark.parametrize(("declared", "fewest"), [(2, 3), (1, 2)])
def test_what_a_repeated_try_explains_is_taken_off_once_at_each_level(declared: int, fewest: int) -> None:
    tries = f'<testsuite tests="{declared}">{RUN.format("t")}{RUN.format("t")}</testsuite>'
    others = f'<testsuite tests="2">{RUN.format("u")}{RUN.format("v")}</testsuite>'
    accepted = []
    for root in range(1, 6):
        document = f'<testsuites tests="{root}"><properties/>{tries}{others}</testsuites>'
        reading = reading_of(document, planned=("m.py",), profile="pytest-reruns/1", dialect="pytest")
        accepted += [root] if reading.verdict == "accepted" else []
    assert accepted == list(range(fewest, 5))


def test_a_profile_is_suggested_only_when_it_explains_every_suite() -> None:
    above = f'<testsuite tests="2">{RUN.format("a")}</testsuite>'
    below = f'<testsuite tests="0">{RUN.format("b").replace("/>", "><skipped/></testcase>")}</testsuite>'
    for suites, suggested in (
        (above, ("pytest-subtests/1",)),
        (below, ("pytest-skips/1",)),
        (above + below, ()),
        (below + above, ()),
    ):
        reading = reading_of(f'<testsuites name="pytest tests">{suites}</testsuites>', planned=("m.py",))
        assert (reading.suggested, codes(reading)) == (suggested, {"counts-disagree"})


@pytest.mark.parametrize("profile", [name for name, profile in PROFILES.items() if not profile.skip_may_run])
def test_only_where_the_profile_says_so_may_a_skip_have_run(profile: str) -> None:
    (dialect, *_) = PROFILES[profile].dialects
    skip = '<testcase classname="t" name="a" file="t"><skipped/></testcase>'
    root = 'tests="9" skipped="8"' if PROFILES[profile].skips_unwritten else ""
    document = f'<testsuites {root}><testsuite file="t" tests="9">{skip}</testsuite></testsuites>'
    assert reading_of(document, planned=("t",), dialect=dialect, profile=profile).verdict == "unmeasured"
    if PROFILES[profile].tests_above == "any":
        reading = reading_of(document, planned=("t",), dialect=dialect, profile=profile)
        assert codes(reading) == {"only-skipped"}


def test_subtests_of_several_suites_add_up() -> None:
    one = '<testsuite tests="2"><testcase classname="a" name="{}" file="a.py"><skipped/></testcase></testsuite>'
    document = f'<testsuites name="pytest tests">{one.format("t")}{one.format("u")}</testsuites>'
    reading = reading_of(document, planned=("a.py",), profile="pytest-subtests/1")
    assert (reading.verdict, codes(reading)) == ("accepted", set())


@pytest.mark.parametrize(
    ("times", "declared", "found"),
    [
        (("0", "0", "1"), 1, set()),
        (("0", "0", "1"), 0, {"counts-disagree"}),
        (("0", "1", "1"), 2, set()),
        (("0", "1", "1"), 1, {"counts-disagree"}),
        (("1", "1", "1"), 2, {"counts-disagree"}),
        (("1", "0", "0"), 1, set()),
    ],
)
@pytest.mark.parametrize("file", ["a.js", "other.js"])
def test_todos_are_as_many_as_pass_in_no_time_whoever_asked_for_them(
    times: tuple[str, ...], declared: int, found: set[str], file: str
) -> None:
    cases = "".join(f'<testcase name="{n}" time="{time}" file="{file}"/>' for n, time in enumerate(times))
    document = (
        f'<testsuites name="jest tests"><testsuite tests="{declared}">{cases}</testsuite>'
        '<testsuite><testcase name="b" time="1" file="b.js"/></testsuite></testsuites>'
    )
    reading = reading_of(document, planned=("a.js", "b.js") if file == "a.js" else ("b.js",), profile="jest-todo/1")
    assert codes(reading) - {"foreign-tests"} == found
    assert ("foreign-tests" in codes(reading)) == (file == "other.js")


def test_the_words_of_a_case_stay_with_it_among_many() -> None:
    cases = [f'<testcase name="c{n:04}"><skipped message="why {n}"/></testcase>' for n in range(1600)]
    reading = reading_of(suite("".join(cases)))
    assert [row.reason for row in reading.cases()] == [f"why {n}" for n in range(1600)]
