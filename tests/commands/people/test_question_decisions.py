"""What becomes of questions and of answers: every rule, and what comes of the same message twice."""

from typing import Any, get_args

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from commands.causes import QUESTIONS
from commands.messages import AnswerQuestion, AskQuestion, ExpireQuestion
from ledger.events import (
    Answered,
    AnswerOutcome,
    Assumed,
    AssumeReason,
    AutoRecommended,
    DeferReason,
    Event,
    Parked,
    Question,
    QuestionDeferred,
    QuestionPolicy,
    StepStarted,
)
from tests.support.given import given
from tests.support.makers import RUN, question, question_asked

CRITICAL = question(impact="critical")
NAME = "question-1"
OUTCOMES: tuple[AnswerOutcome, ...] = get_args(AnswerOutcome)


def ask(content: Question | None = None, minutes: int | None = None, **policy: int) -> AskQuestion:
    return AskQuestion(
        stream=RUN, content=content or question(), policy=QuestionPolicy(**policy), deadline_minutes=minutes
    )


def answer(outcome: AnswerOutcome = "choice", name: str = NAME, **changes: Any) -> AnswerQuestion:
    said = {"choice": {"choice": "beta"}, "text": {"text": "neither of them"}}.get(outcome, {})
    return AnswerQuestion(stream=RUN, question=name, by="ann", outcome=outcome, **said | changes)


def expire(now: str, name: str = NAME) -> ExpireQuestion:
    return ExpireQuestion(stream=RUN, question=name, now=now)


def answered(outcome: AnswerOutcome = "choice", **changes: str) -> Answered:
    said = {"choice": {"choice": "beta"}, "text": {"text": "neither of them"}}.get(outcome, {})
    return Answered(question=NAME, by="ann", outcome=outcome, **said | changes)


def deferred(content: Question, reason: DeferReason, name: str = "question-2") -> QuestionDeferred:
    return QuestionDeferred(question=name, content=content, reason=reason)


# Asking.


def test_a_question_is_asked_once_with_its_deadline() -> None:
    given().when(ask()).then(question_asked()).and_again_nothing()
    given().when(ask(minutes=5)).then(question_asked(minutes=5))
    given().when(ask(deadline_minutes=60)).then(question_asked(minutes=60))


@pytest.mark.parametrize(
    "end",
    [answered(outcome) for outcome in OUTCOMES]
    + [AutoRecommended(question=NAME, choice="stable"), Parked(question=NAME)],
)
def test_asking_the_same_again_changes_nothing_whatever_became_of_it(end: Event) -> None:
    given(question_asked(), end).when(ask()).nothing()


def test_whoever_got_no_answer_can_ask_anew_when_the_step_begins_again_and_nobody_else_can() -> None:
    again = StepStarted(step="publish")
    for outcome in OUTCOMES:
        past = [question_asked(), answered(outcome), again]
        if outcome in ("deferred", "cancelled"):
            given(*past).when(ask()).then(question_asked(name="question-2")).and_again_nothing()
        else:
            given(*past).when(ask()).nothing()


@pytest.mark.parametrize("change", [{"key": "other"}, {"step": "other"}, {"prompt": "Which one?"}])
def test_what_is_asked_otherwise_is_another_question(change: dict[str, str]) -> None:
    other = question(impact="critical", **change)
    given(question_asked(CRITICAL), answered()).when(ask(other)).then(question_asked(other, "question-2"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"impact": "low"}, "low-impact"),
        ({"impact": "low", "fact_resolvable": True}, "fact-resolvable"),
        ({"impact": "high", "fact_resolvable": True}, "fact-resolvable"),
    ],
)
def test_what_need_not_be_asked_gets_the_recommended_option(changes: dict[str, Any], reason: AssumeReason) -> None:
    content = question(recommended="beta", **changes)
    expected = Assumed(question=NAME, content=content, choice="beta", reason=reason)
    given().when(ask(content)).then(expected).and_again_nothing()


def test_a_question_waits_for_another_one_and_is_asked_when_that_is_answered() -> None:
    other = question(key="other")
    waiting = ask(other, execution_max=2)
    put_off = deferred(other, "question-pending")
    for pending in ([question_asked()], [question_asked(CRITICAL), Parked(question=NAME)]):
        given(*pending).when(waiting).then(put_off).and_again_nothing()
    given(question_asked(), put_off, answered()).when(waiting).then(question_asked(other, "question-3"))


def test_a_phase_asks_as_often_as_it_may_and_the_others_as_often_as_they_may() -> None:
    other, planning = question(key="other"), question(key="other", phase="planning")
    past = [question_asked(), answered()]
    given(*past).when(ask(other)).then(deferred(other, "budget-used")).and_again_nothing()
    given(*past).when(ask(planning)).then(question_asked(planning, "question-2"))
    given().when(ask(execution_max=0)).then(deferred(question(), "budget-used", NAME))
    twice = [*past[:1], answered("deferred"), StepStarted(step="publish"), question_asked(name="question-2")]
    ended = Answered(question="question-2", by="ann", outcome="cancelled")
    given(*twice, ended).when(ask(other)).then(deferred(other, "budget-used", "question-3"))
    given(*twice, ended).when(ask(other, execution_max=2)).then(question_asked(other, "question-3"))


def test_why_a_question_is_put_off_is_recorded_when_it_changes() -> None:
    other = question(key="other")
    past = [question_asked(), deferred(other, "question-pending"), answered()]
    given(*past).when(ask(other)).then(deferred(other, "budget-used", "question-3"))


@pytest.mark.parametrize("findable", [True, False])
def test_what_is_critical_is_asked_while_others_are_open_and_beyond_every_budget(findable: bool) -> None:
    content = question(impact="critical", fact_resolvable=findable)
    for past in ([], [question_asked()], [question_asked(), Parked(question=NAME)]):
        name = f"question-{bool(past) + 1}"
        given(*past).when(ask(content, execution_max=0)).then(question_asked(content, name)).and_again_nothing()


@pytest.mark.parametrize("impact", ["low", "high", "critical"])
def test_what_cannot_be_asked_is_an_error_of_the_step(impact: str) -> None:
    refusal = given().when(ask(question("alone", impact=impact))).refused("question-invalid")
    assert "its options is 1 instead of 2 to 4" in refusal.message
    given(question_asked()).when(ask(question("a", "a", impact=impact))).refused("question-invalid")


@pytest.mark.parametrize(("minutes", "allowed"), [(0, False), (1, True), (35_791, True), (35_792, False), (-5, False)])
def test_a_deadline_is_within_its_limits(minutes: int, allowed: bool) -> None:
    for message in (ask(minutes=minutes), ask(deadline_minutes=minutes)):
        if allowed:
            given().when(message).then(question_asked(minutes=minutes))
        else:
            given().when(message).refused("question-invalid")


def test_every_reason_that_is_recorded_can_be_explained() -> None:
    assert {*get_args(AssumeReason), *get_args(DeferReason)} == set(QUESTIONS)


# Answering.


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("parked", [False, True])
def test_an_answer_is_recorded_as_what_it_is_and_once(outcome: AnswerOutcome, parked: bool) -> None:
    past: list[Event] = [question_asked(CRITICAL), *([Parked(question=NAME)] if parked else [])]
    given(*past).when(answer(outcome)).then(answered(outcome)).and_again_nothing()


@over(text=st.text(max_size=20) | st.sampled_from(["beta", "stable", "x" * 4001]))
def test_words_are_never_a_choice_whatever_they_say(text: str) -> None:
    decided, refusal = given(question_asked()).decide(answer("text", text=text))
    (event,) = decided.events
    assert refusal is None
    assert isinstance(event, Answered)
    assert (event.outcome, event.choice) in (("text", ""), ("unreadable", ""))
    assert event.text == (text if event.outcome == "text" else "")


@pytest.mark.parametrize("text", ["", "  ", "\x1b[31m", "x" * 4001])
def test_what_nobody_can_read_leaves_the_question_open(text: str) -> None:
    given(question_asked()).when(answer("text", text=text)).then(answered("unreadable"))
    given(question_asked(), answered("unreadable")).when(answer()).then(answered())


@pytest.mark.parametrize("outcome", [one for one in OUTCOMES if one != "choice"])
def test_only_a_choice_chooses(outcome: AnswerOutcome) -> None:
    (event,) = given(question_asked()).when(answer(outcome, choice="beta")).decided.events
    assert isinstance(event, Answered)
    assert event.choice == ""


@pytest.mark.parametrize("label", ["", "Beta", "beta ", "gamma"])
def test_a_choice_is_the_label_of_an_option(label: str) -> None:
    assert "'beta'" in given(question_asked()).when(answer(choice=label)).refused("option-unknown").message


CLOSED: list[Event] = [
    *(answered(outcome) for outcome in OUTCOMES if outcome != "unreadable"),
    AutoRecommended(question=NAME, choice="beta"),
]


@pytest.mark.parametrize("end", CLOSED)
def test_an_answer_that_comes_too_late_is_refused_and_changes_nothing(end: Event) -> None:
    for outcome in OUTCOMES:
        when = given(question_asked(), end).when(answer(outcome))
        if isinstance(end, Answered) and end.outcome == outcome:
            when.nothing()
        else:
            when.refused("question-closed")


def test_what_nobody_was_asked_cannot_be_answered() -> None:
    low = question(impact="low")
    given(Assumed(question=NAME, content=low, choice="stable", reason="low-impact")).when(answer()).refused(
        "question-closed"
    )
    given(deferred(question(), "budget-used", NAME)).when(answer()).refused("question-closed")
    for name in ("question-2", "", "Question-1", "1"):
        given(question_asked()).when(answer(name=name)).refused("question-unknown")


# Waiting.

ASKED_AT, OVER = "2030-01-02T03:04:01", "2030-01-02T03:34:01"


@pytest.mark.parametrize("now", [ASKED_AT, "2030-01-02T03:34:00.999999+00:00", "2001-01-01T00:00:00Z"])
def test_nothing_happens_while_there_is_time(now: str) -> None:
    given(question_asked()).when(expire(now)).nothing()


@pytest.mark.parametrize("now", [f"{OVER}.000000Z", OVER, "2030-01-02T05:34:01+02:00", "2031-01-01T00:00:00Z"])
def test_when_the_time_is_over_the_recommended_option_is_taken_but_never_for_what_is_critical(now: str) -> None:
    usual, critical = question(recommended="beta"), question(recommended="beta", impact="critical")
    taken = AutoRecommended(question=NAME, choice="beta")
    given(question_asked(usual)).when(expire(now)).then(taken).and_again_nothing()
    given(question_asked(critical)).when(expire(now)).then(Parked(question=NAME)).and_again_nothing()


@pytest.mark.parametrize("end", CLOSED)
def test_what_is_answered_does_not_expire(end: Event) -> None:
    given(question_asked(), end).when(expire("2031-01-01T00:00:00Z")).nothing()


def test_an_answer_is_taken_as_long_as_nothing_was_taken_for_it() -> None:
    # No clock is asked here: whoever comes first is recorded first.
    given(question_asked(minutes=1)).when(answer()).then(answered())


def test_what_was_never_asked_cannot_expire() -> None:
    given().when(expire("2031-01-01T00:00:00Z")).refused("question-unknown")
    given(deferred(question(), "budget-used", NAME)).when(expire("2031-01-01T00:00:00Z")).nothing()
