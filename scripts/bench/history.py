"""The history of many runs beside its limits: catching it up, asking for the latest run among thousands, memory.

Usage: python scripts/bench/history.py [--runs 2000] [--repetitions 5]. Exit code 1 over a limit.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands.effects.history.cache import open_history, remove
from commands.wiring import find_home
from ledger.events import (
    FORMAT_VERSION,
    STREAM,
    AttemptRecorded,
    AttemptStarted,
    DriverStarted,
    Event,
    GatePolicy,
    LedgerCreated,
    RunFinished,
    RunStarted,
    StepStarted,
)
from ledger.evidence import EvidenceStore
from ledger.record import Actor, NewEvent, Stamp
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.tables import CaseRow, CaseTable, TargetRow, decode_document, encode_document
from ledger.values import SIDES, Digest, Side, TestId
from projections.history.results import OutcomeRow, case_results, has_results, target_results
from projections.history.results import TargetRow as TargetResult
from projections.history.runs import PastRun
from scripts.bench.measuring.lib import Watch, compare, report

CATCH_UP_MAX = 3.0
STATUS_MAX = 1.5
MEMORY_BYTES_MAX = 300 * 2**20
SHARDS = 8
CASES = 25
LOOKS = 20
COMMITS: dict[Side, str] = {"candidate": "c" * 40, "baseline": "b" * 40}
ACTOR = Actor(who="operator@example.org", host="host-1.example.org", tool="release-ledger 0.1.0")


def build(directory: Path, runs: int) -> None:
    """A ledger of many finished runs, each with a case table for every side of every shard."""
    evidence = EvidenceStore(directory / EVIDENCE)
    tables = {(n, side): evidence.put_bytes(encode_document(_table(n, side))) for n in range(SHARDS) for side in SIDES}
    with Writer.open(directory / LEDGER_FILE, create=True) as writer:
        created = LedgerCreated(ledger_id="1" * 32, project="bench", root_commit=None, format_version=FORMAT_VERSION)
        writer.append([NewEvent(STREAM, created)], {STREAM: 0}, _stamp("begin"))
        for number in range(runs):
            run = f"run-{number:05}"
            events = [NewEvent(run, event) for event in _run(run, tables)]
            writer.append(events, {run: 0}, _stamp(run))


def _stamp(command: str) -> Stamp:
    return Stamp(time="2030-01-02T03:04:05.000000Z", actor=ACTOR, command=command, policy="1")


def _table(number: int, side: Side) -> CaseTable:
    target = f"tests/unit/test_{number}.py"
    cases = tuple(
        CaseRow(test=TestId(target, ("TestAll", f"test_{n:03}")), outcome="passed", duration_seconds=0.01 * n)
        for n in range(CASES)
    )
    rows = (TargetRow(target=target, cause=None, duration_seconds=1.5),)
    return CaseTable(reader="pytest-lines/1", side=side, commit=COMMITS[side], targets=rows, cases=cases)


def _run(run: str, tables: dict[tuple[int, Side], Digest]) -> Iterator[Event]:
    yield RunStarted(
        run=run, kind="gate", candidate=COMMITS["candidate"], candidate_ref="HEAD", baseline=COMMITS["baseline"],
        baseline_ref="v1", baseline_reason="the newest tag", dirty=False, steps=("gate",), policy=GatePolicy(),
        config="f" * 64,
    )  # fmt: skip
    yield DriverStarted(term=1, host="host-1", pid=1)
    yield StepStarted(step="gate")
    for (number, side), table in tables.items():
        shard = f"shard-{number + 1}"
        yield AttemptStarted(
            shard=shard, side=side, attempt=1, term=1, commit=COMMITS[side], member="local", targets=None
        )
        yield AttemptRecorded(
            shard=shard, side=side, attempt=1, term=1, commit=COMMITS[side], complete=True, counted=True, cause=None,
            detail="", exit_code=0, signal=None, started_at="2030-01-02T03:04:05.000000Z", duration_seconds=1.75,
            peak_memory_bytes=10**8, reader="pytest-lines/1", evidence_key=table, table=table, record=table, log=table,
            targets=1, measured_targets=1, missing=(), attention=(), counts={"passed": CASES}, failures=(),
        )  # fmt: skip
    yield RunFinished(verdict="passed")


class InMemory:
    """The same answers in memory: the same events are read and the same tables loaded, and their rows are kept."""

    def __init__(self, directory: Path) -> None:
        self.runs: dict[str, PastRun] = {}
        self.targets: dict[str, list[TargetResult]] = {}
        self.outcomes: dict[str, list[OutcomeRow]] = {}
        evidence = EvidenceStore(directory / EVIDENCE)
        with Reader.open(directory / LEDGER_FILE) as reader:
            for recorded in reader.events():
                event, run = recorded.event, recorded.header.stream
                if run == STREAM:
                    continue
                self.runs.setdefault(run, PastRun()).apply(recorded)
                if isinstance(event, AttemptRecorded) and event.table and has_results(event):
                    table = decode_document(evidence.get(event.table), CaseTable)
                    self._keep(run, event, table, recorded.sequence)

    def _keep(self, run: str, event: AttemptRecorded, table: CaseTable, sequence: int) -> None:
        for target, cause, seconds, peak, basis in target_results(event, table):
            use = TargetResult(
                run=run, target=target, side=event.side, shard=event.shard, attempt=event.attempt, commit=event.commit,
                cause=cause, duration_seconds=seconds, peak_memory_bytes=peak, memory_basis=basis,
                sequence=sequence,
            )  # fmt: skip
            self.targets.setdefault(target, []).append(use)
        for test, outcome, seconds, reruns, *_ in case_results(table):
            row = OutcomeRow(
                run=run, test=test, side=event.side, shard=event.shard, attempt=event.attempt, commit=event.commit,
                outcome=outcome, duration_seconds=seconds, reruns=reruns, sequence=sequence,
            )  # fmt: skip
            self.outcomes.setdefault(test, []).append(row)


def catch_up(directory: Path) -> int:
    """Make the history from nothing, and return how many events it took in."""
    remove(directory / "history.sqlite")
    evidence = EvidenceStore(directory / EVIDENCE)

    def load(digest: Digest) -> CaseTable:
        return decode_document(evidence.get(digest), CaseTable)

    with Reader.open(directory / LEDGER_FILE) as reader, open_history(directory, reader, load) as history:
        return history.taken().sequence


def measure_catch_up(directory: Path, repetitions: int) -> bool:
    """The side file beside the same rows in memory."""

    def kept(watch: Watch) -> None:
        with watch.timed():
            catch_up(directory)

    def in_memory(watch: Watch) -> None:
        with watch.timed():
            InMemory(directory)

    unit = "x the same fold in memory"
    return compare("history.catch-up", kept, in_memory, unit=unit, limit=CATCH_UP_MAX, repetitions=repetitions)


def measure_status(many: Path, one: Path, repetitions: int) -> bool:
    """The summary of the latest run among many beside that of the only one."""
    unit = "x the status of the only run"
    return compare("history.status", Look(many), Look(one), unit=unit, limit=STATUS_MAX, repetitions=repetitions)


class Look:
    """Opens a ledger and sums its latest run up, several times."""

    def __init__(self, directory: Path) -> None:
        self._home = find_home(Path.cwd(), {"store": str(directory)})

    def __call__(self, watch: Watch) -> None:
        """One measured run."""
        with watch.timed():
            for _ in range(LOOKS):
                with self._home.open_ledger() as opened:
                    opened.summary(opened.find_run("latest"))


def measure_memory(directory: Path) -> bool:
    """The peak of a process that makes the whole history."""
    command = [sys.executable, __file__, "--measure", str(directory)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ratio = peak / MEMORY_BYTES_MAX
    return report("history.memory", ratio, unit=f"x {MEMORY_BYTES_MAX} bytes", limit=1.0, spread=(ratio, ratio))


def main() -> int:
    """Measure everything; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--measure", type=Path, metavar="DIRECTORY", help="only make the history of what is there")
    arguments = parser.parse_args()
    if arguments.measure:
        catch_up(arguments.measure)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return 0
    # What is only built to be read need not survive a crash of the machine, and syncing would take most of the time.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        many, some, one = (Path(name) / size for size in ("many", "some", "one"))
        for directory, runs in ((many, arguments.runs), (some, max(1, arguments.runs // 20)), (one, 1)):
            build(directory, runs)
        within = [
            measure_catch_up(some, arguments.repetitions),
            measure_status(many, one, arguments.repetitions),
            measure_memory(many),
        ]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
