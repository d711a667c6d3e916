"""What the sides of shards took, beside what was planned for them."""

from collections.abc import Iterable

from msgspec import Struct

from ledger.values import SIDES, Side
from projections.registry import RunViews
from projections.run.owed import owed


class SideTiming(Struct, frozen=True, kw_only=True):
    """One side of a shard (`shard/side`) that was tried: what its attempts took together, beside what was planned.

    `planned_seconds` is None when it was planned by count, or when only a part of the side was asked for.
    `deviation` says how much longer it took (0.1: 10 percent), None unless all of it is measured.
    """

    side: str
    attempts: int
    measured: bool
    planned_seconds: float | None
    actual_seconds: float
    deviation: float | None


class LongestSide(Struct, frozen=True, kw_only=True):
    """The side of a shard (`shard/side`) that took longest."""

    side: str
    actual_seconds: float


def side_timings(views: RunViews) -> tuple[SideTiming, ...]:
    """Every side of a shard that was tried, those that deviate most first."""
    found = []
    for shard in views.gate.plan.shards if views.gate.plan else ():
        tried = [side for side in SIDES if views.gate.side(shard.shard, side).attempts]
        found += [_side_timing(views, shard.shard, side, shard.seconds) for side in tried]
    return tuple(sorted(found, key=_deviation, reverse=True))


def longest_side(views: RunViews, sides: Iterable[SideTiming]) -> LongestSide | None:
    """The longest of those that a plan by usage can be compared with; None until nothing is owed any more."""
    compared = [side for side in sides if side.planned_seconds is not None]
    if not compared or owed(views.gate, views.run.policy):
        return None
    longest = max(compared, key=lambda side: side.actual_seconds)
    return LongestSide(side=longest.side, actual_seconds=longest.actual_seconds)


def _side_timing(views: RunViews, shard: str, side: Side, seconds: float | None) -> SideTiming:
    state = views.gate.side(shard, side)
    whole = state.attempts[0].started.targets is None
    planned = seconds if whole else None
    actual = sum(attempt.recorded.duration_seconds for attempt in state.attempts if attempt.recorded)
    measured = state.measured and state.running is None
    return SideTiming(
        side=f"{shard}/{side}",
        attempts=len(state.attempts),
        measured=measured,
        planned_seconds=planned,
        actual_seconds=actual,
        deviation=actual / planned - 1 if planned and measured else None,
    )


def _deviation(side: SideTiming) -> tuple[bool, float]:
    return (side.deviation is not None, abs(side.deviation or 0.0))
