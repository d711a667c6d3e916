"""What a target without usage of its own is taken to need: more than most others do, and said to be an estimate."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from commands.decide.planner.model import Usage
from commands.render.words import count, memory, seconds

QUANTILE_PERCENT = 90
"""The part of the known targets that need at most as much as is estimated for an unknown one."""

UNKNOWN_SECONDS = 1.0
"""The time of a target where no time is known at all; only that it is the same for all matters."""


class KnownUsage(Struct, frozen=True, kw_only=True):
    """What is known of a target: time in seconds, and peak memory in bytes unless that is unknown; `aged` when it is of
    long ago."""

    seconds: float
    memory_bytes: int | None = None
    aged: bool = False


class Estimated(Struct, frozen=True):
    """A usage for every target, and sentences that say what was assumed where something was unknown."""

    usage: dict[str, Usage]
    assumptions: tuple[str, ...]


def complete_usage(targets: Sequence[str], known: Mapping[str, KnownUsage], budget_bytes: int) -> Estimated:
    """Take what is known, and estimate the rest: a high quantile of what is known, but never more than the budget.

    Where no memory is known at all, every target gets an even part of the budget, so that memory decides nothing.
    """
    memories = [one.memory_bytes for one in known.values() if one.memory_bytes is not None]
    usual_seconds = quantile([one.seconds for one in known.values()]) if known else UNKNOWN_SECONDS
    even_part = max(1, budget_bytes // max(1, len(targets)))
    usual_memory = min(int(quantile(memories)), max(1, budget_bytes)) if memories else even_part
    usage = {}
    for target in targets:
        found = known.get(target) or KnownUsage(seconds=usual_seconds)
        usage[target] = Usage(
            memory_bytes=found.memory_bytes or usual_memory,
            seconds=found.seconds,
            origin="estimated" if found.memory_bytes is None else "aged" if found.aged else "measured",
        )
    timeless = sum(target not in known for target in targets)
    weightless = sum(one.origin == "estimated" for one in usage.values())
    of_others = f"{QUANTILE_PERCENT}% of the known targets need no more"
    assumptions = []
    if timeless:
        reason = of_others if known else "no time is known"
        taken = f"{count(timeless, 'target')} of unknown time planned with {seconds(usual_seconds)}"
        assumptions.append(f"{taken}: {reason}")
    if weightless:
        reason = of_others if memories else "no memory is known, so it decides nothing"
        taken = f"{count(weightless, 'target')} of unknown memory planned with {memory(usual_memory)}"
        assumptions.append(f"{taken}: {reason}")
    return Estimated(usage, tuple(assumptions))


def quantile(values: Iterable[float]) -> float:
    """The smallest of the values that so many percent of them are not above."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * QUANTILE_PERCENT // 100) - 1]
