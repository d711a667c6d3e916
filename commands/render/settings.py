"""The settings as text: each value with its origin."""

import json
from collections.abc import Callable, Iterable
from pathlib import PurePath

import msgspec

from commands.render.words import safe


def setting_lines(
    keys: Iterable[str], value: Callable[[str], object], origin: Callable[[str], str], place: PurePath
) -> list[str]:
    """A line per key, then where the ledger is."""
    rows = [(key, json.dumps(msgspec.to_builtins(value(key)), ensure_ascii=False), origin(key)) for key in keys]
    wide = max(len(key) for key, _, _ in rows)
    values = max(len(text) for _, text, _ in rows)
    lines = [safe(f"{key:<{wide}}  {text:<{min(values, 40)}}  {source}").rstrip() for key, text, source in rows]
    return [*lines, "", f"the ledger is in {safe(str(place))}"]
