"""What every executor promises, whatever it runs jobs on. Another executor joins by a line in `EXECUTORS`."""

import ast
import json
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.executors.api import Executor
from commands.executors.local import LocalExecutor
from tests.commands.jobs import end_all_below, end_of, eventually, make_job, python, run, text_of

EXECUTORS: dict[str, Callable[[], Executor]] = {"local": LocalExecutor}

pytestmark = pytest.mark.real


@pytest.fixture(params=EXECUTORS)
def make_executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Executor]]:
    """Makes executors; when the test is over, they are closed and no process of any job may be left."""
    made: list[Executor] = []

    def make() -> Executor:
        made.append(EXECUTORS[request.param]())
        return made[-1]

    yield make
    for executor in made:
        executor.close()
    assert end_all_below(tmp_path) == []


@pytest.fixture
def executor(make_executor: Callable[[], Executor]) -> Executor:
    """A fresh executor."""
    return make_executor()


def test_a_command_that_exits_is_reported_with_its_exit_code(executor: Executor, tmp_path: Path) -> None:
    before = datetime.now(UTC)
    end = run(executor, make_job(tmp_path, "sh", "-c", "sleep 0.3; exit 7"))
    assert (end.end, end.exit_code, end.signal, end.detail) == ("exited", 7, None, "")
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(end.started_at) <= datetime.now(UTC)
    assert 0.3 <= end.duration_seconds < 10


def test_a_command_that_a_signal_ends_is_reported_with_the_signal(executor: Executor, tmp_path: Path) -> None:
    end = run(executor, make_job(tmp_path, "sh", "-c", "kill -SEGV $$"))
    assert (end.end, end.exit_code, end.signal) == ("signalled", None, signal.SIGSEGV)


def test_standard_output_is_kept_apart_where_that_is_asked_for(executor: Executor, tmp_path: Path) -> None:
    both = ("sh", "-c", "echo told; echo warned >&2")
    run(executor, make_job(tmp_path, *both, attempt_directory=tmp_path / "apart", stdout_file="told.txt"))
    run(executor, make_job(tmp_path, *both, attempt_directory=tmp_path / "together"))
    assert text_of(tmp_path / "apart" / "told.txt") == "told\n"
    assert text_of(tmp_path / "apart" / "output.log") == "warned\n"
    assert text_of(tmp_path / "together" / "output.log") == "told\nwarned\n"


def test_an_end_is_reported_once(executor: Executor, tmp_path: Path) -> None:
    run(executor, make_job(tmp_path, "true"))
    assert executor.observe() == []


def test_nothing_is_reported_when_nothing_was_started(executor: Executor) -> None:
    assert executor.observe() == []


def test_jobs_run_side_by_side(executor: Executor, tmp_path: Path) -> None:
    meet = python(
        "import os, sys, time\n"
        "mine, other = sys.argv[1:]\n"
        "open(mine, 'w').close()\n"
        "while not os.path.exists(other): time.sleep(0.01)"
    )
    left, right = str(tmp_path / "left"), str(tmp_path / "right")
    one = make_job(tmp_path, *meet, left, right, attempt_directory=tmp_path / "one")
    two = make_job(tmp_path, *meet, right, left, attempt_directory=tmp_path / "two")
    executor.start(one)
    executor.start(two)
    ends = []
    deadline = time.monotonic() + 20
    while len(ends) < 2 and time.monotonic() < deadline:
        ends += executor.observe()
        executor.wait(1.0)
    assert sorted((end.name, end.end, end.exit_code) for end in ends) == [("one", "exited", 0), ("two", "exited", 0)]


def test_the_same_job_started_twice_runs_once(executor: Executor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo ran >> ran; sleep 0.2")
    executor.start(job)
    assert run(executor, job).exit_code == 0
    executor.start(job)
    executor.wait(0.3)
    assert executor.observe() == []
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_second_executor_takes_up_a_running_job_without_running_it_again(
    make_executor: Callable[[], Executor], tmp_path: Path
) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo ran >> ran; while [ ! -e go ]; do sleep 0.02; done; exit 3")
    first, second = make_executor(), make_executor()
    first.start(job)
    eventually((tmp_path / "ran").exists, "the start of the job")
    second.start(job)
    assert second.observe() == []
    (tmp_path / "go").touch()
    assert end_of(second, job.name) == end_of(first, job.name)
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_second_executor_reports_a_job_that_has_already_ended(
    make_executor: Callable[[], Executor], tmp_path: Path
) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo ran >> ran; exit 3")
    end = run(make_executor(), job)
    assert run(make_executor(), job) == end
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_second_executor_can_stop_a_job_that_it_took_up(
    make_executor: Callable[[], Executor], tmp_path: Path
) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo ran > ran; exec sleep 60")
    first, second = make_executor(), make_executor()
    first.start(job)
    eventually((tmp_path / "ran").exists, "the start of the job")
    second.start(job)
    second.stop(job.name)
    assert end_of(second, job.name).end == "stopped"


def test_the_command_gets_the_given_environment_and_directory_and_no_input(executor: Executor, tmp_path: Path) -> None:
    code = "import json, os, sys; json.dump([dict(os.environ), os.getcwd(), sys.stdin.read()], open('seen', 'w'))"
    environment = {"WITH_A_LINE": "one\ntwo", "EMPTY": "", "LC_CTYPE": "C.UTF-8"}
    job = make_job(tmp_path, *python(code), environment=environment, attempt_directory=tmp_path / "with space")
    assert run(executor, job).exit_code == 0
    seen_environment, seen_directory, seen_input = json.loads((tmp_path / "seen").read_text())
    marks = {"LEDGER_ATTEMPT": "with space", "LEDGER_ATTEMPT_DIRECTORY": str((tmp_path / "with space").resolve())}
    assert seen_environment == environment | marks
    assert (seen_directory, seen_input) == (str(tmp_path.resolve()), "")


def test_the_arguments_are_passed_as_they_are(executor: Executor, tmp_path: Path) -> None:
    arguments = ("", " ", "$HOME", "*", "a\nb", "'\"\\", "\udc80", "é", "--")
    job = make_job(tmp_path, *python("import sys; open('seen', 'w').write(ascii(sys.argv[1:]))", *arguments))
    assert run(executor, job).exit_code == 0
    assert ast.literal_eval((tmp_path / "seen").read_text()) == list(arguments)


def test_what_the_command_prints_is_kept_in_order(executor: Executor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "echo one; echo two >&2; echo three")
    run(executor, job)
    assert (job.attempt_directory / "output.log").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("fields", "argv"),
    [
        pytest.param({}, ("no-such-command",), id="a command that is not on the path"),
        pytest.param({}, ("/etc/passwd",), id="a file that is not executable"),
        pytest.param({}, ("/",), id="a directory as the command"),
        pytest.param({}, (), id="no command"),
        pytest.param({}, ("echo", "nul\0byte"), id="an argument that no process can have"),
        pytest.param({"environment": {"A=B": "c"}}, ("/bin/true",), id="a variable that no process can have"),
        pytest.param({"environment": {}}, ("no-such-command",), id="no path"),
        pytest.param({"directory": Path("/no/such/place")}, ("true",), id="no directory to run in"),
    ],
)
def test_a_command_that_cannot_be_executed_is_not_started(
    executor: Executor, tmp_path: Path, fields: dict[str, object], argv: tuple[str, ...]
) -> None:
    end = run(executor, make_job(tmp_path, *argv, **fields))
    assert (end.end, end.exit_code, end.signal) == ("not-started", None, None)
    assert end.detail


def test_an_attempt_directory_that_cannot_be_made_leads_to_not_started(executor: Executor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    end = run(executor, make_job(tmp_path, "true", attempt_directory=tmp_path / "file" / "attempt"))
    assert (end.end, end.exit_code) == ("not-started", None)
    assert "NotADirectoryError" in end.detail


def test_two_jobs_cannot_share_an_attempt_directory(executor: Executor, tmp_path: Path) -> None:
    run(executor, make_job(tmp_path, "true"))
    end = run(executor, make_job(tmp_path, "touch", "ran", name="another"))
    assert (end.end, "belongs to" in end.detail) == ("not-started", True)
    assert not (tmp_path / "ran").exists()


def test_a_job_that_takes_too_long_is_ended(executor: Executor, tmp_path: Path) -> None:
    end = run(executor, make_job(tmp_path, "sleep", "60", time_limit_seconds=0.4))
    assert (end.end, end.signal) == ("time-limit", signal.SIGKILL)
    assert 0.4 <= end.duration_seconds < 5


def test_a_job_that_shows_no_sign_of_life_is_ended(executor: Executor, tmp_path: Path) -> None:
    end = run(executor, make_job(tmp_path, "sleep", "60", idle_limit_seconds=0.4, activity=("*.jsonl",)))
    assert (end.end, end.signal) == ("idle-limit", signal.SIGKILL)
    assert 0.4 <= end.duration_seconds < 5


def test_output_is_a_sign_of_life(executor: Executor, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.2; done"
    assert run(executor, make_job(tmp_path, "sh", "-c", script, idle_limit_seconds=1.5)).end == "exited"


def test_a_growing_file_that_the_job_names_is_a_sign_of_life(executor: Executor, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >> attempt/a.jsonl; sleep 0.2; done"
    job = make_job(tmp_path, "sh", "-c", script, idle_limit_seconds=1.5, activity=("*.jsonl",))
    assert run(executor, job).end == "exited"


def test_a_growing_file_that_the_job_does_not_name_is_no_sign_of_life(executor: Executor, tmp_path: Path) -> None:
    script = "while true; do echo more >> attempt/other; sleep 0.05; done"
    job = make_job(tmp_path, "sh", "-c", script, idle_limit_seconds=0.6, activity=("*.jsonl",))
    assert run(executor, job).end == "idle-limit"


def test_a_job_that_takes_too_much_memory_is_ended_soon(executor: Executor, tmp_path: Path) -> None:
    code = "import time; hog = b'x' * (300 << 20); time.sleep(60)"
    end = run(executor, make_job(tmp_path, *python(code), memory_limit_bytes=100 << 20))
    assert (end.end, end.signal, end.memory_method) == ("memory-limit", signal.SIGKILL, "pss")
    assert end.peak_memory_bytes is not None
    assert end.peak_memory_bytes > 100 << 20
    assert end.duration_seconds < 5, "it takes a fifth of a second on an idle machine"


def test_the_peak_memory_of_the_whole_tree_is_reported(executor: Executor, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = [sys.executable, '-I', '-S', '-c', 'import time; b = b\"x\" * (60 << 20); time.sleep(0.5)']\n"
        "children = [subprocess.Popen(child) for _ in range(2)]\n"
        "for one in children: one.wait()"
    )
    end = run(executor, make_job(tmp_path, *python(code)))
    assert end.exit_code == 0
    assert end.peak_memory_bytes is not None
    assert 120 << 20 <= end.peak_memory_bytes < 180 << 20


def test_a_stopped_job_may_clean_up(executor: Executor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "trap 'echo bye; exit 9' TERM; echo ready; while true; do sleep 0.02; done")
    executor.start(job)
    eventually(lambda: "ready" in text_of(job.attempt_directory / "output.log"), "the start of the job")
    executor.stop(job.name)
    executor.stop(job.name)
    end = end_of(executor, job.name)
    assert (end.end, end.exit_code, end.signal) == ("stopped", 9, None)
    assert (job.attempt_directory / "output.log").read_text().endswith("bye\n")


def test_a_job_that_is_stopped_at_once_never_counts_as_passed(executor: Executor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sleep", "60")
    executor.start(job)
    executor.stop(job.name)
    end = end_of(executor, job.name)
    assert (end.end, end.exit_code) == ("stopped", None)


def test_stopping_what_does_not_run_changes_nothing(executor: Executor, tmp_path: Path) -> None:
    executor.stop("never started")
    end = run(executor, make_job(tmp_path, "true"))
    executor.stop(end.name)
    assert executor.observe() == []


def test_waiting_lasts_no_longer_than_asked(executor: Executor, tmp_path: Path) -> None:
    executor.start(make_job(tmp_path, "sleep", "60"))
    began = time.monotonic()
    executor.wait(0.2)
    assert time.monotonic() - began < 5


def test_waiting_ends_when_a_job_ends(executor: Executor, tmp_path: Path) -> None:
    executor.start(make_job(tmp_path, "sleep", "0.2"))
    began = time.monotonic()
    while not executor.observe():
        executor.wait(20.0)
    assert time.monotonic() - began < 10


def test_closing_ends_what_runs_and_says_so(executor: Executor, tmp_path: Path) -> None:
    names = ["one", "two", "three"]
    for name in names:
        executor.start(make_job(tmp_path, "sleep", "60", attempt_directory=tmp_path / name))
    executor.close()
    assert end_all_below(tmp_path) == []
    assert sorted((end.name, end.end) for end in executor.observe()) == sorted((name, "stopped") for name in names)
    executor.close()
    assert executor.observe() == []


def test_settling_a_job_that_has_ended_gives_its_result(executor: Executor, tmp_path: Path) -> None:
    job = make_job(tmp_path, "sh", "-c", "exit 5")
    end = run(executor, job)
    assert executor.settle(job.name, job.attempt_directory) == end
    assert executor.settle(job.name, job.attempt_directory) == end


def test_settling_a_job_that_was_never_handed_over_gives_lost(executor: Executor, tmp_path: Path) -> None:
    end = executor.settle("attempt", tmp_path / "attempt")
    assert (end.name, end.end, end.exit_code) == ("attempt", "lost", None)
    assert "never" in end.detail
    assert not (tmp_path / "attempt").exists()
