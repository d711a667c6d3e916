"""The commands that drive a run: gate, resume, stop."""

import click

from commands.cli.common import (
    at_option,
    emit_json,
    emit_lines,
    home,
    json_option,
    reader_may_go,
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
    return _finish(summary, as_json)


@click.command()
@run_argument
@click.option("--from", "step", required=True, metavar="STEP", help="The step to take up again, such as gate.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, take no lock and write nothing.")
@at_option
@json_option
@store_option
def resume(run: str, step: str, dry_run: bool, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Take a run up again: only what is still owed is run.

    What was measured stands. A run that is finished but left something unmeasured gets its rounds anew. With --dry-run,
    --at tells what resuming would have done then.
    """
    from commands import gating
    from commands.cli.display import open_display
    from commands.render.resume import resume_lines

    if at is not None and not dry_run:
        raise click.UsageError("the past cannot be resumed; --at goes with --dry-run")
    place = home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
    if dry_run:
        plan = gating.dry_run(place, name, step, at)
        if as_json:
            emit_json(plan)
        else:
            emit_lines(resume_lines(plan, width()))
        return ExitCode.PASSED
    with open_display(as_json) as display:
        summary = gating.resume_gate(place, name, step, display)
    return _finish(summary, as_json)


@click.command()
@run_argument
@json_option
@store_option
def stop(run: str, as_json: bool, store: str | None) -> ExitCode:
    """Ask the driver of a run to stop.

    Waits until it has. What was measured stands, and the run can be resumed.
    """
    from commands.render.summary import state_lines
    from commands.stopping import stop_run

    place = home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
    summary = stop_run(place, name)
    if as_json:
        emit_json(summary)
    else:
        emit_lines(state_lines(summary, width()))
    return ExitCode.PASSED


def _finish(summary: RunSummary, as_json: bool) -> ExitCode:
    from commands.render.summary import summary_lines

    with reader_may_go():
        if as_json:
            emit_json(summary)
        else:
            say("")
            emit_lines(summary_lines(summary, width()))
    return of_run(summary)
