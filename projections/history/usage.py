"""Usage: what each target is known to need, from its latest attempts; what a plan by measured usage is made of.

| of the latest attempts at a target                               | what is known of it            |
|---|---|
| those that measured it                                           | seconds: their median          |
| some of a side measured it alone                                 | memory there: the most of these |
| some of a side measured it, all among others                     | memory there: the least of the bounds |
| both sides measured it                                           | memory: the more of the two    |
| the newest of a side was ended by a memory limit                 | memory: twice that, or more    |
| none measured it, some were ended by their time limit            | seconds: twice what they took  |
| none measured it in the latest runs                              | the same, but it is aged       |

An attempt that did not measure a target says nothing else about what the target needs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median

from msgspec import Struct

from ledger.parts import part_count, whole_target
from ledger.tables import KnownTarget, MemoryBasis, UsageTable
from ledger.values import SIDES, Side
from projections.history.results import TargetRow

LATEST_ATTEMPTS = 10
"""So many attempts at a target are looked at, the newest ones."""

FRESH_RUNS = 5
"""A target that none of so many newest runs measured is aged."""

RAISE_FACTOR = 2
"""What a memory limit ended is taken to need so many times what it used by then."""


class TargetUsage(Struct, frozen=True, kw_only=True):
    """What a target is known to need. `peak_memory_bytes` is None where no memory is known; `memory_basis` says what it
    is. `measurements` counts those of its latest attempts that measured it; `sequence` and `commit` are those of the
    newest of them, or of the attempt that a memory limit ended."""

    duration_seconds: float
    peak_memory_bytes: int | None
    memory_basis: MemoryBasis
    aged: bool
    measurements: int
    commit: str
    sequence: int


class SessionUsage(Struct, frozen=True, kw_only=True):
    """What an attempt takes besides its targets: the medians of the newest attempts; 0 where nothing is known."""

    duration_seconds: float = 0.0
    memory_bytes: int = 0


def latest_usage(rows: Iterable[TargetRow], fresh_from: int = 0) -> dict[str, TargetUsage]:
    """The usage of each target; the rows of a target follow each other in the order of their sequence.

    What was measured before the sequence `fresh_from` is aged.
    """
    found = {target: _usage(list(own)[-LATEST_ATTEMPTS:], fresh_from) for target, own in groupby(rows, _target)}
    return {target: usage for target, usage in found.items() if usage is not None}


def _target(row: TargetRow) -> str:
    return row.target


def _usage(rows: Sequence[TargetRow], fresh_from: int) -> TargetUsage | None:
    measured = [row for row in rows if row.cause is None]
    ended = [row for row in rows if row.memory_basis == "at-least" or row.cause == "time-limit"]
    if not measured and not ended:
        return None
    newest = measured[-1] if measured else ended[-1]
    memory, basis = _memory(measured)
    least = max((_least(rows, side) for side in SIDES), default=0)
    if least:
        memory, basis = max(RAISE_FACTOR * least, memory or 0), "at-least"
    return TargetUsage(
        duration_seconds=_seconds(measured, ended),
        peak_memory_bytes=memory,
        memory_basis=basis,
        aged=newest.sequence < fresh_from,
        measurements=len(measured),
        commit=newest.commit,
        sequence=newest.sequence,
    )


def _seconds(measured: Sequence[TargetRow], ended: Sequence[TargetRow]) -> float:
    if measured:
        return median(row.duration_seconds for row in measured)
    late = [row.duration_seconds for row in ended if row.cause == "time-limit"]
    return RAISE_FACTOR * max(late) if late else median(row.duration_seconds for row in ended)


def _least(rows: Sequence[TargetRow], side: Side) -> int:
    """What the target used on a side when memory limits ended it there, unless it was measured there since."""
    own = [row for row in rows if row.side == side]
    measured = max((row.sequence for row in own if row.cause is None), default=0)
    ended = (row for row in own if row.memory_basis == "at-least" and row.sequence > measured)
    return max((row.peak_memory_bytes or 0 for row in ended), default=0)


def _memory(measured: Sequence[TargetRow]) -> tuple[int | None, MemoryBasis]:
    """The memory that complete measurements tell of; the sides are different code, and the needier one counts."""
    both = [_memory_of([row for row in measured if row.side == side]) for side in SIDES]
    return max(both, key=lambda told: told[0] or 0)


def _memory_of(measured: Sequence[TargetRow]) -> tuple[int | None, MemoryBasis]:
    known = [(row.memory_basis, row.peak_memory_bytes) for row in measured if row.peak_memory_bytes is not None]
    alone = [used for basis, used in known if basis == "alone"]
    if alone:
        return max(alone), "alone"
    bounds = [used for basis, used in known if basis == "upper-bound"]
    return (min(bounds), "upper-bound") if bounds else (None, "none")


def session_usage(attempts: Sequence[tuple[float, int | None]]) -> SessionUsage:
    """The usage of a session, from the seconds and bytes of the newest attempts."""
    memories = [used for _, used in attempts if used is not None]
    return SessionUsage(
        duration_seconds=median(seconds for seconds, _ in attempts) if attempts else 0.0,
        memory_bytes=int(median(memories)) if memories else 0,
    )


def with_wholes(targets: Mapping[str, TargetUsage]) -> dict[str, TargetUsage]:
    """The same, and what is known of targets by their parts, where all of these were measured since the whole was.

    A target takes as long as its parts together, and not more memory than the one that needs most.
    """
    parts: defaultdict[tuple[str, int], list[TargetUsage]] = defaultdict(list)
    for name, usage in targets.items():
        if (whole := whole_target(name)) != name:
            parts[whole, part_count(name)].append(usage)
    found = dict(targets)
    for (whole, total), known in sorted(parts.items()):
        since = min(usage.sequence for usage in known)
        before = found.get(whole)
        if len(known) == total and (before is None or before.sequence < since):
            found[whole] = _together(known)
    return found


def _together(parts: Sequence[TargetUsage]) -> TargetUsage:
    oldest = min(parts, key=lambda part: part.sequence)
    memories = [part.peak_memory_bytes for part in parts]
    known = [used for used in memories if used is not None]
    return TargetUsage(
        duration_seconds=sum(part.duration_seconds for part in parts),
        peak_memory_bytes=max(known) if len(known) == len(parts) else None,
        memory_basis="upper-bound" if len(known) == len(parts) else "none",
        aged=any(part.aged for part in parts),
        measurements=min(part.measurements for part in parts),
        commit=oldest.commit,
        sequence=oldest.sequence,
    )


def usage_table(
    targets: Mapping[str, TargetUsage], session: SessionUsage, case_seconds: Mapping[str, float]
) -> UsageTable:
    """The document that a plan is made from."""
    return UsageTable(
        session_seconds=session.duration_seconds,
        session_memory_bytes=session.memory_bytes,
        targets=tuple(
            KnownTarget(name, usage.duration_seconds, usage.peak_memory_bytes, usage.memory_basis, usage.aged)
            for name, usage in sorted(with_wholes(targets).items())
        ),
        case_seconds=dict(case_seconds),
    )
