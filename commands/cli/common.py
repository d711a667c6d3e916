"""What the commands share: options, where text goes, and how the repository and the ledger are found."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
import msgspec

from commands.cli.failures import DirectoryGone, OutputFailed
from commands.config.sources import ConfigInvalid
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


def at_option(function: Function) -> Function:
    """`--at`: look at the past. A shell takes `#` for the beginning of a comment, hence the quotes."""
    return click.option(
        "--at",
        metavar="MOMENT",
        help="As it was at a position in the run ('#17'), a sequence in the ledger (@1234), or a time "
        "('2030-01-31 13:00', UTC unless it has an offset).",
    )(function)


def refuse_both(option: str, value: object, other: str, other_value: object) -> None:
    """Raise a usage error when both options are given, because they contradict each other."""
    if value not in (None, False) and other_value not in (None, False):
        raise click.UsageError(f"{option} and {other} cannot be given together")


def run_argument(function: Function) -> Function:
    """`RUN`: a run id, a prefix of one, or `latest`."""
    return click.argument("run", default="latest", metavar="[RUN]")(function)


def home(store: str | None, **flags: Any) -> Home:
    """The repository around the current directory, its settings and its ledger."""
    return find_home(_here(), {"store": store, **flags})


def reading_home(store: str | None) -> Home:
    """As `home`, for what only reads or ends: settings that cannot be used must not keep anybody from that."""
    try:
        return home(store)
    except ConfigInvalid as broken:
        place = find_home(_here(), {"store": store}, files=False)
        say(f"the settings are not used: {broken.message}")
        return place


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise DirectoryGone("the current directory does not exist any more", "change to another one") from None


def json_text(document: Any) -> str:
    """A document as JSON: in ASCII, so that neither the terminal's encoding nor a path that is no text can spoil it."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"))


def emit_json(document: Any) -> None:
    """One JSON document on standard output."""
    _write(json_text(document))


def emit_lines(lines: list[str]) -> None:
    """Text for people on standard output."""
    _write("\n".join(lines))


def emit_pieces(pieces: Iterable[str]) -> None:
    """Text for programs on standard output, piece by piece and in UTF-8, whatever the terminal's encoding is."""
    for piece in pieces:
        _write(piece.encode(), newline=False)


def _write(text: str | bytes, *, newline: bool = True) -> None:
    """Write and flush. Raises OutputFailed, and BrokenPipeError when the reader has gone."""
    try:
        click.echo(text, nl=newline)
    except BrokenPipeError:
        raise
    except OSError as failure:
        silence(sys.stdout)
        raise OutputFailed(
            f"standard output cannot be written: {failure.strerror}", "the ledger has the answer: `ledger status`"
        ) from failure


def say(line: str) -> None:
    """One line for people on standard error; whatever it quotes cannot control the terminal.

    When nobody can hear it any more it is lost: that must not end what runs.
    """
    try:
        click.echo(safe(line), err=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what is still written to this stream go nowhere, also when the interpreter flushes it at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def reader_may_go() -> Iterator[None]:
    """A reader that has gone (`ledger log | head`) has what it wanted; the exit code stays what it is."""
    try:
        yield
    except BrokenPipeError:
        silence(sys.stdout)


def terminal_width() -> int | None:
    """The columns of the terminal, or of COLUMNS; None where there is neither."""
    return shutil.get_terminal_size((0, 0)).columns or None


def width() -> int:
    """The columns of the terminal, or of COLUMNS; wide where there is neither, so that logs keep their lines."""
    return shutil.get_terminal_size((160, 24)).columns
