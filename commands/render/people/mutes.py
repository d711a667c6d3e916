"""Mutings as text."""

from collections.abc import Iterable, Mapping

from commands.render.words import count, safe, wrapped
from ledger.events import Muted, Unmuted
from projections.people.listing import MuteList, MuteRow

_INDENT = " " * 11


def muted_lines(muted: Muted, width: int) -> list[str]:
    """A muting that was just made."""
    lines = [f"muted      {muted.mute}: {muted.test}", f"until      {muted.expires}{_where(muted.environment)}"]
    lines += [f"owner      {muted.owner}", f"reason     {muted.reason}"]
    failing = [f"failing    {line}" for line in muted.lines] or ["failing    not in any run so far"]
    return [part for line in (*lines, *failing) for part in wrapped(line, width, _INDENT)]


def unmuted_lines(unmuted: Unmuted, width: int) -> list[str]:
    """A muting that was just taken back."""
    return wrapped(f"unmuted    {unmuted.mute}: {unmuted.reason}", width, _INDENT)


def mute_lines(found: MuteList, width: int) -> list[str]:
    """The mutings that are valid, the proposals among them, and how many there were."""
    valid = [row for row in found.mutes if row.state == "valid"]
    ended = len(found.mutes) - len(valid)
    lines = [f"{count(len(valid), 'test')} muted on {found.date}" if valid else f"nothing is muted on {found.date}"]
    for row in valid:
        lines += ["", *_row(row, found, width)]
    if ended:
        lines += ["", f"{count(ended, 'muting')} ended before (--json has all)"]
    return lines


def _row(row: MuteRow, found: MuteList, width: int) -> Iterable[str]:
    left = "today is the last day" if row.days_left == 0 else f"{count(row.days_left, 'day')} left"
    yield from wrapped(f"{row.mute:<10} {row.test}", width, _INDENT)
    yield from wrapped(f"until      {row.expires}, {left}{_where(row.environment)}", width, _INDENT)
    yield from wrapped(f"owner      {row.owner}", width, _INDENT)
    yield from wrapped(f"reason     {row.reason}", width, _INDENT)
    if row.passes is not None:
        yield f"passed     in {count(row.passes, 'run')} in a row since then"
    if row.proposed:
        yield f"proposal   ledger unmute {safe(row.mute)} --reason 'passed {count(row.passes or 0, 'time')} in a row'"


def _where(environment: Mapping[str, str]) -> str:
    return "".join(f", where {name}={value}" for name, value in sorted(environment.items()))
