"""Runs programs that are measured: their CPU time is that of all their processes."""

import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path


def cpu_seconds(
    argv: Sequence[str | Path], directory: Path, variables: Mapping[str, str], accepted: Collection[int] = (0,)
) -> float:
    """Run a program to its end, its output thrown away, and return what it and its descendants took.

    Descendants count as far as their parents have waited for them. Raises RuntimeError unless the exit code is one of
    `accepted`, because a program that fails is not what was to be measured.
    """
    process = subprocess.Popen(
        argv,
        cwd=directory,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepted:
        raise RuntimeError(f"{[str(word) for word in argv]} ended with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime
