"""The policy about questions beside the original's: where they differ a listed rule says why, and it is counted."""

from collections import Counter
from typing import Any

from ledger.events import Question, QuestionOption
from projections.people.questions import Ruling, recommended, rule
from tests.commands.original.vectors import vectors

WHY = {
    "what cannot be asked is refused": "The original assumes it, without an option to take, critical or not.",
    "what cannot be asked is refused, not put off": "The original would find out later that it cannot be asked.",
    "no option without a name": "The original asks, assumes or puts off what nobody can answer by its label.",
    "critical before pending": "The original puts a critical question off because another one is open.",
    "little impact before pending": "The original waits for another answer with what it would not ask anyway.",
}

FOUND = {
    "agree": 25,
    "what cannot be asked is refused": 24,
    "what cannot be asked is refused, not put off": 3,
    "no option without a name": 4,
    "critical before pending": 2,
    "little impact before pending": 2,
}

Vector = dict[str, Any]


def question_of(vector: Vector) -> Question:
    candidate = vector["input"]["candidate"]
    return Question(
        step="a step",
        key=candidate["id"],
        prompt=candidate["prompt"],
        options=tuple(
            QuestionOption(label=one["label"], detail=one["description"], recommended=one.get("recommended", False))
            for one in candidate["options"]
        ),
        impact=candidate["impact"],
        why_now=candidate["whyNow"],
        phase=vector["input"]["context"]["phase"],
        fact_resolvable=candidate.get("factResolvable", False),
    )


def ruling_on(vector: Vector) -> Ruling:
    context = vector["input"]["context"]
    # Some limits of the original are no whole numbers, or no numbers.
    limit = float(context["budget"]["limit"])
    asked, left = context["budget"]["used"], context["budget"]["used"] < limit
    pending = context.get("pendingQuestionCount", 0)
    return rule(question_of(vector), pending=pending, asked=asked, allowed=asked + left)


def difference(vector: Vector) -> str:
    """The name of what is different, "agree" when nothing is."""
    ours, theirs, question = ruling_on(vector).action, vector["output"]["decision"]["action"], question_of(vector)
    if ours == theirs:
        return "agree"
    if ours == "invalid":
        labels = [option.label for option in question.options]
        others = 2 <= len(labels) <= 4 and sum(option.recommended for option in question.options) == 1
        if "" in labels and others:
            return "no option without a name"
        refused = "what cannot be asked is refused"
        return refused if theirs == "assume" else f"{refused}, not put off"
    return "critical before pending" if question.impact == "critical" else "little impact before pending"


def test_every_difference_to_the_original_is_a_known_one() -> None:
    found = Counter(map(difference, vectors("clarification")))
    assert found == FOUND
    assert set(found) - {"agree"} == set(WHY)


def test_where_both_have_an_option_for_it_it_is_the_same_one() -> None:
    compared = 0
    for vector in vectors("clarification"):
        theirs = vector["output"]["decision"].get("recommendedOption")
        if theirs is not None and ruling_on(vector).action != "invalid":
            assert recommended(question_of(vector)) == theirs, vector["id"]
            compared += 1
    assert compared == 24


def test_the_original_never_asks_what_is_not_asked_here_but_for_options_without_a_name() -> None:
    for vector in vectors("clarification"):
        if vector["output"]["decision"]["action"] == "ask" and ruling_on(vector).action != "ask":
            assert difference(vector) == "no option without a name", vector["id"]
