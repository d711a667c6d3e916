"""What targets need, as it is shown: those that take longest first, and what a session needs besides its targets."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ledger.errors import LedgerError
from ledger.tables import MemoryBasis
from ledger.values import Commit
from projections.history.usage import SessionUsage, TargetUsage


class NothingMeasured(LedgerError):
    """No run has measured any target yet, so nothing is known of what tests need."""

    code = "nothing-measured"
    exit_code = 3


class TargetNeeds(Struct, frozen=True, kw_only=True):
    """What one target is known to need.

    `memory_bytes` is None where no memory is known; `memory_basis` says what it is. `origin` is aged when none of the
    newest runs measured it. `measurements` counts those that this rests on; `commit` and `sequence` are of the newest.
    """

    target: str
    seconds: float
    memory_bytes: int | None
    memory_basis: MemoryBasis
    origin: Literal["measured", "aged"]
    measurements: int
    commit: Commit
    sequence: int


class Needs(Struct, frozen=True, kw_only=True):
    """What the targets need, those that take longest first: as many as were asked for, of `known` ones.

    The session's own time and memory are None where they are not known. `sequence` is that of the last event that was
    taken into account.
    """

    known: int
    aged: int
    session_seconds: float | None
    session_memory_bytes: int | None
    targets: tuple[TargetNeeds, ...]
    sequence: int


def needs_of(usage: Mapping[str, TargetUsage], session: SessionUsage, sequence: int, top: int) -> Needs:
    """The needs of the `top` targets, or of all for 0. Raises NothingMeasured when there is none."""
    if not usage:
        raise NothingMeasured(
            "no run has measured any target yet",
            "`ledger gate` measures what it runs; `ledger plan --usage FILE` takes what you know",
        )
    rows = sorted((_target_needs(target, one) for target, one in usage.items()), key=_longest_first)
    return Needs(
        known=len(rows),
        aged=sum(row.origin == "aged" for row in rows),
        session_seconds=session.duration_seconds or None,
        session_memory_bytes=session.memory_bytes or None,
        targets=tuple(rows[: top or None]),
        sequence=sequence,
    )


def _target_needs(target: str, usage: TargetUsage) -> TargetNeeds:
    return TargetNeeds(
        target=target,
        seconds=usage.duration_seconds,
        memory_bytes=usage.peak_memory_bytes,
        memory_basis=usage.memory_basis,
        origin="aged" if usage.aged else "measured",
        measurements=usage.measurements,
        commit=usage.commit,
        sequence=usage.sequence,
    )


def _longest_first(row: TargetNeeds) -> tuple[float, int, str]:
    return (-row.seconds, -(row.memory_bytes or 0), row.target)
