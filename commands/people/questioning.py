"""What a run asked people, and their answers: the world is asked here, the rules are in `decide/people/`."""

from datetime import UTC, datetime

from commands.messages import AnswerQuestion
from commands.wiring import Home, open_desk
from ledger.events import Answered, AnswerOutcome
from projections.people.question_list import QuestionList, list_questions


def questions(home: Home, run: str, at: str | None) -> QuestionList:
    """What the run asked, now or at a moment; nothing is recorded. Raises RunUnknown and MomentUnknown."""
    with home.open_ledger() as opened:
        name = opened.find_run(run)
        past = opened.past(name, at)
        view = opened.views(name, past).questions
    return list_questions(name, view, past.time if past else datetime.now(UTC))


def answer(home: Home, run: str, question: str, outcome: AnswerOutcome, choice: str = "", text: str = "") -> Answered:
    """Answer a question, also while the run is driven. Raises Refusal when a rule says no, and RunUnknown.

    What is there already is given back as it was recorded.
    """
    with home.open_ledger() as opened:
        name = opened.find_run(run)
    with open_desk(home) as desk:
        message = AnswerQuestion(
            stream=name, question=question, by=desk.who, outcome=outcome, choice=choice, text=_storable(text)
        )
        for recorded in desk.loop.handle(message):
            if isinstance(recorded.event, Answered):
                return recorded.event
        return desk.loop.views(name).questions.questions[question].answers[-1][1]


def _storable(text: str) -> str:
    """The text, or none: bytes that are no text cannot be stored, and say as little as nothing does."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return ""
    return text
