"""Releases whose gate comes to no verdict: what the program does about that by itself, and where it stops."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.cli.exits import ExitCode
from tests.commands.releasing.projects import BROKEN, STEPS, ReleaseProject
from tests.support.cli import Answer

pytestmark = [pytest.mark.real, pytest.mark.slow]

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
"""What ends the process of the tests, in the middle of one."""


def dying(tmp_path: Path, times: int) -> dict[str, str]:
    """A test that kills its process so many times, and passes afterwards. On the baseline it is not there."""
    marks = tmp_path / "marks"
    test = f"""
        import pathlib
        def test_two():
            marks = pathlib.Path({str(marks)!r})
            marks.mkdir(exist_ok=True)
            number = len(list(marks.iterdir()))
            if number < {times}:
                (marks / str(number)).touch()
                {DIES}
        """
    return {"thing.txt": "two\n", "suite/c.py": test}


def release(tmp_path: Path, files: dict[str, str], settings: str = "") -> ReleaseProject:
    """A project whose release is to be made of these changes."""
    return ReleaseProject.with_steps(tmp_path, files, steps=settings + STEPS)


def healed(project: ReleaseProject) -> list[tuple[str, str, str]]:
    """Every decision: its cause, row and action."""
    return [(one["cause"], one["row"], one["action"]) for one in project.events("autoheal-decided")]


def gates(project: ReleaseProject) -> list[tuple[str, str]]:
    """Every attempt at the gate: its run, and its outcome."""
    return [(one["gate"], one["outcome"]) for one in project.attempts("gate")]


def attempts_used(project: ReleaseProject) -> int:
    """How often the release was taken up again."""
    return int(project.show()["attempt"])


def plan(project: ReleaseProject, *more: str) -> dict[str, Any]:
    """What resuming from the gate would do."""
    answer = project.resume("gate", "--dry-run", "--json", *more)
    assert answer.code == ExitCode.PASSED, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_a_gate_whose_process_was_killed_once_is_run_again_and_passes(tmp_path: Path) -> None:
    project = release(tmp_path, dying(tmp_path, 1))
    answer = project.start()
    assert answer.code == ExitCode.WAITING, answer.err
    assert healed(project) == [("shard-death", "D5", "retry-shard")]
    (run, first), (again, second) = gates(project)
    assert (run == again, first, second) == (True, "unmeasured", "passed")
    assert attempts_used(project) == 0
    (event,) = project.events("autoheal-decided")
    assert event["codes"] == ["signalled"]
    assert event["passed_over"] == {"D1": "memory", "D2": "halves", "D3": "alone", "D4": "member"}
    assert 0 < event["shard_seconds"] < event["elapsed_seconds"]
    # What was measured the first time was not run again: the baseline has its one attempt.
    tried = [(line["shard"], line["side"]) for line in project.events("attempt-started", run)]
    assert tried.count(("shard-1", "candidate")) == 2
    assert tried.count(("shard-1", "baseline")) == 1
    assert "gate: retry-shard: shard-death of shard-1 (signalled), by row D5 of autoheal/1" in answer.err
    project.whole()


def test_a_regression_is_never_healed(tmp_path: Path) -> None:
    project = release(tmp_path, BROKEN)
    answer = project.start()
    assert answer.code == ExitCode.FAILED, answer.err
    assert healed(project) == [("true-regression", "A1", "hitl")]
    assert [outcome for _, outcome in gates(project)] == ["failed"]
    assert project.states()["triage"] == "passed"
    project.whole()


def test_a_process_that_always_dies_is_left_to_a_person_when_the_cap_is_reached(tmp_path: Path) -> None:
    project = release(tmp_path, dying(tmp_path, 99))
    answer = project.start()
    assert answer.code == ExitCode.UNMEASURED, answer.err
    assert healed(project) == [
        ("shard-death", "D5", "retry-shard"),
        ("shard-death", "D5", "retry-shard"),
        ("shard-death", "A3", "hitl"),
    ]
    assert [outcome for _, outcome in gates(project)] == ["unmeasured"] * 3
    assert len({one["signature"] for one in project.events("autoheal-decided")}) == 1
    assert "left to a person" in plan(project)["healing"]
    # A person may have it run once more; that is an attempt, and nothing more is done by itself.
    assert project.resume("gate").code == ExitCode.UNMEASURED
    assert attempts_used(project) == 1
    assert healed(project)[3:] == [("shard-death", "A3", "hitl")]
    project.whole()


def test_nothing_is_healed_where_the_settings_say_so(tmp_path: Path) -> None:
    project = release(tmp_path, dying(tmp_path, 1), "[release]\nautoheal = false\n")
    assert project.start().code == ExitCode.UNMEASURED
    assert (healed(project), len(gates(project))) == ([], 1)
    assert plan(project)["healing"] == ""
    project.whole()


DYING_DRIVER = """
import os, signal, sys
from commands.releasing import driver
from commands.cli import main

decide = driver.heal

def decide_and_die(*arguments):
    decide(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

driver.heal = decide_and_die
sys.exit(main())
"""


def test_a_driver_that_dies_after_the_decision_is_followed_by_one_that_carries_it_out(tmp_path: Path) -> None:
    project = release(tmp_path, dying(tmp_path, 1))
    command = [sys.executable, "-c", DYING_DRIVER, "release", "start", "1.1.0", "--branch"]
    died = subprocess.run(command, cwd=project.path, env=project.environment, check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert healed(project) == [("shard-death", "D5", "retry-shard")]
    assert [outcome for _, outcome in gates(project)] == ["unmeasured"]
    foreseen = plan(project)
    assert (foreseen["attempt"], foreseen["gate"]) == (0, "owed")
    assert foreseen["healing"].startswith("retry-shard: shard-death of shard-1")
    answer = project.resume("gate")
    assert answer.code == ExitCode.WAITING, answer.err
    assert attempts_used(project) == 0
    assert healed(project) == [("shard-death", "D5", "retry-shard")]
    (run, first), (again, second) = gates(project)
    assert (run == again, first, second) == (True, "unmeasured", "passed")
    project.whole()


@pytest.mark.parametrize(
    ("shard", "code"),
    [("shard-1", "reroute-no-member"), ("auto", "reroute-no-member"), ("3", "reroute-unknown")],
)
def test_a_shard_goes_nowhere_where_it_cannot(tmp_path: Path, shard: str, code: str) -> None:
    project = release(tmp_path, dying(tmp_path, 99), "[release]\nautoheal = false\n")
    assert project.start().code == ExitCode.UNMEASURED
    before = project.rows()
    for answer in (project.resume("gate", "--reroute", shard), project.resume("gate", "--reroute", shard, "--dry-run")):
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, code), answer.err
    if code == "reroute-unknown":
        assert "pod-3" in answer.err
    assert project.resume("gate", "--reroute", shard, "--partial", "yes").code == ExitCode.USAGE
    assert project.rows() == before


def test_no_shard_goes_elsewhere_when_the_branch_has_moved(tmp_path: Path) -> None:
    project = release(tmp_path, BROKEN)
    project.start()
    project.repair({"thing.txt": "three\n"})
    answer: Answer = project.resume("gate", "--reroute", "shard-1")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "reroute-moved-tip"), answer.err
    assert plan(project)["healing"] == ""
