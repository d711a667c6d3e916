"""Killed between any two system calls: the ledger verifies, and what was acknowledged is there.

A first run under strace lists the system calls; then the same program is run once for each of them, and killed there.
Where there is no strace, kills by seed have to do.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ledger.errors import LedgerMissing
from ledger.evidence import EvidenceStore
from ledger.store.reader import Head
from tests.ledger.attack import one_write
from tests.ledger.attack.ledgers import verified, write
from tests.ledger.attack.one_write import BEGIN_MARK, END_MARK

PROGRAM = Path(__file__).with_name("one_write.py")
ROOT = PROGRAM.parents[3]
STRACE = shutil.which("strace")
# What changes a file, a directory or the answer; between two of these the disk does not change.
CHANGING = {
    "fdatasync", "fsync", "ftruncate", "linkat", "mkdir", "openat", "pwrite64", "rename", "renameat", "unlink", "write",
}  # fmt: skip
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)")
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

pytestmark = [pytest.mark.slow, pytest.mark.real]


def run(directory: Path, what: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program under strace with these options."""
    command = [str(STRACE), *options, sys.executable, str(PROGRAM), str(directory), what]
    return subprocess.run(command, capture_output=True, timeout=120, env=ENVIRONMENT, check=False)


def system_calls(directory: Path, what: str, log: Path) -> list[tuple[str, int]]:
    """The system calls of the one thing that change something: each with its number among those of its name."""
    done = run(directory, what, "-o", str(log))
    assert done.returncode == 0, done.stderr
    counts: Counter[str] = Counter()
    calls, inside = [], False
    for match in filter(None, map(CALL.match, log.read_text("utf-8", "replace").splitlines())):
        name, arguments = match.groups()
        counts[name] += 1
        if END_MARK in arguments:
            return calls
        if inside and name in CHANGING:
            calls.append((name, counts[name]))
        inside = inside or BEGIN_MARK in arguments
    raise AssertionError("the marks are not in the list of system calls")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a small ledger of 22 events."""
    directory = tmp_path_factory.mktemp("kills") / "ledger"
    directory.mkdir()
    write(directory)
    return directory


def check(directory: Path, what: str, acknowledged: str) -> str:
    """What is there after the kill, once it is clear that it is whole; then the one thing is done again."""
    place = directory / "ledger.sqlite"
    if what == "evidence":
        assert verified(place, evidence=True).codes == []
        there = EvidenceStore(directory / "evidence").has(one_write.CONTENT_DIGEST)
    else:
        try:
            said = verified(place, evidence=True)
        except LedgerMissing:
            events = 0
        else:
            assert said.codes == []
            events = said.report.events
        assert events in {"begin": (0, 1), "append": (22, 24)}[what]
        there = events in (1, 24)
    assert there or not acknowledged
    if not there:
        {"begin": one_write.begin, "append": one_write.append, "evidence": one_write.evidence}[what](directory)
        assert verified(place, evidence=True).codes == []
    return "there" if there else "not there"


@pytest.mark.skipif(STRACE is None, reason="there is no strace here")
@pytest.mark.parametrize("what", ["begin", "append", "evidence"])
def test_a_process_that_is_killed_between_any_two_system_calls_loses_nothing(
    ledger: Path, tmp_path: Path, what: str
) -> None:
    directory = tmp_path / "ledger"

    def fresh() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if what == "begin":
            directory.mkdir()
        else:
            shutil.copytree(ledger, directory)

    fresh()
    calls = system_calls(directory, what, tmp_path / "log")
    outcomes: Counter[str] = Counter()
    for name, number in calls:
        fresh()
        fault = f"inject={name}:signal=SIGKILL:when={number}"
        done = run(directory, what, "-o", os.devnull, "-e", f"trace={name}", "-e", fault)
        assert done.returncode == -signal.SIGKILL, (name, number, done.stderr)
        outcomes[check(directory, what, done.stdout.decode())] += 1
    assert outcomes.total() == len(calls) > 10
    assert outcomes["there"] > 0 < outcomes["not there"], outcomes


@pytest.mark.parametrize("seed", range(8))
def test_a_process_that_is_killed_while_it_writes_loses_nothing_that_was_acknowledged(
    ledger: Path, tmp_path: Path, seed: int
) -> None:
    directory, dice = shutil.copytree(ledger, tmp_path / "ledger"), random.Random(seed)
    command = [sys.executable, str(PROGRAM), str(directory), "run", "20300105-000000-0000", "100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout
    acknowledged = [process.stdout.readline() for _ in range(dice.randint(1, 60))]
    # Spinning a random while puts the kill anywhere inside the evidence or the append that follows.
    for _ in range(dice.randint(0, 100_000)):
        pass
    process.kill()
    acknowledged += process.communicate(timeout=60)[0].splitlines(keepends=True)
    said = verified(directory / "ledger.sqlite", evidence=True)
    assert said.codes == []
    assert said.report.events - 23 in (2 * len(acknowledged), 2 * len(acknowledged) + 2)
    sequence, digest = acknowledged[-1].split()
    assert verified(directory / "ledger.sqlite", noted=Head(int(sequence), digest)).report.sound
