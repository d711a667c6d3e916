"""A test runner of forty lines that writes JUnit, and projects whose tests it runs through `ledger gate`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.cli import Answer, Project

RUNNER = """
    import os, sys, time, unittest
    from xml.sax.saxutils import quoteattr

    report, targets = sys.argv[1], sys.argv[2:]
    cases, failed = [], 0
    for target in targets:
        names = {"__name__": "suite", "__file__": target, "report": report}
        exec(compile(open(target, encoding="utf-8").read(), target, "exec"), names)
        for name, test in names.items():
            if not name.startswith("test"):
                continue
            inside = ""
            try:
                test()
            except unittest.SkipTest as skip:
                inside = f"<skipped message={quoteattr(str(skip))}/>"
            except Exception as error:
                failed += 1
                inside = f"<failure message={quoteattr(repr(error))}/>"
            cases.append(f"<testcase file={quoteattr(target)} name={quoteattr(name)} time='0.01'>{inside}</testcase>")
    os.makedirs(os.path.dirname(os.path.abspath(report)), exist_ok=True)
    with open(report, "w", encoding="utf-8") as file:
        file.write(f"<testsuites tests='{len(cases)}'><testsuite>{''.join(cases)}</testsuite></testsuites>")
    print(len(cases), "tests,", failed, "failed")
    sys.exit(failed > 0)
"""

SETTINGS = """
    [gate]
    shards = 1
    rounds = 1
    rerun = "off"
    [runner]
    runner = "command"
    command = ["python3", "runner.py", "{report}", "{targets}"]
    targets = ["suite/**/*.py"]
    dialect = "generic"
"""

PASSING = {"suite/a.py": "def test_one(): pass\n", "suite/b.py": "def test_two(): pass\n"}
Files = Mapping[str, str]


def gate(root: Path, baseline: Files, candidate: Files, settings: str = SETTINGS, **variables: str) -> "Gate":
    """Gate a candidate against a baseline; `candidate` are the files that it changes."""
    project = Project.make(root, {"runner.py": RUNNER, "ledger.toml": settings, **baseline})
    project.commit({**candidate, "change": "1\n"})
    return Gate(project, project.ledger("gate", **variables))


class Gate:
    """A gate that has ended, and what its ledger says."""

    def __init__(self, project: Project, answer: Answer) -> None:
        self.project, self.answer = project, answer

    @property
    def classes(self) -> dict[str, str]:
        """The class of every case that is not simply a pass, by its text."""
        return {row["test"]: row["case_class"] for row in self.rows("classes") if row["case_class"] != "passed"}

    def rows(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view."""
        answer = self.project.ledger("query", view, "--json")
        assert answer.code == 0, answer.err
        return list(json.loads(answer.out)["rows"])

    def events(self, tag: str) -> list[dict[str, Any]]:
        """The events with this tag."""
        answer = self.project.ledger("log", "--json")
        lines = [json.loads(line) for line in answer.out.splitlines()]
        return [line["event"] for line in lines if line["header"]["tag"] == tag]

    def causes(self) -> set[str]:
        """The reason codes of all attempts, and of the targets that they did not measure."""
        records = self.events("attempt-recorded")
        missing = {entry[1] for one in records for entry in one["missing"]}
        return missing | {one["cause"] for one in records if one["cause"]}

    def told(self) -> str:
        """Everything that was printed, to explain a failure with."""
        log = self.project.ledger("log").out
        return f"{self.answer.code}\n{self.answer.out}\n{self.answer.err}\n{log}"
