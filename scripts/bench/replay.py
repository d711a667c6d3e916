"""Replaying a long run beside its limits: CPU time, memory, and that a run twice as long takes twice as long.

Usage: python scripts/bench/replay.py [--events 50000]. Exit code 1 over a limit.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from itertools import count
from pathlib import Path

from commands.decide.next import next_message
from commands.loop import Loop
from commands.messages import CreateLedger, RecordAttempt, StartRun, TakeRun
from commands.replay import replay
from ledger.events import COLLECTION, STREAM, AttemptStarted, FailureLine, GatePolicy, MissingTarget
from ledger.evidence import EvidenceStore
from ledger.record import Actor
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.tables import CaseRow, CaseTable, Inventory, InventoryTarget, TargetRow, encode_document
from ledger.values import Side, TestId
from scripts.bench.measuring.lib import report

RUN = "20300102-030405-abcd"
LEDGER_FILE = "ledger.sqlite"
CPU_SECONDS_MAX = 5.0
MEMORY_BYTES_MAX = 300 * 2**20
GROWTH_MAX = 1.3
SLOTS = 8
EVENTS_PER_SHARD = 5.28
"""A place, two attempts of two events each, and the attempts that are made again."""


class FixedClock:
    """A clock that counts, so that the same run is built each time."""

    def __init__(self) -> None:
        self._numbers = count()

    def utc_now(self) -> str:
        """One second after the time before."""
        seconds = next(self._numbers)
        return f"2030-01-{2 + seconds // 86400:02}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:00.000000Z"

    def unique_id(self) -> str:
        """Another name than any before."""
        return f"{next(self._numbers):032x}"


class Gate:
    """A gate whose attempts are made up: every seventh candidate dies first, every tenth target has a failure."""

    def __init__(self, loop: Loop, evidence: EvidenceStore, shards: int) -> None:
        self._loop, self._evidence = loop, evidence
        self._targets = tuple(f"tests/test_{number:05}.py" for number in range(shards))
        self._running: deque[AttemptStarted] = deque()

    def run(self) -> None:
        """From the start to the verdict, with as many attempts at a time as there are slots."""
        policy = GatePolicy(shards=len(self._targets), parallel=SLOTS)
        self._loop.handle(
            StartRun(
                stream=RUN,
                run=RUN,
                candidate="c" * 40,
                candidate_ref="HEAD",
                baseline="b" * 40,
                baseline_ref="v1",
                baseline_reason="the newest tag",
                dirty=False,
                policy=policy,
                config="f" * 64,
            )
        )
        self._loop.handle(TakeRun(stream=RUN, host="here", pid=4711))
        while self._loop.views(RUN).run.status != "finished":
            message = next_message(self._loop.views(RUN), RUN, SLOTS - len(self._running))
            if message is None:
                self._loop.handle(self._result(self._running.popleft()))
            else:
                started = (recorded.event for recorded in self._loop.handle(message))
                self._running += [event for event in started if isinstance(event, AttemptStarted)]

    def _result(self, attempt: AttemptStarted) -> RecordAttempt:
        if attempt.shard == COLLECTION:
            return self._collected(attempt)
        target = self._targets[int(attempt.shard.removeprefix("shard-")) - 1]
        number = int(target[11:16])
        if attempt.side == "candidate" and attempt.attempt == 1 and number % 7 == 0:
            return self._message(attempt, cause="signalled", missing=(MissingTarget(target, "signalled"),))
        failed = ("test_b",) if number % 10 == 0 else ()
        table = self._evidence.put_bytes(encode_document(_table(attempt.side, attempt.commit, target, failed)))
        return self._message(
            attempt,
            complete=True,
            table=table,
            counts={"passed": 3 - len(failed), "failed": len(failed)},
            attention=(target,) if failed else (),
            failures=tuple(FailureLine(f"{target}::{name}", "assert 1 == 2") for name in failed),
        )

    def _collected(self, attempt: AttemptStarted) -> RecordAttempt:
        targets = tuple(InventoryTarget(target=name, blob="a" * 40, cases=_cases(name)) for name in self._targets)
        document = encode_document(Inventory(side=attempt.side, commit=attempt.commit, targets=targets))
        inventory = self._evidence.put_bytes(document)
        return self._message(attempt, complete=True, inventory=inventory, cases=3 * len(targets))

    def _message(
        self, attempt: AttemptStarted, *, complete: bool = False, cause: str | None = None, **more: object
    ) -> RecordAttempt:
        return RecordAttempt(
            stream=RUN, shard=attempt.shard, side=attempt.side, attempt=attempt.attempt, commit=attempt.commit,
            complete=complete, counted=True, cause=cause, exit_code=0 if complete else -9,
            started_at="2030-01-02T03:04:05.000000Z", duration_seconds=1.25, peak_memory_bytes=2**26,
            reader="pytest-lines/1", targets=1, measured_targets=int(complete), **more,  # type: ignore[arg-type]
        )  # fmt: skip


def _cases(target: str) -> tuple[TestId, ...]:
    return tuple(TestId(target, (name,)) for name in ("test_a", "test_b", "test_c"))


def _table(side: Side, commit: str, target: str, failed: tuple[str, ...]) -> CaseTable:
    rows = tuple(
        CaseRow(test=case, outcome="failed" if case.path[0] in failed else "passed", duration_seconds=0.25)
        for case in _cases(target)
    )
    measured = TargetRow(target=target, cause=None, duration_seconds=0.75)
    return CaseTable(reader="pytest-lines/1", side=side, commit=commit, targets=(measured,), cases=rows)


def build(directory: Path, events: int) -> None:
    """A ledger with one run of about so many events, made by the real loop."""
    clock, evidence = FixedClock(), EvidenceStore(directory / "evidence")
    file = directory / LEDGER_FILE
    with Writer.open(file, create=True) as writer, Reader.open(file) as reader:
        loop = Loop(reader, writer, evidence, clock, Actor(who="someone", host="here", tool="ledger 0"))
        loop.handle(CreateLedger(stream=STREAM, ledger_id="l" * 32, project="bench", root_commit=None))
        Gate(loop, evidence, round(events / EVENTS_PER_SHARD)).run()


def measure(directory: Path) -> None:
    """Replay the run of a ledger, and print events, CPU seconds and peak memory. Run in a process of its own."""
    start, outcomes = time.process_time(), Counter[str]()
    with Reader.open(directory / LEDGER_FILE) as reader:
        for finding in replay(reader.events(RUN), EvidenceStore(directory / "evidence").get):
            outcomes[finding.outcome] += 1
        events = reader.position(RUN)
    if set(outcomes) != {"agree"}:
        raise SystemExit(f"the replay of a sound run found {outcomes}")
    print(events, time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def replayed(directory: Path) -> tuple[int, float, int]:
    """Events, CPU seconds and peak memory in bytes of a replay in a fresh process."""
    command = [sys.executable, __file__, "--measure", str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    events, seconds, memory_bytes = done.stdout.split()
    return int(events), float(seconds), int(memory_bytes)


def measure_growth(root: Path, wanted: int) -> list[bool]:
    """The figures of a run of the wanted length, and of one of half of it."""
    figures = []
    for number in (wanted // 2, wanted):
        directory = root / str(number)
        build(directory, number)
        figures.append(replayed(directory))
    (half_events, half_seconds, _), (events, seconds, memory_bytes) = figures
    growth = (seconds / events) / (half_seconds / half_events)
    unit = f"{events} events"
    return [
        report("replay.cpu", seconds, unit=f"s CPU, {unit}", limit=CPU_SECONDS_MAX, spread=(seconds, seconds)),
        report("replay.growth", growth, unit="x per event of half the run", limit=GROWTH_MAX, spread=(growth, growth)),
        report(
            "replay.memory",
            memory_bytes / MEMORY_BYTES_MAX,
            unit=f"x {MEMORY_BYTES_MAX} bytes, {unit}",
            limit=1.0,
            spread=(memory_bytes / MEMORY_BYTES_MAX,) * 2,
        ),
    ]


def main() -> int:
    """Measure everything; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--measure", type=Path, metavar="DIRECTORY", help="only replay what is there")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return 0
    # What is only built to be read need not survive a crash of the machine, and syncing would take most of the time.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        within = measure_growth(Path(name), arguments.events)
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
