"""The commands that drive a gate: gate, stop."""

import click

from commands.cli.common import (
    emit_json,
    emit_lines,
    home,
    json_option,
    reader_may_go,
    reading_home,
    run_argument,
    say,
    store_option,
    width,
)
from commands.cli.exits import ExitCode, of_run
from projections.run.summary import RunSummary


@click.command()
@click.argument("ref", default="HEAD")
@click.option("--baseline", metavar="REF", help="Compare with this commit instead of the one that is chosen.")
@json_option
@store_option
def gate(ref: str, baseline: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Gate the candidate REF (default: HEAD) against its baseline.

    The baseline is the last published release that the ledger knows, else the highest version tag among the
    candidate's ancestors, else its parent. The commits are tested in worktrees of their own; the checkout is not
    touched, and its uncommitted changes are not tested.
    """
    from commands.cli.display import open_display
    from commands.gating import run_gate

    place = home(store)
    with open_display(as_json) as display:
        summary = run_gate(place, ref, baseline, display)
    return finish_gate(summary, as_json)


@click.command()
@run_argument
@json_option
@store_option
def stop(run: str, as_json: bool, store: str | None) -> ExitCode:
    """Ask the driver of a run to stop.

    Waits until it has. What was measured stands, and the run can be resumed.
    """
    from commands.cli.show import show_release
    from commands.render.summary import state_lines
    from commands.stopping import stop_run

    place = reading_home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        # Who drives a release drives its gates, and is asked through the release.
        release = opened.release_of(name) or (name if opened.is_release(name) else "")
    summary = stop_run(place, release or name)
    if release:
        return show_release(place, release, None, as_json)
    if as_json:
        emit_json(summary)
    else:
        emit_lines(state_lines(summary, width()))
    return ExitCode.PASSED


def finish_gate(summary: RunSummary, as_json: bool) -> ExitCode:
    """Tell where a run stands after it was driven, and what the shell is told."""
    from commands.render.summary import summary_lines

    with reader_may_go():
        if as_json:
            emit_json(summary)
        else:
            say("")
            emit_lines(summary_lines(summary, width()))
    return of_run(summary)
