"""Runs the command of one step, watches it, and says how it ended and what it printed.

The command runs under a supervisor of its own (`commands/shipped/step_supervisor.py`), which ends the whole tree when
the driver is gone, and writes what is printed to files whose secrets are taken out. All of it is in one directory,
allotted to this attempt at the step alone; what is there outlives the driver.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from commands.effects.steps.display import Follower
from commands.executors.api import End, Job, JobEnd
from commands.executors.local import LocalExecutor
from commands.readers.step_result import LINE_BYTES_MAX, is_empty
from commands.shipped import step_supervisor
from commands.shipped.step_supervisor import SECRET_PREFIX
from commands.shipped.supervisor import Output

Stream = Literal["stdout", "stderr"]

OUTPUT, ERRORS, CONTEXT = "stdout.log", "output.log", "context.json"
CONTEXT_VARIABLE = "LEDGER_CONTEXT"

TICK_SECONDS = 0.1
"""How often to look for something to show, and for a request to stop."""

BLOCK_BYTES = 64 << 10
"""Standard output is searched backwards for its last line in blocks of this size."""


class StepJob(Struct, frozen=True, kw_only=True):
    """The command of one attempt at a step, ready to run. `name` is derived from events.

    It runs in `directory`. `environment` is all that it sees, but for its `secrets` (name to value), which are never
    written anywhere, and LEDGER_CONTEXT, the path of a file with the bytes of `context`. After `idle_timeout_seconds`
    without output it is ended; 0 for never. There is no other limit of time.
    """

    name: str
    argv: tuple[str, ...]
    directory: Path
    environment: dict[str, str]
    idle_timeout_seconds: float
    context: bytes
    secrets: dict[str, str] = {}


class StepEnd(Struct, frozen=True, kw_only=True):
    """How a step ended. `started_at` is UTC in ISO 8601, `duration_seconds` monotonic; None means not known.

    `output` and `errors` are the files with what it printed, without secrets, of at most 64 MiB: of more, the middle
    is dropped, and a line says so. They may be missing when nothing was started. `printed` is the end of `output` as
    far as it counts: without what came after the step was to be ended, which says nothing about its work.
    `left_running`: it ended by itself while processes that it had started had not; they were ended after it.
    """

    cause: End
    exit_code: int | None
    signal: int | None
    started_at: str
    duration_seconds: float
    detail: str
    output: Path
    errors: Path
    printed: bytes
    left_running: bool


def run_step(
    job: StepJob,
    place: Path,
    *,
    stopping: Callable[[], bool] = lambda: False,
    on_line: Callable[[Stream, str], None] = lambda stream, line: None,
) -> StepEnd:
    """Run the step to its end in the directory `place`, which is allotted to it alone; made when it is not there.

    When `stopping` says so, all of its processes are ended: asked first, then killed. `on_line` gets the lines while it
    runs, safe to be shown. An attempt that was begun before is not begun again. Whatever interrupts the wait ends the
    step, too.
    """
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_context(place / CONTEXT, job.context)
    executor = LocalExecutor(step_supervisor.__file__, _environment_of_supervisor(job.secrets))
    followers = (
        Follower(place / OUTPUT, lambda line: on_line("stdout", line)),
        Follower(place / ERRORS, lambda line: on_line("stderr", line)),
    )
    try:
        executor.start(_executor_job(job, place))
        asked = False
        while not (ended := executor.observe()):
            if not asked and stopping():
                asked = True
                executor.stop(job.name)
            executor.wait(TICK_SECONDS)
            for follower in followers:
                follower.follow()
    finally:
        executor.close()
    for follower in followers:
        follower.follow(last=True)
    return _step_end(place, ended[0])


def settle(place: Path) -> StepEnd:
    """Bring a step of a dead driver to rest: end whatever of it is still alive, and say how it ended.

    What it had printed counts: a result and then a kill is a result.
    """
    try:
        name = msgspec.json.decode((place / "job.json").read_bytes(), type=_Name).name
    except (OSError, ValueError):
        # The supervisor gets no further without it either.
        name = place.name
    executor = LocalExecutor()
    try:
        return _step_end(place, executor.settle(name, place))
    finally:
        executor.close()


class _Name(Struct):
    """What is needed of `job.json`."""

    name: str


class _Late(Struct):
    """What only a step's supervisor writes into `result.json`."""

    late_bytes: int = 0


def _write_context(path: Path, context: bytes) -> None:
    """Replace the file as a whole: a step that was begun before may be reading it."""
    temporary = path.with_suffix(".tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(context)
    temporary.replace(path)


def _environment_of_supervisor(secrets: dict[str, str]) -> dict[str, str]:
    """Ours, and the secrets under names that mean nothing to the supervisor itself."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(SECRET_PREFIX)}
    return {**ours, **{SECRET_PREFIX + name: value for name, value in secrets.items()}}


def _executor_job(job: StepJob, place: Path) -> Job:
    return Job(
        name=job.name,
        argv=job.argv,
        directory=job.directory,
        environment={**job.environment, CONTEXT_VARIABLE: str(place.resolve() / CONTEXT)},
        attempt_directory=place,
        activity=(OUTPUT,),
        time_limit_seconds=0.0,
        idle_limit_seconds=job.idle_timeout_seconds,
        memory_limit_bytes=0,
        stdout_file=OUTPUT,
    )


def _step_end(place: Path, end: JobEnd) -> StepEnd:
    return StepEnd(
        cause=end.end,
        exit_code=end.exit_code,
        signal=end.signal,
        started_at=end.started_at,
        duration_seconds=end.duration_seconds,
        detail=end.detail,
        output=place / OUTPUT,
        errors=place / ERRORS,
        printed=_printed(place),
        left_running=end.left_running,
    )


def _printed(place: Path) -> bytes:
    """The end of standard output, as far as it counts; its supervisor may not have come to shorten it."""
    try:
        late_bytes = msgspec.json.decode((place / "result.json").read_bytes(), type=_Late).late_bytes
    except (OSError, ValueError):
        late_bytes = 0
    path = place / OUTPUT
    # Of a shortened file, what was printed before so much is not there any more.
    if not path.exists() or late_bytes >= step_supervisor.TAIL_BYTES:
        return b""
    Output(str(path), step_supervisor.TAIL_BYTES).close()
    with path.open("rb") as file:
        text_end, line_end = _last_line(file, max(0, file.seek(0, os.SEEK_END) - late_bytes))
        # One byte more than a line may have shows that it is too long.
        begin = max(0, text_end - LINE_BYTES_MAX - 1)
        file.seek(begin)
        return file.read(line_end - begin)


def _last_line(file: BinaryIO, end: int) -> tuple[int, int]:
    """Where the text of the last line ends that is not empty, and where its line break does; both before `end`."""
    while end:
        begin = max(0, end - BLOCK_BYTES)
        file.seek(begin)
        block = file.read(end - begin)
        lines = block.splitlines(keepends=True)
        # The first line may have begun before the block: it is looked at again with its beginning.
        kept = len(lines[0]) if begin and len(lines) > 1 else 0
        for line in [] if is_empty(block) else reversed(lines[1:] if kept else lines):
            if not is_empty(line):
                return end - len(line) + len(line.rstrip()), end
            end -= len(line)
        end = begin + kept
    return 0, 0
