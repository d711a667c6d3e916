"""A disk that is full or broken, files that may only be read, a large piece of evidence: clear errors, nothing lost."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.evidence import EvidenceStore
from ledger.record import NewEvent
from ledger.store.writer import Writer
from tests.ledger.attack import one_write
from tests.ledger.attack.killing import Program, needs_strace
from tests.ledger.attack.ledgers import stamp, verified, write
from tests.ledger.stores import run_python
from tests.support.makers import run_started

GIGABYTE = 1 << 30
MOST_MEMORY_KILOBYTES = 300_000
NAMED = ("ledger.errors.StoreUnwritable", "ledger.store.api.StoreUnreadable")

VERIFY = """
import gzip, sys
from pathlib import Path
from ledger.errors import LedgerError
from ledger.proof.recover import recover
from ledger.proof.verify import verify
from tests.ledger.attack.ledgers import stamp
place = Path(sys.argv[1])
drop_rights()
try:
    if sys.argv[2] == "recover":
        recover(place, stamp("recovery"))
    print(verify(place, place.parent / "evidence", print).sound)
except LedgerError as error:
    print(error.code, error.message, error.hint, sep="|")
# The peak of this program alone: `ru_maxrss` counts what its parent used before it was replaced, too.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@needs_strace
@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "ftruncate"])
def test_a_disk_that_fails_at_any_step_of_an_append_is_named_and_nothing_is_lost(
    tmp_path: Path, call: str, fault: str
) -> None:
    original, directory = tmp_path / "original", tmp_path / "ledger"
    original.mkdir()
    write(original)
    program = Program("one_write.py", directory, "append")
    shutil.copytree(original, directory)
    numbers = [number for name, number in program.changing_calls(tmp_path / "log") if name == call]
    failed = 0
    for number in numbers:
        shutil.rmtree(directory)
        shutil.copytree(original, directory)
        done = program.with_fault(call, f"{number}+", f"error={fault}")
        said = verified(directory / "ledger.sqlite", evidence=True)
        assert said.codes == []
        assert said.report.events == 24 or not done.stdout
        if done.returncode:
            failed += 1
            assert done.stderr.splitlines()[-1].startswith(NAMED), done.stderr
    assert failed > 0


@needs_strace
@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir"])
def test_a_full_disk_at_any_step_of_an_evidence_write_is_named_and_nothing_is_lost(tmp_path: Path, call: str) -> None:
    original, directory = tmp_path / "original", tmp_path / "ledger"
    original.mkdir()
    write(original)
    program = Program("one_write.py", directory, "evidence")
    shutil.copytree(original, directory)
    numbers = [number for name, number in program.changing_calls(tmp_path / "log") if name == call]
    named = 0
    for number in numbers:
        shutil.rmtree(directory)
        shutil.copytree(original, directory)
        done = program.with_fault(call, str(number), "error=ENOSPC")
        assert verified(directory / "ledger.sqlite", evidence=True).codes == []
        # The last write is the answer itself.
        assert done.returncode == 1 or EvidenceStore(directory / "evidence").has(one_write.CONTENT_DIGEST)
        named += NAMED[0] in done.stderr
    assert named >= len(numbers) - 1 > -1
    assert EvidenceStore(directory / "evidence").put_bytes(one_write.CONTENT) == one_write.CONTENT_DIGEST


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A ledger in a directory that others may read and not write; pytest's own ones they may not even enter."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        place = write(directory)
        directory.chmod(0o555)
        yield place
        directory.chmod(0o755)


def as_nobody(place: Path, what: str) -> list[str]:
    """What a process without special rights says."""
    done = run_python(VERIFY, place, what, as_nobody=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.real
def test_a_ledger_that_may_only_be_read_can_be_verified(read_only: Path) -> None:
    assert as_nobody(read_only, "verify")[0] == "True"


@pytest.mark.real
def test_a_damaged_ledger_that_may_only_be_read_is_verified_and_not_recovered(read_only: Path) -> None:
    damaged = bytearray(read_only.read_bytes())
    damaged[-100] ^= 0xFF
    read_only.write_bytes(damaged)
    assert as_nobody(read_only, "verify")[-2] == "False"
    code, message, hint = as_nobody(read_only, "recover")[-2].split("|")
    assert code == "store-unwritable"
    assert str(read_only) in message
    assert "nothing is lost" in hint
    assert read_only.read_bytes() == damaged
    assert sorted(path.name for path in read_only.parent.iterdir()) == ["evidence", "ledger.sqlite"]


@pytest.mark.real
def test_a_ledger_that_may_not_be_read_is_unreadable_and_not_damaged(read_only: Path) -> None:
    read_only.chmod(0o000)
    assert as_nobody(read_only, "verify")[0].startswith("store-unreadable|")


@pytest.mark.slow
@pytest.mark.real
def test_a_gigabyte_of_evidence_is_kept_and_verified_in_bounded_memory(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 3 * GIGABYTE:
        pytest.skip("there is not enough space for it")
    place = write(tmp_path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(GIGABYTE)
    run = "20300104-000000-0000"
    with Writer.open(place) as writer:
        digest = EvidenceStore(tmp_path / "evidence").put_file(large)
        event = run_started(run=run, config=digest)
        writer.append([NewEvent(run, event)], {run: 0}, stamp("large"))
    done = run_python(VERIFY, place, "verify")
    sound, memory_kilobytes = done.stdout.splitlines()
    assert (sound, done.stderr) == ("True", "")
    assert int(memory_kilobytes) < MOST_MEMORY_KILOBYTES
