"""Messages about questions to people; the stream is that of the run whose step asks."""

from typing import ClassVar

from commands.messages.base import Message
from ledger.events import AnswerOutcome, Question, QuestionPolicy


class AskQuestion(Message, frozen=True, kw_only=True, tag="ask-question"):
    """A step wants to know something of people. Gathered: the `policy` of its run.

    Without `deadline_minutes` people have as long as the policy gives them.
    """

    content: Question
    policy: QuestionPolicy
    deadline_minutes: int | None = None


class AnswerQuestion(Message, frozen=True, kw_only=True, tag="answer-question"):
    """Somebody answers: `choice` is the label of an option, `text` an answer in other words. Gathered: `by`, who.

    It is tried until it is recorded, because a driver may be writing to the same stream all the time.
    """

    observation: ClassVar[bool] = True

    question: str
    by: str
    outcome: AnswerOutcome
    choice: str = ""
    text: str = ""


class ExpireQuestion(Message, frozen=True, kw_only=True, tag="expire-question"):
    """The time for an answer may be over. Gathered: `now`, in UTC as ISO 8601."""

    question: str
    now: str
