"""The explanation of a case as text."""

from collections.abc import Iterable

from commands.causes import CAUSES
from commands.render.words import clipped, safe, seconds
from projections.gate.why import Why, WhyAttempt

MOST_MESSAGE_LINES = 12
_EFFECTS = {
    "failed": "this blocks the release",
    "unmeasured": "this leaves the gate unmeasured",
    "none": "no effect",
}


def why_lines(why: Why, width: int) -> list[str]:
    """The class, the rule that gave it, and every attempt that said something about it."""
    lines = [clipped(f"{why.case_class}: {safe(why.test)}", width), _EFFECTS[why.effect], ""]
    candidate, baseline = why.rule.split(" x ")
    lines.append(f"rule       candidate {candidate}, baseline {baseline} -> {why.case_class}  ({why.table})")
    if why.cause:
        lines += _cause(why.cause)
    lines.append(f"decided    @{why.verdict_sequence}")
    for attempt in why.attempts:
        lines += ["", *_attempt(attempt, width)]
    return lines


def _cause(cause: str) -> Iterable[str]:
    known = CAUSES.get(cause)
    yield f"cause      {cause}" + (f": {known.meaning}" if known else "")
    if known:
        yield f"           {known.next_step}"


def _attempt(attempt: WhyAttempt, width: int) -> Iterable[str]:
    took = "" if attempt.duration_seconds is None else f" in {seconds(attempt.duration_seconds)}"
    cause = f" ({attempt.cause})" if attempt.cause else ""
    yield f"{attempt.side}, {attempt.shard} attempt {attempt.attempt} on {attempt.member}, @{attempt.sequence}"
    yield f"  {attempt.outcome}{took}{cause}"
    lines = attempt.message.splitlines()
    for line in lines[:MOST_MESSAGE_LINES]:
        yield clipped(f"    {safe(line)}", width)
    if len(lines) > MOST_MESSAGE_LINES:
        yield f"    ... and {len(lines) - MOST_MESSAGE_LINES} more lines"
    if attempt.log:
        yield f"  log {attempt.log[:12]}"
