"""The local executor when things die: drivers, their process groups, supervisors; and what it finds afterwards."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands.executors import local
from commands.executors.api import JobEnd
from commands.executors.local import LocalExecutor
from commands.shipped import supervisor
from tests.commands.jobs import (
    PATIENCE_SECONDS,
    end_all_below,
    end_of,
    eventually,
    is_alive,
    left_below,
    make_job,
    python,
    recorded_pid,
    run,
    text_of,
)

pytestmark = pytest.mark.real

ROOT = Path(local.__file__).parents[2]

DRIVER = """
import subprocess, sys
from pathlib import Path
from commands.executors.local import LocalExecutor
from tests.commands.jobs import make_job
executor = LocalExecutor()
executor.start(make_job(Path(sys.argv[1]), *sys.argv[2:]))
while True:
    executor.wait(60)
"""

TREE = "setsid sh -c 'echo $$ >> pids; sleep 60' & sh -c 'echo $$ >> pids; sleep 60' & echo $$ >> pids; wait"
"""A command of three shells, one of them in a session of its own; each says who it is."""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[LocalExecutor]:
    """An executor; no process of any job may be left after the test."""
    executor = LocalExecutor()
    yield executor
    executor.close()
    assert end_all_below(tmp_path) == []


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a driver process, in a process group of its own, that runs a command as the job `attempt`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, code: str = DRIVER) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, str(tmp_path), *argv]
        started.append(subprocess.Popen(command, cwd=ROOT, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def pids_in(place: Path) -> list[int]:
    """The processes that wrote their ids into the file `pids`."""
    return [int(pid) for pid in text_of(place / "pids").split()]


def start_tree(drive: Callable[..., subprocess.Popen[bytes]], place: Path) -> subprocess.Popen[bytes]:
    """A driver whose job has started all of its processes."""
    driver = drive("sh", "-c", TREE)
    eventually(lambda: len(pids_in(place)) == 3, "the start of the tree")
    return driver


def handed_over(place: Path, *argv: str) -> Path:
    """An attempt directory whose driver died before it started a supervisor."""
    job = make_job(place, *argv)
    assert local._hand_over(job, job.attempt_directory)
    return job.attempt_directory


# The driver dies


@pytest.mark.parametrize("kill", [os.kill, os.killpg], ids=["the process", "its process group"])
def test_a_killed_driver_takes_its_jobs_with_it(
    drive: Callable[..., subprocess.Popen[bytes]],
    executor: LocalExecutor,
    tmp_path: Path,
    kill: Callable[[int, int], None],
) -> None:
    driver = start_tree(drive, tmp_path)
    kill(driver.pid, signal.SIGKILL)
    began = time.monotonic()
    end = executor.settle("attempt", tmp_path / "attempt")
    assert (end.name, end.end, end.exit_code, end.signal) == ("attempt", "driver-died", None, signal.SIGKILL)
    assert end.duration_seconds > 0
    assert time.monotonic() - began < 5
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []
    assert left_below(tmp_path) == []


def test_a_signal_to_the_process_group_of_the_driver_does_not_reach_its_jobs(
    drive: Callable[..., subprocess.Popen[bytes]], executor: LocalExecutor, tmp_path: Path
) -> None:
    deaf = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    )
    driver = drive("sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.02; done; exit 3", code=deaf + DRIVER)
    eventually((tmp_path / "started").exists, "the start of the job")
    os.killpg(driver.pid, signal.SIGINT)
    os.killpg(driver.pid, signal.SIGTERM)
    (tmp_path / "go").touch()
    eventually((tmp_path / "attempt" / "result.json").exists, "the end of the job")
    assert executor.settle("attempt", tmp_path / "attempt").exit_code == 3


def test_other_children_of_the_driver_do_not_keep_its_jobs_alive(
    drive: Callable[..., subprocess.Popen[bytes]], executor: LocalExecutor, tmp_path: Path
) -> None:
    other = "subprocess.Popen(['sh', '-c', 'echo $$ > other; exec sleep 60'], close_fds=False, cwd=sys.argv[1])\nwhile"
    driver = drive("sleep", "60", code=DRIVER.replace("while", other))
    eventually(lambda: text_of(tmp_path / "other"), "the start of the other child")
    recorded_pid(tmp_path / "attempt", "command")
    driver.kill()
    try:
        eventually((tmp_path / "attempt" / "result.json").exists, "the end of the job")
        assert is_alive(int((tmp_path / "other").read_text()))
    finally:
        os.kill(int((tmp_path / "other").read_text()), signal.SIGKILL)
    assert executor.settle("attempt", tmp_path / "attempt").end == "driver-died"


def test_a_result_that_was_written_before_the_driver_died_stands(
    drive: Callable[..., subprocess.Popen[bytes]], executor: LocalExecutor, tmp_path: Path
) -> None:
    driver = drive("sh", "-c", "exit 3")
    eventually((tmp_path / "attempt" / "result.json").exists, "the end of the job")
    driver.kill()
    end = executor.settle("attempt", tmp_path / "attempt")
    assert (end.end, end.exit_code) == ("exited", 3)


def test_a_job_of_a_killed_driver_is_not_run_again_by_the_next_one(
    drive: Callable[..., subprocess.Popen[bytes]], executor: LocalExecutor, tmp_path: Path
) -> None:
    driver = start_tree(drive, tmp_path)
    driver.kill()
    assert run(executor, make_job(tmp_path, "touch", "ran again")).end == "driver-died"
    assert not (tmp_path / "ran again").exists()
    assert len(pids_in(tmp_path)) == 3


# The supervisor dies


def test_a_killed_supervisor_leads_to_lost_and_leaves_nothing_running(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", TREE)
    executor.start(job)
    eventually(lambda: len(pids_in(tmp_path)) == 3, "the start of the tree")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGKILL)
    end = end_of(executor, job.name)
    assert (end.end, end.exit_code, end.peak_memory_bytes) == ("lost", None, None)
    assert "ended without a result" in end.detail
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []
    assert executor.settle(job.name, job.attempt_directory) == end


def test_the_command_dies_with_its_supervisor_before_anybody_looks(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sleep", "60")
    executor.start(job)
    command = recorded_pid(job.attempt_directory, "command")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGKILL)
    eventually(lambda: not is_alive(command), "the end of the command")


def test_another_supervisor_does_not_run_the_job_of_a_killed_one(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo ran >> ran; exec sleep 60")
    executor.start(job)
    command = recorded_pid(job.attempt_directory, "command")
    eventually((tmp_path / "ran").exists, "the start of the job")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGKILL)
    eventually(lambda: not is_alive(command), "the end of the command")
    with local._start_supervisor(job.attempt_directory) as another:
        assert another.wait(PATIENCE_SECONDS) == supervisor.TAKEN
    assert end_of(executor, job.name).end == "lost"
    assert (tmp_path / "ran").read_text() == "ran\n"


@pytest.mark.parametrize("look", ["observe", "settle", "settle by the link"])
def test_leftovers_are_found_although_the_attempt_directory_was_named_by_a_link(
    executor: LocalExecutor, tmp_path: Path, look: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    job = make_job(tmp_path, "sh", "-c", TREE, attempt_directory=tmp_path / "link" / "attempt")
    executor.start(job)
    eventually(lambda: len(pids_in(tmp_path)) == 3, "the start of the tree")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGKILL)
    if look == "observe":
        end = end_of(executor, job.name)
    else:
        place = tmp_path if look == "settle" else tmp_path / "link"
        end = executor.settle(job.name, place / "attempt")
    assert end.end == "lost"
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []


def test_a_supervisor_that_hangs_is_killed_when_the_job_is_settled(
    drive: Callable[..., subprocess.Popen[bytes]],
    executor: LocalExecutor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = start_tree(drive, tmp_path)
    hanging = recorded_pid(tmp_path / "attempt", "supervisor")
    os.kill(hanging, signal.SIGSTOP)
    driver.kill()
    monkeypatch.setattr(local, "SETTLE_SECONDS", 0.2)
    assert executor.settle("attempt", tmp_path / "attempt").end == "lost"
    assert not is_alive(hanging)
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []


def test_a_supervisor_that_hangs_is_killed_when_the_executor_is_closed(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(tmp_path, "sh", "-c", TREE)
    executor.start(job)
    eventually(lambda: len(pids_in(tmp_path)) == 3, "the start of the tree")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGSTOP)
    monkeypatch.setattr(local, "SETTLE_SECONDS", 0.2)
    executor.close()
    assert [end.end for end in executor.observe()] == ["lost"]
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"start_time": 1}, id="another start time"),
        pytest.param({"start_time": None}, id="no start time"),
        pytest.param({"boot_id": "4e1a5b0e"}, id="another boot"),
        pytest.param({"pid": "x"}, id="no number"),
    ],
)
def test_a_process_that_got_the_pid_of_a_supervisor_is_left_alone(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    attempt = handed_over(tmp_path, "true")
    monkeypatch.setattr(local, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "KILL_SECONDS", 0.1)
    with subprocess.Popen(["sleep", "60"]) as innocent, open(attempt / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = {"supervisor": supervisor.identity(innocent.pid) | change}
        (attempt / "supervisor.json").write_text(json.dumps(record))
        end = executor.settle("attempt", attempt)
        alive = innocent.poll() is None
        innocent.kill()
    assert alive
    assert (end.end, end.detail) == ("lost", "its supervisor neither ends nor can be killed")


def test_a_supervisor_is_recognised_by_its_record(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sleep", "60")
    executor.start(job)
    recorded_pid(job.attempt_directory, "command")
    local._signal_supervisor(job.attempt_directory, signal.SIGTERM)
    assert end_of(executor, job.name).end == "stopped"


def test_the_output_of_a_lost_job_is_shortened(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "OUTPUT_LIMIT_BYTES", 2000)
    monkeypatch.setattr(supervisor, "OUTPUT_HEAD_BYTES", 10)
    monkeypatch.setattr(supervisor, "OUTPUT_TAIL_BYTES", 10)
    job = make_job(tmp_path, *python("import time; print('x' * 9000, flush=True); time.sleep(60)"))
    executor.start(job)
    eventually(lambda: text_of(job.attempt_directory / "output.log"), "the output")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGKILL)
    assert end_of(executor, job.name).end == "lost"
    assert "8981 bytes of output were dropped" in text_of(job.attempt_directory / "output.log")


# What is found in the attempt directory


def test_a_job_whose_supervisor_was_never_started_is_lost_and_stays_so(executor: LocalExecutor, tmp_path: Path) -> None:
    attempt = handed_over(tmp_path, "touch", "ran")
    end = executor.settle("attempt", attempt)
    assert (end.end, end.detail) == ("lost", "its supervisor was never started")
    late = subprocess.run(
        [sys.executable, "-E", "-s", "-S", supervisor.__file__, attempt], check=False, timeout=PATIENCE_SECONDS
    )
    assert late.returncode == supervisor.TAKEN
    assert not (tmp_path / "ran").exists()
    assert run(executor, make_job(tmp_path, "touch", "ran")) == end


def test_a_result_about_another_job_is_not_taken(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "true")
    run(executor, job)
    end = executor.settle("another", job.attempt_directory)
    assert (end.name, end.end) == ("another", "lost")
    assert "about the job attempt" in end.detail


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
RESULT = msgspec.to_builtins(local._job_end("attempt", "exited", ""))
CHANGED = st.dictionaries(st.sampled_from(sorted(RESULT)), JSON, min_size=1).map(lambda change: RESULT | change)
HOSTILE = st.binary() | (JSON | CHANGED).map(json.dumps).map(str.encode)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=HOSTILE)
def test_a_damaged_result_leads_to_lost_and_is_kept(tmp_path: Path, data: bytes) -> None:
    attempt = tmp_path / "attempt"
    attempt.mkdir(exist_ok=True)
    (attempt / "job.json").write_text("{}")
    (attempt / "result.json").write_bytes(data)
    end = local._conclude("attempt", attempt)
    assert end is not None
    assert (attempt / "result.json").read_bytes() == data
    try:
        assert end == msgspec.json.decode(data, type=JobEnd)
        assert end.name == "attempt"
    except (msgspec.MsgspecError, UnicodeDecodeError, AssertionError):
        assert (end.name, end.end, end.exit_code) == ("attempt", "lost", None)
        assert end.detail.startswith("result.json cannot be read")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=HOSTILE)
def test_a_damaged_record_of_the_supervisor_does_no_harm(tmp_path: Path, data: bytes) -> None:
    attempt = tmp_path / "attempt"
    attempt.mkdir(exist_ok=True)
    (attempt / "job.json").write_text("{}")
    (attempt / "supervisor.json").write_bytes(data)
    (attempt / "result.json").unlink(missing_ok=True)
    local._signal_supervisor(attempt, signal.SIGKILL)
    end = local._conclude("attempt", attempt)
    assert end is not None
    assert end.end == "lost"


def test_a_damaged_job_file_is_not_replaced_and_nothing_runs(executor: LocalExecutor, tmp_path: Path) -> None:
    (tmp_path / "attempt").mkdir()
    (tmp_path / "attempt" / "job.json").write_text('{"name": 1')
    end = run(executor, make_job(tmp_path, "touch", "ran"))
    assert (end.end, end.exit_code) == ("not-started", None)
    assert (tmp_path / "attempt" / "job.json").read_text() == '{"name": 1'
    assert not (tmp_path / "ran").exists()


def test_the_attempt_directory_is_private_and_all_that_is_touched(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "true")
    job.attempt_directory.mkdir(mode=0o777)
    run(executor, job)
    assert stat.S_IMODE(job.attempt_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((job.attempt_directory / "job.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempt"]
    files = ["job.json", "lock", "output.log", "result.json", "supervisor.json", "supervisor.log"]
    assert sorted(path.name for path in job.attempt_directory.iterdir()) == files


# The disk is full


def test_without_room_for_the_job_nothing_is_started(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from commands.executors.local import LocalExecutor\n"
        "from tests.commands.jobs import make_job, run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "executor = LocalExecutor()\n"
        "end = run(executor, make_job(Path(sys.argv[1]), 'touch', 'ran'))\n"
        "executor.close()\n"
        "sys.exit(f'{end.end} {end.detail}')"
    )
    ended = subprocess.run(
        [sys.executable, "-B", "-c", code, tmp_path],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.stderr.decode() == "not-started OSError: [Errno 27] File too large\n"
    assert not (tmp_path / "ran").exists()


def test_without_room_for_the_record_nothing_is_started(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "touch", "ran")
    (job.attempt_directory / "supervisor.json.tmp").mkdir(parents=True)
    end = run(executor, job)
    assert (end.end, end.exit_code) == ("not-started", None)
    assert end.detail.startswith("nothing was run: [Errno 21]")
    assert not (tmp_path / "ran").exists()
    assert executor.settle(job.name, job.attempt_directory) == end


def test_without_room_for_the_result_the_job_is_lost(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "true")
    (job.attempt_directory / "result.json.tmp").mkdir(parents=True)
    end = run(executor, job)
    assert (end.end, end.exit_code) == ("lost", None)
    assert "Errno 21" in end.detail
    assert executor.settle(job.name, job.attempt_directory).end == "lost"


# Waiting


def test_a_signal_ends_the_wait(executor: LocalExecutor, tmp_path: Path) -> None:
    executor.start(make_job(tmp_path, "sleep", "60"))
    handler = signal.signal(signal.SIGALRM, lambda number, frame: None)
    wakeup = signal.set_wakeup_fd(executor.wakeup_fd(), warn_on_full_buffer=False)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began = time.monotonic()
        executor.wait(20.0)
        assert time.monotonic() - began < 10
        began = time.monotonic()
        executor.wait(0.2)
        assert time.monotonic() - began > 0.15, "one signal has ended two waits"
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGALRM, handler)


@pytest.mark.parametrize("ours", [True, False])
def test_closing_takes_only_its_own_descriptor_from_the_signals(executor: LocalExecutor, ours: bool) -> None:
    # A closed descriptor soon belongs to another file, and a signal would write into that.
    other = os.open(os.devnull, os.O_WRONLY | os.O_NONBLOCK)
    before = signal.set_wakeup_fd(executor.wakeup_fd() if ours else other)
    executor.close()
    assert signal.set_wakeup_fd(before) == (-1 if ours else other)
    os.close(other)


def test_a_job_that_could_not_be_started_is_not_waited_for(executor: LocalExecutor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    executor.start(make_job(tmp_path, "sleep", "60", attempt_directory=tmp_path / "one"))
    executor.start(make_job(tmp_path, "true", attempt_directory=tmp_path / "file" / "two"))
    began = time.monotonic()
    executor.wait(20.0)
    assert time.monotonic() - began < 10
    assert [end.end for end in executor.observe()] == ["not-started"]


def test_jobs_are_observed_where_the_kernel_has_no_handles(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    job = make_job(tmp_path, "sh", "-c", "sleep 0.2; exit 3")
    executor.start(job)
    began = time.monotonic()
    executor.wait(20.0)
    assert time.monotonic() - began < 10
    assert end_of(executor, job.name).exit_code == 3


def test_no_descriptor_and_no_process_is_kept_for_a_job_that_has_ended(executor: LocalExecutor, tmp_path: Path) -> None:
    run(executor, make_job(tmp_path, "true", attempt_directory=tmp_path / "warm up"))
    before = len(os.listdir("/proc/self/fd")), psutil.Process().children()
    for number in range(5):
        run(executor, make_job(tmp_path, "true", attempt_directory=tmp_path / str(number)))
    assert (len(os.listdir("/proc/self/fd")), psutil.Process().children()) == before
