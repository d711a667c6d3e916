"""A report as one merged JUnit file, for continuous integration.

It has the answer of the gate, not that of one side: `failure` is what the candidate broke (`type` is
`ledger.CLASS`), `error` what keeps the gate from an answer (`ledger.unmeasured`, with the reason code first in its
message), `skipped` what does not block although it did not pass (`report.shown` is the table). So a build that reads
this file is red exactly when the gate did not pass. Tries that failed before one that passed are `flakyFailure`,
those that failed again `rerunFailure`, in the shape of Surefire.

Every target of the candidate is a suite. As pytest does it, `classname` is the module of a Python file with the classes
in it, so that histories that a server keeps by name go on. The file keeps to the schema of Jenkins, which allows
neither `file` nor properties in a case: the file stands in the suite, and so do the classes that are not `passed`. What
is not about a single test is a case of the suite `ledger`, which has the properties of the run.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from commands.render.reports.report import MEANING, Report, Shown, class_words, failed_tries, shown, what_to_do
from commands.render.reports.xml import attributes, text
from commands.render.summary import headline
from commands.render.words import count
from ledger.tables import ClassRow
from ledger.values import TestId
from projections.queries.tries import UNDECIDED, TriedCase, Try

COLLECTION_NAME = "(collection)"
"""The name of a case that stands for a whole target; no runner has such a test."""


def junit_pieces(report: Report) -> Iterator[str]:
    """The file, suite by suite."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites{attributes(name=f'ledger {report.summary.run}')}>\n"
    red = False
    for target, cases in groupby(report.cases, key=lambda case: case.row.test.target):
        told = [(shape, case) for case in cases if (shape := shown(case.row)) is not None]
        red |= any(shape in ("failure", "error") for shape, _ in told)
        if told:
            yield _suite(target, told)
    yield _run_suite(report, red=red)
    yield "</testsuites>\n"


def names(test: TestId) -> tuple[str, str]:
    """The `classname` and the `name` of a test."""
    target = test.target
    module = target.removesuffix(".py").replace("/", ".") if target.endswith(".py") else target
    if not test.path:
        return module, COLLECTION_NAME
    variant = "" if test.variant is None else f"[{test.variant}]"
    return ".".join((module, *test.path[:-1])), test.path[-1] + variant


def _suite(target: str, told: Sequence[tuple[Shown, TriedCase]]) -> str:
    shapes = [shape for shape, _ in told]
    duration_seconds = sum(_duration_seconds(case) for _, case in told)
    head = attributes(
        name=target,
        tests=str(len(told)),
        failures=str(shapes.count("failure")),
        errors=str(shapes.count("error")),
        skipped=str(shapes.count("skipped")),
        time=f"{duration_seconds:.3f}",
        file=target,
    )
    classes = {case.row.test.text(): case.row.case_class for _, case in told if case.row.case_class != "passed"}
    properties = _properties({f"ledger.class:{test}": case_class for test, case_class in classes.items()})
    return f"<testsuite{head}>\n{properties}{''.join(_case(*one) for one in told)}</testsuite>\n"


def _properties(values: dict[str, str]) -> str:
    if not values:
        return ""
    inner = "".join(f"<property{attributes(name=name, value=value)}/>\n" for name, value in values.items())
    return f"<properties>\n{inner}</properties>\n"


def _case(shape: Shown, case: TriedCase) -> str:
    class_name, name = names(case.row.test)
    head = attributes(classname=class_name, name=name, time=f"{_duration_seconds(case):.3f}")
    inner = _outcome(shape, case)
    return f"<testcase{head}>{inner}</testcase>\n" if inner else f"<testcase{head}/>\n"


def _outcome(shape: Shown, case: TriedCase) -> str:
    row, failed = case.row, list(failed_tries(case))
    content = (failed[0].row.message if failed and failed[0].row else "") or row.line
    match shape:
        case "failure":
            first = _element("failure", f"ledger.{row.case_class}", _told(row), content)
            return first + "".join(_retry("rerunFailure", row, one) for one in failed[1:])
        case "error":
            return _element("error", "ledger.unmeasured", _unmeasured(row), content)
        case "skipped":
            return f"<skipped{attributes(message=_told(row))}>{text(content)}</skipped>"
    return "".join(_retry("flakyFailure", row, one) for one in (*failed, *_hidden_tries(case)))


def _element(name: str, kind: str, message: str, content: str) -> str:
    return f"<{name}{attributes(message=message, type=kind)}>{text(content)}</{name}>"


def _retry(name: str, row: ClassRow, one: Try) -> str:
    """A failed try beside the one that counts. A try that the project's own plug-in hid has left no text."""
    where = f"attempt {one.attempt} of {one.shard}"
    told = one.row
    line, content = (told.line, told.message or told.line) if told else ("", "")
    if told and told.reruns and told.outcome not in ("failed", "error"):
        line, content = f"failed {count(told.reruns, 'time')} before it passed", ""
    head = attributes(message=f"{where}: {line}", type=f"ledger.{row.case_class}")
    return f"<{name}{head}><stackTrace>{text(content)}</stackTrace></{name}>"


def _hidden_tries(case: TriedCase) -> list[Try]:
    """The candidate's tries that passed after the project's own plug-in had run the test again."""
    passed = [one for one in case.tries if one.side == "candidate" and one.row and one.row.outcome == "passed"]
    return [one for one in passed if one.row and one.row.reruns]


def _told(row: ClassRow) -> str:
    """The class, and what was seen or what the class means."""
    if row.case_class == "passed":
        return f"{row.candidate}: {row.line}" if row.line else row.candidate
    return f"{class_words(row)}: {row.line or MEANING.get(row.case_class, row.rule)}"


def _unmeasured(row: ClassRow) -> str:
    code = row.cause or row.case_class
    so_far = f" So far: {row.candidate}." if row.cause == UNDECIDED else ""
    return f"{code}: {what_to_do(row.cause) or MEANING.get(row.case_class, '')}{so_far}"


def _duration_seconds(case: TriedCase) -> float:
    """How long the candidate's newest try of the case took."""
    took = [one.row.duration_seconds for one in case.tries if one.side == "candidate" and one.row]
    return took[-1] if took else 0.0


def _run_suite(report: Report, *, red: bool) -> str:
    """The suite of the run itself. What is not green must have something that is red in it, tests or no tests."""
    told = report.summary
    troubles = [] if red or told.verdict == "passed" else [(case.test, case.line) for case in told.unmeasured]
    if not (red or troubles or told.verdict == "passed"):
        troubles = [("verdict", told.reason or UNDECIDED)]
    cases = "".join(
        f"<testcase{attributes(classname='ledger', name=what, time='0.000')}>"
        + _element("error", "ledger.unmeasured", f"{cause}: {what_to_do(cause) or headline(told)}", headline(told))
        + "</testcase>\n"
        for what, cause in troubles
    )
    number = str(len(troubles))
    head = attributes(name="ledger", tests=number, failures="0", errors=number, skipped="0", time="0.000")
    properties = _properties(
        {
            "ledger.run": told.run,
            "ledger.state": told.state,
            "ledger.verdict": told.verdict or "none yet",
            "ledger.reason": told.reason,
            "ledger.candidate": told.candidate.commit,
            "ledger.baseline": told.baseline.commit,
            "ledger.table": report.table,
            "ledger.sequence": str(told.sequence),
        }
    )
    return f"<testsuite{head}>\n{properties}{cases}</testsuite>\n"
