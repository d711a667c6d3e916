"""The summary of a run as text: the answer first, then what decided it, then what to do next."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from commands.causes import CAUSES
from commands.render.words import clipped, count, moment, safe, seconds, short
from ledger.events import JudgedCase
from projections.run.summary import RunSummary, SummarySide

MOST_CASES = 20
CLASS_ORDER = (
    "introduced", "new-test-failing", "vanished", "newly-skipped", "unmeasured", "flaky", "preexisting", "fixed",
    "passed",
)  # fmt: skip


def summary_lines(summary: RunSummary, width: int) -> list[str]:
    """The whole summary; no line is longer than `width` where it can be helped."""
    lines = [headline(summary), ""]
    lines += _sides(summary, width)
    lines += _times(summary)
    lines += _cases(summary, width)
    lines += _owed(summary, width)
    if summary.next_command:
        lines += ["", f"next: {summary.next_command}"]
    return lines


def headline(summary: RunSummary) -> str:
    """One line: what was decided, or where the run stands."""
    blocking, unmeasured = len(summary.blocking), len(summary.unmeasured)
    if summary.verdict == "passed":
        return f"passed: no regression in {count(sum(summary.counts.values()), 'case')}"
    if summary.verdict == "failed":
        also = f"; {unmeasured} more could not be measured" if unmeasured else ""
        return f"failed: {count(blocking, 'case')} that the candidate broke{also}"
    if summary.verdict == "unmeasured":
        return f"unmeasured: {_unmeasured_headline(summary)}"
    done = f"{summary.progress.completed} of {summary.progress.total} jobs done"
    words = {
        "running": f"running: {done}",
        "stopped": f"stopped: {done}, nothing is decided",
        "interrupted": f"interrupted: the driver is gone; {done}, nothing is decided",
    }
    return words[summary.state]


def _unmeasured_headline(summary: RunSummary) -> str:
    if summary.unmeasured:
        return f"no verdict, because {count(len(summary.unmeasured), 'thing')} could not be measured"
    reasons = {
        "nothing-ran": "every test of the candidate was skipped",
        "nothing-collected": "no tests were found",
    }
    return reasons.get(summary.reason, summary.reason)


def _sides(summary: RunSummary, width: int) -> Iterable[str]:
    yield f"run        {summary.run}"
    yield clipped(f"candidate  {_side(summary.candidate)}", width)
    yield clipped(f"baseline   {_side(summary.baseline)}", width)


def _side(side: SummarySide) -> str:
    reason = f" ({side.reason})" if side.reason else ""
    return safe(f"{short(side.commit)}  {side.ref}{reason}")


def _times(summary: RunSummary) -> Iterable[str]:
    took = ""
    if summary.ended_at:
        elapsed = datetime.fromisoformat(summary.ended_at) - datetime.fromisoformat(summary.started_at)
        took = f", took {seconds(elapsed.total_seconds())}"
    resumed = f", resumed {count(summary.resumes, 'time')}" if summary.resumes else ""
    yield f"started    {moment(summary.started_at)}{took}{resumed}"
    if summary.dirty:
        yield "note       uncommitted changes of the checkout were not tested"
    if summary.driver and summary.state == "running":
        yield f"driver     process {summary.driver.pid} on {safe(summary.driver.host)}"


def _cases(summary: RunSummary, width: int) -> Iterable[str]:
    if summary.counts:
        ordered = sorted(summary.counts, key=lambda name: CLASS_ORDER.index(name))
        yield ""
        yield "cases      " + ", ".join(f"{summary.counts[name]} {name}" for name in ordered)
    if summary.blocking:
        yield ""
        yield "what blocks"
        yield from _judged(summary.blocking, width)
    if summary.unmeasured:
        yield ""
        yield "what could not be measured"
        yield from _judged(summary.unmeasured, width)


def _judged(cases: Sequence[JudgedCase], width: int) -> Iterable[str]:
    for case in cases[:MOST_CASES]:
        yield clipped(f"  {case.case_class:<17}{safe(case.test)}", width)
        is_code = case.case_class == "unmeasured" and case.line in CAUSES
        line = f"{case.line}: {CAUSES[case.line].meaning}" if is_code else case.line
        if line:
            yield clipped(f"  {'':<17}{safe(line)}", width)
    if len(cases) > MOST_CASES:
        yield f"  ... and {len(cases) - MOST_CASES} more (--json has all)"


def _owed(summary: RunSummary, width: int) -> Iterable[str]:
    if not summary.owed or summary.state == "running":
        return
    yield ""
    yield "still owed"
    for entry in summary.owed:
        what = "all of its targets" if entry.targets is None else count(entry.targets, "target")
        cause = f", {entry.cause}" if entry.cause else ""
        yield clipped(f"  {entry.what:<26} {what}{cause}", width)
