"""What a run asked people and what became of it, as it is listed: open questions with the time that is left first."""

from datetime import datetime

from msgspec import Struct

from ledger.events import Impact, Phase, QuestionOption
from projections.people.questions import QuestionRecord, QuestionState, QuestionsView


class QuestionRow(Struct, frozen=True, kw_only=True):
    """One question; `since` (UTC) and `sequence` are those of its first event.

    `deadline` is "" when nobody was asked. `left_seconds` is the time until then, 0 when it is over, and None where it
    does not matter any more. `reason` is the code of why nobody was asked. `choice` is the label that holds, `text` an
    answer in other words, `by` who gave it; `unreadable` counts the answers that nobody could read.
    """

    question: str
    step: str
    key: str
    phase: Phase
    impact: Impact
    prompt: str
    why_now: str
    options: tuple[QuestionOption, ...]
    state: QuestionState
    reason: str
    since: str
    sequence: int
    deadline: str
    left_seconds: float | None
    choice: str
    text: str
    by: str
    unreadable: int


class QuestionList(Struct, frozen=True, kw_only=True):
    """All questions of a run at a time (UTC): those that are open first, then the newest; `open` is how many are."""

    run: str
    time: str
    open: int
    questions: tuple[QuestionRow, ...]


def list_questions(run: str, view: QuestionsView, now: datetime) -> QuestionList:
    """The list at this time."""
    rows = [_row(record, now) for record in view.questions.values()]
    waiting = [row for row in rows if row.state in ("open", "parked")]
    closed = [row for row in reversed(rows) if row not in waiting]
    return QuestionList(run=run, time=_text(now), open=len(waiting), questions=(*waiting, *closed))


def _row(record: QuestionRecord, now: datetime) -> QuestionRow:
    content, deadline = record.content, record.deadline
    left = max(0.0, (deadline - now).total_seconds()) if deadline and record.state == "open" else None
    readable = [answer for _, answer in record.answers if answer.outcome != "unreadable"]
    return QuestionRow(
        question=record.question,
        step=content.step,
        key=content.key,
        phase=content.phase,
        impact=content.impact,
        prompt=content.prompt,
        why_now=content.why_now,
        options=content.options,
        state=record.state,
        reason=record.reason,
        since=record.since,
        sequence=record.sequence,
        deadline=_text(deadline) if deadline else "",
        left_seconds=left,
        choice=record.choice,
        text=record.text,
        by=readable[-1].by if readable else "",
        unreadable=len(record.answers) - len(readable),
    )


def _text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
