"""The command that tells what is known of the targets: usage."""

import click

from commands.cli.common import at_option, emit_json, emit_lines, home, json_option, store_option, width
from commands.cli.exits import ExitCode
from commands.render.measures.usage import usage_lines
from projections.history.needs import needs_of

MOST_TARGETS = 20


@click.command(short_help="What each target needs, as far as it was measured.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=MOST_TARGETS,
    show_default=True,
    metavar="N",
    help="So many targets, those that take longest first; 0 for all.",
)
@at_option
@json_option
@store_option
def usage(top: int, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """What each target needs, over all runs: time, peak memory, and how well that is known.

    The next gate is planned by it. Memory is a target's own where it ran alone, else a bound.
    """
    with home(store).open_ledger() as opened, opened.history(opened.sequence_at(at)) as history:
        known = history.usage()
    needs = needs_of(known.targets, known.session, known.basis, top)
    if as_json:
        emit_json(needs)
    else:
        emit_lines(usage_lines(needs, width()))
    return ExitCode.PASSED
