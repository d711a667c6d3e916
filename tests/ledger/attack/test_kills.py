"""Killed between any two system calls: the ledger verifies, and what was acknowledged is there.

A first run under strace lists the system calls; then the same program is run once for each of them, and killed there.
Where there is no strace, kills by seed have to do.
"""

import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from ledger.errors import LedgerMissing
from ledger.evidence import EvidenceStore
from ledger.store.reader import Head
from tests.ledger.attack import one_write
from tests.ledger.attack.killing import Program, needs_strace
from tests.ledger.attack.ledgers import verified, write

EVENTS = 22

pytestmark = [pytest.mark.slow, pytest.mark.real]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a small ledger."""
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
        assert events in {"begin": (0, 1), "append": (EVENTS, EVENTS + 2)}[what]
        there = events in (1, EVENTS + 2)
    assert there or not acknowledged
    if not there:
        {"begin": one_write.begin, "append": one_write.append, "evidence": one_write.evidence}[what](directory)
        assert verified(place, evidence=True).codes == []
    return "there" if there else "not there"


@needs_strace
@pytest.mark.parametrize("what", ["begin", "append", "evidence"])
def test_a_process_that_is_killed_between_any_two_system_calls_loses_nothing(
    ledger: Path, tmp_path: Path, what: str
) -> None:
    directory = tmp_path / "ledger"
    program = Program("one_write.py", directory, what)

    def fresh() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if what == "begin":
            directory.mkdir()
        else:
            shutil.copytree(ledger, directory)

    fresh()
    calls = program.changing_calls(tmp_path / "log")
    outcomes: Counter[str] = Counter()
    for name, number in calls:
        fresh()
        done = program.with_fault(name, str(number), "signal=SIGKILL")
        assert done.returncode == -signal.SIGKILL, (name, number, done.stderr)
        outcomes[check(directory, what, done.stdout)] += 1
    assert outcomes.total() == len(calls) > 10
    assert outcomes["there"] > 0 < outcomes["not there"], outcomes


@pytest.mark.parametrize("seed", range(8))
def test_a_process_that_is_killed_while_it_writes_loses_nothing_that_was_acknowledged(
    ledger: Path, tmp_path: Path, seed: int
) -> None:
    directory, dice = shutil.copytree(ledger, tmp_path / "ledger"), random.Random(seed)
    process = Program("one_write.py", directory, "run", "20300105-000000-0000", 100_000).start()
    assert process.stdout
    acknowledged = [process.stdout.readline() for _ in range(dice.randint(1, 60))]
    # Spinning a random while puts the kill anywhere inside the evidence or the append that follows.
    for _ in range(dice.randint(0, 100_000)):
        pass
    process.kill()
    acknowledged += process.communicate(timeout=60)[0].splitlines(keepends=True)
    said = verified(directory / "ledger.sqlite", evidence=True)
    assert said.codes == []
    assert said.report.events - (EVENTS + 1) in (2 * len(acknowledged), 2 * len(acknowledged) + 2)
    sequence, digest = acknowledged[-1].split()
    assert verified(directory / "ledger.sqlite", noted=Head(int(sequence), digest)).report.sound
