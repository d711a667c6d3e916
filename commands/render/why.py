"""The explanation of a case as text."""

from collections.abc import Iterable, Mapping, Sequence

from commands.causes import CAUSES, NOTES
from commands.render.words import count, safe, seconds, told_class, wrapped
from ledger.values import Digest
from projections.gate.why import Why, WhyAttempt

MOST_MESSAGE_LINES = 40
_COLUMN = " " * 11
_EFFECTS = {
    "failed": "this blocks the release",
    "unmeasured": "this leaves the gate unmeasured",
    "none": "no effect",
}


def why_lines(why: Why, logs: Mapping[Digest, Sequence[str]], width: int) -> list[str]:
    """The class, the rule that gave it, and every attempt that said something about it.

    `logs` are the last lines of the output of those attempts that left something unmeasured.
    """
    lines = [f"{told_class(why.case_class, why.effect)}: {safe(why.test)}", _EFFECTS[why.effect], ""]
    for line in _reasons(why):
        lines += wrapped(line, width, _COLUMN)
    for attempt in why.attempts:
        lines += ["", *_attempt(attempt, width), *_log(logs.get(attempt.log or "", ()))]
    return lines


def _reasons(why: Why) -> Iterable[str]:
    if why.rule:
        candidate, baseline, *rerun = why.rule.split(" x ")
        again = "".join(f", run again {state}" for state in rerun)
        told = told_class(why.case_class, why.effect)
        yield f"rule       candidate {candidate}, baseline {baseline}{again} -> {told} ({why.table})"
    if why.mute:
        yield f"muted      {why.mute}: `ledger mutes` says by whom, why and until when"
    if why.note:
        yield f"note       {why.note}: {NOTES[why.note].meaning}"
    if why.cause:
        known = CAUSES.get(why.cause)
        yield f"cause      {why.cause}" + (f": {known.meaning} {known.next_step}" if known else "")
    yield f"decided    @{why.verdict_sequence}"


def _attempt(attempt: WhyAttempt, width: int) -> Iterable[str]:
    took = "" if attempt.duration_seconds is None else f" in {seconds(attempt.duration_seconds)}"
    cause = f"; unmeasured: {attempt.cause}" if attempt.cause else ""
    where = f"{attempt.shard} attempt {attempt.attempt} on {attempt.member}, @{attempt.sequence}"
    yield from wrapped(f"{attempt.side}, {where}", width)
    yield f"  {attempt.outcome}{took}{cause}"
    if attempt.detail:
        yield from wrapped(f"  {attempt.detail}", width, "  ")
    lines = attempt.message.splitlines()
    # A test says last what went wrong, so a message that is too long loses its beginning.
    if len(lines) > MOST_MESSAGE_LINES:
        yield f"    ({count(len(lines) - MOST_MESSAGE_LINES, 'line')} before; --json has them)"
    yield from _quoted(lines[-MOST_MESSAGE_LINES:])


def _log(lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield "  its output ends with"
        yield from _quoted(lines)


def _quoted(lines: Iterable[str]) -> Iterable[str]:
    """Lines of a program as they are, for a terminal to break: cutting or filling them would change code and tables."""
    return (f"    {safe(line)}".rstrip() for line in lines)
