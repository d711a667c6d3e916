"""What is known of targets before they are planned: what earlier runs measured and, for the rest, a file with times."""

from msgspec import Struct
from msgspec.structs import replace

from commands.effects.history.cache import History
from commands.readers.usage_file import read_usage
from ledger.tables import KnownTarget, UsageTable
from projections.history.usage import usage_table, with_wholes


class Known(Struct, frozen=True):
    """What is known of targets, and the ledger sequence up to which runs were asked."""

    table: UsageTable
    basis: int


def known_targets(history: History, split_seconds: float, durations: bytes | None) -> Known:
    """What the runs of the history tell of targets, with the tests of those that may be split.

    `durations` is the content of a file with times; it counts only for targets that no run measured. Raises
    UsageFileInvalid, NewerFormat, HistoryDamaged.
    """
    usage = history.usage()
    targets = with_wholes(usage.targets)
    slow = [name for name, one in targets.items() if one.duration_seconds > split_seconds > 0]
    table = usage_table(targets, usage.session, history.case_seconds(slow))
    return Known(table if durations is None else _filled(table, durations), usage.basis)


def _filled(table: UsageTable, durations: bytes) -> UsageTable:
    told = {row.target for row in table.targets}
    more = (
        KnownTarget(name, one.seconds, one.memory_bytes, "none" if one.memory_bytes is None else "alone", False)
        for name, one in read_usage(durations).items()
        if name not in told
    )
    return replace(table, targets=tuple(sorted([*table.targets, *more], key=lambda row: row.target)))
