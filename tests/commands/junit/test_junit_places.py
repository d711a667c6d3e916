"""Where a case belongs: its target, the names around it, and who is blamed for what is wrong with it."""

from typing import Any

import pytest

from commands.readers.junit import Reading
from commands.readers.junit.document.parser import NAME_CHARACTERS
from ledger.values import TestId
from tests.commands.junit.conftest import codes, reading_of, suite
from tests.commands.junit.test_junit_rules import REFUSED


def names(reading: Reading) -> list[str]:
    """Every test of a reading, in words."""
    return [row.test.text() for row in reading.cases()]


def causes(reading: Reading) -> list[str | None]:
    """Why each target is not measured."""
    return [one.cause for one in reading.targets]


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ('<testcase name="a"><rerunFailure/></testcase>', "status-unclear"),
        ('<testcase name="a" status="exploded"/>', "status-unclear"),
        ('<testcase name="a"><aborted/></testcase>', "element-unknown"),
        ('<testcase name="t.x"/>', "case-is-file"),
        ("<testcase/>", "case-unnamed"),
    ],
)
def test_what_is_unclear_of_a_case_is_the_trouble_of_its_target_alone(case: str, cause: str) -> None:
    one = '<testsuite file="u.x"><testcase name="b"/></testsuite>'
    reading = reading_of(f"<testsuites>{suite(case)[12:-13]}{one}</testsuites>", planned=("t.x", "u.x"))
    whole = cause == "case-unnamed"
    assert causes(reading) == [cause, cause if whole else None]
    assert codes(reading) == {cause}


def test_a_report_that_is_not_there_is_named() -> None:
    (trouble,) = reading_of(None, suite('<testcase name="a"/>')).troubles
    assert (trouble.code, trouble.report, trouble.detail) == ("report-missing", "report-1.xml", "there is no such file")


@pytest.mark.parametrize(("code", "document", "given_too"), REFUSED, ids=[one[0] for one in REFUSED])
def test_every_trouble_is_told_in_words_and_with_the_report_that_it_is_about(
    code: str, document: str | bytes | None, given_too: dict[str, Any]
) -> None:
    reading = reading_of(document, **given_too)
    assert all(one.detail for one in reading.troubles)
    assert [bool(one.detail) for one in reading.targets] == [one.cause is not None for one in reading.targets]
    about = {one.report for one in reading.troubles if one.code == code}
    of_a_report = code.startswith("report-") or code in ("case-unnamed", "cases-unattributed", "foreign-tests")
    assert about <= ({"report-1.xml"} if of_a_report else {""})


def test_a_reading_names_what_it_was_read_with() -> None:
    for profile in (None, "pytest-reruns/1"):
        reading = reading_of(suite('<testcase name="a"/>'), dialect="pytest", profile=profile)
        assert (reading.reader, reading.dialect, reading.profile) == ("junit/1", "pytest", profile or "")


def test_that_there_is_no_report_is_told_in_words() -> None:
    (trouble,) = reading_of().troubles
    assert (trouble.code, trouble.report, bool(trouble.detail)) == ("report-missing", "", True)


def test_a_count_that_disagrees_among_cases_of_no_target_is_told_in_words_too() -> None:
    reading = reading_of(suite('<testcase name="a"/>', 'tests="9"', file="other.x"))
    assert {one.code for one in reading.troubles if "9" in one.detail} == {"counts-disagree"}


@pytest.mark.parametrize(
    ("root", "same"),
    [("/srv/X", True), ("/srv/X/", True), ("/srv/", False), ("/srv", False), ("srv/X", False), ("", False)],
)
def test_a_path_below_the_root_is_the_planned_one(root: str, same: bool) -> None:
    reading = reading_of(suite('<testcase name="a"/>', file="/srv/X/t.x"), root=root)
    assert reading.verdict == ("accepted" if same else "unmeasured")
    assert ("foreign-tests" in codes(reading)) == (not same)


def test_where_nobody_knows_the_plan_no_test_is_foreign_to_it() -> None:
    cases = '<testcase name="a" file="any.x"/><testcase name="b"/>'
    reading = reading_of(f'<testsuite tests="2">{cases}</testsuite>', planned=None)
    assert codes(reading) == {"plan-missing"}
    assert codes(reading_of(f"<testsuite>{cases}<testcase/></testsuite>", planned=None)) == {
        "plan-missing", "case-unnamed",
    }  # fmt: skip


def test_a_name_may_be_as_long_as_the_longest() -> None:
    for length, accepted in ((NAME_CHARACTERS, True), (NAME_CHARACTERS + 1, False)):
        reading = reading_of(suite(f'<testcase name="{length * "n"}"/>'))
        assert codes(reading) == (set() if accepted else {"report-too-large"})


@pytest.mark.parametrize("element", ["<aborted/>", "<skipped/>", '<note outcome="red"/>'])
def test_an_element_beside_the_cases_that_nobody_knows_has_one_name(element: str) -> None:
    assert codes(reading_of(suite(f'<testcase name="a"/>{element}'))) == {"element-unknown"}


def test_a_pass_that_was_not_asked_for_is_no_skip() -> None:
    cases = '<testcase name="a" file="t.x"/><testcase name="b" file="other.x"/>'
    reading = reading_of(f'<testsuite tests="2" skipped="0" disabled="0">{cases}</testsuite>')
    assert codes(reading) == {"foreign-tests"}


@pytest.mark.parametrize(
    ("file", "planned", "name", "is_file"),
    [
        ("src/t.x", "src/t.x", "t.x", True),
        ("src/t.x", "src/t.x", "src/t.x", True),
        ("src/t.x", "src/t.x", "./t.x", True),
        ("./src/t.x", "src/t.x", "src/t.x", True),
        ("src\\t.x", "src/t.x", "t.x", True),
        ("src\\t.x", "src/t.x", "src/t.x", True),
        ("src/t.x", "src/t.x", "src\\t.x", True),
        ("src/t.x", "src/t.x", "works like src/t.x", False),
        ("src/t.x", "src/t.x", "not.x", False),
        ("src/t.x", "src/t.x", "t", False),
        ("src/Make", "src/Make", "Make", False),
        ("Make", "Make", "Make", False),
    ],
)
def test_a_case_is_its_file_when_it_is_named_as_the_end_of_its_path(
    file: str, planned: str, name: str, is_file: bool
) -> None:
    reading = reading_of(suite(f'<testcase name="{name}"/>', file=file), planned=(planned,))
    assert causes(reading) == ["case-is-file" if is_file else None]


def test_a_case_may_be_named_as_its_class() -> None:
    document = '<testsuite><testcase classname="p.Some" name="p.Some"/></testsuite>'
    assert causes(reading_of(document, planned=("p.Some",), dialect="surefire")) == [None]


def test_modules_that_could_not_be_collected_stand_each_for_itself() -> None:
    cases = '<testcase classname="" name="{}"><error/></testcase>'
    document = f'<testsuites><testsuite name="pytest">{cases.format("a.b")}{cases.format("c")}</testsuite></testsuites>'
    reading = reading_of(document, planned=("a/b.py", "c.py"), exit_code=1)
    assert names(reading) == ["a/b.py", "c.py"]
    assert [one.verdict for one in reading.targets] == ["failed", "failed"]


def test_classes_and_their_modules_are_found_without_a_file() -> None:
    cases = (
        '<testcase classname="b.C" name="t"/><testcase classname="b" name="u"/><testcase classname="d.e.F.G" name="v"/>'
    )
    reading = reading_of(f'<testsuite name="pytest">{cases}</testsuite>', planned=("b.py", "d/e.py"), dialect="pytest")
    assert names(reading) == ["b.py::C::t", "b.py::u", "d/e.py::F::G::v"]
    assert reading.verdict == "accepted"


def test_a_skip_in_a_class_that_is_named_as_the_module_is_still_that_of_a_test() -> None:
    skip = '<testcase classname="a.b.C" name="a.b" file="a/b.py"><skipped/></testcase>'
    document = f'<testsuites><testsuite name="pytest" tests="2" skipped="1">{skip}</testsuite></testsuites>'
    reading = reading_of(document, planned=("a/b.py",), profile="pytest-subtests/1")
    assert (reading.verdict, names(reading)) == ("accepted", ["a/b.py::C::a.b"])


def test_a_report_may_have_more_classes_than_are_remembered() -> None:
    cases = "".join(f'<testcase classname="c{number}" name="t" file="t.x"/>' for number in range(2500))
    reading = reading_of(f'<testsuite tests="2500">{cases}</testsuite>')
    assert (reading.verdict, reading.targets[0].cases) == ("accepted", 2500)
    assert len(set(names(reading))) == 2500


@pytest.mark.parametrize("dialect", ["gotestsum", "cargo-nextest"])
@pytest.mark.parametrize(("name", "code"), [("", "cases-unattributed"), ("other", "foreign-tests"), ("pkg", None)])
def test_the_nearest_name_of_a_suite_is_the_target_where_suites_are_targets(
    name: str, code: str | None, dialect: str
) -> None:
    named = f'name="{name}"' if name else ""
    reading = reading_of(
        f'<testsuites><testsuite {named}><testcase name="t"/></testsuite></testsuites>',
        planned=("pkg",),
        dialect=dialect,
    )
    assert {trouble.code for trouble in reading.troubles} == ({code} if code else set())
    assert names(reading) == [TestId(name, ("t",)).text()]


def test_a_target_that_was_not_asked_for_is_shown_as_the_report_writes_it() -> None:
    assert names(reading_of(suite('<testcase name="a"/>', file="other\\t.x"))) == [TestId("other\\t.x", ("a",)).text()]
    document = '<testsuite><testcase classname="p.Other$In" name="t"/></testsuite>'
    (row,) = reading_of(document, planned=("p.Some",), dialect="surefire").cases()
    assert row.test == TestId("p.Other$In", ("t",))


IN_CLASS = '<testcase name="a" classname="c"/>'


@pytest.mark.parametrize(
    ("inside", "path"),
    [
        ('<testsuite name="t.x" file="t.x"><testcase name="a"/></testsuite>', ("a",)),
        ('<testsuite name="group" file="t.x"><testcase name="a"/></testsuite>', ("group", "a")),
        (
            '<testsuite name="t.x" file="t.x"><testsuite name="g"><testcase name="a"/></testsuite></testsuite>',
            ("g", "a"),
        ),
        (f'<testsuite name="g" file="t.x"><testsuite name="h">{IN_CLASS}</testsuite></testsuite>', ("g", "h", "a")),
        (f'<testsuite name="t.x" file="t.x">{IN_CLASS}</testsuite>', ("c", "a")),
        ('<testsuite name="t.x" file="t.x"><testcase name="a" classname="t.x"/></testsuite>', ("a",)),
    ],
)
def test_the_suites_within_a_file_name_a_case_else_its_class_does(inside: str, path: tuple[str, ...]) -> None:
    reading = reading_of(f'<testsuites name="bun test">{inside}</testsuites>')
    assert [row.test for row in reading.cases()] == [TestId("t.x", path)]
    assert (reading.dialect, reading.verdict) == ("bun", "accepted")


TOLD = {
    '<testcase name="bad"><aborted/></testcase>': ("bad", "aborted"),
    '<testcase name="bad"><rerunError/></testcase>': ("bad", "tried again"),
    '<testcase name="bad" status="exploded"/>': ("bad", "status", "exploded"),
    '<testcase name="a"/><strange failed="1"/>': ("strange", "'s'"),
    "<testcase/>": ("without a name",),
    '<testcase name="bad" file="other.x"/>': ("bad", "other.x"),
    '<testcase classname="group" name="bad" file="other.x"/>': ("group bad", "other.x"),
}


@pytest.mark.parametrize("cases", TOLD)
@pytest.mark.parametrize("attributed", [True, False])
def test_what_is_wrong_is_told_with_the_name_of_what_it_is_wrong_with(cases: str, attributed: bool) -> None:
    reading = reading_of(suite(cases) if attributed else suite(cases, file=""))
    told = [one.detail for one in (*reading.troubles, *reading.targets)]
    assert any(all(word in detail for word in TOLD[cases]) for detail in told)
    assert all(isinstance(detail, str) for detail in told)
