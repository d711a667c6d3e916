"""Progress while a run is driven, on standard error: a live table on a terminal, one line per change elsewhere."""

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from commands.cli.common import say
from commands.gating import Display
from commands.render.progress import changes, standing, time_left
from commands.render.words import count, safe, seconds
from projections.gate.progress import ProgressGroup, gate_progress
from projections.gate.remaining import remaining_time
from projections.registry import RunViews

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

MOST_ROWS = 16

_FIRST = ("running", "failed", "timeout", "unmeasured", "pending", "done")
"""What is looked for first stands first, because a table that is too long loses its end."""


class LineDisplay:
    """One line for each change of a job; for logs."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int, bool]] = set()

    def note(self, line: str) -> None:
        say(line)

    def known(self, views: RunViews) -> None:
        self._told.update(change[:3] for change in changes(views.gate, views.run.policy))

    def changed(self, views: RunViews) -> None:
        progress = gate_progress(views.run, views.gate, datetime.now(UTC))
        for change in changes(views.gate, views.run.policy):
            if change[:3] not in self._told:
                say(f"[{progress.completed}/{progress.total}] {change.job}: {change.words}")
                self._told.add(change[:3])


class LiveDisplay:
    """A table that is drawn again in place. What the terminal refuses must not end what runs."""

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
        with suppress(OSError):
            self._live.stop()

    def note(self, line: str) -> None:
        with suppress(OSError):
            self._console.print(safe(line), markup=False, soft_wrap=True)

    def known(self, views: RunViews) -> None:
        """The table shows everything anyway."""

    def changed(self, views: RunViews) -> None:
        self._live.update(_picture(views, datetime.now(UTC)))


def _picture(views: RunViews, now: datetime) -> "Group":
    """The time that is left, above the table, which is cut off at its end where it is too long."""
    from rich.console import Group
    from rich.text import Text

    left = remaining_time(views.run, views.gate, now)
    return Group(Text(f"time left: {time_left(left)}"), _table(views, now))


def _table(views: RunViews, now: datetime) -> "Table":
    from rich.table import Table

    progress = gate_progress(views.run, views.gate, now)
    failed = f", {progress.failed} with failures" if progress.failed else ""
    done = f"{progress.completed} of {count(progress.total, 'job')} done{failed}"
    table = Table(title=done, title_justify="left", box=None)
    table.add_column("job", no_wrap=True)
    table.add_column("state")
    table.add_column("time", justify="right", no_wrap=True)
    stands = {f"{side.shard}/{side.side}": standing(side, views.run.policy) for side in views.gate.sides.values()}
    shown = sorted(progress.groups, key=lambda group: _FIRST.index(group.state))[:MOST_ROWS]
    for group in shown:
        table.add_row(safe(group.id), stands.get(group.id, "waiting"), _elapsed(group))
    if len(progress.groups) > len(shown):
        table.add_row(f"... and {len(progress.groups) - len(shown)} more", "", "")
    return table


def _elapsed(group: ProgressGroup) -> str:
    return "" if group.elapsed_ms is None else seconds(group.elapsed_ms / 1000)


@contextmanager
def open_display(as_json: bool) -> Iterator[Display]:
    """The display that suits standard error: a table where a terminal can be drawn on, lines elsewhere."""
    if as_json or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        yield LineDisplay()
        return
    display = LiveDisplay()
    with _without_echo(sys.stderr.fileno()):
        display.start()
        try:
            yield display
        finally:
            display.close()


@contextmanager
def _without_echo(terminal: int) -> Iterator[None]:
    """Keep the terminal from writing `^C` into the table, which would move what the next redraw has to clear."""
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        yield
        return
    quiet = [*before[:3], before[3] & ~termios.ECHOCTL, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
