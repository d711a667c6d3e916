"""Usage: what each target needed when it was last measured; what a plan by measured usage is made of."""

from collections.abc import Iterable

from msgspec import Struct

from projections.history.results import TargetRow


class TargetUsage(Struct, frozen=True, kw_only=True):
    """What a target needed when it was last measured, on either side, and how often it was measured.

    `peak_memory_bytes` is the newest that is known, None when the target never ran alone. `sequence` and `commit` are
    those of the newest measurement."""

    duration_seconds: float
    peak_memory_bytes: int | None
    measurements: int
    commit: str
    sequence: int


def latest_usage(rows: Iterable[TargetRow]) -> dict[str, TargetUsage]:
    """The usage of each target that was ever measured; the rows of a target in the order of their sequence.

    An attempt that did not measure a target says nothing about what the target needs.
    """
    found: dict[str, TargetUsage] = {}
    for row in rows:
        if row.cause is not None:
            continue
        before = found.get(row.target)
        peak = row.peak_memory_bytes
        if peak is None and before is not None:
            peak = before.peak_memory_bytes
        found[row.target] = TargetUsage(
            duration_seconds=row.duration_seconds,
            peak_memory_bytes=peak,
            measurements=before.measurements + 1 if before else 1,
            commit=row.commit,
            sequence=row.sequence,
        )
    return found
