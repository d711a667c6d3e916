"""What targets need, as text."""

from collections.abc import Iterable

from commands.render.words import count, memory, safe, seconds, wrapped
from projections.history.needs import Needs, TargetNeeds

_SIGNS = {"alone": "", "upper-bound": "<= ", "at-least": ">= ", "none": ""}
_COLUMN = " " * 9


def usage_lines(needs: Needs, width: int) -> list[str]:
    """What is known in all, then a line for each target; its name stays whole, so that it can be copied."""
    aged = f", {needs.aged} of them not measured of late" if needs.aged else ""
    lines = wrapped(f"{'usage':<9}{count(needs.known, 'target')}{aged}", width, _COLUMN)
    lines += wrapped(f"{'session':<9}{_session(needs)}", width, _COLUMN)
    if any(row.memory_basis in ("upper-bound", "at-least") for row in needs.targets):
        legend = "<= it ran among others and needs no more; >= a limit ended it and it needs more"
        lines += wrapped(f"{'memory':<9}{legend}", width, _COLUMN)
    lines += ["", f"{'time':>11}{'memory':>12}{'seen':>5}{'':>6}target"]
    for row in needs.targets:
        lines += _row(row, width)
    if needs.known > len(needs.targets):
        lines += wrapped(f"... and {needs.known - len(needs.targets)} more (--top 0 shows all)", width)
    return lines


def _session(needs: Needs) -> str:
    took = "unknown time" if needs.session_seconds is None else seconds(needs.session_seconds)
    used = "unknown memory" if needs.session_memory_bytes is None else memory(needs.session_memory_bytes)
    return f"{took} and {used} besides its targets"


def _row(row: TargetNeeds, width: int) -> Iterable[str]:
    used = "?" if row.memory_bytes is None else f"{_SIGNS[row.memory_basis]}{memory(row.memory_bytes)}"
    aged = "aged" if row.origin == "aged" else ""
    facts, target = f"{seconds(row.seconds):>11}{used:>12}{row.measurements:>5}{aged:>5}", safe(row.target)
    if len(facts) + 1 + len(target) <= width:
        yield f"{facts} {target}"
    else:
        yield facts.rstrip()
        yield f"    {target}"
