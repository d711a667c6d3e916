"""What the commands share: options, where text goes, and how the repository and the ledger are found."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from commands.render.words import safe
from commands.wiring import Home, find_home

Function = TypeVar("Function", bound=Callable[..., Any])


def json_option(function: Function) -> Function:
    """`--json`: one document on standard output; text for people goes to standard error."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(function)


def store_option(function: Function) -> Function:
    """`--store`: another place for the ledger."""
    return click.option(
        "--store", metavar="PATH", help="Where the ledger is (default: in the repository's .git directory)."
    )(function)


def run_argument(function: Function) -> Function:
    """`RUN`: a run id, a prefix of one, or `latest`."""
    return click.argument("run", default="latest", metavar="[RUN]")(function)


def home(store: str | None, **flags: Any) -> Home:
    """The repository around the current directory, its settings and its ledger."""
    return find_home(Path.cwd(), {"store": store, **flags})


def emit_json(document: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def emit_lines(lines: list[str]) -> None:
    """Text for people on standard output."""
    click.echo("\n".join(lines))


def say(line: str) -> None:
    """One line for people on standard error; whatever it quotes cannot control the terminal."""
    click.echo(safe(line), err=True)


def width() -> int:
    """The columns of the terminal; wide where there is none, so that logs keep their lines."""
    return shutil.get_terminal_size((110, 24)).columns if sys.stdout.isatty() else 160
