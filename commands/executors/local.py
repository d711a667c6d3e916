"""Runs jobs on this machine, each under a supervisor of its own (`commands/shipped/supervisor.py`).

The attempt directory is all that executors and supervisors share, so that a later executor can take up what
an earlier one left: `job.json` says that the job was handed over, `lock` whether its supervisor lives,
`result.json` how it ended.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from commands.executors.api import End, Job, JobEnd
from commands.shipped import supervisor
from commands.shipped.process_tree import identity

SETTLE_SECONDS = supervisor.GRACE_SECONDS + supervisor.KILL_SECONDS + 3.0
"""How long a supervisor that was told to end its job may take before it is killed itself."""

POLL_SECONDS = 0.05
"""How often to look where the system cannot wake us up."""


class LocalExecutor:
    """Starts, observes and stops jobs on this machine; to be used by one thread.

    A job is tied to this process by a pipe: when the process is gone, however that happens, the job is ended.
    The process must therefore not fork without exec, because the copy would hold the pipe open.

    `program` is the supervisor that jobs are started under, `environment` its variables (None: those of this process).
    """

    def __init__(self, program: str = supervisor.__file__, environment: Mapping[str, str] | None = None) -> None:
        self._program = program
        self._environment = environment
        self._started: set[str] = set()
        self._running: dict[str, _Running] = {}
        self._ended: list[JobEnd] = []
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._wakeup = open(reading, "rb", buffering=0)  # noqa: SIM115 - closed by `close`.
        self._wakeup_writing = open(writing, "wb", buffering=0)  # noqa: SIM115 - closed by `close`.

    def wakeup_fd(self) -> int:
        """What ends a `wait` when it is written to, for `signal.set_wakeup_fd`; valid until `close`."""
        return self._wakeup_writing.fileno()

    def start(self, job: Job) -> None:
        """Start the job and return at once. A job that was handed over before is only observed."""
        if job.name in self._started:
            return
        self._started.add(job.name)
        directory = Path(os.path.realpath(job.attempt_directory))
        try:
            handed_over = _hand_over(job, directory)
            process = _start_supervisor(directory, self._program, self._environment) if handed_over else None
        except (OSError, ValueError) as error:
            self._ended.append(_job_end(job.name, "not-started", f"{type(error).__name__}: {error}"))
        else:
            self._running[job.name] = _Running(job.name, directory, process)

    def observe(self) -> list[JobEnd]:
        """The jobs that have ended since they were last reported by this object; each is reported once."""
        ended, self._ended = self._ended, []
        for running in list(self._running.values()):
            end = running.end()
            if end is not None:
                running.release()
                del self._running[running.name]
                ended.append(end)
        return ended

    def settle(self, name: str, attempt_directory: Path) -> JobEnd:
        """Bring a job of a dead driver to rest: end whatever of it is still alive, and say how it ended.

        A result that was already written stands. Without one the job is `lost`, also when it never ran.
        """
        directory = Path(os.path.realpath(attempt_directory))
        end = _conclude_within(SETTLE_SECONDS, name, directory)
        if end is None:
            _signal_supervisor(directory, signal.SIGKILL)
            end = _conclude_within(supervisor.KILL_SECONDS, name, directory)
        return end or _lost(name, "its supervisor neither ends nor can be killed", directory)

    def stop(self, name: str) -> None:
        """Ask the job to end now, with all of its descendants; its end is observed as usual."""
        if name in self._running:
            self._running[name].stop()

    def wait(self, timeout_seconds: float) -> None:
        """Sleep until a supervisor ends or `wakeup_fd` is written to, at most this long; may return early."""
        if self._ended:
            return
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        for running in self._running.values():
            if running.handle is None:
                timeout_seconds = min(timeout_seconds, POLL_SECONDS)
            else:
                poll.register(running.handle, select.POLLIN)
        poll.poll(max(0.0, timeout_seconds) * 1000)
        self._wakeup.read(4096)

    def close(self) -> None:
        """End every job that is still running and wait until it is gone; `observe` still reports its end."""
        for running in self._running.values():
            running.stop()
        deadline = time.monotonic() + SETTLE_SECONDS
        for running in self._running.values():
            running.finish(deadline - time.monotonic())
            self._ended.append(running.end() or self.settle(running.name, running.directory))
            running.release()
        self._running.clear()
        if not self._wakeup_writing.closed:
            _let_go_of_signals(self.wakeup_fd())
        self._wakeup.close()
        self._wakeup_writing.close()


class _Running:
    """A job that has not been seen to end. `process` is its supervisor, None when an earlier driver's."""

    def __init__(self, name: str, directory: Path, process: subprocess.Popen[bytes] | None) -> None:
        self.name = name
        self.directory = directory
        self.handle: int | None = None
        """Becomes readable when the supervisor ends; None when that can only be polled."""
        self._process = process
        if process is not None and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self.handle = os.pidfd_open(process.pid)

    def end(self) -> JobEnd | None:
        """How the job ended, None while it runs."""
        if self._process is None:
            return _conclude(self.name, self.directory)
        exit_code = self._process.poll()
        if exit_code is None:
            return None
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
        return _conclude(self.name, self.directory, nothing_run=exit_code == supervisor.NOTHING_RUN)

    def stop(self) -> None:
        """Ask the supervisor to stop, unless it has ended."""
        if self._process is None:
            _signal_supervisor(self.directory, signal.SIGTERM)
        elif self._process.stdin is not None and self._process.poll() is None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(b"s")

    def finish(self, seconds: float) -> None:
        """Wait until the supervisor has ended; kill it if it takes longer. One of an earlier driver is settled."""
        if self._process is not None:
            try:
                self._process.wait(max(0.0, seconds))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def release(self) -> None:
        """Let go of the pipe of a supervisor that has ended."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def _let_go_of_signals(wakeup_fd: int) -> None:
    """Keep signals from being written to whatever file gets this descriptor next."""
    with suppress(ValueError):  # Only the main thread can have set it.
        current = signal.set_wakeup_fd(-1)
        if current != wakeup_fd:
            signal.set_wakeup_fd(current)


class _Identity(msgspec.Struct):
    """What `supervisor.identity` gives, for a process that was alive."""

    pid: int
    start_time: int
    boot_id: str


class _Record(msgspec.Struct):
    """What is needed of `supervisor.json`."""

    supervisor: _Identity


class _Name(msgspec.Struct):
    """What is needed of a `job.json` that is there already."""

    name: str


def _hand_over(job: Job, directory: Path) -> bool:
    """Write the job into its directory; False when it was handed over before."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    path = directory / "job.json"
    if path.exists():
        owner = msgspec.json.decode(path.read_bytes(), type=_Name).name
        if owner != job.name:
            raise FileExistsError(f"{directory} belongs to the job {owner}")
        return False
    document = {
        "name": job.name,
        "argv": job.argv,
        "directory": str(job.directory),
        "environment": job.environment,
        "activity": job.activity,
        "time_limit_seconds": job.time_limit_seconds,
        "idle_limit_seconds": job.idle_limit_seconds,
        "memory_limit_bytes": job.memory_limit_bytes,
        "stdout_file": job.stdout_file,
    }
    supervisor.write_json(str(path), document, durable=True)
    return True


def _start_supervisor(
    directory: Path, program: str = supervisor.__file__, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start it in a session of its own, where a signal to the driver's process group does not reach it.

    It inherits the reading end of the pipe only; the writing end is closed in every child of this process.
    """
    with open(directory / "supervisor.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-E", "-s", "-S", program, str(directory)],
            bufsize=0,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _conclude_within(seconds: float, name: str, directory: Path) -> JobEnd | None:
    """How the job ended, None when a supervisor still has it after this time."""
    deadline = time.monotonic() + seconds
    while (end := _conclude(name, directory)) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return end


def _conclude(name: str, directory: Path, nothing_run: bool = False) -> JobEnd | None:
    """How the job ended, None while a supervisor has it. `nothing_run`: its own supervisor said so.

    A job without a result gets one while the lock is held, so that no supervisor starts it later.
    """
    try:
        if not (directory / "job.json").exists():
            return _job_end(name, "lost", "it was never handed to a supervisor")
        lock = supervisor.lock(str(directory))
    except OSError as error:
        return _lost(name, f"its attempt directory cannot be used: {error}", directory)
    if lock is None:
        return None
    try:
        return _read_result(name, directory) or _write_result(name, directory, nothing_run)
    finally:
        os.close(lock)


def _read_result(name: str, directory: Path) -> JobEnd | None:
    """What the supervisor wrote. A result that cannot be read is left as it is, and the job is lost."""
    try:
        end = msgspec.json.decode((directory / "result.json").read_bytes(), type=JobEnd)
        if end.name != name:
            raise ValueError(f"it is about the job {end.name}")
        return end
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return _lost(name, f"result.json cannot be read: {error}", directory)


def _write_result(name: str, directory: Path, nothing_run: bool) -> JobEnd:
    """Give a job whose supervisor is gone the result that it lacks."""
    if nothing_run:
        end = _job_end(name, "not-started", _last_line(directory / "supervisor.log"))
    elif (directory / "supervisor.json").exists():
        last_line = _last_line(directory / "supervisor.log")
        end = _lost(name, f"its supervisor ended without a result. {last_line}".rstrip(), directory)
    else:
        end = _job_end(name, "lost", "its supervisor was never started")
    with suppress(OSError):  # Its own supervisor could not shorten it.
        supervisor.Output(str(directory / "output.log")).close()
    with suppress(OSError):  # It is given up all the same, and will be again.
        supervisor.write_json(str(directory / "result.json"), msgspec.to_builtins(end), durable=True)
    return end


def _lost(name: str, reason: str, directory: Path) -> JobEnd:
    """End what is left of the job's processes."""
    ended, left = supervisor.end_marked(name, str(directory))
    return _job_end(name, "lost", "; ".join(filter(None, [reason, supervisor.leftovers([], ended, left)])))


def _job_end(name: str, end: End, detail: str) -> JobEnd:
    """The end of a job of which nothing was measured; `started_at` is the time at which it was given up."""
    return JobEnd(
        name=name,
        end=end,
        exit_code=None,
        signal=None,
        started_at=supervisor.utc_now(),
        duration_seconds=0.0,
        peak_memory_bytes=None,
        memory_method="none",
        detail=detail,
    )


def _signal_supervisor(directory: Path, number: int) -> None:
    """Signal the supervisor of the directory, if it is the one that wrote there who it is."""
    try:
        record = msgspec.json.decode((directory / "supervisor.json").read_bytes(), type=_Record)
    except (OSError, ValueError):
        return
    expected = msgspec.to_builtins(record.supervisor)
    supervisor.signal_if(expected["pid"], lambda pid: identity(pid) == expected, number)


def _last_line(path: Path) -> str:
    """The end of a text file, "" when there is none."""
    try:
        lines = path.read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
