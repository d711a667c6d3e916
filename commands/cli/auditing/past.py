"""The commands that look back: show, replay, diff. They change nothing and take no lock."""

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
from commands.cli.show import show_release
from commands.reconsider import Reconsideration, reconsider
from commands.render.diff import diff_lines
from commands.render.replay import reconsidered_lines, replay_lines
from commands.render.story import story_lines
from commands.replay import replay as replayed
from commands.replay import summed_up
from commands.wiring import OpenLedger
from ledger.events import GatePolicy
from projections.run.diff import ComparedRun, diff_runs
from projections.run.story import tell_story


@click.command()
@run_argument
@click.option(
    "--policy",
    type=click.Choice(["recorded", "current"]),
    default="recorded",
    help="The rules to decide by: those of the run, or for its verdicts those that are in force today.",
)
@at_option
@json_option
@store_option
def replay(run: str, policy: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Every decision of a run, taken again.

    Each is taken from its stored message, the events before it and the rules that it was recorded under.

    \b
    Exit codes:
      0  all decisions agree
      7  a decision comes out otherwise than it is recorded
      3  none does, but some cannot be derived again in this build

    With --policy current the verdicts are decided again by today's rules on the evidence of then. The answer is news,
    not an error: the exit code is 0, or 3 when it cannot be derived.
    """
    # Today's rules are those of the settings, which then have to be usable.
    place = home(store) if policy == "current" else reading_home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        past = opened.past(name, at)
        until = past.position if past else None
        if policy == "current":
            return _reconsider(opened, name, place.loaded.settings.policy, until, as_json)
        report = summed_up(name, replayed(opened.events(name, 0), opened.evidence, until))
    if as_json:
        emit_json(report)
    else:
        emit_lines(replay_lines(report, width()))
    return {"agree": ExitCode.PASSED, "disagree": ExitCode.INTEGRITY, "not-derivable": ExitCode.UNMEASURED}[
        report.outcome
    ]


def _reconsider(opened: OpenLedger, run: str, rules: GatePolicy, until: int | None, as_json: bool) -> ExitCode:
    verdicts = tuple(reconsider(opened.events(run, 0), opened.evidence, rules, until))
    found = Reconsideration(run=run, verdicts=verdicts)
    if as_json:
        emit_json(found)
    else:
        emit_lines(reconsidered_lines(found, width()))
    return ExitCode.PASSED if all(verdict.derivable for verdict in verdicts) else ExitCode.UNMEASURED


@click.command()
@click.argument("left", metavar="RUN")
@click.argument("right", metavar="[RUN]", default="latest")
@at_option
@json_option
@store_option
def diff(left: str, right: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Two runs side by side.

    What they compared, their rules and verdicts, the tests that were judged otherwise, and what they took.
    """
    with reading_home(store).open_ledger() as opened:
        both = [_compared(opened, opened.gate_of(opened.find_run(run)), at) for run in (left, right)]
    difference = diff_runs(*both)
    if as_json:
        emit_json(difference)
    else:
        emit_lines(diff_lines(difference, width()))
    return ExitCode.PASSED


def _compared(opened: OpenLedger, run: str, at: str | None) -> ComparedRun:
    views = opened.views(run, opened.past(run, at))
    return ComparedRun(views, opened.class_table(views))


@click.command()
@run_argument
@at_option
@json_option
@store_option
def show(run: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """The whole story of a run on one page.

    What was compared and why, under which rules, who drove it, every attempt with its evidence, and every verdict.
    """
    place = reading_home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        if opened.is_release(name):
            return show_release(place, name, at, as_json)
        story = tell_story(opened.known_events(name, opened.past(name, at)))
    if as_json:
        emit_json(story)
    else:
        emit_lines(story_lines(story, width()))
    return ExitCode.PASSED
