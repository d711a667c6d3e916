"""The settings as text: each value with its origin."""

import json
from collections.abc import Callable, Iterable
from pathlib import PurePath

import msgspec

from commands.render.words import safe


def setting_lines(
    keys: Iterable[str], value: Callable[[str], object], origin: Callable[[str], str], place: PurePath
) -> list[str]:
    """A line per key, then where the ledger is; for a terminal to break, so that paths can be copied."""
    names = list(keys)
    column = max(map(len, names)) + 2
    lines: list[str] = []
    for name in names:
        shown = json.dumps(msgspec.to_builtins(value(name)), ensure_ascii=False)
        lines.append(safe(f"{name:<{column}}{shown}  ({origin(name)})"))
    return [*lines, "", f"the ledger is in {safe(str(place))}"]
