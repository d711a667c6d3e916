"""Events about questions that the steps of a run ask people; they live in the stream of that run."""

from typing import Literal

from msgspec import Struct

from ledger.events.base import Event, stored_as

Impact = Literal["low", "medium", "high", "critical"]
Phase = Literal["intake", "planning", "execution"]
AssumeReason = Literal["fact-resolvable", "low-impact"]
DeferReason = Literal["question-pending", "budget-used"]
AnswerOutcome = Literal["choice", "text", "deferred", "cancelled", "unreadable"]


class QuestionOption(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the answers that a question offers; `label` is what an answer names it by."""

    label: str
    detail: str = ""
    recommended: bool = False


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step of a run wants to know. `key` names the decision within the step.

    Whoever asks the same again means the same question. `fact_resolvable` says that the step could find out by itself.
    """

    step: str
    key: str
    prompt: str
    options: tuple[QuestionOption, ...]
    impact: Impact
    why_now: str = ""
    phase: Phase = "execution"
    fact_resolvable: bool = False


@stored_as("question-asked")
class QuestionAsked(Event, frozen=True, kw_only=True):
    """People were asked. `question` names it among all of the run; the deadline counts from when this was recorded."""

    question: str
    content: Question
    deadline_minutes: int


@stored_as("question-deferred")
class QuestionDeferred(Event, frozen=True, kw_only=True):
    """Nobody was asked, and nothing was chosen; the same may be asked again later."""

    question: str
    content: Question
    reason: DeferReason


@stored_as("assumed")
class Assumed(Event, frozen=True, kw_only=True):
    """Nobody was asked: the recommended option was taken. It can be looked at again, because it says why."""

    question: str
    content: Question
    choice: str
    reason: AssumeReason


@stored_as("answered")
class Answered(Event, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody answered. `choice` is the label of an option, `text` an answer in words of one's own; never both.

    Whoever put the question off, called it off, or gave what nobody can read, has chosen nothing.
    """

    question: str
    by: str
    outcome: AnswerOutcome
    choice: str = ""
    text: str = ""


@stored_as("auto-recommended")
class AutoRecommended(Event, frozen=True, kw_only=True):
    """Nobody answered in time, so the recommended option was taken."""

    question: str
    choice: str


@stored_as("parked")
class Parked(Event, frozen=True, kw_only=True):
    """Nobody answered a critical question in time. It stays open, and its run waits for the answer."""

    question: str
