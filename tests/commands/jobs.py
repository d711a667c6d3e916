"""Real jobs for the tests of executors: how to make them, wait for their end, and find what they left behind."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from commands.executors.api import Executor, Job, JobEnd

PATIENCE_SECONDS = 30.0
"""How long a test waits for something that must happen; only a test that fails takes this long."""


def make_job(place: Path, *argv: str, **fields: Any) -> Job:
    """A job that runs in this directory and has its attempt directory below it; both have the same name."""
    attempt_directory = fields.pop("attempt_directory", place / "attempt")
    values: dict[str, Any] = {
        "name": attempt_directory.name,
        "argv": argv,
        "directory": place,
        "environment": {"PATH": os.environ["PATH"]},
        "attempt_directory": attempt_directory,
        "activity": (),
        "time_limit_seconds": PATIENCE_SECONDS,
        "idle_limit_seconds": 0.0,
        "memory_limit_bytes": 0,
    }
    return Job(**{**values, **fields})


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs this code in a Python that starts fast."""
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


def end_of(executor: Executor, name: str) -> JobEnd:
    """Observe until the job of this name has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for end in executor.observe():
            if end.name == name:
                return end
        executor.wait(1.0)
    raise AssertionError(f"{name} has not ended")


def run(executor: Executor, job: Job) -> JobEnd:
    """Start the job and observe its end."""
    executor.start(job)
    return end_of(executor, job.name)


def eventually(condition: Callable[[], object], what: str) -> None:
    """Look until the condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} has not come true"
        time.sleep(0.01)


def text_of(path: Path) -> str:
    """The text of a file, "" while there is none."""
    return path.read_text() if path.exists() else ""


def is_alive(pid: int) -> bool:
    """Whether a process of this id runs; one that waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def left_below(directory: Path) -> list[psutil.Process]:
    """The processes that carry the marks of any job whose attempt directory is below this one."""
    below = str(directory.resolve()) + os.sep
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LEDGER_ATTEMPT_DIRECTORY", "").startswith(below):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def end_all_below(directory: Path) -> list[str]:
    """Kill what is left of the jobs below this directory, and name it."""
    names = []
    for process in left_below(directory):
        try:
            names.append(f"{process.pid} {process.cmdline()}")
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return names


def recorded_pid(attempt_directory: Path, who: str) -> int:
    """The pid of the `supervisor` or the `command` of this attempt, as soon as it is recorded."""

    def found() -> int | None:
        record = json.loads(text_of(attempt_directory / "supervisor.json") or "{}")
        return (record.get(who) or {}).get("pid")

    eventually(found, f"the record of the {who}")
    pid = found()
    assert pid is not None
    return pid
