"""Locks with an owner, held and lost by real processes; and the clock that names those processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.effects import clock
from commands.effects.locks import LockHeld, OwnedLock, is_held, owner_details, read_owner
from ledger.errors import StoreUnwritable

pytestmark = pytest.mark.real

# Takes the lock, starts a child that would inherit every descriptor it can, and tells both numbers.
HOLDER = """
import subprocess, sys
from pathlib import Path
from commands.effects.locks import OwnedLock, owner_details

lock = OwnedLock(Path(sys.argv[1]), owner_details("run-1", "2026-01-31T08:00:00.000000Z"))
lock.acquire()
child = subprocess.Popen([sys.executable, "-c", "input()"], close_fds=False)
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "locks" / "run-1.lock"


@pytest.fixture
def holder(path):
    """A real process that holds the lock and has a living child; gives the process and the child's number."""
    root = Path(clock.__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        child = int(process.stdout.readline())
        assert is_held(path)
        yield process, child
        process.kill()
    if clock.process_start(child):
        os.kill(child, signal.SIGKILL)


def taken(path, run="run-2"):
    lock = OwnedLock(path, owner_details(run, "2026-01-31T09:00:00.000000Z"))
    lock.acquire()
    return lock


class TestOwnedLock:
    def test_a_second_process_is_refused_and_told_who_holds_it(self, path, holder):
        with pytest.raises(LockHeld) as refusal:
            taken(path)

        process, _ = holder
        assert (refusal.value.code, refusal.value.exit_code) == ("lock-held", 4)
        for told in ("run-1", socket.gethostname(), str(process.pid), "2026-01-31T08:00:00.000000Z"):
            assert told in refusal.value.message
        assert str(path) in refusal.value.hint
        assert is_held(path)

    def test_death_frees_the_lock_although_a_child_of_the_dead_lives_on(self, path, holder):
        process, child = holder
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=10)

        lock = taken(path)

        assert clock.process_start(child) is not None, "the child did outlive its parent"
        assert read_owner(path)["run"] == "run-2"
        lock.release()

    def test_a_note_of_a_dead_owner_blocks_nobody(self, path):
        path.parent.mkdir()
        path.touch()
        path.with_name("run-1.lock.owner").write_text(json.dumps({"run": "old", "pid": 1}))

        assert not is_held(path)
        taken(path).release()

    def test_the_file_stays_and_the_note_goes(self, path):
        with OwnedLock(path, owner_details("run-1", "now")):
            inode = path.stat().st_ino
            assert read_owner(path)["run"] == "run-1"

        assert path.stat().st_ino == inode
        assert read_owner(path) == {}
        assert os.listdir(path.parent) == ["run-1.lock"]

    def test_released_means_free_for_the_next(self, path):
        taken(path).release()

        lock = taken(path)
        assert is_held(path)
        lock.release()
        lock.release()
        assert not is_held(path)

    def test_two_owners_in_one_process_exclude_each_other_too(self, path):
        first = taken(path)

        with pytest.raises(LockHeld):
            taken(path)
        first.release()

    def test_a_lock_may_be_released_by_another_thread(self, path):
        lock = taken(path)
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join(timeout=10)

        assert not is_held(path)

    def test_waiting_ends_when_the_holder_does(self, path, holder):
        process, _ = holder
        lock = OwnedLock(path, owner_details("run-2", "now"))
        killer = threading.Timer(0.3, process.kill)
        killer.start()

        lock.acquire(timeout_seconds=10)

        assert read_owner(path)["run"] == "run-2"
        lock.release()

    def test_asking_whether_it_is_held_refuses_nobody(self, path):
        taken(path).release()
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                is_held(path)

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            for _ in range(50):
                taken(path).release()
        finally:
            stop.set()
            for asker in askers:
                asker.join(timeout=10)

    def test_asking_makes_no_file(self, path):
        assert not is_held(path)
        assert not path.parent.exists()

    def test_asking_in_vain_is_told_and_is_no_answer(self, path):
        path.mkdir(parents=True)

        with pytest.raises(StoreUnwritable, match="cannot be looked at"):
            is_held(path)

    @pytest.mark.parametrize("note", [b"", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
    def test_a_note_that_cannot_be_read_still_gives_a_refusal(self, path, note):
        lock = taken(path)
        path.with_name("run-1.lock.owner").write_bytes(note)

        with pytest.raises(LockHeld, match="run unknown is held by unknown"):
            taken(path)
        lock.release()

    def test_a_place_where_no_lock_can_be_made_is_told_as_such(self, tmp_path):
        (tmp_path / "file").touch()

        with pytest.raises(StoreUnwritable, match="cannot be taken") as failure:
            taken(tmp_path / "file" / "run.lock")

        assert failure.value.hint

    def test_a_note_that_cannot_be_written_leaves_the_lock_free(self, path):
        path.with_name("run-1.lock.owner").mkdir(parents=True)

        with pytest.raises(StoreUnwritable):
            taken(path)

        assert not is_held(path)

    def test_the_details_name_this_process(self):
        details = owner_details("run-1", "now")

        assert details["pid"] == os.getpid()
        assert details["started"] == clock.process_start(os.getpid())
        assert details["boot"] == clock.boot_id()
        assert details["user"]


class TestClock:
    def test_the_time_is_utc_with_microseconds(self):
        now = clock.Clock().utc_now()

        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", now)
        assert abs(datetime.fromisoformat(now) - datetime.now(UTC)) < timedelta(seconds=10)

    def test_the_monotonic_time_never_goes_backwards_and_names_never_repeat(self):
        ticks = [clock.Clock().monotonic() for _ in range(1000)]

        assert ticks == sorted(ticks)
        assert len({clock.Clock().unique_id() for _ in range(1000)}) == 1000

    def test_a_process_lives_until_it_has_ended_even_if_nobody_waits_for_it(self, wait_until):
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            started = clock.process_start(process.pid)
            assert clock.process_alive(process.pid, started, clock.boot_id()) is True
            assert clock.process_alive(process.pid, "1", clock.boot_id()) is False
            process.kill()
            # Not waited for, it is a zombie now: it still has its number.
            wait_until(lambda: clock.process_start(process.pid) is None)
            assert Path(f"/proc/{process.pid}").exists()

        assert clock.process_alive(process.pid, started, clock.boot_id()) is False

    @pytest.mark.parametrize("boot", ["", "another boot"])
    def test_of_a_process_of_another_boot_nothing_is_known(self, boot):
        assert clock.process_alive(os.getpid(), clock.process_start(os.getpid()), boot) is None

    def test_a_process_with_a_misleading_name_is_read_right(self, tmp_path):
        program = tmp_path / "a) Z 1 ("
        program.symlink_to(sys.executable)
        with subprocess.Popen([program, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            ours = clock.process_start(os.getpid())
            assert int(clock.process_start(process.pid)) >= int(ours)
            process.kill()
