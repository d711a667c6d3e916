"""Made-up records of pytest sessions, as the plug-in writes them."""

import json
from typing import Any

from commands.executors.api import JobEnd
from commands.readers.attempt import AttemptReading
from commands.readers.pytest_lines import read_attempt
from ledger.tables import Inventory, InventoryTarget
from ledger.values import TestId
from tests.commands.runners.sessions import COMMIT, ended

PASSED = [["setup", "passed", 0.1], ["call", "passed", 0.2], ["teardown", "passed", 0.3]]
FAILED = [["setup", "passed", 0.1], ["call", "failed", 0.2, None, "the line", "the message", False], PASSED[2]]

A, B = TestId("a.py", ("test_a",)), TestId("b.py", ("TestB", "test_b"), "1-é")
INVENTORY = Inventory(
    side="candidate",
    commit=COMMIT,
    targets=(
        InventoryTarget(target="a.py", blob=None, cases=(A,)),
        InventoryTarget(target="b.py", blob=None, cases=(B,)),
    ),
)


class Record:
    """The lines of one process, numbered as they are added."""

    def __init__(self, process: str = "main") -> None:
        self.process = process
        self.lines: list[str] = []
        self.now = 100.0
        self.add("process", 2, "9.0.0", "3.11.0")

    def add(self, kind: str, *fields: Any) -> "Record":
        self.lines.append(json.dumps([kind, self.process, len(self.lines) + 1, *fields]))
        return self

    def items(self, *tests: TestId) -> "Record":
        for index, test in enumerate(tests):
            self.add("items", index, test.target, [[test.path, test.variant]])
        return self

    def case(self, index: int, phases: list[list[Any]]) -> "Record":
        self.start(index)
        self.now += sum(phase[2] for phase in phases)
        return self.add("case", index, phases, self.now)

    def start(self, index: int) -> "Record":
        return self.add("start", index, self.now)

    def data(self) -> bytes:
        return "".join(line + "\n" for line in self.lines).encode()


def read(
    record: bytes | Record, end: JobEnd | int = 0, *requested: str, inventory: Inventory = INVENTORY
) -> AttemptReading:
    """Read a record as that of an attempt at all targets of the inventory."""
    return read_attempt(
        record.data() if isinstance(record, Record) else record,
        ended(end) if isinstance(end, int) else end,
        side="candidate",
        commit=COMMIT,
        requested=requested or tuple(target.target for target in inventory.targets),
        inventory=inventory,
    )


def whole_session() -> Record:
    return Record().items(A, B).case(0, PASSED).case(1, FAILED).add("end", 1, True)


def distributed(*workers: Record, code: int = 0) -> bytes:
    return b"\n".join(record.data() for record in (*workers, controller(*workers).add("end", code, True)))


def controller(*workers: Record) -> Record:
    main = Record()
    for worker in workers:
        main.add("worker", worker.process)
    return main
