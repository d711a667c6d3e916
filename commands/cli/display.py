"""Progress while a run is driven, on standard error: a live table on a terminal, one line per change elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import click

from commands.render.words import safe, seconds
from projections.gate.progress import Progress, ProgressGroup, gate_progress
from projections.registry import RunViews

if TYPE_CHECKING:
    from rich.table import Table

MOST_ROWS = 16


class Display(Protocol):
    """Shows where a run stands while it is driven."""

    def note(self, line: str) -> None:
        """Say something once."""

    def changed(self, views: RunViews) -> None:
        """Show the run as it is now."""


class LineDisplay:
    """One line for each change of a group's state; for logs."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def note(self, line: str) -> None:
        click.echo(safe(line), err=True)

    def changed(self, views: RunViews) -> None:
        progress = gate_progress(views.run, views.gate, datetime.now(UTC))
        for group in progress.groups:
            if group.state != self._states.get(group.id, "pending"):
                click.echo(_change(progress, group), err=True)
            self._states[group.id] = group.state


def _change(progress: Progress, group: ProgressGroup) -> str:
    took = f" after {_elapsed(group)}" if group.state != "running" else ""
    return f"[{progress.completed}/{progress.total}] {group.id} {group.state}{took}"


def _elapsed(group: ProgressGroup) -> str:
    return "" if group.elapsed_ms is None else seconds(group.elapsed_ms / 1000)


class LiveDisplay:
    """A table that is drawn again in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)

    def start(self) -> None:
        """Begin to draw."""
        self._live.start()

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()

    def note(self, line: str) -> None:
        self._console.print(safe(line), markup=False)

    def changed(self, views: RunViews) -> None:
        self._live.update(_table(gate_progress(views.run, views.gate, datetime.now(UTC))))


def _table(progress: Progress) -> "Table":
    from rich.table import Table

    failed = f", {progress.failed} with failures" if progress.failed else ""
    table = Table(title=f"{progress.completed} of {progress.total} jobs done{failed}", title_justify="left", box=None)
    for heading in ("job", "state", "where", "time"):
        table.add_column(heading, justify="right" if heading == "time" else "left")
    running = [group for group in progress.groups if group.state == "running"]
    others = [group for group in progress.groups if group.state != "running"]
    shown = [*running, *others][:MOST_ROWS]
    for group in shown:
        table.add_row(safe(group.id), group.state, safe(group.host or ""), _elapsed(group))
    if len(progress.groups) > len(shown):
        table.add_row(f"... and {len(progress.groups) - len(shown)} more", "", "", "")
    return table


@contextmanager
def open_display(as_json: bool) -> Iterator[Display]:
    """The display that suits standard error; with `--json` always lines."""
    if as_json or not sys.stderr.isatty():
        yield LineDisplay()
        return
    display = LiveDisplay()
    display.start()
    try:
        yield display
    finally:
        display.close()
