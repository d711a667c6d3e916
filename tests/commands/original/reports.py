"""The strict reading of a JUnit report: all of the cases, or nothing.

A report is read when it is well formed, when it covers exactly the files that were asked for, and when its own counts
agree with it. A case that comes twice makes it unreadable.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from tests.commands.original.replies import Reply

COUNT = re.compile(r"0|[1-9][0-9]*", re.ASCII)
NO_MESSAGE = "test failed"


class Case(NamedTuple):
    """One reported test. `failure` is its diagnostic, None when it did not fail."""

    file: str
    name: str
    failure: str | None = None
    skipped: bool = False


class _Unreadable(Exception):
    """The report contradicts itself or what was asked for."""


def read_report(junit: str | None, files: Collection[str]) -> tuple[Case, ...] | None:
    """The cases in the order of the report; None when it is not a sound report on exactly these files."""
    if junit is None or not files:
        return None
    try:
        root = ElementTree.fromstring(junit)
        cases = tuple(_cases(root))
    except (ElementTree.ParseError, _Unreadable):
        return None
    named = {(case.file, case.name) for case in cases}
    sound = {case.file for case in cases} == set(files) and all(case.name for case in cases)
    return cases if sound and len(named) == len(cases) else None


def proven_cases(reply: Reply, files: Collection[str]) -> tuple[Case, ...] | None:
    """The cases of a process that ended by itself with a sound report and an exit code that agrees with it."""
    cases = read_report(reply.junit, files)
    if cases is None or reply.signal is not None or reply.exit_code not in (0, 1):
        return None
    failed = any(case.failure is not None for case in cases)
    return cases if failed == (reply.exit_code == 1) else None


def _cases(root: Element) -> Iterator[Case]:
    if root.tag == "testsuite":
        yield from _suite(root, None)
        return
    suites = [child for child in root if child.tag == "testsuite"]
    if root.tag != "testsuites" or not suites or root.find("testcase") is not None:
        raise _Unreadable
    _check_counts(root)
    for suite in suites:
        yield from _suite(suite, None)


def _suite(suite: Element, inherited: str | None) -> Iterator[Case]:
    file = suite.get("file", inherited)
    if "tests" not in suite.attrib:
        raise _Unreadable
    _check_counts(suite)
    for child in suite:
        if child.tag == "testsuite":
            yield from _suite(child, file)
        elif child.tag == "testcase":
            yield _case(child, file)


def _check_counts(element: Element) -> None:
    """What the element declares of the cases below it has to be so, however deep they are."""
    failed = [found.tag for case in element.iter("testcase") if (found := _failure(case)) is not None]
    actual = {
        "tests": sum(1 for _ in element.iter("testcase")),
        "failures": failed.count("failure"),
        "errors": failed.count("error"),
    }
    for name, number in actual.items():
        declared = element.get(name)
        if declared is not None and (not COUNT.fullmatch(declared) or int(declared) != number):
            raise _Unreadable


def _failure(case: Element) -> Element | None:
    return next((child for child in case if child.tag in ("failure", "error")), None)


def _case(element: Element, inherited: str | None) -> Case:
    file = element.get("file", inherited)
    if file is None or inherited not in (None, file):
        raise _Unreadable
    name, group = element.get("name", ""), element.get("classname")
    failed, diagnostic = _failure(element), None
    if failed is not None:
        told = (failed.get("message", ""), "".join(failed.itertext()).strip())
        diagnostic = "\n".join(filter(None, told)) or NO_MESSAGE
    full = f"{group} > {name}" if name and group and group != file else name
    return Case(file, full, diagnostic, skipped=element.find("skipped") is not None)
