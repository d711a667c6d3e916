"""The command that takes a run up again: a gate, or a release with everything that is decided on the way."""

from typing import TYPE_CHECKING, Literal

import click

from commands.cli.common import at_option, emit_json, emit_lines, home, json_option, run_argument, store_option, width
from commands.cli.exits import ExitCode
from commands.wiring import Home

if TYPE_CHECKING:
    from commands.releasing.run import Request


@click.command()
@run_argument
@click.option("--from", "step", required=True, metavar="STEP", help="The step to take up again, such as gate.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, take no lock and write nothing.")
@click.option("--waive", metavar="STEP", help="Let this step of a release stand as it is; it has not passed then.")
@click.option("--reason", metavar="TEXT", help="Why; with --waive it is published with the release.")
@click.option("--expires", metavar="DATE|DAYS", help="The last day on which the waiver counts (default: no last day).")
@click.option("--accept", metavar="FILE", help='Known issues to ship with, as JSON: [{"id": "...", "note": "..."}].')
@click.option(
    "--partial",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    help="Whether a gate of a moved tip may take over what only changed tests cannot have changed.",
)
@click.option(
    "--reroute",
    metavar="SHARD|auto",
    help="This shard of the gate goes to another member of the pool (3 means pod-3).",
)
@click.option("--allow-attempt", is_flag=True, help="One more attempt than allowed; needs --reason.")
@at_option
@json_option
@store_option
def resume(
    run: str,
    step: str,
    dry_run: bool,
    waive: str | None,
    reason: str | None,
    expires: str | None,
    accept: str | None,
    partial: Literal["auto", "yes", "no"],
    reroute: str | None,
    allow_attempt: bool,
    at: str | None,
    as_json: bool,
    store: str | None,
) -> ExitCode:
    """Take a run up again: only what is still owed is run.

    What was measured stands. A run that is finished but left something unmeasured gets its rounds anew. With --dry-run,
    --at tells what resuming would have done then.

    A release goes on with the commit that its branch has now. Steps whose results do not count on it, or that need one
    that is run again, are run again; all else is kept. Everything is decided before anything changes.
    """
    if at is not None and not dry_run:
        raise click.UsageError("the past cannot be resumed; --at goes with --dry-run")
    if reroute is not None and (partial == "yes" or not reroute.strip()):
        raise click.UsageError("--reroute names a shard, or auto, and excludes --partial yes")
    place = home(store)
    release = _release(place, run)
    if release:
        from commands.people.muting import last_day
        from commands.releasing.run import Request

        if expires is not None and waive is None:
            raise click.UsageError("--expires goes with --waive")
        request = Request(
            waive=waive,
            reason=reason,
            expires=last_day(expires) if expires else "",
            accept=_issues(accept),
            partial=partial,
            reroute=(reroute or "").strip(),
            allow_attempt=allow_attempt,
        )
        return _resume_release(place, release, step, request, dry_run=dry_run, at=at, as_json=as_json)
    if any((waive, reason, expires, accept, allow_attempt, reroute)):
        options = "--waive, --reason, --expires, --accept, --reroute and --allow-attempt"
        raise click.UsageError(f"{options} are for releases; this run is a gate")
    return _resume_gate(place, run, step, dry_run=dry_run, at=at, as_json=as_json)


def _release(place: Home, wanted: str) -> str:
    """The release that is meant, "" when a gate is."""
    from commands.cli.releasing.told import find_release

    with place.open_ledger() as opened:
        if wanted not in ("", "latest"):
            found = find_release(opened, wanted)
            return found if any(found == name for name, _ in opened.releases()) else ""
        newest = opened.find_run(wanted)
        parent = opened.release_of(newest)
        return parent or next((name for name, _ in opened.releases() if name == newest), "")


def _resume_gate(place: Home, run: str, step: str, *, dry_run: bool, at: str | None, as_json: bool) -> ExitCode:
    from commands import gating
    from commands.cli.display import open_display
    from commands.cli.gate import finish_gate
    from commands.render.resume import resume_lines

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
    return finish_gate(summary, as_json)


def _resume_release(
    place: Home,
    release: str,
    step: str,
    request: "Request",
    *,
    dry_run: bool,
    at: str | None,
    as_json: bool,
) -> ExitCode:
    from commands.cli.display import open_display
    from commands.cli.releasing.told import finish
    from commands.releasing import run as releasing
    from commands.render.release.plan import plan_lines

    message = releasing.resume_message(place, release, step, at, request)
    if dry_run:
        plan = releasing.dry_run(place, message, at)
        if as_json:
            emit_json(plan)
        else:
            emit_lines(plan_lines(plan, width()))
        return ExitCode.PASSED
    with open_display(as_json) as display:
        releasing.resume_release(place, message, display)
    return finish(place, release, as_json)


def _issues(file: str | None) -> tuple[tuple[str, str], ...]:
    """The known issues that a file lists. Raises a usage error for a file that does not."""
    import json

    if file is None:
        return ()
    try:
        with open(file, "rb") as source:
            found = json.load(source)
    except OSError as problem:
        raise click.UsageError(f"--accept: {file} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise click.UsageError(f"--accept: {file} is no JSON: {problem}") from problem
    listed = isinstance(found, list) and all(
        isinstance(one, dict)
        and one.keys() == {"id", "note"}
        and all(isinstance(value, str) and value.strip() for value in one.values())
        for one in found
    )
    if not listed:
        raise click.UsageError(f'--accept: {file} is no list of {{"id": "...", "note": "..."}} with texts in them')
    return tuple((one["id"].strip(), one["note"].strip()) for one in found)
