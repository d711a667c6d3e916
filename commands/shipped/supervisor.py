"""Runs one command and answers for its whole process tree: `supervisor.py ATTEMPT_DIRECTORY`.

The attempt directory holds `job.json`, the fields of a `Job`. The supervisor writes there

- `lock`: locked while the supervisor lives, so that a job runs at most once and its death is seen at once;
- `supervisor.json`: who it is and who the command is (pids, start times, boot id);
- `output.log`: what the command printed; without its standard output when the job has a `stdout_file` for that;
- `result.json`: the fields of a `JobEnd`, written when no process of the job is left.

Its standard input is a pipe whose other end only the driver holds: a byte asks to stop, the end of the file
says that the driver is gone. SIGTERM asks to stop as well; SIGINT and SIGHUP do nothing, being meant for the
driver. It runs in foreign interpreters: Python 3.8, the standard library, and nothing of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import json
import os
import select
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing these takes a tenth of the time that a short job costs.
    from collections.abc import Callable
    from typing import Any

if TYPE_CHECKING or __package__:
    from commands.shipped.process_tree import Memory, children, descendants, identity, processes, read_file, stat_of
else:  # Run as a program, it finds its neighbour beside it.
    from process_tree import Memory, children, descendants, identity, processes, read_file, stat_of

NOTHING_RUN, TAKEN = 3, 4
"""Exit status when the job could not be begun, and when another supervisor has, or had, this attempt directory."""

TICK_SECONDS = 0.08
"""How often to look at the command; its memory is to be known every tenth of a second."""

GRACE_SECONDS = 2.0
"""How long a command that is asked to stop may take after SIGTERM."""

KILL_SECONDS = 10.0
"""How long the tree is killed for; a process in the hands of the kernel may outlive that, and is named."""

CONFIRM_SECONDS = 0.02
"""A tree above its memory limit is measured again after this time, so that one odd reading ends nothing."""

OUTPUT_LIMIT_BYTES, OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES = 64 << 20, 32 << 20, 1 << 20
"""A longer output keeps its head and its tail; what was printed between is dropped, and a line says so."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


def marks(name: str, directory: str) -> dict[str, str]:
    """The variables by which every process of a job is known, whoever its parent is.

    The directory belongs to this job alone; a name may be used again by another ledger on this machine.
    """
    return {"LEDGER_ATTEMPT": name, "LEDGER_ATTEMPT_DIRECTORY": directory}


def signal_if(pid: int, condition: Callable[[int], bool], number: int) -> bool:
    """Send the signal if the condition holds for the process; says whether it was sent.

    The handle is taken before the condition is checked: a process that gets the pid meanwhile is left alone.
    """
    handle = None
    with contextlib.suppress(OSError, AttributeError):  # Not every kernel and Python can do it.
        handle = os.pidfd_open(pid)
    try:
        if not condition(pid):
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
        return True
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)


def end_marked(name: str, directory: str) -> tuple[int, list[int]]:
    """Kill every process with the marks of the job; how many were killed, and which could not be."""
    wanted = {os.fsencode(f"{variable}={value}") for variable, value in marks(name, directory).items()}

    def is_marked(pid: int) -> bool:
        return pid != os.getpid() and wanted <= set(read_file(f"/proc/{pid}/environ").split(b"\0"))

    ended: set[int] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        left = [pid for pid in processes() if is_marked(pid)]
        if not left or time.monotonic() > deadline:
            return len(ended), left
        ended.update(pid for pid in left if signal_if(pid, is_marked, signal.SIGKILL))
        time.sleep(0.005)


def write_json(path: str, document: dict[str, Any], *, durable: bool) -> None:
    """Write the whole document or nothing; when `durable`, it also survives a crash of the machine."""
    temporary = path + ".tmp"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(document, file)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(temporary, path)
    if durable:
        directory = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def lock(directory: str) -> int | None:
    """Take the lock of the attempt directory without waiting: the open file, or None when another has it."""
    handle = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def utc_now() -> str:
    """The time in ISO 8601, UTC, to the microsecond."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"


class Output:
    """The output file. The command writes to it directly: that is fast, and it needs no living supervisor."""

    def __init__(self, path: str, tail_bytes: int | None = None) -> None:
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._tail_bytes = OUTPUT_TAIL_BYTES if tail_bytes is None else tail_bytes
        self._free_to = OUTPUT_HEAD_BYTES
        self._allocate = getattr(ctypes.CDLL(None), "fallocate", None)

    def free(self) -> None:
        """While the command writes, give back the disk space of what will be dropped, if the file system can."""
        free_to = os.fstat(self.handle).st_size - self._tail_bytes
        if self._allocate and free_to - self._free_to > OUTPUT_LIMIT_BYTES - OUTPUT_HEAD_BYTES:
            area = ctypes.c_int64(self._free_to), ctypes.c_int64(free_to - self._free_to)
            self._allocate(self.handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, *area)
            self._free_to = free_to

    def close(self) -> None:
        """Drop the middle of an output beyond its limit; nothing may write to it any more."""
        size = os.fstat(self.handle).st_size
        if size > OUTPUT_LIMIT_BYTES:
            tail = os.pread(self.handle, self._tail_bytes, size - self._tail_bytes)
            dropped_bytes = size - OUTPUT_HEAD_BYTES - len(tail)
            os.ftruncate(self.handle, OUTPUT_HEAD_BYTES)
            os.write(self.handle, b"\n[ledger: %d bytes of output were dropped here]\n" % dropped_bytes + tail)
        os.close(self.handle)


class Activity:
    """Signs of life: the output, or a file that the job's globs name, has changed in size."""

    def __init__(self, directory: str, patterns: list[str], output: int) -> None:
        self._patterns = [os.path.join(glob.escape(directory), pattern) for pattern in patterns]
        self._output = output
        self._seen: list[tuple[str, int]] = []
        self._since = time.monotonic()

    def idle_seconds(self) -> float:
        """How long nothing has changed."""
        seen = [("", os.fstat(self._output).st_size)]
        for pattern in self._patterns:
            for path in sorted(glob.glob(pattern)):
                with contextlib.suppress(OSError):  # It has just been removed, which is a sign of life, too.
                    seen.append((path, os.stat(path).st_size))
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since


class Driver:
    """What the driver asks for, on standard input and by signal; also wakes up when a child ends."""

    def __init__(self) -> None:
        self._wake, writing = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writing, False)
        # Handlers that do nothing, unlike ignored signals, are not handed on to the command.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: None)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(0, select.POLLIN)
        self._attended: dict[int, Callable[[], bool]] = {}

    def attend(self, handle: int, action: Callable[[], bool]) -> None:
        """While waiting, do this whenever the file can be read, until it says that there is nothing more to come."""
        self._attended[handle] = action
        self._poll.register(handle, select.POLLIN)

    def wait(self, seconds: float) -> str | None:
        """Sleep until something happens, at most this long; `stopped` or `driver-died` when it was that."""
        asked = None
        for handle, _ in self._poll.poll(max(0.0, seconds) * 1000):
            if handle == self._wake:
                if signal.SIGTERM in os.read(self._wake, 4096):
                    asked = "stopped"
            elif handle in self._attended:
                if not self._attended[handle]():
                    self._poll.unregister(handle)
            else:
                # One word from the driver is final; its end of the pipe would wake us up for ever.
                self._poll.unregister(0)
                asked = "stopped" if os.read(0, 64) else "driver-died"
        return asked


class Supervision:
    """One command, from its start to the end of its last process."""

    def __init__(self, directory: str, job: dict[str, Any]) -> None:
        self._directory = directory
        self._job = job
        self._driver = Driver()
        self._output = Output(os.path.join(directory, "output.log"))
        self._memory = Memory(job["memory_limit_bytes"])
        self._prctl = getattr(ctypes.CDLL(None), "prctl", None)
        if self._prctl:
            self._prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def run(self) -> dict[str, Any]:
        """Run the command and end all of its processes; the fields of a `JobEnd`."""
        started_at, began = utc_now(), time.monotonic()
        asked = self._driver.wait(0)
        if asked:
            return job_end(self._job, asked, started_at, detail="before the command was started")
        try:
            command = self._start()
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            return job_end(self._job, "not-started", started_at, detail=f"{type(error).__name__}: {error}")
        try:
            record = {"supervisor": identity(os.getpid()), "command": identity(command.pid)}
            write_json(os.path.join(self._directory, "supervisor.json"), record, durable=False)
            asked = self._watch(command.pid, began)
        finally:
            # Even a bug of this file leaves no process behind.
            duration_seconds = time.monotonic() - began
            status, detail, left_running = self._end_tree(command.pid, asked)
            command.returncode = 0  # It was reaped here, not by subprocess.
        with contextlib.suppress(OSError):  # A full disk may cost the tail of the output, but not the result.
            self._output.close()
        return dict(
            job_end(self._job, asked or "exited", started_at, detail, status),
            left_running=left_running,
            duration_seconds=duration_seconds,
            peak_memory_bytes=self._memory.peak_bytes or None,
            memory_method="+".join(sorted(self._memory.methods)) or "none",
            memory_samples=self._memory.samples,
            sampling_seconds=self._memory.sampling_seconds or None,
        )

    def _start(self) -> subprocess.Popen[bytes]:
        supervisor, prctl = os.getpid(), self._prctl

        def die_with_supervisor() -> None:
            if prctl:
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != supervisor:
                    os._exit(1)

        with contextlib.ExitStack() as opened:
            stdout, stderr = self._streams(opened)
            return subprocess.Popen(
                self._job["argv"],
                cwd=self._job["directory"],
                env={**self._environment(), **marks(self._job["name"], self._directory)},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=die_with_supervisor,
            )

    def _environment(self) -> dict[str, str]:
        """The variables of the command, without the marks."""
        return dict(self._job["environment"])

    def _streams(self, opened: contextlib.ExitStack) -> tuple[int, int]:
        """Where the command writes its standard output and its errors; `opened` closes our ends of that later."""
        apart = self._job.get("stdout_file")
        if not apart:
            return self._output.handle, self._output.handle
        stdout = os.open(os.path.join(self._directory, apart), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        opened.callback(os.close, stdout)
        return stdout, self._output.handle

    def _watch(self, command: int, began: float) -> str | None:
        """Wait until the command exits (None), or until it has to be ended (why)."""
        time_limit, idle_limit = self._job["time_limit_seconds"], self._job["idle_limit_seconds"]
        activity = Activity(self._directory, self._job["activity"], self._output.handle)
        while True:
            asked = self._driver.wait(CONFIRM_SECONDS if self._memory.above_limit else TICK_SECONDS)
            if has_exited(command):
                return None
            if asked:
                return asked
            if 0 < time_limit <= time.monotonic() - began:
                return "time-limit"
            if 0 < idle_limit <= activity.idle_seconds():
                return "idle-limit"
            if self._memory.exceeded():
                return "memory-limit"
            self._output.free()
            for pid in children(os.getpid()):
                if pid != command:
                    os.waitpid(pid, os.WNOHANG)  # Frees the entries of ended orphans; the command's own is kept.

    def _end_tree(self, command: int, asked: str | None) -> tuple[int | None, str, bool]:
        """Kill and reap everything; the wait status of the command, what to say about the others, and whether there
        were any that the command left running when it ended by itself.

        Orphans of a subreaper become its own children, so killing one's children until there are none ends
        every descendant. A child's pid is its own until it is reaped here, so that it is safe to signal.
        """
        if asked == "stopped":
            with contextlib.suppress(OSError):
                os.killpg(command, signal.SIGTERM)
            grace_end = time.monotonic() + GRACE_SECONDS
            while not has_exited(command) and time.monotonic() < grace_end:
                self._driver.wait(grace_end - time.monotonic())
        others = [stat_of(pid) for pid in descendants(os.getpid()) if pid != command]
        names = [name.decode(errors="replace") for name, fields in others if fields[:1] not in ([], [b"Z"])]
        with contextlib.suppress(OSError):
            os.killpg(command, signal.SIGKILL)
        status, deadline = None, time.monotonic() + KILL_SECONDS
        with contextlib.suppress(ChildProcessError):  # Raised when there are no children any more.
            while time.monotonic() < deadline:
                for pid in children(os.getpid()):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                pid = -1
                while pid != 0:
                    pid, ended = os.waitpid(-1, os.WNOHANG)
                    status = ended if pid == command else status
                self._driver.wait(CONFIRM_SECONDS)
        strangers, left = end_marked(self._job["name"], self._directory)
        left += children(os.getpid())
        left_running = not asked and bool(names or strangers or left)
        return status, leftovers([] if asked else names, strangers, left), left_running


def job_end(job: dict[str, Any], end: str, started_at: str, detail: str, status: int | None = None) -> dict[str, Any]:
    """The fields of a `JobEnd`; `status` is the wait status of the command, None when it has none."""
    exit_code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
    if end == "exited" and number is not None:
        end = "signalled"
    return {
        "name": job["name"],
        "end": end,
        "exit_code": exit_code,
        "signal": number,
        "started_at": started_at,
        "duration_seconds": 0.0,
        "peak_memory_bytes": None,
        "memory_method": "none",
        "detail": detail,
    }


def leftovers(names: list[str], strangers: int, left: list[int]) -> str:
    """What to say about processes that the command left behind: in its tree, outside, still there."""
    parts = [
        (names, f"left running by the command and ended ({len(names)}): {', '.join(names[:5])}"),
        (strangers, f"processes found outside of the tree and ended: {strangers}"),
        (left, f"processes that could not be ended: {', '.join(map(str, left[:5]))}"),
    ]
    return "; ".join(text for what, text in parts if what)


def has_exited(pid: int) -> bool:
    """Whether this child has ended. It is not reaped, so its pid and its group stay its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main(directory: str, kind: type[Supervision] = Supervision) -> int:
    """Supervise the job of this attempt directory, an absolute path without links; the exit status."""
    try:
        # The lock is never released by hand: it ends with this process, and so says that it has ended.
        ours = lock(directory) is not None
        if not ours or {"supervisor.json", "result.json"} & set(os.listdir(directory)):
            return TAKEN
        with open(os.path.join(directory, "job.json")) as file:
            job = json.load(file)
        record = {"supervisor": identity(os.getpid())}
        write_json(os.path.join(directory, "supervisor.json"), record, durable=False)
        supervision = kind(directory, job)
    except OSError as error:
        with contextlib.suppress(OSError):  # A full disk has no room for this either.
            os.write(2, f"nothing was run: {error}\n".encode())
        return NOTHING_RUN
    write_json(os.path.join(directory, "result.json"), supervision.run(), durable=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
