"""The commands by which people decide on a release: approve, reject."""

from typing import Literal

import click

from commands.cli.common import home, json_option, run_argument, store_option
from commands.cli.exits import ExitCode


@click.command(short_help="Approve of what a release waits for.")
@run_argument
@click.option("--step", metavar="STEP", help="Which approval, where there are several.")
@click.option("--by", metavar="WHO", help="Who approves (default: your account).")
@click.option("--reason", metavar="TEXT", default="", help="Why.")
@click.option("--commit", metavar="SHA", help="The commit that you looked at; refused when it is another one by now.")
@json_option
@store_option
def approve(
    run: str, step: str | None, by: str | None, reason: str, commit: str | None, as_json: bool, store: str | None
) -> ExitCode:
    """Approve of exactly what was shown: the commit, the archive, what was waived, accepted and muted.

    The release goes on with `ledger resume --from STEP`. The approval does not hold any more when any of that changes.
    """
    return _answer(run, "approved", step, by, reason, as_json, store, commit)


@click.command(short_help="Reject what a release waits for.")
@run_argument
@click.option("--step", metavar="STEP", help="Which approval, where there are several.")
@click.option("--by", metavar="WHO", help="Who rejects (default: your account).")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@json_option
@store_option
def reject(run: str, step: str | None, by: str | None, reason: str, as_json: bool, store: str | None) -> ExitCode:
    """Reject what was shown. The release has failed then, until it is taken up again."""
    return _answer(run, "rejected", step, by, reason, as_json, store)


def _answer(
    run: str,
    decision: Literal["approved", "rejected"],
    step: str | None,
    by: str | None,
    reason: str,
    as_json: bool,
    store: str | None,
    commit: str | None = None,
) -> ExitCode:
    from commands.cli.releasing.told import emit_summary, release_of, summary_of
    from commands.releasing.run import answer_approval
    from commands.wiring import open_desk

    place = home(store)
    name = release_of(place, run)
    with open_desk(place) as desk:
        answer_approval(desk, name, decision, by or desk.who, reason, step, commit)
    emit_summary(summary_of(place, name, None), as_json)
    return ExitCode.PASSED
