"""The commands that set a repository up: init, config."""

import click

from commands.cli.common import emit_json, emit_lines, home, json_option, say, store_option
from commands.cli.exits import ExitCode


@click.command()
@json_option
def init(as_json: bool) -> ExitCode:
    """Write a commented ledger.toml for this repository."""
    from commands.initializing import initialize

    written = initialize(home(None))
    if as_json:
        emit_json(written)
    else:
        say(f"wrote {written.file}: runner {written.runner} ({written.reason})")
        say("next: ledger gate")
    return ExitCode.PASSED


@click.command()
@json_option
@store_option
def config(as_json: bool, store: str | None) -> ExitCode:
    """Every setting with its value and where the value comes from."""
    from commands.config.keys import RULES
    from commands.render.settings import setting_lines

    place = home(store)
    loaded = place.loaded
    if as_json:
        settings = {key: {"value": loaded.value(key), "origin": loaded.origin(key)} for key in RULES}
        emit_json({"settings": settings, "store": str(place.directory)})
    else:
        emit_lines(setting_lines(RULES, loaded.value, loaded.origin, place.directory))
    return ExitCode.PASSED
