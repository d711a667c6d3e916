"""The page about questions says what the program does."""

import json
import re
from pathlib import Path
from typing import get_args

from commands.causes import QUESTIONS, REFUSALS
from commands.config.keys import RULES
from commands.config.load import Loaded
from commands.config.settings import Settings
from commands.effects.people.notify import HOOK_LIMIT_SECONDS, question_notice
from ledger.events import AnswerOutcome, AssumeReason, DeferReason
from projections.people.questions import DEADLINE_MINUTES_MAX, DEADLINE_MINUTES_MIN, TEXT_MAX
from tests.support.makers import RUN, question_asked, views_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "questions.md").read_text("utf-8")
SESSION = (ROOT / "tests" / "golden" / "cli" / "questions.txt").read_text("utf-8")


def section(heading: str) -> str:
    """What stands below a heading."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def cells(heading: str, column: int) -> set[str]:
    """What stands in backquotes alone in one column of the table below a heading."""
    rows = [line.split("|") for line in section(heading).splitlines() if line.startswith("| ")]
    return {found[1] for row in rows if (found := re.fullmatch(r" `([\w.-]+)` ", row[column]))}


def test_every_code_about_questions_is_listed_and_no_other() -> None:
    assert cells("What is refused", 1) == {code for code in REFUSALS if "question" in code or "option" in code}


def test_every_reason_why_nobody_is_asked_is_listed_and_can_be_explained() -> None:
    reasons = {*get_args(AssumeReason), *get_args(DeferReason)}
    assert cells("Whether people are asked", 3) == {*reasons, "question-invalid"}
    assert reasons == set(QUESTIONS)


def test_every_kind_of_answer_is_listed() -> None:
    assert cells("How to answer", 2) == {*get_args(AnswerOutcome)} - {"unreadable"}
    assert f"longer than {TEXT_MAX} characters" in section("How to answer")
    assert "`unreadable`" in section("How to answer")


def test_every_limit_is_listed_with_its_default() -> None:
    defaults = Loaded(Settings(), {})
    keys = {key for key in RULES if key.startswith("questions.")}
    assert cells("When nobody answers", 1) == keys
    for key in keys:
        assert f"| `{key}` | {defaults.value(key)} |" in PAGE
    assert f"{DEADLINE_MINUTES_MIN} to {DEADLINE_MINUTES_MAX}" in PAGE


def test_what_a_program_reads_is_what_the_page_shows() -> None:
    record = views_of(question_asked()).questions.questions["question-1"]
    (document,) = re.findall(r"```json\n(.*)\n```", PAGE)
    notice = question_notice(RUN, record)
    assert json.loads(document) == {
        name: list(value) if isinstance(value := getattr(notice, name), tuple) else value
        for name in notice.__struct_fields__
    }
    assert f"within {HOOK_LIMIT_SECONDS:g} seconds" in PAGE


def test_the_session_is_one_that_was_recorded() -> None:
    session = PAGE.partition("```console\n")[2].partition("```")[0]
    for part in session.split("$ ledger ")[1:]:
        _, _, shown = part.partition("\n")
        shown = shown.rstrip("\n").replace("by         ann", "by         somebody")
        assert f"\n{shown}\n--- exit code " in SESSION, shown
