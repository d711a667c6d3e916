"""Verifying a whole ledger beside reading it raw, with one SHA-256 of the same bytes; and the memory that it takes.

Usage: python scripts/bench/verify.py [--events 1000000] [--repetitions 5]. Exit code 1 over a limit.
"""

import argparse
import gzip
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from ledger.events import STREAM, Event, GatePolicy, LedgerCreated, RunStarted
from ledger.proof.findings import Finding
from ledger.proof.verify import verify
from ledger.record import NewEvent
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.rows import SELECT_ROW
from ledger.store.writer import Writer
from scripts.bench.measuring.lib import Watch, compare, report
from scripts.bench.store import COMMIT, RUN_EVENTS, attempts, digest_of, stamp

RATIO_MAX = 4.0
MEMORY_BYTES_MAX = 300 * 2**20
NAMES = 3_000_000
"""As many pieces of evidence as a ledger of a million events may name, if every attempt has its own."""


def build(directory: Path, count: int) -> None:
    """A ledger of so many events in runs, and all evidence that they name."""
    with Writer.open(directory / LEDGER_FILE, create=True) as writer:
        created = LedgerCreated(ledger_id="c" * 32, project="bench", root_commit=COMMIT, format_version=1)
        writer.append([NewEvent(STREAM, created)], {STREAM: 0}, stamp(-1))
        numbers = range(0, count - 1, RUN_EVENTS)
        for number in numbers:
            run = f"run-{number:07}"
            events: list[Event] = [started(run), *attempts(min(RUN_EVENTS, count - 1 - number) - 1)]
            writer.append([NewEvent(run, event) for event in events], {run: 0}, stamp(number))
    # Shards are counted within a run, and a name is the digest of its number.
    write_evidence(directory / EVIDENCE, [*range(RUN_EVENTS // 4 + 4), *(-number for number in (-1, *numbers))])


def started(run: str) -> RunStarted:
    """The first event of a run."""
    return RunStarted(
        run=run, kind="gate", candidate=COMMIT, candidate_ref="HEAD", baseline=COMMIT, baseline_ref="v1",
        baseline_reason="the newest tag", dirty=False, steps=("gate",), policy=GatePolicy(), config=digest_of(0),
    )  # fmt: skip


def write_evidence(directory: Path, numbers: Iterable[int]) -> None:
    """The evidence with the digests of these numbers, written as it is kept, but without waiting for the disk."""
    for number in numbers:
        path = directory / digest_of(number)[:2] / f"{digest_of(number)}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(str(number).encode(), mtime=0))


def verify_all(directory: Path, watch: Watch) -> None:
    """Verify everything; there is nothing to be found."""
    findings: list[Finding] = []
    with watch.timed():
        verify(directory / LEDGER_FILE, directory / EVIDENCE, findings.append)
    assert findings == []


def read_raw(directory: Path, watch: Watch) -> None:
    """Select the same rows, and read the same evidence, with one SHA-256 over the bytes of each."""
    with watch.timed():
        connection = sqlite3.connect(directory / LEDGER_FILE)
        for row in connection.execute(SELECT_ROW + "ORDER BY sequence"):
            sha256(row[1] + row[2]).digest()
        connection.close()
        for path in (directory / EVIDENCE).rglob("*.gz"):
            sha256(gzip.decompress(path.read_bytes())).digest()


def peak_memory_bytes(code: str) -> int:
    """The most memory that a process takes which runs this code."""
    code += "\nimport resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout) * 1024


def report_memory(figure: str, code: str, what: str) -> bool:
    """The memory that some code takes, beside what it may take."""
    ratio = peak_memory_bytes(code) / MEMORY_BYTES_MAX
    return report(figure, ratio, unit=f"x {MEMORY_BYTES_MAX} bytes; {what}", limit=1.0, spread=(ratio, ratio))


def measure(directory: Path, count: int, repetitions: int) -> bool:
    """All figures of a ledger of so many events."""
    build(directory, count)
    within = [
        compare(
            "verify",
            lambda watch: verify_all(directory, watch),
            lambda watch: read_raw(directory, watch),
            unit=f"x raw read with one SHA-256 of the same bytes; {count} events and their evidence",
            limit=RATIO_MAX,
            repetitions=repetitions,
        ),
        report_memory(
            "verify.memory",
            "from pathlib import Path\nfrom ledger.proof.verify import verify\n"
            f"verify(Path({str(directory / LEDGER_FILE)!r}), Path({str(directory / EVIDENCE)!r}), print)",
            f"{count} events",
        ),
        report_memory(
            "verify.memory-names",
            "from hashlib import sha256\nfrom ledger.proof.evidence import NamedEvidence\nnamed = NamedEvidence()\n"
            f"for n in range({NAMES}): named.add(sha256(str(n).encode()).hexdigest(), n)\n"
            f"assert sum(len(named.at(places)) for places in named.by_folder().values()) == {NAMES}",
            f"{NAMES} different pieces of evidence named",
        ),
    ]
    return all(within)


def main() -> int:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return 0 if measure(Path(directory), arguments.events, arguments.repetitions) else 1


if __name__ == "__main__":
    sys.exit(main())
