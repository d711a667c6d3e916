"""Reports of made-up cases, and what a file of JUnit may look like."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]
from msgspec import structs

from commands.render.reports.report import Report
from ledger.tables import CaseRow, ClassRow
from ledger.values import TestId
from projections.gate.classes import BASELINE_STATES, CANDIDATE_STATES, judge
from projections.queries.tries import TriedCase, Try
from projections.run.summary import summarize_run
from tests.support.makers import begun, verdict_decided, views_of

NOW = datetime(2030, 1, 2, 3, 5, tzinfo=UTC)

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=12)
"""Every character that a string can hold, halves of pairs included."""

_MARKS = [*"`*_[]()<>&\"'#!|\\~:@%,;= \t\n\r-+.a/", "::error::", "##[", "]]>", "</pre>", "www.", "http://"]
TRICKY = st.lists(st.sampled_from(_MARKS), max_size=20).map("".join)
"""What means something in Markdown, HTML, XML, or the log of a job."""

TEXTS = ANYTHING | TRICKY
TESTS = st.builds(TestId, TEXTS, st.lists(TEXTS, max_size=3).map(tuple), st.none() | TEXTS)


def class_row(test: TestId, candidate: str = "failed", baseline: str = "passed", **changes: Any) -> ClassRow:
    """A row as the decision table gives it for these states."""
    judged = judge(candidate, baseline)  # type: ignore[arg-type]
    values = {"case_class": judged.case_class, "effect": judged.effect, "rule": judged.rule} | changes
    return ClassRow(test=test, candidate=candidate, baseline=baseline, **values)


def tried(row: ClassRow, *outcomes: str, message: str = "", cause: str = "", reruns: int = 0) -> TriedCase:
    """The case, reported by one attempt of the candidate after the other; each failure has its number in its line."""
    rows = [
        CaseRow(
            test=row.test, outcome=outcome, duration_seconds=number / 4, message=message, reruns=reruns,  # type: ignore[arg-type]
            line=f"failure {number}" if outcome in ("failed", "error") else "",
        )
        for number, outcome in enumerate(outcomes, start=1)
    ]  # fmt: skip
    tries = [
        Try(side="candidate", shard="shard-1", attempt=number, sequence=100 + number, cause=cause, row=one)
        for number, one in enumerate(rows, start=1)
    ]
    return TriedCase(row, tuple(tries))


@st.composite
def cases(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> list[TriedCase]:
    """Cases of any class and with any names, in the order of a class table."""
    tests = draw(st.lists(TESTS, max_size=6, unique=True))
    found = []
    for test in sorted(tests, key=TestId.sort_key):
        states = draw(st.sampled_from(CANDIDATE_STATES)), draw(st.sampled_from(BASELINE_STATES))
        row = class_row(test, *states, line=draw(texts), cause=draw(texts))
        outcomes = draw(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=3))
        found.append(tried(row, *outcomes, message=draw(texts), reruns=draw(st.integers(0, 1))))
    return found


def report(cases: Iterable[TriedCase], verdict: str | None = "failed", **changes: Any) -> Report:
    """The report of a run with these cases."""
    decided = [] if verdict is None else [verdict_decided(verdict)]
    summary = summarize_run(views_of(*begun(), *decided), NOW, alive=None)
    values: dict[str, Any] = {
        "verdict": verdict,
        "state": "finished" if verdict else "running",
        "counts": {},
        "next_command": "",
    }
    return Report(structs.replace(summary, **values | changes), "classes/1" if verdict else "", cases)


CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase"],
    "properties": ["property"],
    "testcase": ["failure", "error", "skipped", "flakyFailure", "rerunFailure"],
    "flakyFailure": ["stackTrace"],
    "rerunFailure": ["stackTrace"],
}
ATTRIBUTES = {
    "testsuites": {"name"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "file"},
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "flakyFailure": {"message", "type"},
    "rerunFailure": {"message", "type"},
}
"""What the schemas of Jenkins and of Surefire both let stand in each element; a suite's `file` only that of Jenkins."""


def parsed(pieces: Iterable[str]) -> etree._Element:
    """The file, read by a strict parser, after a look at every element, attribute and count."""
    root = etree.fromstring("".join(pieces).encode(), etree.XMLParser(huge_tree=True, resolve_entities=False))
    for element in root.iter():
        assert {child.tag for child in element} <= set(CHILDREN.get(element.tag, ())), element.tag
        assert set(element.attrib) <= ATTRIBUTES.get(element.tag, set()), element.tag
    for suite in root:
        found = {"tests": suite.findall("testcase"), "failures": suite.findall("testcase/failure")}
        found |= {"errors": suite.findall("testcase/error"), "skipped": suite.findall("testcase/skipped")}
        assert {name: suite.get(name) for name in found} == {name: str(len(those)) for name, those in found.items()}
    return root


def kinds(root: etree._Element) -> Sequence[list[str]]:
    """What stands in each case, in their order."""
    return [[child.tag for child in one] for one in root.iter("testcase")]
