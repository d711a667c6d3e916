"""The supervisor with commands that misbehave: whatever they do, it ends them all and says how it went."""

import ast
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from commands.executors.api import JobEnd
from commands.executors.local import LocalExecutor, _start_supervisor
from commands.shipped import process_tree, supervisor
from tests.commands.jobs import (
    PATIENCE_SECONDS,
    end_all_below,
    end_of,
    eventually,
    is_alive,
    make_job,
    python,
    recorded_pid,
    run,
    text_of,
)

pytestmark = pytest.mark.real

ROOT = Path(supervisor.__file__).parents[2]

DETACH = """
import os, sys, time
def detach(work):
    '''Run in a daemon: an orphan in a session of its own.'''
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
    os.wait()
def leave_pid(name='pids'):
    with open(name, 'a') as file: file.write(f'{os.getpid()}\\n')
"""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[LocalExecutor]:
    """An executor; no process of any job, and none that wrote its id into `pids`, may be left after the test."""
    executor = LocalExecutor()
    yield executor
    executor.close()
    assert end_all_below(tmp_path) == []
    assert [pid for pid in text_of(tmp_path / "pids").split() if is_alive(int(pid))] == []


def write_job(place: Path, *argv: str, **fields: object) -> Path:
    """Put a job into the attempt directory `attempt`, and return that."""
    job = make_job(place, *argv, **fields)
    job.attempt_directory.mkdir()
    document = {field: getattr(job, field) for field in job.__struct_fields__}
    (job.attempt_directory / "job.json").write_text(json.dumps(document, default=str))
    return job.attempt_directory


def run_python(executor: LocalExecutor, place: Path, code: str, **fields: object) -> JobEnd:
    """Run this code as a job."""
    return run(executor, make_job(place, *python(DETACH + code), **fields))


# Leftovers


def test_background_children_of_a_finished_command_are_ended_and_named(executor: LocalExecutor, tmp_path: Path) -> None:
    end = run(executor, make_job(tmp_path, "sh", "-c", "sleep 60 & sleep 60 & sleep 0.2"))
    assert (end.end, end.exit_code) == ("exited", 0)
    assert end.detail == "left running by the command and ended (2): sleep, sleep"


def test_a_daemon_that_left_its_parent_and_its_session_is_ended(executor: LocalExecutor, tmp_path: Path) -> None:
    end = run_python(executor, tmp_path, "detach(lambda: (leave_pid(), time.sleep(60)))\ntime.sleep(0.3)")
    assert (end.end, end.exit_code) == ("exited", 0)
    assert "left running by the command and ended (1)" in end.detail
    assert len((tmp_path / "pids").read_text().split()) == 1


def test_a_daemon_that_cleared_its_environment_is_ended(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "script = 'echo $$ >> pids; exec sleep 60'\n"
        "detach(lambda: os.execve('/bin/sh', ['sh', '-c', script], {}))\n"
        "while not os.path.exists('pids'): time.sleep(0.01)"
    )
    assert run_python(executor, tmp_path, code).exit_code == 0


def test_a_chain_of_daemons_is_ended_to_its_last_link(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "def link(depth):\n"
        "    leave_pid()\n"
        "    if depth: detach(lambda: link(depth - 1))\n"
        "    time.sleep(60)\n"
        "detach(lambda: link(20))\n"
        "while sum(1 for _ in open('pids')) < 21: time.sleep(0.01)"
    )
    (tmp_path / "pids").touch()
    assert "(21)" in run_python(executor, tmp_path, code).detail


def test_two_hundred_short_processes_are_reaped_and_ended(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "for number in range(200): detach(lambda: time.sleep(60 if number % 2 else 0.01))\n"
        "def children(): return open(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read().split()\n"
        "deadline = time.monotonic() + 20\n"
        "while len(children()) > 101 and time.monotonic() < deadline: time.sleep(0.01)\n"
        "open('children', 'w').write(str(len(children())))"
    )
    end = run_python(executor, tmp_path, code)
    assert end.exit_code == 0
    assert "(100)" in end.detail
    assert (tmp_path / "children").read_text() == "101", "the short ones were not reaped while the command ran"


def test_a_process_that_moves_on_all_the_time_is_caught(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "def move():\n"
        "    while True:\n"
        "        if os.fork(): os._exit(0)\n"
        "        os.setsid()\n"
        "        time.sleep(0.002)\n"
        "detach(move)\n"
        "time.sleep(0.3)"
    )
    end = run_python(executor, tmp_path, code)
    assert (end.end, end.exit_code) == ("exited", 0)
    assert "could not" not in end.detail


def test_a_process_outside_of_the_tree_is_found_by_its_marks(executor: LocalExecutor, tmp_path: Path) -> None:
    attempt = tmp_path / "attempt"
    marks = supervisor.marks("attempt", str(attempt.resolve()))
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **marks}) as stranger:
        end = run(executor, make_job(tmp_path, "true"))
        assert stranger.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert end.detail == "processes found outside of the tree and ended: 1"


def test_a_job_of_the_same_name_in_another_directory_is_left_alone(executor: LocalExecutor, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = make_job(tmp_path / "other", "sleep", "60", name="attempt")
    with closing(LocalExecutor()) as another:
        another.start(other)
        recorded_pid(other.attempt_directory, "command")
        assert run(executor, make_job(tmp_path, "true")).exit_code == 0
        another.wait(0.2)
        assert another.observe() == []


# Commands that do not want to end


def test_a_stopped_process_is_ended_by_the_time_limit(executor: LocalExecutor, tmp_path: Path) -> None:
    end = run(executor, make_job(tmp_path, "sh", "-c", "kill -STOP $$", time_limit_seconds=0.4))
    assert (end.end, end.signal) == ("time-limit", signal.SIGKILL)


def test_a_command_that_ignores_every_signal_is_killed_after_the_grace_time(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    code = (
        "import signal\n"
        "for number in signal.valid_signals() - {9, 19}: signal.signal(number, signal.SIG_IGN)\n"
        "leave_pid()\n"
        "time.sleep(60)"
    )
    job = make_job(tmp_path, *python(DETACH + code))
    executor.start(job)
    eventually(lambda: text_of(tmp_path / "pids"), "the start of the command")
    executor.stop(job.name)
    end = end_of(executor, job.name)
    assert (end.end, end.exit_code, end.signal) == ("stopped", None, signal.SIGKILL)


@pytest.mark.parametrize("limit", [{"time_limit_seconds": 0.4}, {"idle_limit_seconds": 0.4}], ids=str)
def test_a_limit_gives_no_grace(executor: LocalExecutor, tmp_path: Path, limit: dict[str, float]) -> None:
    job = make_job(tmp_path, "sh", "-c", "trap 'echo asked' TERM; while true; do sleep 0.02; done", **limit)
    assert run(executor, job).signal == signal.SIGKILL
    assert (job.attempt_directory / "output.log").read_text() == ""


def test_a_whole_tree_is_ended_with_its_command(executor: LocalExecutor, tmp_path: Path) -> None:
    code = "for number in range(5): detach(lambda: (leave_pid(), time.sleep(60)))\nleave_pid()\ntime.sleep(60)"
    end = run_python(executor, tmp_path, code, time_limit_seconds=0.7)
    assert (end.end, end.detail) == ("time-limit", "")
    assert len((tmp_path / "pids").read_text().split()) == 6


def test_a_command_that_makes_itself_a_subreaper_does_not_keep_its_daemons(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    code = (
        "import ctypes\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "detach(lambda: (leave_pid(), time.sleep(60)))\n"
        "time.sleep(60)"
    )
    assert run_python(executor, tmp_path, code, time_limit_seconds=0.5).end == "time-limit"


def test_without_a_subreaper_the_marks_are_enough(tmp_path: Path) -> None:
    attempt = write_job(tmp_path, *python(DETACH + "detach(lambda: (leave_pid(), time.sleep(60)))\ntime.sleep(0.2)"))
    without = "import ctypes, os, runpy, sys\nctypes.CDLL = lambda name: None\nsys.argv = sys.argv[1:]\n"
    without += "sys.path.insert(0, os.path.dirname(sys.argv[0]))\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    with subprocess.Popen(python(without, supervisor.__file__, str(attempt)), stdin=subprocess.PIPE) as process:
        assert process.wait(PATIENCE_SECONDS) == 0
    end = json.loads((attempt / "result.json").read_text())
    assert (end["end"], end["exit_code"]) == ("exited", 0)
    assert not is_alive(int((tmp_path / "pids").read_text()))


# Signals


def test_the_terminal_signals_of_the_driver_do_not_reach_the_job(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 4")
    executor.start(job)
    pid = recorded_pid(job.attempt_directory, "supervisor")
    recorded_pid(job.attempt_directory, "command")
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    executor.wait(0.2)
    (tmp_path / "go").touch()
    assert end_of(executor, job.name).exit_code == 4


def test_sigterm_asks_the_supervisor_to_stop(executor: LocalExecutor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sleep", "60")
    executor.start(job)
    recorded_pid(job.attempt_directory, "command")
    os.kill(recorded_pid(job.attempt_directory, "supervisor"), signal.SIGTERM)
    end = end_of(executor, job.name)
    assert (end.end, end.signal) == ("stopped", signal.SIGTERM)


def test_the_command_starts_with_default_signals_in_a_session_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "ignored = [n.name for n in signal.Signals if signal.getsignal(n) == signal.SIG_IGN]\n"
        "blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "print(sorted(ignored), sorted(blocked), os.getsid(0) == os.getpgid(0) == os.getpid())\n"
        "print(sorted(os.listdir('/proc/self/fd'))[:-1])"
    )
    driver = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from commands.executors.local import LocalExecutor\n"
        "from tests.commands.jobs import make_job, python, run\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "executor = LocalExecutor()\n"
        "run(executor, make_job(Path(sys.argv[1]), *python(sys.argv[2])))\n"
        "executor.close()"
    )
    subprocess.run([sys.executable, "-c", driver, tmp_path, code], check=True, timeout=PATIENCE_SECONDS, cwd=ROOT)
    # Python itself ignores these two.
    expected = "['SIGPIPE', 'SIGXFSZ'] [] True\n['0', '1', '2']\n"
    assert (tmp_path / "attempt" / "output.log").read_text() == expected


# Output


def test_a_command_may_close_its_output(executor: LocalExecutor, tmp_path: Path) -> None:
    code = "print('before', flush=True); os.close(1); os.close(2); time.sleep(0.2); os._exit(6)"
    job = make_job(tmp_path, *python(DETACH + code))
    assert run(executor, job).exit_code == 6
    assert (job.attempt_directory / "output.log").read_text() == "before\n"


@pytest.mark.slow
def test_a_huge_output_keeps_its_head_and_its_tail_and_little_of_the_disk(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    code = (
        "print('the first line', flush=True)\n"
        "chunk = (b'x' * 1023 + b'\\n') * 1024\n"
        "for number in range(200): os.write(1, chunk); time.sleep(0.005)\n"
        "time.sleep(0.3)\n"
        "open('blocks', 'w').write(str(os.fstat(1).st_blocks))\n"
        "print('the last line')"
    )
    job = make_job(tmp_path, *python(DETACH + code))
    assert run(executor, job).exit_code == 0
    output = (job.attempt_directory / "output.log").read_bytes()
    assert len(output) <= supervisor.OUTPUT_LIMIT_BYTES
    printed_bytes = len(b"the first line\nthe last line\n") + 200 * 2**20
    dropped_bytes = printed_bytes - supervisor.OUTPUT_HEAD_BYTES - supervisor.OUTPUT_TAIL_BYTES
    head, mark, tail = output.partition(b"\n[ledger: %d bytes of output were dropped here]\n" % dropped_bytes)
    assert head == b"the first line\n" + (b"x" * 1023 + b"\n") * (32 * 1024 - 1) + b"x" * 1009
    assert mark
    assert len(tail) == supervisor.OUTPUT_TAIL_BYTES
    assert tail.endswith(b"x\nthe last line\n")
    assert int((tmp_path / "blocks").read_text()) * 512 < supervisor.OUTPUT_LIMIT_BYTES + 8 * 2**20


@pytest.mark.parametrize(("extra", "kept"), [(0, True), (1, False)])
def test_output_is_shortened_only_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int, kept: bool
) -> None:
    monkeypatch.setattr(supervisor, "OUTPUT_LIMIT_BYTES", 100)
    monkeypatch.setattr(supervisor, "OUTPUT_HEAD_BYTES", 10)
    monkeypatch.setattr(supervisor, "OUTPUT_TAIL_BYTES", 5)
    text = b"HEAD" + b"." * (92 + extra) + b"TAIL"
    (tmp_path / "output.log").write_bytes(text)
    supervisor.Output(str(tmp_path / "output.log")).close()
    short = b"HEAD......\n[ledger: 86 bytes of output were dropped here]\n.TAIL"
    assert (tmp_path / "output.log").read_bytes() == (text if kept else short)


# Memory


def test_memory_that_processes_share_counts_once(executor: LocalExecutor, tmp_path: Path) -> None:
    code = (
        "shared = b'x' * (80 << 20)\n"
        "children = [os.fork() for _ in range(1)] if os.fork() else [0]\n"
        "time.sleep(0.6)\n"
        "os._exit(0) if 0 in children else [os.wait() for _ in range(2)]"
    )
    end = run_python(executor, tmp_path, code)
    assert (end.exit_code, end.memory_method) == (0, "pss")
    assert end.peak_memory_bytes is not None
    assert 80 << 20 <= end.peak_memory_bytes < 120 << 20


def test_a_child_that_still_borrows_the_memory_of_its_parent_counts_once(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    # Between vfork and exec a child lives in its parent's memory. The lease makes this exec wait for us.
    program = Path(shutil.copy("/bin/true", tmp_path / "program"))
    code = "import subprocess; big = b'x' * (80 << 20); subprocess.run(['./program'], check=True)"
    job = make_job(tmp_path, *python(code), memory_limit_bytes=150 << 20)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with program.open("rb") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            pytest.skip("the file system has no leases")
        executor.start(job)
        command = psutil.Process(recorded_pid(job.attempt_directory, "command"))
        eventually(command.children, "the start of the child")
        executor.wait(0.8)
        assert [child.exe() for child in command.children()] == [command.exe()], "it should not have been executed"
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)
    end = end_of(executor, job.name)
    assert (end.end, end.exit_code) == ("exited", 0)
    assert end.peak_memory_bytes is not None
    assert 80 << 20 <= end.peak_memory_bytes < 150 << 20


def test_growth_is_noticed_although_no_measurement_is_due() -> None:
    code = "a = b'x' * (20 << 20); print(flush=True); input(); b = b'x' * (80 << 20); print(flush=True); input()"
    with subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = process_tree.Memory(0)
        before.exceeded()
        memory = process_tree.Memory(before.peak_bytes + (40 << 20))
        memory.exceeded()
        memory._measure_due, memory._look_due = float("inf"), 0.0
        assert not memory.exceeded()
        assert memory.peak_bytes < before.peak_bytes + (20 << 20)
        process.stdin.write(b"\n")
        process.stdout.readline()
        memory._measure_due, memory._look_due = float("inf"), 0.0
        assert not memory.exceeded(), "one measurement is not enough"
        assert memory.peak_bytes > before.peak_bytes + (60 << 20)
        assert memory.exceeded()
        process.kill()


def test_where_the_kernel_hides_proportional_sizes_resident_ones_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    read = process_tree.read_file
    monkeypatch.setattr(process_tree, "read_file", lambda path: b"" if path.endswith("smaps_rollup") else read(path))
    method, _, used = process_tree.memory_of(os.getpid())
    assert method == "rss"
    assert used == pytest.approx(psutil.Process().memory_info().rss, rel=0.1)


def test_the_memory_of_a_process_that_is_gone_is_nothing() -> None:
    with subprocess.Popen(["true"]) as process:
        eventually(lambda: not is_alive(process.pid), "the end of the process")
        assert process_tree.memory_of(process.pid)[2] == 0
    assert process_tree.memory_of(process.pid)[2] == 0


# Once and only once


def test_of_many_supervisors_of_a_job_one_runs_it(tmp_path: Path) -> None:
    attempt = write_job(tmp_path, "sh", "-c", "echo ran >> ran; sleep 0.5")
    with ExitStack() as stack:
        processes = [stack.enter_context(_start_supervisor(attempt)) for _ in range(5)]
        codes = [process.wait(PATIENCE_SECONDS) for process in processes]
    assert sorted(codes) == [0] + [supervisor.TAKEN] * 4
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert json.loads((attempt / "result.json").read_text())["end"] == "exited"


def test_a_job_whose_driver_is_already_gone_is_not_run(tmp_path: Path) -> None:
    attempt = write_job(tmp_path, "touch", "ran")
    command = [sys.executable, "-E", "-s", "-S", supervisor.__file__, attempt]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS, check=False).returncode == 0
    end = json.loads((attempt / "result.json").read_text())
    assert (end["end"], end["exit_code"]) == ("driver-died", None)
    assert not (tmp_path / "ran").exists()


def test_a_supervisor_that_cannot_write_runs_nothing(tmp_path: Path) -> None:
    attempt = write_job(tmp_path, "touch", "ran")
    no_space = "import os, resource, runpy, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    no_space += "sys.argv = sys.argv[1:]\nsys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
    no_space += "runpy.run_path(sys.argv[0], run_name='__main__')"
    with subprocess.Popen(python(no_space, supervisor.__file__, str(attempt)), stdin=subprocess.PIPE) as process:
        assert process.wait(PATIENCE_SECONDS) == supervisor.NOTHING_RUN
    assert not (tmp_path / "ran").exists()
    assert not (attempt / "result.json").exists()


# Parts


def test_the_children_are_the_same_by_either_way_to_find_them(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    try:
        direct = set(process_tree.children(os.getpid()))
        monkeypatch.setattr(os.path, "exists", lambda path: False)
        assert set(process_tree.children(os.getpid())) == direct
        assert direct >= {process.pid for process in processes}
    finally:
        for process in processes:
            with process:
                process.kill()


def test_a_process_is_identified_whatever_its_name_is() -> None:
    name = b") R 1 1 (x"
    set_name = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0); print(flush=True); input()"
    with subprocess.Popen(python(set_name), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = process_tree.identity(process.pid)
        assert process_tree.stat_of(process.pid)[0] == name
        expected = psutil.Process(process.pid).create_time() - psutil.boot_time()
        assert found["start_time"] / os.sysconf("SC_CLK_TCK") == pytest.approx(expected, abs=1.5)
        process.kill()
    assert process_tree.identity(process.pid)["start_time"] is None


def test_a_signal_goes_only_to_the_process_that_is_meant() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not supervisor.signal_if(process.pid, lambda pid: False, signal.SIGKILL)
        assert process.poll() is None
        assert supervisor.signal_if(process.pid, lambda pid: pid == process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert not supervisor.signal_if(process.pid, lambda pid: True, signal.SIGKILL)


def test_a_signal_is_sent_where_the_kernel_has_no_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with subprocess.Popen(["sleep", "60"]) as process:
        assert supervisor.signal_if(process.pid, lambda pid: pid == process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL


@pytest.mark.parametrize("module", [supervisor, process_tree], ids=lambda module: module.__name__)
def test_the_supervisor_is_written_for_python_3_8_and_its_standard_library(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    # Its neighbour it finds by one of two names: in this package, or beside the program.
    neighbours = {"commands.shipped.process_tree", "process_tree"}
    assert {name.partition(".")[0] for name in imported - neighbours} <= sys.stdlib_module_names
