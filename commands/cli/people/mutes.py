"""The commands about muted tests: mute, unmute, mutes."""

import click

from commands.cli.common import at_option, emit_json, emit_lines, home, json_option, store_option, width
from commands.cli.exits import ExitCode
from commands.people import muting
from commands.render.people.mutes import mute_lines, muted_lines, unmuted_lines


@click.command(short_help="Let a test fail without blocking, for a while.")
@click.argument("test")
@click.option("--owner", required=True, metavar="WHO", help="Who will repair it.")
@click.option("--reason", required=True, metavar="TEXT", help="Why it may fail until then; an issue, for example.")
@click.option("--expires", required=True, metavar="DATE|DAYS", help="The last day (2030-01-31), or how many days.")
@click.option(
    "--env",
    "conditions",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only where the candidate is tested in such an environment: platform, architecture, python, or a variable "
    "that the tests see. A VALUE that ends in * is a beginning. Several must all hold.",
)
@json_option
@store_option
def mute(
    test: str,
    owner: str,
    reason: str,
    expires: str,
    conditions: tuple[str, ...],
    as_json: bool,
    store: str | None,
) -> ExitCode:
    """Mute TEST, a test as `ledger status` prints it; without a variant in brackets, all of its variants.

    It still runs. While the muting is valid its failures are shown and do not block. It must run for that: a muted test
    that vanished, is skipped or could not be measured counts as if it were not muted.
    """
    environment = dict(map(_condition, conditions))
    if len(environment) < len(conditions):
        raise click.UsageError("--env: a name can have one value only")
    muted = muting.mute(home(store), test, owner, reason, muting.last_day(expires), environment)
    if as_json:
        emit_json(muted)
    else:
        emit_lines(muted_lines(muted, width()))
    return ExitCode.PASSED


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise click.UsageError(f"--env: {text!r} is not NAME=VALUE")
    return name, value


@click.command(short_help="Take a muting back.")
@click.argument("test")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is taken back.")
@json_option
@store_option
def unmute(test: str, reason: str, as_json: bool, store: str | None) -> ExitCode:
    """Let TEST block again; TEST is what was muted, or the name of the muting, such as mute-3."""
    unmuted = muting.unmute(home(store), test, reason)
    if as_json:
        emit_json(unmuted)
    else:
        emit_lines(unmuted_lines(unmuted, width()))
    return ExitCode.PASSED


@click.command(short_help="What is muted, by whom, why and until when.")
@at_option
@json_option
@store_option
def mutes(at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """What is muted, by whom, why and until when, and which mutings could be taken back.

    That is proposed for a test that has passed in `mutes.passes` runs in a row since it was muted, and never done by
    itself; nor is anything ever muted by itself.
    """
    found = muting.mutes(home(store), at)
    if as_json:
        emit_json(found)
    else:
        emit_lines(mute_lines(found, width()))
    return ExitCode.PASSED
