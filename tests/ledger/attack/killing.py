"""Kills a program at each of its system calls that change something, or lets that call fail, with strace."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.ledger.attack.one_write import BEGIN_MARK, END_MARK

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="there is no strace here")

# What changes a file, a directory or the answer; between two of these the disk does not change.
CHANGING = {
    "fdatasync", "fsync", "ftruncate", "link", "linkat", "mkdir", "openat", "pwrite64", "rename", "renameat", "unlink",
    "unlinkat", "write",
}  # fmt: skip
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)")
ROOT = Path(__file__).parents[3]

# Compiled modules of its own: where others write theirs meanwhile, the calls of one start are not those of the next.
COMPILED = tempfile.TemporaryDirectory(prefix="ledger-attack-")
ENVIRONMENT = {
    **os.environ,
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": str(ROOT),
    "PYTHONPYCACHEPREFIX": COMPILED.name,
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Program:
    """A program of these tests with its arguments."""

    def __init__(self, name: str, *arguments: object) -> None:
        self.command = [sys.executable, str(Path(__file__).with_name(name)), *map(str, arguments)]
        compiling = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": ""}
        module = f"tests.ledger.attack.{name.removesuffix('.py')}"
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=compiling)

    def start(self) -> subprocess.Popen[str]:
        """Start it as it is; what it acknowledges can be read from its output."""
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    def traced(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end under strace."""
        command = [str(STRACE), *options, *self.command]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)

    def with_fault(self, call: str, number: str, fault: str) -> subprocess.CompletedProcess[str]:
        """Run it with a fault (`signal=SIGKILL`, `error=ENOSPC`) at the call with this number (`3`, or `3+`)."""
        inject = f"inject={call}:{fault}:when={number}"
        return self.traced("-o", os.devnull, "-e", f"trace={call}", "-e", inject)

    def changing_calls(self, log: Path) -> list[tuple[str, int]]:
        """The calls between its marks that change something: each with its number among those of its name."""
        done = self.traced("-o", str(log))
        assert done.returncode == 0, done.stderr
        counts: Counter[str] = Counter()
        calls, inside = [], False
        for match in filter(None, map(CALL.match, log.read_text("utf-8", "replace").splitlines())):
            name, arguments = match.groups()
            counts[name] += 1
            if END_MARK in arguments:
                return calls
            if inside and name in CHANGING:
                calls.append((name, counts[name]))
            inside = inside or BEGIN_MARK in arguments
        raise AssertionError("the marks are not in the list of system calls")
