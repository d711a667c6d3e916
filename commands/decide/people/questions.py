"""Decisions about questions to people. Whether they are asked, the policy in `projections/people/questions.py` says.

Asking the same again changes nothing, unless nothing was chosen: what the policy put off is looked at anew, and what
somebody put off or called off is when its step begins again. An answer is taken while its
question is open or parked, also when its time is over and nobody has recorded that yet. First match wins:

| the answer                                              | what becomes of it                                    |
|---|---|
| to a question that the run does not have                | refused: `question-unknown`                           |
| the same as the one that was given                      | nothing, it is so already                             |
| to a question that is closed, or was never asked        | refused: `question-closed`                            |
| a choice that is not the label of one of the options    | refused: `option-unknown`                             |
| nobody can read it                                      | recorded as that; the question stays as it is         |
| any other                                               | recorded, and the question is closed                  |
"""

from datetime import UTC, datetime

from commands.decide.base import NOTHING, Decided, Documents
from commands.messages import AnswerQuestion, AskQuestion, ExpireQuestion, Refusal
from ledger.events import (
    Answered,
    AnswerOutcome,
    Assumed,
    AutoRecommended,
    Parked,
    Question,
    QuestionAsked,
    QuestionDeferred,
)
from projections.people.questions import (
    DEADLINE_MINUTES_MAX,
    DEADLINE_MINUTES_MIN,
    LABEL_MAX,
    QuestionRecord,
    allowed_in,
    fault,
    is_text,
    recommended,
    rule,
)
from projections.registry import RunViews


def ask_question(message: AskQuestion, views: RunViews, documents: Documents) -> Decided:
    """What the policy makes of a question: it is asked, assumed, put off, or refused as none that can be asked."""
    view, content = views.questions, message.content
    known = view.find(content)
    if known is not None and not known.may_be_asked_again:
        return NOTHING
    reason = rule(
        content,
        pending=sum(1 for _ in view.open()),
        asked=view.asked_besides(content),
        allowed=allowed_in(message.policy, content.phase),
    ).reason
    minutes = message.policy.deadline_minutes if message.deadline_minutes is None else message.deadline_minutes
    _refuse_invalid(content, minutes)
    name = view.next_name
    if reason == "fact-resolvable" or reason == "low-impact":
        choice = recommended(content)
        return Decided((Assumed(question=name, content=content, choice=choice, reason=reason),))
    if reason == "question-pending" or reason == "budget-used":
        if known is not None and known.reason == reason:
            return NOTHING
        return Decided((QuestionDeferred(question=name, content=content, reason=reason),))
    return Decided((QuestionAsked(question=name, content=content, deadline_minutes=minutes),))


def answer_question(message: AnswerQuestion, views: RunViews, documents: Documents) -> Decided:
    """An answer, as it is taken; see the table above."""
    record = _record(message.question, views)
    answer = _answer(message)
    if any(answer == (one.outcome, one.choice, one.text) for _, one in record.answers[-1:]):
        return NOTHING
    if not record.is_open:
        raise Refusal(
            "question-closed",
            f"{record.question} cannot be answered any more: it is {record.state}",
            f"`ledger questions {message.stream}` says what became of it",
        )
    outcome, choice, text = answer
    labels = [option.label for option in record.content.options]
    if outcome == "choice" and choice not in labels:
        raise Refusal(
            "option-unknown",
            f"{record.question} has no option {choice[:LABEL_MAX]!r}, but {', '.join(map(repr, labels))}",
            "answer with one of these, or in other words with --text",
        )
    return Decided((Answered(question=record.question, by=message.by, outcome=outcome, choice=choice, text=text),))


def expire_question(message: ExpireQuestion, views: RunViews, documents: Documents) -> Decided:
    """What becomes of a question that nobody has answered in time; nothing while there is time."""
    record = _record(message.question, views)
    now = datetime.fromisoformat(message.now)
    due = views.questions.due(now if now.tzinfo else now.replace(tzinfo=UTC))
    if record.question not in (one.question for one in due):
        return NOTHING
    if record.content.impact == "critical":
        return Decided((Parked(question=record.question),))
    return Decided((AutoRecommended(question=record.question, choice=recommended(record.content)),))


def _answer(message: AnswerQuestion) -> tuple[AnswerOutcome, str, str]:
    """Outcome, choice and text: only what belongs to the outcome, and a text only when it can be read."""
    if message.outcome == "choice":
        return "choice", message.choice, ""
    if message.outcome == "text":
        return ("text", "", message.text) if is_text(message.text) else ("unreadable", "", "")
    return message.outcome, "", ""


def _record(question: str, views: RunViews) -> QuestionRecord:
    record = views.questions.questions.get(question)
    if record is None:
        raise Refusal(
            "question-unknown",
            f"the run has no question {question[:LABEL_MAX]!r}",
            "`ledger questions` lists those that it has; name the run when it is not the latest",
        )
    return record


def _refuse_invalid(content: Question, minutes: int) -> None:
    why = fault(content)
    if not why and not DEADLINE_MINUTES_MIN <= minutes <= DEADLINE_MINUTES_MAX:
        why = f"its deadline is in {minutes} min instead of {DEADLINE_MINUTES_MIN} to {DEADLINE_MINUTES_MAX} min"
    if why:
        raise Refusal(
            "question-invalid",
            f"the question {content.key[:LABEL_MAX]!r} of the step {content.step[:LABEL_MAX]!r} cannot be asked: {why}",
            "repair what the step asks; nothing was assumed",
        )
