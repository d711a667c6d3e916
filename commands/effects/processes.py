"""Runs one helper program to its end: argv only, in a process group of its own, within a time limit."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple


class Completed(NamedTuple):
    """How a program ended. `returncode` is negative for a signal; the rest is empty when sent to a file."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output: IO[bytes] | None = None,
    given: bytes | None = None,
) -> Completed:
    """Run the program and wait for it; with `output` both of its streams are written there.

    What is `given` it can read on its standard input, which is empty otherwise; it need not.

    Its group of processes is its own, so that a Ctrl-C in the terminal does not cut it short: we decide.
    Raises OSError when it cannot be started, and subprocess.TimeoutExpired when it takes too long; then, and
    when anything else interrupts the wait, the whole group has been killed.
    """
    with subprocess.Popen(
        argv,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=output or subprocess.PIPE,
        stderr=subprocess.STDOUT if output else subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            stdout, stderr = process.communicate(given, timeout=timeout_seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return Completed(process.returncode, stdout or b"", stderr or b"")
