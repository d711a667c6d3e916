"""Questions to people as text."""

import shlex
from collections.abc import Iterable

from commands.render.words import count, safe, seconds, wrapped
from ledger.events import Answered
from projections.people.question_list import QuestionList, QuestionRow

_INDENT = " " * 11


def question_lines(found: QuestionList, width: int) -> list[str]:
    """The questions that are open, with how to answer each, and what became of the others."""
    waiting, closed = found.questions[: found.open], found.questions[found.open :]
    head = f"{count(found.open, 'question')} of run {found.run} {'is' if found.open == 1 else 'are'} open"
    lines = wrapped(head if waiting else f"no question of run {found.run} is open", width)
    for row in waiting:
        lines += ["", *_open(row, found.run, width)]
    if closed:
        lines.append("")
    for row in closed:
        lines += wrapped(f"{row.question:<10} {row.prompt} ({row.step}, {row.key})", width, _INDENT)
        lines += wrapped(f"{'':<10} {_became(row)}", width, _INDENT)
    return lines


def answered_lines(answered: Answered, width: int) -> list[str]:
    """An answer that was just recorded."""
    said = {
        "choice": answered.choice,
        "text": f"in words: {answered.text}",
        "deferred": "put off",
        "cancelled": "called off",
        "unreadable": "what was given cannot be read, so that the question stays open",
    }
    return [
        *wrapped(f"answered   {answered.question}: {said[answered.outcome]}", width, _INDENT),
        *wrapped(f"by         {answered.by}", width, _INDENT),
    ]


def _open(row: QuestionRow, run: str, width: int) -> Iterable[str]:
    told = [f"{row.question:<10} {row.prompt}", f"asked by   {row.step} ({row.key}), {row.impact}"]
    if row.why_now:
        told.append(f"why now    {row.why_now}")
    for option in row.options:
        detail = f": {option.detail}" if option.detail else ""
        told.append(f"option     {option.label}{' (recommended)' if option.recommended else ''}{detail}")
    told.append(f"time left  {_left(row)}")
    if row.unreadable:
        told.append(f"unreadable {count(row.unreadable, 'answer')}")
    for line in told:
        yield from wrapped(line, width, _INDENT)
    # Not wrapped, so that it can be copied.
    first = row.options[0].label
    marked = ["--", first] if first.startswith("-") else [first]
    yield f"answer     {safe(shlex.join(['ledger', 'answer', row.question, *marked, run]))}"


def _left(row: QuestionRow) -> str:
    if row.state == "parked":
        return "none; the run waits until somebody answers"
    after = "the run waits" if row.impact == "critical" else f"{_recommended(row)!r} is taken"
    if not row.left_seconds:
        return f"none; {after} unless somebody answers at once"
    return f"{seconds(row.left_seconds)}; then {after}"


def _became(row: QuestionRow) -> str:
    match row.state:
        case "answered" if row.choice:
            return f"answered by {row.by}: {row.choice}"
        case "answered":
            return f"answered by {row.by} in words: {row.text}"
        case "assumed":
            return f"assumed: {row.choice} ({row.reason})"
        case "auto-recommended":
            return f"nobody answered in time: {row.choice}"
        case "deferred" if row.reason:
            return f"not asked ({row.reason})"
        case "deferred":
            return f"put off by {row.by}"
    return f"called off by {row.by}"


def _recommended(row: QuestionRow) -> str:
    return next(option.label for option in row.options if option.recommended)
