"""Room on this machine: runs that know nothing of each other never book more of it than there is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.effects.pool import machine
from commands.effects.pool.machine import Machine

GIB = 2**30
ROOT = Path(machine.__file__).parents[3]


@pytest.fixture(autouse=True)
def ten_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with ten gibibytes, all of them free, whatever this one has."""
    monkeypatch.setattr(machine, "memory_total_bytes", lambda: 10 * GIB)
    monkeypatch.setattr(machine, "memory_free_bytes", lambda: 10 * GIB)


@pytest.fixture
def two_runs(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """Two runs on one machine with three slots."""
    runs = Machine(tmp_path, "run-1", 3), Machine(tmp_path, "run-2", 3)
    yield runs
    for run in runs:
        run.close()


def test_memory_that_one_run_has_booked_is_not_there_for_another(two_runs: tuple[Machine, Machine]) -> None:
    one, other = two_runs
    assert one.book("a", 7 * GIB) == ""
    assert other.book("a", 4 * GIB) == "4.0 GiB are needed; of 10.0 GiB 7.0 GiB are booked (also by run-1)"
    assert other.shortage(4 * GIB)
    assert other.book("b", 3 * GIB) == ""
    one.release("a")
    assert other.book("a", 4 * GIB) == ""


def test_slots_that_are_taken_are_not_there_for_another(two_runs: tuple[Machine, Machine]) -> None:
    one, other = two_runs
    assert [one.book(name, 1) for name in "abc"] == ["", "", ""]
    assert other.book("a", 1) == "all 3 slots of this machine are taken (also by run-1)"
    one.close()
    assert other.shortage(1) == ""


def test_booking_what_is_booked_changes_nothing(two_runs: tuple[Machine, Machine]) -> None:
    one, other = two_runs
    assert [one.book("a", 6 * GIB), one.book("a", 6 * GIB)] == ["", ""]
    assert other.book("a", 4 * GIB) == ""


def test_memory_that_somebody_else_uses_is_not_there(
    two_runs: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory_free_bytes", lambda: GIB)
    assert two_runs[0].book("a", 2 * GIB) == "2.0 GiB are needed; of 10.0 GiB 1.0 GiB are free"
    assert two_runs[0].book("a", GIB) == ""


def test_what_a_run_that_was_killed_had_booked_is_free_again(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from commands.effects.pool import machine\n"
        f"machine.memory_total_bytes = machine.memory_free_bytes = lambda: {10 * GIB}\n"
        f"held = machine.Machine(Path({str(tmp_path)!r}), 'dying', 3)\n"
        f"print(repr(held.book('a', {9 * GIB})), flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "''\n"
        other = Machine(tmp_path, "run-2", 3)
        assert "also by dying" in other.shortage(2 * GIB)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert other.book("a", 9 * GIB) == ""
    other.close()
    assert list(tmp_path.rglob("*.booking")) == []


def test_of_many_processes_that_want_the_same_room_one_gets_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from commands.effects.pool import machine\n"
        f"machine.memory_total_bytes = machine.memory_free_bytes = lambda: {10 * GIB}\n"
        f"held = machine.Machine(Path({str(tmp_path)!r}), sys.argv[1], 9)\n"
        f"print(held.book('a', {6 * GIB}) == '', flush=True)\nsys.stdin.read()"
    )
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [*command, f"run-{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for number in range(4)
    ]
    answers = [process.stdout.readline().strip() for process in processes if process.stdout]
    for process in processes:
        process.communicate("")
    assert sorted(answers) == ["False", "False", "False", "True"]


def test_what_cannot_be_read_in_a_booking_counts_for_nothing(tmp_path: Path) -> None:
    one = Machine(tmp_path, "run-1", 3)
    assert one.book("a", 1) == ""
    (place,) = tmp_path.glob("bookings-*")
    (place / "left.booking").write_text("{")
    assert one.shortage(9 * GIB) == ""
    assert not (place / "left.booking").exists()
    one.close()


@pytest.mark.parametrize(
    ("limit", "used", "reclaimable", "expected"),
    [("max", "5", "0", 10 * GIB), (str(GIB), "1000", "400", GIB - 600), (str(GIB), str(2 * GIB), "0", 0)],
)
def test_the_memory_of_a_container_is_what_its_limit_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, used: str, reclaimable: str, expected: int
) -> None:
    monkeypatch.undo()
    import psutil

    memory = psutil.virtual_memory()._replace(total=10 * GIB, available=10 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text(used + "\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {reclaimable}\n")
    assert machine.memory_free_bytes() == expected
    assert machine.memory_total_bytes() == (10 * GIB if limit == "max" else GIB)
