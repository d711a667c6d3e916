"""What readers give: the reading of a collection and of an attempt, whatever the runner."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from commands.readers.attempt_usage import AttemptUsage
from ledger.events import FailureLine, MissingTarget
from ledger.tables import CaseTable, InventoryTarget


class CollectionReading(Struct, frozen=True, kw_only=True):
    """What a collection gave: its targets in byte order, without blobs; or the reason code of why nothing.

    `places` are the paths of the files or directories that hold targets; a target that is not in it is its own file.
    """

    complete: bool
    cause: str | None
    detail: str
    targets: tuple[InventoryTarget, ...]
    places: Mapping[str, str] = field(default_factory=dict)


class AttemptReading(Struct, frozen=True, kw_only=True):
    """What an attempt gave.

    `complete`: every requested target was measured and the process ended as it should; exactly then `cause` is None.
    `missing` lists the unmeasured targets; it may be empty when none was measured, and then the cause stands for all.
    `table`, `counts` (cases per outcome) and `failures` show all that was seen, also of unmeasured targets;
    `attention` names the measured targets that failed, skipped or lost cases. `usage` is what was used meanwhile.
    """

    complete: bool
    cause: str | None
    detail: str
    table: CaseTable
    missing: tuple[MissingTarget, ...]
    attention: tuple[str, ...]
    counts: dict[str, int]
    failures: tuple[FailureLine, ...]
    measured_targets: int
    usage: AttemptUsage


def voided(reading: AttemptReading, cause: str, detail: str) -> AttemptReading:
    """The same reading, of which nothing counts as measured: it is not known what was tested."""
    targets = tuple(replace(row, cause=cause) for row in reading.table.targets)
    return replace(
        reading,
        complete=False,
        cause=cause,
        detail="; ".join(filter(None, (detail, reading.detail))),
        table=replace(reading.table, targets=targets),
        missing=(),
        attention=(),
        measured_targets=0,
    )
