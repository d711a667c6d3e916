"""The timing of a run as text: how long it took first, then where the time went, then what was planned."""

from collections.abc import Iterable

from commands.causes import UNKNOWNS
from commands.render.words import count, moment, seconds, wrapped
from projections.run.timing import RunTiming
from projections.run.timing_sides import SideTiming

MOST_SIDES = 5

_COLUMN = " " * 11


def timing_lines(timing: RunTiming, width: int) -> list[str]:
    """Everything that is known of where the time went, in lines of at most `width`."""
    lines = []
    for name, text in (*_wall(timing), *_attempts(timing), *_plan(timing), *_target(timing)):
        lines += wrapped(f"{name:<11}{text}", width, _COLUMN)
    deviating = [side for side in timing.sides if side.deviation is not None]
    if deviating:
        lines += ["", "farthest from what was planned"]
    for side in deviating[:MOST_SIDES]:
        lines += wrapped(f"  {_side(side)}", width, " " * 6)
    if len(deviating) > MOST_SIDES:
        lines += wrapped(f"  ... and {len(deviating) - MOST_SIDES} more (--json has all)", width, " " * 6)
    return lines


def _wall(timing: RunTiming) -> Iterable[tuple[str, str]]:
    yield "run", timing.run
    if timing.as_of:
        yield "as of", moment(timing.as_of)
    so_far = "" if timing.status == "finished" else " so far"
    yield "took", f"{seconds(timing.wall_seconds)}{so_far}, from first start to last record, by the clock"
    if timing.gaps:
        yield "gaps", f"{seconds(timing.gap_seconds)} without a driver, {count(len(timing.gaps), 'time')}, not counted"
    yield "collection", seconds(timing.collection_seconds)
    yield "first", f"{seconds(timing.root_wall_seconds)} until the last first attempt had ended"
    yield "retries", f"{timing.retries}, {seconds(timing.retry_tail_seconds)} after that" if timing.retries else "none"


def _attempts(timing: RunTiming) -> Iterable[tuple[str, str]]:
    if timing.median_seconds is not None:
        together, middle = seconds(timing.sum_seconds), seconds(timing.median_seconds)
        yield "attempts", f"{timing.attempts}, {together} together, median {middle}"
        for number, one in enumerate(timing.slowest):
            yield "" if number else "slowest", f"{one.attempt} {seconds(one.duration_seconds)}"
    if timing.without_duration:
        yield "unknown", f"{count(timing.without_duration, 'record')} without a duration, left out"
    yield "overhead", _overhead(timing)
    yield "waiting", f"{seconds(timing.promised_seconds)} promised and not started"
    idle = f"{count(timing.slots, 'slot')}, idle for {seconds(timing.idle_slot_seconds)} together"
    yield "slots", idle if timing.efficiency is None else f"{idle}: {timing.efficiency:.0%} in use"


def _overhead(timing: RunTiming) -> str:
    overhead = timing.overhead
    unmeasured = f"unknown of {count(overhead.unmeasured, 'attempt')}" if overhead.unmeasured else ""
    if overhead.median_seconds is None or overhead.p90_seconds is None:
        return unmeasured or "no attempts"
    known = f"median {seconds(overhead.median_seconds)}, 90% at most {seconds(overhead.p90_seconds)}, beside the tests"
    return "; ".join(filter(None, (known, unmeasured)))


def _plan(timing: RunTiming) -> Iterable[tuple[str, str]]:
    if timing.makespan_seconds is None:
        yield "planned", "no times"
        return
    planned = f"{seconds(timing.makespan_seconds)} for the longest part"
    if timing.longest is None or timing.makespan_deviation is None:
        yield "planned", f"{planned}; not all of it is measured"
        return
    longest = timing.longest
    took = f"{longest.side} took {seconds(longest.actual_seconds)}, {_deviation(timing.makespan_deviation)}"
    yield "planned", f"{planned}; {took}"
    if timing.bound_seconds is not None and timing.bound_ratio is not None:
        yield "bound", f"{seconds(timing.bound_seconds)}; that is {timing.bound_ratio:.3f} times as long"


def _target(timing: RunTiming) -> Iterable[tuple[str, str]]:
    if timing.target_seconds is None:
        return
    doubts = "; ".join(f"{doubt}: {UNKNOWNS[doubt].meaning}" for doubt in timing.doubts)
    yield "target", f"{seconds(timing.target_seconds)}: {timing.target}" + (f" ({doubts})" if doubts else "")


def _side(side: SideTiming) -> str:
    planned = seconds(side.planned_seconds or 0.0)
    return f"{side.side}: planned {planned}, took {seconds(side.actual_seconds)}, {_deviation(side.deviation or 0.0)}"


def _deviation(deviation: float) -> str:
    percent = round(abs(deviation) * 100)
    return "as planned" if percent == 0 else f"{percent}% {'longer' if deviation > 0 else 'shorter'}"
