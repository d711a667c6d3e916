"""What the targets of an attempt needed: the times at which each was at work, laid over the memory of all processes.

Rules:
- the time of a target is that of loading its file and running its tests. Where several processes worked at once, the
  time in which anything was at work is shared out, so that all targets together never take longer than the attempt.
- the memory of a target is the most that was used while it was at work, by all processes together, less what the
  session used before it loaded any. It is the target's own where it had the attempt to itself, and a bound from above
  where others had been at work before. One look before and one after belong to the time of a target.
- where a memory limit ended the attempt, the targets that were at work needed at least what was used.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from commands.executors.api import JobEnd
from commands.readers.pytest_record import Session, Span
from ledger.tables import MemoryBasis


class TargetNeed(Struct, frozen=True):
    """What one target needed."""

    seconds: float
    memory_bytes: int | None
    memory_basis: MemoryBasis


class AttemptUsage(Struct, frozen=True, kw_only=True):
    """What each target needed and what the session took besides; `exceeded` were at work when memory ran out."""

    targets: Mapping[str, TargetNeed]
    session_seconds: float
    session_memory_bytes: int | None
    exceeded: tuple[str, ...]


def usage_of(session: Session, end: JobEnd, requested: Iterable[str]) -> AttemptUsage:
    """The usage of the `requested` targets in an attempt that ended like this."""
    asked = frozenset(requested)
    spans = [span for span in session.spans_of_work() if span.target in asked]
    seconds, busy_seconds = _seconds(spans, end.duration_seconds)
    begun = min((span.began for span in spans), default=None)
    base_bytes = _memory_before(begun, end.memory_samples)
    running = {test.target for _, test in session.running()} & asked
    exceeded = running if end.end == "memory-limit" else set()
    peaks = _peaks(spans, end.memory_samples)
    needs = {}
    for target in asked:
        peak = _most(end) if target in exceeded else peaks.get(target)
        used = None if peak is None else max(1, peak - (base_bytes or 0))
        needs[target] = TargetNeed(seconds.get(target, 0.0), used, _basis(used, target in exceeded, len(asked)))
    return AttemptUsage(
        targets=needs,
        session_seconds=max(0.0, end.duration_seconds - busy_seconds),
        session_memory_bytes=base_bytes,
        exceeded=tuple(sorted(exceeded)),
    )


def _basis(used: int | None, exceeded: bool, targets: int) -> MemoryBasis:
    if used is None:
        return "none"
    if exceeded:
        return "at-least"
    return "alone" if targets == 1 else "upper-bound"


def _seconds(spans: Sequence[Span], limit_seconds: float) -> tuple[dict[str, float], float]:
    """The time of each target, and the time in which any was at work, which is at most the limit."""
    sums: defaultdict[str, float] = defaultdict(float)
    busy, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.began):
        if span.ended is None:
            continue
        sums[span.target] += max(0.0, span.ended - span.began)
        busy += max(0.0, span.ended - max(span.began, reached))
        reached = max(reached, span.ended)
    busy, total = min(busy, limit_seconds), sum(sums.values())
    share = busy / total if total > 0 else 1.0
    return {target: seconds * min(1.0, share) for target, seconds in sums.items()}, busy


def _memory_before(time: float | None, samples: Sequence[tuple[float, float, int]]) -> int | None:
    """The memory at the last look before a time; None when nobody had looked by then."""
    before = [used for _, last, used in samples if time is not None and last <= time]
    return before[-1] if before else None


def _peaks(spans: Iterable[Span], samples: Sequence[tuple[float, float, int]]) -> dict[str, int]:
    """The most that was used while each target was at work."""
    windows: dict[tuple[str, bool], tuple[float, float]] = {}
    for span in spans:
        ended = float("inf") if span.ended is None else span.ended
        began, until = windows.get((span.target, span.loading), (span.began, ended))
        windows[span.target, span.loading] = (min(began, span.began), max(until, ended))
    firsts, lasts = [first for first, _, _ in samples], [last for _, last, _ in samples]
    peaks: dict[str, int] = {}
    for (target, _), (began, ended) in windows.items():
        low, high = max(0, bisect_left(lasts, began) - 1), bisect_right(firsts, ended) + 1
        seen = [used for _, _, used in samples[low:high]]
        peaks[target] = max([peaks.get(target, 0), *seen])
    return {target: peak for target, peak in peaks.items() if peak > 0}


def _most(end: JobEnd) -> int | None:
    """The most that is known to have been used."""
    return max([end.peak_memory_bytes or 0, *(used for _, _, used in end.memory_samples)]) or None
