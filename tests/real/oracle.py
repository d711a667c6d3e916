"""What a gate must answer, worked out from plain runs of pytest: nothing of the ledger is used here."""

import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from scripts.real.project import RACES, RELEASES, plain_variables, write_release

PLAIN_RUN_SECONDS = 300.0


class Reported(NamedTuple):
    """A test as a JUnit report names it. `name` is "" for a file that cannot be collected, `place` for no class."""

    file: str
    place: str
    name: str

    @property
    def function(self) -> tuple[str, str, str]:
        """What all variants of the test have in common."""
        return (self.file, self.place, self.name.partition("[")[0])


@dataclass(frozen=True)
class PlainRun:
    """What one plain run of pytest reported about a tree."""

    tree: Path
    passed: frozenset[Reported]
    failed: frozenset[Reported]
    skipped: frozenset[Reported]
    expected_to_fail: frozenset[Reported]

    @cached_property
    def tests(self) -> frozenset[Reported]:
        """Everything that was reported."""
        return self.passed | self.failed | self.skipped | self.expected_to_fail

    @cached_property
    def broken_files(self) -> frozenset[str]:
        """The files that could not be collected."""
        return frozenset(test.file for test in self.failed if not test.name)

    def bytes_of(self, file: str) -> bytes | None:
        """The content of a file of the tree, None when there is none."""
        path = self.tree / file
        return path.read_bytes() if path.is_file() else None


@dataclass(frozen=True)
class Expected:
    """The verdict, the class of every test, and the tests that block."""

    verdict: str
    classes: dict[Reported, str]
    blocking: frozenset[Reported]


def plain_run(home: Path, python: Path, tag: str) -> PlainRun:
    """Run all tests of a release in a directory of its own, as its developers would."""
    tree, report = home / "tree", home / "report.xml"
    write_release(tree, RELEASES[tag])
    options = ("-p", "no:cacheprovider", "--continue-on-collection-errors", "-o", "junit_family=xunit1")
    argv: Sequence[str] = (str(python), "-m", "pytest", "-q", *options, f"--junitxml={report}", *RACES)
    variables = plain_variables(home) | {"PYTHONPATH": str(tree / "src")}
    ended = subprocess.run(
        argv, cwd=tree, env=variables, capture_output=True, text=True, timeout=PLAIN_RUN_SECONDS, check=False
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return _read_report(tree, ElementTree.parse(report).getroot())


def _read_report(tree: Path, root: ElementTree.Element) -> PlainRun:
    """The tests of a report by what became of them; its own totals have to agree."""
    found: dict[str, set[Reported]] = {"passed": set(), "failed": set(), "skipped": set(), "xfailed": set()}
    elements = list(root.iter("testcase"))
    for element in elements:
        children = {child.tag: child for child in element}
        if "failure" in children or "error" in children:
            fate = "failed"
        elif "skipped" in children:
            fate = "xfailed" if children["skipped"].get("type") == "pytest.xfail" else "skipped"
        else:
            fate = "passed"
        found[fate].add(_named(element))
    (totals,) = root.iter("testsuite")
    assert len(elements) == sum(map(len, found.values())), "the report names a test twice"
    assert int(totals.get("tests", -1)) == len(elements)
    assert int(totals.get("failures", -1)) + int(totals.get("errors", -1)) == len(found["failed"])
    return PlainRun(
        tree,
        passed=frozenset(found["passed"]),
        failed=frozenset(found["failed"]),
        skipped=frozenset(found["skipped"]),
        expected_to_fail=frozenset(found["xfailed"]),
    )


def _named(element: ElementTree.Element) -> Reported:
    """A file that cannot be collected has no class name, and the name of its module for a name."""
    file, place = element.get("file", ""), element.get("classname", "")
    module = file.removesuffix(".py").replace("/", ".")
    if not place:
        assert element.get("name") == module
        return Reported(file, "", "")
    return Reported(file, place.removeprefix(module).removeprefix("."), element.get("name", ""))


def expected(candidate: PlainRun, baseline: PlainRun) -> Expected:
    """What the two runs add up to: sets of tests, each rule in one line. Both break the same files, if any."""
    assert candidate.broken_files == baseline.broken_files
    silent = candidate.skipped | candidate.expected_to_fail
    silent_before = baseline.skipped | baseline.expected_to_fail
    faulty_before = baseline.failed | baseline.expected_to_fail
    groups = {
        "passed": (candidate.passed - faulty_before) | (silent & silent_before) | (silent - baseline.tests),
        "fixed": candidate.passed & faulty_before,
        "introduced": candidate.failed & (baseline.passed | baseline.expected_to_fail),
        "preexisting": (candidate.failed | silent) & baseline.failed,
        "new-test-failing": candidate.failed - baseline.passed - faulty_before,
        "newly-skipped": silent & baseline.passed,
        "vanished": baseline.tests - candidate.tests,
    }
    classes = {test: name for name, tests in groups.items() for test in tests}
    assert len(classes) == sum(map(len, groups.values())), "a test has two classes"
    assert classes.keys() == candidate.tests | baseline.tests, "a test has no class"
    blocking = groups["introduced"] | groups["new-test-failing"] | groups["newly-skipped"]
    blocking |= _hidden(groups["vanished"], candidate, baseline)
    return Expected("failed" if blocking else "passed", classes, blocking)


def _hidden(gone: frozenset[Reported], candidate: PlainRun, baseline: PlainRun) -> frozenset[Reported]:
    """Those that are gone with all of their variants although nobody touched their file."""
    alive = {test.function for test in candidate.tests}
    untouched = {test.file for test in gone if candidate.bytes_of(test.file) == baseline.bytes_of(test.file)}
    return frozenset(test for test in gone if test.function not in alive and test.file in untouched)
