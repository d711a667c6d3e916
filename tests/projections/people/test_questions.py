"""Questions to people: the policy over all of its cells against sentences, and what the view makes of events."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events import (
    Answered,
    AnswerOutcome,
    Assumed,
    AutoRecommended,
    Event,
    Impact,
    Parked,
    Phase,
    Question,
    QuestionAsked,
    QuestionDeferred,
    QuestionOption,
    QuestionPolicy,
    StepStarted,
)
from projections.fold import fold
from projections.people.question_list import list_questions
from projections.people.questions import QUESTIONS, QuestionsView, allowed_in, fault, is_text, recommended, rule
from tests.support.makers import SEQUENCE_OF_FIRST, question, question_asked, recorded

IMPACTS: tuple[Impact, ...] = get_args(Impact)
PHASES: tuple[Phase, ...] = get_args(Phase)
BROKEN = (
    Question(step="s", key="k", prompt="p", options=(), impact="high"),
    question("alone"),
    question("a", "b", "c", "d", "e"),
    question("a", "a"),
    question("a", "b", recommended="c"),
    question("", "b"),
    question("a", " b"),
    question("a", "b  c"),
    question("a", "b\x1b[31m"),
    question("a", "b" * 201),
    question(prompt=" "),
    question(prompt="\u202ereversed"),
    question(prompt="x" * 4001),
    question(why_now="\x07"),
    question(step=""),
    question(key="a\nb"),
    Question(
        step="s", key="k", prompt="p", impact="low",
        options=(QuestionOption(label="a", recommended=True), QuestionOption(label="b", recommended=True)),
    ),
    Question(
        step="s", key="k", prompt="p", impact="low",
        options=(QuestionOption(label="a", recommended=True), QuestionOption(label="b", detail="\0")),
    ),
)  # fmt: skip
SOUND = (
    question(), question("a", "b", "c", "d"), question("a", "b", recommended="b"),
    question("A", "a", prompt="first line\n\tsecond line", why_now="x" * 4000, key="k" * 200),
)  # fmt: skip


def view_of(*events: Event) -> QuestionsView:
    return fold(QUESTIONS, recorded(events))


# The policy.


def sentence(impact: Impact, *, sound: bool, findable: bool, pending: int, left: int) -> str:
    """What the policy says, told from its ends: who is refused, who is asked, and what is worth a wait."""
    if not sound:
        return "invalid"
    worth_asking = not findable and impact != "low"
    if impact == "critical" or (worth_asking and pending == 0 and left > 0):
        return "ask"
    return "defer" if worth_asking else "assume"


@pytest.mark.parametrize("impact", IMPACTS)
def test_the_policy_says_of_every_cell_what_its_sentences_say(impact: Impact) -> None:
    seen = set()
    for sound, findable, pending, asked, allowed in product(
        (True, False), (True, False), (0, 1, 2), (0, 1, 3), (0, 1, 2)
    ):
        changes: dict[str, Any] = {"impact": impact, "fact_resolvable": findable}
        content = question(**changes) if sound else question("alone", **changes)
        ruling = rule(content, pending=pending, asked=asked, allowed=allowed)
        expected = sentence(impact, sound=sound, findable=findable, pending=pending, left=allowed - asked)
        assert ruling.action == expected, (ruling, sound, findable, pending, asked, allowed)
        seen.add((ruling.action, ruling.reason))
    reasons = {"critical": {"critical"}, "low": {"fact-resolvable", "low-impact"}}
    usual = {"fact-resolvable", "question-pending", "budget-used", "matters"}
    assert {reason for _, reason in seen} == {"question-invalid"} | reasons.get(impact, usual)
    assert len({reason for _, reason in seen}) == len(seen), "a reason stands for one action"


@given(
    findable=st.booleans(), pending=st.integers(-1, 9), asked=st.integers(0, 9), allowed=st.integers(-1, 9),
    phase=st.sampled_from(PHASES),
)  # fmt: skip
def test_what_is_critical_is_asked_whatever_else_there_is(
    findable: bool, pending: int, asked: int, allowed: int, phase: Phase
) -> None:
    content = question(impact="critical", fact_resolvable=findable, phase=phase)
    assert rule(content, pending=pending, asked=asked, allowed=allowed).action == "ask"


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("impact", IMPACTS)
def test_what_cannot_be_asked_is_never_assumed_instead(content: Question, impact: Impact) -> None:
    assert fault(content)
    changed = Question(**{name: getattr(content, name) for name in content.__struct_fields__} | {"impact": impact})
    assert rule(changed, pending=0, asked=0, allowed=1).action == "invalid"


@pytest.mark.parametrize("content", SOUND)
def test_what_can_be_asked_is(content: Question) -> None:
    assert fault(content) == ""
    assert rule(content, pending=0, asked=0, allowed=1).action == "ask"
    assert [option.label for option in content.options if option.recommended] == [recommended(content)]


def test_each_phase_has_its_own_budget_which_can_be_changed() -> None:
    assert [allowed_in(QuestionPolicy(), phase) for phase in PHASES] == [1, 2, 1]
    changed = QuestionPolicy(intake_max=4, planning_max=5, execution_max=6)
    assert [allowed_in(changed, phase) for phase in PHASES] == [4, 5, 6]


@pytest.mark.parametrize("text", ["", " \n", "\0", "\x1b[0m", "x" * 4001, "\udcff"])
def test_what_says_nothing_or_cannot_be_read_is_no_text(text: str) -> None:
    assert not is_text(text)
    assert is_text(f"{'x' * 3999}é")


# The view.


def answered(outcome: AnswerOutcome, name: str = "question-1", **changes: str) -> Answered:
    return Answered(question=name, by="ann", outcome=outcome, **changes)


ENDS: list[tuple[Event, str, str, str]] = [
    (answered("choice", choice="beta"), "answered", "beta", ""),
    (answered("text", text="neither"), "answered", "", "neither"),
    (answered("deferred"), "deferred", "", ""),
    (answered("cancelled"), "cancelled", "", ""),
    (answered("unreadable"), "open", "", ""),
    (AutoRecommended(question="question-1", choice="stable"), "auto-recommended", "stable", ""),
    (Parked(question="question-1"), "parked", "", ""),
]


@pytest.mark.parametrize(("event", "state", "choice", "text"), ENDS)
def test_each_way_of_ending_is_a_state_of_its_own(event: Event, state: str, choice: str, text: str) -> None:
    record = view_of(question_asked(), event).questions["question-1"]
    assert (record.state, record.choice, record.text) == (state, choice, text)
    assert record.is_open == (state in ("open", "parked"))


def test_what_was_never_asked_about_changes_nothing() -> None:
    for event, _, _, _ in ENDS:
        assert view_of(event) == QuestionsView()


def test_a_parked_question_stays_open_until_it_is_answered() -> None:
    parked = view_of(question_asked(), Parked(question="question-1"), answered("unreadable"))
    assert [(one.question, one.state) for one in parked.open()] == [("question-1", "parked")]
    later = view_of(question_asked(), Parked(question="question-1"), answered("text", text="beta, but quietly"))
    assert (list(later.open()), later.questions["question-1"].state) == ([], "answered")


def test_names_count_up_and_only_what_was_asked_uses_up_a_budget() -> None:
    low, other = question(key="low", impact="low"), question(key="other")
    view = view_of(
        question_asked(), Assumed(question="question-2", content=low, choice="stable", reason="low-impact"),
        QuestionDeferred(question="question-3", content=other, reason="question-pending"),
        question_asked(question(phase="planning"), "question-4"),
    )  # fmt: skip
    assert view.next_name == "question-5"
    assert [view.asked_besides(question(key="new", phase=phase)) for phase in PHASES] == [0, 1, 1]
    assert [view.asked_besides(one) for one in (question(), low, question(phase="planning"))] == [0, 1, 0]
    assert [one.state for one in view.questions.values()] == ["open", "assumed", "deferred", "open"]
    assert [one.deadline is None for one in view.questions.values()] == [False, True, True, False]
    assert [view.find(one) is not None for one in (question(), low, other, question(key="new"))] == [True] * 3 + [False]


@given(minutes=st.integers(1, 35_791), late=st.integers(-(10**6), 10**6))
def test_a_question_is_due_exactly_when_its_time_is_over(minutes: int, late: int) -> None:
    view = view_of(question_asked(minutes=minutes))
    asked = datetime(2030, 1, 2, 3, 4, 1, tzinfo=UTC)
    now = asked + timedelta(minutes=minutes, milliseconds=late)
    assert bool(list(view.due(now))) == (late >= 0)
    for event, state, _, _ in ENDS:
        later = view_of(question_asked(minutes=minutes), event)
        assert list(later.due(now)) == ([] if state != "open" else list(later.open()) if late >= 0 else [])


def test_what_nobody_gave_an_answer_may_be_asked_again_when_its_step_begins_again() -> None:
    for outcome in ("deferred", "cancelled"):
        asked: list[Event] = [question_asked(), answered(outcome)]
        for events, again in (
            (asked, False), ([*asked, StepStarted(step="other")], False), ([*asked, StepStarted(step="publish")], True),
            ([asked[0], StepStarted(step="publish"), asked[1]], False),
        ):  # fmt: skip
            assert view_of(*events).questions["question-1"].may_be_asked_again == again
    chosen = view_of(question_asked(), answered("choice", choice="beta"), StepStarted(step="publish"))
    assert not chosen.questions["question-1"].may_be_asked_again


def test_a_prefix_shows_the_past_and_folding_twice_is_equal() -> None:
    history = [question_asked(), Parked(question="question-1"), answered("choice", choice="beta")]
    then = fold(QUESTIONS, recorded(history), as_of=SEQUENCE_OF_FIRST + 2)
    assert then.questions["question-1"].state == "parked"
    assert view_of(*history) == view_of(*history)


def test_the_list_has_what_is_open_first_with_the_time_that_is_left() -> None:
    view = view_of(
        question_asked(minutes=1), question_asked(question(key="k"), "question-2"),
        question_asked(question(impact="critical"), "question-3"), Parked(question="question-3"),
        answered("unreadable", "question-2"), AutoRecommended(question="question-1", choice="stable"),
        QuestionDeferred(question="question-4", content=question(key="l"), reason="budget-used"),
    )  # fmt: skip
    found = list_questions("run-1", view, datetime(2030, 1, 2, 3, 5, tzinfo=UTC))
    assert (found.run, found.time, found.open) == ("run-1", "2030-01-02T03:05:00.000000Z", 2)
    rows = {row.question: row for row in found.questions}
    assert list(rows) == ["question-2", "question-3", "question-4", "question-1"]
    assert rows["question-2"].left_seconds == 1742.0
    assert rows["question-2"].deadline == "2030-01-02T03:34:02.000000Z"
    assert (rows["question-2"].unreadable, rows["question-2"].by) == (1, "")
    assert [rows[f"question-{n}"].left_seconds for n in (1, 3, 4)] == [None, None, None]
    assert (rows["question-4"].reason, rows["question-4"].deadline) == ("budget-used", "")
    late = list_questions("run-1", view_of(question_asked()), datetime(2031, 1, 1, tzinfo=UTC))
    assert late.questions[0].left_seconds == 0.0


def test_every_question_is_listed_exactly_once() -> None:
    names = [f"question-{number}" for number in range(1, 6)]
    asked: list[QuestionAsked] = [question_asked(question(key=name), name) for name in names]
    view = view_of(*asked, answered("cancelled", names[2]), answered("choice", names[0], choice="beta"))
    found = list_questions("run-1", view, datetime(2030, 1, 2, 3, 5, tzinfo=UTC))
    assert [row.question for row in found.questions] == [names[1], names[3], names[4], names[2], names[0]]
