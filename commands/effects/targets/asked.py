"""What an attempt is asked for: whole targets and parts of targets, by the names in its plan, and what these run."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from commands.readers.attempt import AttemptReading
from commands.runners.api import Wanted
from ledger.parts import whole_target
from ledger.tables import PlannedPart
from ledger.values import Side, TestId


class Asked(Struct, frozen=True):
    """The names that an attempt was asked for, in order, and the parts among them with their tests on its side.

    No attempt is asked for two parts of one target, nor for a part and the whole of it.
    """

    names: tuple[str, ...]
    parts: Mapping[str, tuple[TestId, ...]]

    def wanted(self, last: tuple[str, ...], tests: tuple[TestId, ...] | None) -> Wanted:
        """What a runner is asked for. With `tests`, only these of the targets."""
        only = {whole_target(name): cases for name, cases in self.parts.items()}
        if tests is not None:
            only = {name: tuple(test for test in tests if test.target == name) for name in self.names}
        return Wanted(
            targets=tuple(map(whole_target, self.names)),
            last=tuple(sorted({whole_target(name) for name in last})),
            tests=only,
        )

    def named(self, reading: AttemptReading) -> AttemptReading:
        """The same reading, with the names of the parts for what was read of their targets."""
        if not self.parts:
            return reading
        names = {whole_target(name): name for name in self.parts}
        rows = (replace(row, target=names.get(row.target, row.target)) for row in reading.table.targets)
        usage = reading.usage
        return replace(
            reading,
            table=replace(reading.table, targets=tuple(sorted(rows, key=lambda row: row.target))),
            missing=tuple(replace(entry, target=names.get(entry.target, entry.target)) for entry in reading.missing),
            attention=tuple(names.get(target, target) for target in reading.attention),
            usage=replace(usage, exceeded=tuple(names.get(target, target) for target in usage.exceeded)),
        )


def parts_on(side: Side, names: tuple[str, ...], parts: tuple[PlannedPart, ...]) -> dict[str, tuple[TestId, ...]]:
    """Those of the names that are parts, with the tests that they run on this side."""
    tests = {part.part: part.candidate if side == "candidate" else part.baseline for part in parts}
    return {name: tests[name] for name in names if name in tests}
