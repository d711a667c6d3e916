"""Questions of steps to people: what is open, what became of each, and the policy that says whether people are asked.

The policy. First match wins:

| the question                                                       | people are  | because            |
|---|---|---|
| cannot be asked: see `fault`                                       | refused     | `question-invalid` |
| is critical                                                        | asked       | `critical`         |
| can be answered by finding out                                     | not asked   | `fact-resolvable`  |
| matters little                                                     | not asked   | `low-impact`       |
| comes while another is open                                        | asked later | `question-pending` |
| comes when its phase has asked as many others as it may            | asked later | `budget-used`      |
| any other                                                          | asked       | `matters`          |

What is not asked gets the recommended option, recorded as an assumption. What is critical is looked at before all else
that could keep it from being asked: it is never assumed and never put off. When nobody answers it in time it is parked
and stays open; any other gets the recommended option then.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct, field

from ledger.events import (
    Answered,
    AnswerOutcome,
    Assumed,
    AutoRecommended,
    Parked,
    Phase,
    Question,
    QuestionAsked,
    QuestionDeferred,
    QuestionPolicy,
    StepStarted,
)
from ledger.record import RecordedEvent
from projections.fold import View

OPTIONS_MIN, OPTIONS_MAX = 2, 4
LABEL_MAX, TEXT_MAX = 200, 4000
"""The characters of a label, a step or a key; and of any other text."""
DEADLINE_MINUTES_MIN, DEADLINE_MINUTES_MAX = 1, 35_791

QuestionState = Literal["open", "parked", "answered", "deferred", "cancelled", "assumed", "auto-recommended"]
Action = Literal["invalid", "ask", "assume", "defer"]
Reason = Literal[
    "question-invalid", "critical", "fact-resolvable", "low-impact", "question-pending", "budget-used", "matters"
]

_AFTER_ANSWER: dict[AnswerOutcome, QuestionState] = {
    "choice": "answered", "text": "answered", "deferred": "deferred", "cancelled": "cancelled",
}  # fmt: skip
"""An answer that nobody can read is not here: it leaves the question as it is."""


class QuestionRecord(Struct):
    """One question. `since` (UTC) and `sequence` are those of its first event.

    `reason` says why nobody was asked, "" when somebody was; then there is a deadline. `answers` are all that were
    given, with the sequence of each, those that nobody could read included. `choice` is the label that holds, whoever
    or whatever chose it; `text` an answer in other words. `step_begun_again`: an attempt at its step began after it was
    closed.
    """

    question: str
    content: Question
    since: str
    sequence: int
    state: QuestionState
    reason: str = ""
    deadline_minutes: int | None = None
    answers: list[tuple[int, Answered]] = field(default_factory=list)
    choice: str = ""
    text: str = ""
    step_begun_again: bool = False

    @property
    def is_open(self) -> bool:
        """Whether an answer is waited for, or would be taken."""
        return self.state in ("open", "parked")

    @property
    def deadline(self) -> datetime | None:
        """When the time for an answer is over; None when nobody was asked."""
        if self.deadline_minutes is None:
            return None
        asked = datetime.fromisoformat(self.since)
        return (asked if asked.tzinfo else asked.replace(tzinfo=UTC)) + timedelta(minutes=self.deadline_minutes)

    @property
    def may_be_asked_again(self) -> bool:
        """Whether asking the same again is a new question. Otherwise a step that nobody gave an answer could never get
        one."""
        return not self.is_open and not self.chosen and (bool(self.reason) or self.step_begun_again)

    @property
    def chosen(self) -> bool:
        """Whether there is an answer, whoever or whatever gave it."""
        return bool(self.choice or self.text)


class QuestionsView(Struct):
    """Every question that a run ever had, by its name, in order."""

    questions: dict[str, QuestionRecord] = field(default_factory=dict)

    @property
    def next_name(self) -> str:
        """The name of the next question."""
        return f"question-{len(self.questions) + 1}"

    def open(self) -> Iterator[QuestionRecord]:
        """Those that an answer is waited for, parked ones included."""
        return (one for one in self.questions.values() if one.is_open)

    def due(self, now: datetime) -> Iterator[QuestionRecord]:
        """Those whose time is over, and about which nothing was recorded since."""
        for one in self.questions.values():
            deadline = one.deadline
            if one.state == "open" and deadline is not None and now >= deadline:
                yield one

    def asked_besides(self, content: Question) -> int:
        """How many other questions its phase has asked; one that was asked again counts once."""
        asked = {one.content for one in self.questions.values() if one.deadline_minutes is not None}
        return sum(one.phase == content.phase for one in asked - {content})

    def find(self, content: Question) -> QuestionRecord | None:
        """The newest question of this content; what its step may go on with is in it."""
        return next((one for one in reversed(self.questions.values()) if one.content == content), None)


class Ruling(Struct, frozen=True):
    """Whether people are asked, and why."""

    action: Action
    reason: Reason


class _Asking(Struct, frozen=True):
    """A question, and what else the policy looks at."""

    content: Question
    pending: bool
    budget_left: bool


_RULES: tuple[tuple[Callable[[_Asking], bool], Ruling], ...] = (
    (lambda asking: bool(fault(asking.content)), Ruling("invalid", "question-invalid")),
    (lambda asking: asking.content.impact == "critical", Ruling("ask", "critical")),
    (lambda asking: asking.content.fact_resolvable, Ruling("assume", "fact-resolvable")),
    (lambda asking: asking.content.impact == "low", Ruling("assume", "low-impact")),
    (lambda asking: asking.pending, Ruling("defer", "question-pending")),
    (lambda asking: not asking.budget_left, Ruling("defer", "budget-used")),
    (lambda asking: True, Ruling("ask", "matters")),
)


def rule(content: Question, *, pending: int, asked: int, allowed: int) -> Ruling:
    """What the policy says of a question while so many others are open, and its phase has asked so many of those that
    it may."""
    asking = _Asking(content, pending > 0, asked < allowed)
    return next(ruling for applies, ruling in _RULES if applies(asking))


def fault(content: Question) -> str:
    """Why the question cannot be asked, in words; "" when it can.

    It has 2 to 4 options with labels of their own and recommends exactly one; step, key and labels are short lines, all
    else is text that can be read.
    """
    labels = [option.label for option in content.options]
    if not OPTIONS_MIN <= len(labels) <= OPTIONS_MAX:
        return f"the number of its options is {len(labels)} instead of {OPTIONS_MIN} to {OPTIONS_MAX}"
    if not all(map(_is_name, labels)):
        return "the label of an option is empty, too long, or cannot be printed"
    if len(set(labels)) < len(labels):
        return "two options have the same label"
    chosen = sum(option.recommended for option in content.options)
    if chosen != 1:
        return f"the number of options that it recommends is {chosen} instead of 1"
    if not (_is_name(content.step) and _is_name(content.key)):
        return "the name of the step or of the decision is empty, too long, or cannot be printed"
    if not is_text(content.prompt):
        return "what it asks is empty, too long, or cannot be printed"
    details = (option.detail for option in content.options)
    if not all(not text or is_text(text) for text in (content.why_now, *details)):
        return "one of its explanations is too long, or cannot be printed"
    return ""


def recommended(content: Question) -> str:
    """The label of the option that a question recommends."""
    return next(option.label for option in content.options if option.recommended)


def allowed_in(policy: QuestionPolicy, phase: Phase) -> int:
    """How often this phase may ask."""
    limits: dict[Phase, int] = {
        "intake": policy.intake_max, "planning": policy.planning_max, "execution": policy.execution_max,
    }  # fmt: skip
    return limits[phase]


def is_text(text: str) -> bool:
    """Whether it says something that can be read: printable characters, in lines, and not too many of them."""
    return bool(text.strip()) and len(text) <= TEXT_MAX and all(one.isprintable() or one in "\n\t" for one in text)


def _is_name(text: str) -> bool:
    return bool(text) and text == " ".join(text.split()) and text.isprintable() and len(text) <= LABEL_MAX


def _begun(view: QuestionsView, event: QuestionAsked | QuestionDeferred | Assumed, recorded: RecordedEvent) -> None:
    record = QuestionRecord(event.question, event.content, recorded.header.time, recorded.sequence, state="open")
    view.questions[event.question] = record
    if isinstance(event, QuestionAsked):
        record.deadline_minutes = event.deadline_minutes
        return
    record.reason = event.reason
    record.state = "deferred"
    if isinstance(event, Assumed):
        record.state, record.choice = "assumed", event.choice


def _answered(view: QuestionsView, event: Answered, recorded: RecordedEvent) -> None:
    record = view.questions.get(event.question)
    if record is None:
        return
    record.answers.append((recorded.sequence, event))
    record.state = _AFTER_ANSWER.get(event.outcome, record.state)
    record.choice, record.text = event.choice, event.text


def _auto_recommended(view: QuestionsView, event: AutoRecommended, recorded: RecordedEvent) -> None:
    record = view.questions.get(event.question)
    if record is not None:
        record.state, record.choice = "auto-recommended", event.choice


def _parked(view: QuestionsView, event: Parked, recorded: RecordedEvent) -> None:
    record = view.questions.get(event.question)
    if record is not None:
        record.state = "parked"


def _step_begun(view: QuestionsView, event: StepStarted, recorded: RecordedEvent) -> None:
    for record in view.questions.values():
        if record.content.step == event.step and not record.is_open:
            record.step_begun_again = True


QUESTIONS = View(
    "questions",
    "what did the steps of this run ask people, and what became of it?",
    QuestionsView,
    {
        QuestionAsked: _begun,
        QuestionDeferred: _begun,
        Assumed: _begun,
        Answered: _answered,
        AutoRecommended: _auto_recommended,
        Parked: _parked,
        StepStarted: _step_begun,
    },
)
