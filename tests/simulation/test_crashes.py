"""A gate killed at any step that changes the world, and resumed, answers as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.events import AttemptRecorded, AttemptStarted
from ledger.store.reader import Reader

pytestmark = [pytest.mark.slow, pytest.mark.real]

SCRIPT = Path(__file__).with_name("crashing_gate.py")
STEPS = 125
FILES = {"test_kept.py": "def test_kept():\n    pass\n", "test_broken.py": "def test_broken():\n    pass\n"}
BROKEN = "def test_broken():\n    assert not 'broken by the candidate'\n"
FAILED, USAGE, NEVER = 1, 2, 10**9


class World:
    """A repository with a regression, a ledger, and the program, all below one directory."""

    def __init__(self, root: Path) -> None:
        self.root, self.repository, self.trace = root, root / "repository", root / "trace"
        self.repository.mkdir(parents=True)
        self.environment = {
            **os.environ,
            "LEDGER_WORK": str(root / "work"),
            "LEDGER_GATE_PARALLEL": "1",
            "LEDGER_GATE_SHARDS": "2",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "VIRTUAL_ENV": sys.prefix,
            "PYTHONPATH": str(SCRIPT.parent.parent.parent),
        }
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(FILES, "v1.0")
        self.commit({"test_broken.py": BROKEN}, "")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
        command = ["git", *identity, *arguments]
        return subprocess.run(
            command, cwd=self.repository, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, files: dict[str, str], tag: str) -> None:
        for name, text in files.items():
            (self.repository / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "a change")
        if tag:
            self.git("tag", tag)

    def ledger(self, *arguments: str, crash_at: int = NEVER, when: str = "before") -> subprocess.CompletedProcess[str]:
        """Run a command, killed at a step if one is chosen."""
        command = [sys.executable, str(SCRIPT), str(crash_at), when, str(self.trace), *arguments]
        return subprocess.run(
            command, cwd=self.repository, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )

    def finish(self) -> dict[str, Any]:
        """Resume what the crash left; where it left not even a run, gate again."""
        resumed = self.ledger("resume", "--from", "gate", "--json")
        if resumed.returncode == USAGE:
            resumed = self.ledger("gate", "--json")
        assert resumed.returncode == FAILED, resumed.stderr
        summary: dict[str, Any] = json.loads(resumed.stdout)
        return summary

    def ledger_file(self) -> Path:
        return self.repository / ".git" / "ledger" / "ledger.sqlite"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    assert not leftover_processes(world), "a process of an attempt is still alive"


def leftover_processes(world: World) -> list[str]:
    """The attempts of this world whose processes are still there, by the mark in their environment."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = environment.read_bytes()
        except OSError:
            continue
        if b"LEDGER_ATTEMPT=" in content and str(world.root).encode() in content:
            found.append(environment.parent.name)
    return found


def rerun_targets(world: World) -> set[tuple[str, str, str]]:
    """What was started again although an attempt of the same side had measured it before."""
    measured: set[tuple[str, str, str]] = set()
    again: set[tuple[str, str, str]] = set()
    asked: dict[tuple[str, str, int], tuple[str, ...]] = {}
    with Reader.open(world.ledger_file()) as reader:
        for recorded in reader.events():
            event = recorded.event
            if isinstance(event, AttemptStarted):
                targets = event.targets or (event.shard,)
                asked[event.shard, event.side, event.attempt] = targets
                again |= {(event.shard, event.side, target) for target in targets} & measured
            if isinstance(event, AttemptRecorded) and event.complete:
                measured |= {(event.shard, event.side, t) for t in asked[event.shard, event.side, event.attempt]}
    return again


def check_end(world: World) -> None:
    """The verdict is that of an uninterrupted gate; nothing is left over, nothing ran twice, everything verifies."""
    summary = world.finish()
    assert summary["verdict"] == "failed"
    assert summary["counts"] == {"introduced": 1, "passed": 1}
    assert [case[0] for case in summary["blocking"]] == ["test_broken.py::test_broken"]
    assert not summary["owed"]
    assert not rerun_targets(world)
    assert world.git("worktree", "list").count("\n") == 1
    assert not list((world.root / "work").glob("*/*/attempts"))


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_gate_that_is_killed_before_a_step_resumes_to_the_same_verdict(world: World, step: int) -> None:
    killed = world.ledger("gate", crash_at=step)
    assert killed.returncode in (-signal.SIGKILL, FAILED), killed.stderr
    check_end(world)


@pytest.mark.parametrize("step", range(2, STEPS + 1, 8))
def test_a_gate_that_is_killed_after_a_step_resumes_to_the_same_verdict(world: World, step: int) -> None:
    killed = world.ledger("gate", crash_at=step, when="after")
    assert killed.returncode in (-signal.SIGKILL, FAILED), killed.stderr
    check_end(world)


def test_a_gate_has_about_as_many_steps_as_are_tried(world: World) -> None:
    assert world.ledger("gate").returncode == FAILED
    steps = world.trace.read_text().splitlines()
    assert 0 <= STEPS - len(steps) <= 25, f"there are {len(steps)} steps now; set STEPS so that all of them are tried"


@pytest.mark.parametrize("step", range(1, 60, 6))
def test_a_resumption_that_is_killed_is_resumed_as_well(world: World, step: int) -> None:
    world.ledger("gate", crash_at=30)
    world.ledger("resume", "--from", "gate", crash_at=step)
    check_end(world)
