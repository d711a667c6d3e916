"""The original's planner, rounding included: the heaviest file first, onto the shard that is the shortest so far.

With a number of shards it opens a new one for each file until there are so many; without, only when none has room.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

SAFE_INTEGER_MAX = 2**53 - 1


class OriginalError(Exception):
    """The original gives up, with this message."""


@dataclass
class Bundle:
    """A shard of the original: files in the order in which they were placed, with sums of floats."""

    shard: str
    files: list[str] = field(default_factory=list)
    memory_mb: float = 0.0
    seconds: float = 0.0


def is_number(value: object) -> TypeGuard[float]:
    """Whether the value is a finite number, which truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value: object) -> TypeGuard[float]:
    """Whether the value is a number of shards that is not too large to be exact."""
    return is_number(value) and value % 1 == 0 and 1 <= value <= SAFE_INTEGER_MAX


def greedy_plan(
    files: Iterable[str],
    memories_mb: Mapping[str, object],
    seconds: Mapping[str, object],
    budget_gib: object,
    count: object = math.inf,
) -> list[Bundle]:
    """The shards in the order in which they were opened. Raises OriginalError."""
    if not is_number(budget_gib) or budget_gib <= 0:
        raise OriginalError("invalid shard memory budget")
    if count != math.inf and not is_count(count):
        raise OriginalError("invalid shard count")
    budget_mb = float(budget_gib) * 1024
    needs = {file: _need(file, memories_mb, seconds, budget_mb) for file in dict.fromkeys(files)}
    ordered = sorted(needs, key=lambda file: (-needs[file][0], -needs[file][1], _code_units(file)))
    bundles: list[Bundle] = []
    for file in ordered:
        memory, time = needs[file]
        room = [bundle for bundle in bundles if bundle.memory_mb + memory <= budget_mb]
        if not room or (count != math.inf and len(bundles) < min(count, len(needs))):
            if len(bundles) >= count:
                raise OriginalError(f"test files exceed {count} shard memory budgets")
            bundles.append(Bundle(f"shard-{len(bundles) + 1}"))
            room = bundles[-1:]
        chosen = min(room, key=lambda bundle: (bundle.seconds, bundle.memory_mb, bundle.shard))
        chosen.files.append(file)
        chosen.memory_mb += memory
        chosen.seconds += time
    return bundles


def _need(
    file: str, memories_mb: Mapping[str, object], seconds: Mapping[str, object], budget_mb: float
) -> tuple[float, float]:
    """Memory and time of a file that can be planned."""
    memory, time = memories_mb.get(file), seconds.get(file)
    if not file or not is_number(memory) or not is_number(time) or memory <= 0 or time < 0:
        raise OriginalError(f"missing or invalid RSS/seconds measurement: {file}")
    if memory > budget_mb:
        raise OriginalError(f"test file exceeds shard memory budget: {file}")
    return float(memory), float(time)


def _code_units(text: str) -> bytes:
    """The order of strings in the original's language."""
    return text.encode("utf-16-be", "surrogatepass")
