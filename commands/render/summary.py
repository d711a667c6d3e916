"""The summary of a run as text: the answer first, then what decided it, then what to do next."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from commands.causes import CAUSES
from commands.render.progress import time_left
from commands.render.words import clipped, count, moment, safe, seconds, short, told_counts, wrapped
from ledger.events import JudgedCase, MuteUsed
from projections.run.summary import RunSummary, SummaryOwed, SummarySide

MOST_ENTRIES = 20
MOST_FLAKY = 5
CLASS_ORDER = (
    "introduced", "new-test-failing", "vanished", "newly-skipped", "unmeasured", "unresolved",
    "interference", "flaky", "muted", "preexisting", "fixed", "passed",
)  # fmt: skip
UNMEASURED_CLASSES = ("unmeasured", "unresolved", "interference")

_COLUMN = " " * 11
_INDENT = " " * 6


def summary_lines(summary: RunSummary, width: int) -> list[str]:
    """The whole summary, in lines of at most `width`; names and commands stay whole, so that they can be copied."""
    lines = [*wrapped(headline(summary), width), ""]
    for line in (*_sides(summary), *_times(summary), *_notes(summary)):
        lines += wrapped(line, width, _COLUMN)
    lines += _cases(summary, width)
    lines += _running(summary)
    for code in summary.cut_short:
        lines += ["", *wrapped(f"{code}: {CAUSES[code].meaning}", width, _INDENT)]
    lines += _owed(summary, width)
    return [*lines, *_next(summary)]


def state_lines(summary: RunSummary, width: int) -> list[str]:
    """Only where the run stands and what to do next."""
    return [*wrapped(f"run {summary.run}: {headline(summary)}", width), *_next(summary)]


def _next(summary: RunSummary) -> list[str]:
    return ["", f"next: {summary.next_command}"] if summary.next_command else []


def headline(summary: RunSummary) -> str:
    """One line: what was decided, or where the run stands."""
    if summary.verdict == "passed":
        return f"passed: no regression in {count(sum(summary.counts.values()), 'case')}{_muted_too(summary)}"
    if summary.verdict == "failed":
        unmeasured = _unmeasured_count(summary)
        also = f"; {count(unmeasured, 'case')} could not be measured" if unmeasured else ""
        return f"failed: {count(len(summary.blocking), 'case')} that the candidate broke{also}"
    if summary.verdict == "unmeasured":
        return f"unmeasured: {_unmeasured_headline(summary)}"
    done = f"{summary.progress.completed} of {count(summary.progress.total, 'job')} done"
    if summary.state == "running":
        return f"running: {done}"
    if summary.state == "open":
        return f"open: {done}, nothing was decided yet"
    if summary.state == "interrupted":
        return f"interrupted: {done}, nothing is decided, and the process that drove the run is gone"
    how = "by a signal" if summary.reason == "interrupted" else "on request"
    return f"stopped {how}: {done}, nothing is decided"


def _muted_too(summary: RunSummary) -> str:
    muted = summary.counts.get("muted", 0)
    return f"; {count(muted, 'failure')} muted" if muted else ""


def _unmeasured_headline(summary: RunSummary) -> str:
    reasons = {
        "nothing-ran": "not one test of the candidate ran to its result",
        "nothing-collected": "no tests were found",
    }
    if summary.reason in reasons:
        return reasons[summary.reason]
    if not summary.counts:
        return "the tests could not be collected"
    return f"{count(_unmeasured_count(summary), 'case')} could not be measured"


def _unmeasured_count(summary: RunSummary) -> int:
    return sum(summary.counts.get(name, 0) for name in UNMEASURED_CLASSES)


def _sides(summary: RunSummary) -> Iterable[str]:
    yield f"run        {summary.run}"
    if summary.as_of:
        yield f"as of      {moment(summary.as_of)}, after #{summary.position} @{summary.sequence}"
    yield f"candidate  {_side(summary.candidate)}"
    yield f"baseline   {_side(summary.baseline)}"


def _side(side: SummarySide) -> str:
    reason = f" ({side.reason})" if side.reason else ""
    return f"{short(side.commit)}  {side.ref}{reason}"


def _times(summary: RunSummary) -> Iterable[str]:
    started, resumed = f"started    {moment(summary.started_at)}", _resumed(summary.resumes)
    if not summary.ended_at:
        yield f"{started}{resumed}"
    elif resumed:
        yield started
        yield f"ended      {moment(summary.ended_at)}{resumed}"
    else:
        elapsed = datetime.fromisoformat(summary.ended_at) - datetime.fromisoformat(summary.started_at)
        yield f"{started}, took {seconds(elapsed.total_seconds())}"


def _resumed(times: int) -> str:
    return "" if times == 0 else ", resumed " + {1: "once", 2: "twice"}.get(times, f"{times} times")


def _notes(summary: RunSummary) -> Iterable[str]:
    if summary.dirty:
        yield "note       uncommitted changes of the checkout were not tested"
    if summary.driver and summary.state == "running":
        yield f"driver     process {summary.driver.pid} on {summary.driver.host}"
    if summary.remaining:
        yield f"remaining  {time_left(summary.remaining)}"
    if summary.verdict is None and summary.failing_so_far:
        seen = count(summary.failing_so_far, "failure")
        yield f"so far     {seen} seen on the candidate; whether it broke them is decided at the end"


def _cases(summary: RunSummary, width: int) -> Iterable[str]:
    if summary.counts:
        known = [name for name in CLASS_ORDER if name in summary.counts]
        others = sorted(set(summary.counts) - set(known))
        counts = told_counts({name: summary.counts[name] for name in (*known, *others)}, summary.blocking)
        cases = ", ".join(f"{number} {name}" for name, number in counts.items())
        yield ""
        yield from wrapped(f"cases      {cases}", width, _COLUMN)
    if summary.blocking:
        yield from ("", "what blocks")
        yield from _blocking(summary.blocking, width)
    if summary.unmeasured:
        yield from ("", "what could not be measured")
        yield from _unmeasured(summary.unmeasured, width)
    yield from _failing_otherwise(summary.muted, width)
    yield from _flaky(summary, width)


def _flaky(summary: RunSummary, width: int) -> Iterable[str]:
    """What failed and passed is worth a look, although it does not block."""
    number = summary.counts.get("flaky", 0) - sum(case.case_class == "flaky" for case in summary.blocking)
    if number <= 0:
        return
    yield from ("", "failed and then passed")
    for case in summary.flaky[:MOST_FLAKY]:
        yield f"  flaky: {safe(case.test)}"
        if case.line:
            yield clipped(f"{_INDENT}{safe(case.line)}", width)
    if left := number - len(summary.flaky[:MOST_FLAKY]):
        more = f"and {left} more" if summary.flaky else count(left, "case")
        yield f"  ... {more}: ledger query classes {summary.run} --where case_class=flaky"


def _failing_otherwise(muted: Sequence[MuteUsed], width: int) -> Iterable[str]:
    """Muted tests are shown as a number only, unless they fail in another way than when they were muted."""
    others = [one for one in muted if one.otherwise]
    if not others:
        return
    yield from ("", "muted, and failing otherwise than before")
    for one in others[:MOST_ENTRIES]:
        cases = f" ({one.otherwise} of {count(one.cases, 'case')})" if one.cases > 1 else ""
        yield from wrapped(f"  {one.mute}: {one.test}{cases}", width, _INDENT)
        if one.line:
            yield clipped(f"{_INDENT}{safe(one.line)}", width)
    yield from _left_out(others)


def _blocking(cases: Sequence[JudgedCase], width: int) -> Iterable[str]:
    for case in cases[:MOST_ENTRIES]:
        yield f"  {case.case_class}: {safe(case.test)}"
        if case.line:
            yield clipped(f"{_INDENT}{safe(case.line)}", width)
    yield from _left_out(cases)


def _unmeasured(cases: Sequence[JudgedCase], width: int) -> Iterable[str]:
    for case in cases[:MOST_ENTRIES]:
        yield f"  {safe(case.test)}"
        known = CAUSES.get(case.line)
        yield from wrapped(f"{_INDENT}{case.line}" + (f": {known.meaning}" if known else ""), width, _INDENT)
    yield from _left_out(cases)


def _left_out(entries: Sequence[object]) -> Iterable[str]:
    if len(entries) > MOST_ENTRIES:
        yield f"  ... and {len(entries) - MOST_ENTRIES} more (--json has all)"


def _running(summary: RunSummary) -> Iterable[str]:
    running = [group for group in summary.progress.groups if group.state == "running"]
    if summary.state != "running" or not running:
        return
    yield from ("", "running now")
    for group in running:
        since = "" if group.elapsed_ms is None else f" for {seconds(group.elapsed_ms / 1000)}"
        yield f"  {group.id}{since}"


def _owed(summary: RunSummary, width: int) -> Iterable[str]:
    if not summary.owed or summary.state == "running":
        return
    yield from ("", "still owed")
    for entry in summary.owed[:MOST_ENTRIES]:
        yield from owed_lines(entry, width)
    yield from _left_out(summary.owed)


def owed_lines(entry: SummaryOwed, width: int) -> list[str]:
    """A side of a shard that is owed: how much of it, and why the last attempt did not measure it."""
    what = "all of its targets" if entry.targets is None else count(entry.targets, "target")
    cause = f", {entry.cause}" if entry.cause else ""
    was_running = ", was running" if entry.status == "running" else ""
    lines = wrapped(f"  {entry.what}: {what}{cause}{was_running}", width, _INDENT)
    return lines + (wrapped(f"{_INDENT}{entry.detail}", width, _INDENT) if entry.detail else [])
