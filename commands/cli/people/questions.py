"""The commands about questions to people: questions, answer."""

import click

from commands.cli.common import (
    at_option,
    emit_json,
    emit_lines,
    home,
    json_option,
    reading_home,
    run_argument,
    store_option,
    width,
)
from commands.cli.exits import ExitCode
from commands.people import questioning
from commands.render.people.questions import answered_lines, question_lines
from ledger.events import AnswerOutcome


@click.command(short_help="What a run asked people, and what became of it.")
@run_argument
@at_option
@json_option
@store_option
def questions(run: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """What the steps of a run asked people: what is open, with the time that is left, and what became of the rest.

    The exit code says whether an answer is waited for.
    """
    found = questioning.questions(reading_home(store), run, at)
    if as_json:
        emit_json(found)
    else:
        emit_lines(question_lines(found, width()))
    return ExitCode.WAITING if found.open else ExitCode.PASSED


@click.command(short_help="Answer a question of a run.")
@click.argument("question")
@click.argument("rest", nargs=-1, metavar="[OPTION] [RUN]")
@click.option("--text", metavar="TEXT", help="Answer in words of your own instead of with one of the options.")
@click.option("--defer", is_flag=True, help="Put the question off: nothing is chosen.")
@click.option("--cancel", is_flag=True, help="Call the question off: nothing is chosen.")
@json_option
@store_option
def answer(
    question: str,
    rest: tuple[str, ...],
    text: str | None,
    defer: bool,
    cancel: bool,
    as_json: bool,
    store: str | None,
) -> ExitCode:
    """Answer QUESTION (such as question-1) with OPTION, the label of one of its options, or in another way.

    It can be answered until it is closed, a parked one also later. RUN is a run id, a prefix of one, or `latest`.
    """
    others: dict[AnswerOutcome, bool] = {"text": text is not None, "deferred": defer, "cancelled": cancel}
    given: list[AnswerOutcome] = [outcome for outcome, wanted in others.items() if wanted]
    if len(given) > 1:
        raise click.UsageError("only one of --text, --defer and --cancel can be given")
    choice, *runs = rest if rest and not given else ("", *rest)
    if len(runs) > 1 or not (given or rest):
        raise click.UsageError("give either the label of one option, or one of --text, --defer and --cancel; then RUN")
    outcome: AnswerOutcome = given[0] if given else "choice"
    run = runs[0] if runs else "latest"
    answered = questioning.answer(home(store), run, question, outcome, choice, text or "")
    if as_json:
        emit_json(answered)
    else:
        emit_lines(answered_lines(answered, width()))
    return ExitCode.WAITING if answered.outcome == "unreadable" else ExitCode.PASSED
