"""The command that tells where the time of a run went: timing."""

import click

from commands.cli.common import at_option, emit_json, emit_lines, home, json_option, run_argument, store_option, width
from commands.cli.exits import ExitCode
from commands.config.keys import convert
from commands.render.measures.timing import timing_lines
from projections.run.timing import RunTiming, time_run

_ANSWERS = {None: ExitCode.PASSED, "met": ExitCode.PASSED, "missed": ExitCode.FAILED}


@click.command(short_help="Where the time of a run went, and whether it met its target.")
@run_argument
@click.option("--target", metavar="TIME", help="The time that it may take, such as 10m (default: that of its plan).")
@at_option
@json_option
@store_option
def timing(run: str, target: str | None, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Where the time of a run went, what was planned for it, and whether it met its target.

    Times in which no driver lived are not counted. With a target the exit code is 0 when it was met, 1 when it was
    missed, and 3 when nobody can tell.
    """
    target_seconds = _target_seconds(target)
    with home(store).open_ledger() as opened:
        name = opened.gate_of(opened.find_run(run))
        past = opened.past(name, at)
        events = opened.known_events(name, past)
        answer = time_run(events, target_seconds=target_seconds, as_of=past.as_of if past else "")
    if as_json:
        emit_json(answer)
    else:
        emit_lines(timing_lines(answer, width()))
    return exit_code(answer)


def exit_code(answer: RunTiming) -> ExitCode:
    """0 without a target or when it was met, 1 when it was missed, 3 when nobody can tell."""
    return _ANSWERS.get(answer.target, ExitCode.UNMEASURED)


def _target_seconds(text: str | None) -> float | None:
    """A time, written as in the configuration. Raises a usage error."""
    if text is None:
        return None
    try:
        seconds: float = convert("plan.target_seconds", text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise click.UsageError(
            f"--target is {text[:80]!r}; allowed: whole seconds above 0, or a time such as 90s, 10m or 1.5h"
        )
    return seconds
