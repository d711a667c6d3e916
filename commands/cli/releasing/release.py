"""The commands that start, list, show and check releases: `ledger release ...`, `ledger archives`."""

from typing import Literal

import click

from commands.cli.common import (
    at_option,
    emit_json,
    emit_lines,
    emit_pieces,
    home,
    json_option,
    reading_home,
    run_argument,
    say,
    store_option,
    width,
)
from commands.cli.exits import ExitCode


@click.group(short_help="Releases: start one, list them, show one, check the steps.")
def release() -> None:
    """Releases: a version is cut, checked, gated, prepared, approved and published in the steps of `ledger.toml`.

    `ledger resume --from STEP` takes one up again; docs/releases.md tells of all of it.
    """


@release.command()
@click.argument("version")
@click.option("--cut", metavar="REF", help="Release this commit (default: HEAD).")
@click.option("--branch", is_flag=True, help="Cut it as the branch release/VERSION on the remote.")
@click.option("--baseline", metavar="REF", help="Compare with this commit instead of the one that is chosen.")
@click.option(
    "--prerelease",
    type=click.Choice(["rc", "alpha", "beta"]),
    help="A prerelease of VERSION, with the next free number; needs --branch.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be started; take no lock and write nothing.")
@json_option
@store_option
def start(
    version: str,
    cut: str | None,
    branch: bool,
    baseline: str | None,
    prerelease: Literal["rc", "alpha", "beta"] | None,
    dry_run: bool,
    as_json: bool,
    store: str | None,
) -> ExitCode:
    """Start the release of VERSION (x.y.z) and take it as far as it goes without a person."""
    from commands.cli.display import open_display
    from commands.cli.releasing.told import finish, started
    from commands.releasing import run as releasing

    place = home(store)
    message, config, graph = releasing.start_message(
        place, version, cut=cut, branch=branch, baseline=baseline, prerelease=prerelease
    )
    if dry_run:
        started(message, place.loaded.settings.graph, as_json)
        return ExitCode.PASSED
    with open_display(as_json) as display:
        views = releasing.start_release(place, message, (config, graph), display)
    return finish(place, views.run.run, as_json)


@release.command(name="list")
@json_option
@store_option
def list_releases(as_json: bool, store: str | None) -> ExitCode:
    """List the releases of this ledger, the newest first."""
    from commands.cli.releasing.told import release_summaries
    from commands.render.release.summary import list_lines
    from projections.release.summary import row_of

    summaries = release_summaries(reading_home(store))
    if as_json:
        emit_json({"releases": [row_of(one) for one in summaries]})
    else:
        emit_lines(list_lines(summaries, width()) or ["no release yet; `ledger release start VERSION` starts one"])
    return ExitCode.PASSED


@release.command()
@run_argument
@at_option
@json_option
@store_option
def show(run: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Show a release: what was let pass first, every step with every attempt, archives, approvals, what to do next."""
    from commands.cli.releasing.told import emit_summary, release_of, summary_of

    place = reading_home(store)
    emit_summary(summary_of(place, release_of(place, run), at), as_json)
    return ExitCode.PASSED


@release.command()
@json_option
@store_option
def check(as_json: bool, store: str | None) -> ExitCode:
    """Check the steps in the settings for contradictions."""
    from commands.render.release.plan import contradiction_lines
    from projections.release.graph import contradictions

    graph = home(store).loaded.settings.graph
    found = contradictions(graph)
    if as_json:
        emit_json({"steps": graph, "contradictions": found})
    elif found:
        emit_lines(contradiction_lines(found, width()))
    else:
        emit_lines([f"{len(graph.steps)} steps, and nothing contradicts: {', '.join(graph.names())}"])
    return ExitCode.USAGE if found else ExitCode.PASSED


@release.command()
@click.argument("version")
@click.option(
    "--pick",
    "picks",
    multiple=True,
    required=True,
    metavar="SHA",
    help="A commit of the main branch; several in order.",
)
@click.option("--dry-run", is_flag=True, help="Try it and push nothing.")
@json_option
@store_option
def repair(version: str, picks: tuple[str, ...], dry_run: bool, as_json: bool, store: str | None) -> ExitCode:
    """Repair the branch of a release: pick commits that landed on the main branch onto it, and push.

    It is never forced. `ledger resume` then finds that the tip has moved, and runs again what does not count any more.
    """
    from commands.cli.releasing.told import release_of, step_to_resume_from
    from commands.releasing.run import repair_release
    from commands.render.words import count, short

    place = home(store)
    name = release_of(place, version)
    done = repair_release(place, name, picks, dry_run=dry_run)
    if as_json:
        emit_json(done)
        return ExitCode.PASSED
    picked = count(len(done.picked), "commit")
    if done.commit is None:
        lines = [f"{picked} can be picked onto {done.branch}, which is at {short(done.tip)}; nothing was pushed"]
    elif done.existing:
        lines = [f"{done.branch} ends in exactly these already, at {short(done.tip)}"]
    else:
        lines = [f"{picked} picked onto {done.branch}: {short(done.tip)} -> {short(done.commit)}"]
        lines.append(f"next: ledger resume {name} --from {step_to_resume_from(place, name, done.commit)} --dry-run")
    emit_lines(lines)
    return ExitCode.PASSED


@release.command()
@click.argument("step")
@run_argument
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt at it (default: the newest).")
@store_option
def output(step: str, run: str, attempt: int | None, store: str | None) -> ExitCode:
    """Print what STEP of a release printed, as far as it was kept; what it wrote on standard error goes there."""
    from commands.cli.releasing.told import printed_by, release_of

    place = reading_home(store)
    said, complained = printed_by(place, release_of(place, run), step, attempt)
    emit_pieces([said])
    for line in complained.splitlines():
        say(line)
    return ExitCode.PASSED


@click.command(short_help="The archives of a release, where they are, and what was set aside.")
@run_argument
@json_option
@store_option
def archives(run: str, as_json: bool, store: str | None) -> ExitCode:
    """List the archives of a release: the one that counts, earlier ones, and those that were set aside and why.

    Nothing is ever deleted by this program.
    """
    from commands.cli.releasing.told import release_of, summary_of
    from commands.render.release.summary import archive_lines

    place = reading_home(store)
    summary = summary_of(place, release_of(place, run), None)
    if as_json:
        emit_json({"release": summary.release, "archives": summary.archives})
    else:
        emit_lines(archive_lines(summary, width()) or ["nothing was prepared yet"])
    return ExitCode.PASSED
