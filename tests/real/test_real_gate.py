"""Gates of a real project: every class is what plain runs of pytest say, and gates that are killed answer the same."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

import pytest

from ledger.store.reader import Reader
from ledger.tables import ClassRow
from scripts.real.project import LEDGER, Project
from tests.real.conftest import BROKEN_PROMISES
from tests.real.gates import Gate, ledger_file, marked_processes
from tests.real.oracle import PlainRun, Reported, expected

pytestmark = [pytest.mark.slow, pytest.mark.real]

FAILED = 1
PATIENCE_SECONDS = 120.0
"""How long a gate may take to come to a moment; only a test that fails takes this long."""


@pytest.mark.parametrize(
    ("pins", "tag"),
    [("pytest-8", "8.3.0"), ("pytest-9", "8.3.0"), ("pytest-8", "8.3.0-with-old-tests")],
)
def test_every_class_and_the_verdict_are_what_plain_runs_say(
    pins: str,
    tag: str,
    project_of: Callable[[str], Project],
    plain_run_of: Callable[[str, str], PlainRun],
) -> None:
    answer = expected(plain_run_of(pins, tag), plain_run_of(pins, "8.2.1"))
    project = project_of(pins)
    ended = project.ledger("gate", tag, "--baseline", "8.2.1", "--json")
    assert ended.returncode == (FAILED if answer.verdict == "failed" else 0), project.told(ended)
    summary, gate = json.loads(ended.stdout), Gate.newest(project)
    rows = gate.class_rows()
    assert {named(row): row.case_class for row in rows} == answer.classes
    assert len(rows) == len(answer.classes)
    assert {named(row) for row in rows if row.effect == "failed"} == answer.blocking
    assert {row.effect for row in rows} <= {"none", "failed"}
    assert summary["verdict"] == gate.verdict.verdict == answer.verdict
    assert summary["counts"] == gate.verdict.counts == Counter(answer.classes.values())
    assert len(gate.verdict.blocking) == len(answer.blocking)
    assert (summary["owed"], summary["unmeasured"]) == ([], [])
    assert gate.leftovers() == []


def named(row: ClassRow) -> Reported:
    """The test of a row under the name that a JUnit report gives it."""
    if not row.test.path:
        return Reported(row.test.target, "", "")
    *places, name = row.test.path
    variant = "" if row.test.variant is None else f"[{row.test.variant}]"
    return Reported(row.test.target, ".".join(places), name + variant)


def test_the_trees_are_worth_a_gate(plain_run_of: Callable[[str, str], PlainRun]) -> None:
    """What the other tests rely on: regressions in the one gate, a file that nobody can collect in another."""
    answer = expected(plain_run_of("pytest-8", "8.3.0-with-old-tests"), plain_run_of("pytest-8", "8.2.1"))
    assert Reported("tests/test_basic.py", "", "test_choice_argument_none") in answer.blocking
    answer = expected(plain_run_of("pytest-9", "8.3.0"), plain_run_of("pytest-9", "8.2.1"))
    assert answer.classes[Reported("tests/test_basic.py", "", "")] == "preexisting"
    assert len({test.file for test in answer.classes}) == 20


def test_a_killed_gate_is_resumed_to_the_same_answer(seed: int, undisturbed: Gate) -> None:
    """A random moment, the driver or its whole process group, once or twice."""
    dice, project = random.Random(seed), undisturbed.project
    last_start = max(position for position, tag in tags_of(undisturbed) if tag == "attempt-started")
    known = runs_of(project)
    gate = start(project, "gate", *BROKEN_PROMISES)
    assert kill_at(gate, project, known, dice, dice.randint(1, last_start)), "it ended before it could be killed"
    (run,) = runs_of(project).keys() - known.keys()
    if dice.random() < 0.5:
        resumed = start(project, "resume", run, "--from", "gate")
        kill_at(resumed, project, known, dice, runs_of(project)[run] + dice.randint(1, 6))
    ended = project.ledger("resume", run, "--from", "gate")
    assert ended.returncode == FAILED, project.told(ended)
    resumed_gate = Gate.newest(project)
    assert resumed_gate.run == run
    assert resumed_gate.verdict.verdict == undisturbed.verdict.verdict
    assert resumed_gate.verdict.counts == undisturbed.verdict.counts
    assert resumed_gate.judgements() == undisturbed.judgements()
    assert resumed_gate.run_again_without_need() == []
    assert resumed_gate.read_all_evidence() > 0
    assert resumed_gate.leftovers() == []


def tags_of(gate: Gate) -> list[tuple[int, str]]:
    """The position and the tag of every event."""
    return [(one.header.position, one.header.tag) for one in gate.events]


def runs_of(project: Project) -> dict[str, int]:
    """The runs of the ledger, each with the number of its events."""
    with Reader.open(ledger_file(project)) as reader:
        return {head.stream: head.position for head in reader.streams() if head.stream != "ledger"}


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of the ledger in a process group of its own."""
    return subprocess.Popen(
        [LEDGER, *arguments], cwd=project.checkout, env=project.variables, process_group=0,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def kill_at(
    process: subprocess.Popen[bytes], project: Project, known: dict[str, int], dice: random.Random, position: int
) -> bool:
    """Kill the driver, or its process group, a little after its run has so many events; False if it ended before."""
    delay_seconds, whole_group = dice.uniform(0.0, 0.4), dice.random() < 0.5
    try:
        wait_for_event(process, project, known, position)
        process.wait(delay_seconds)
    except subprocess.TimeoutExpired:
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    except BaseException:
        process.kill()
        raise
    return process.wait() == -signal.SIGKILL


def wait_for_event(process: subprocess.Popen[bytes], project: Project, known: dict[str, int], position: int) -> None:
    """Wait until the one run that is not known yet has so many events, or the process has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while max((length for run, length in runs_of(project).items() if run not in known), default=0) < position:
        assert time.monotonic() < deadline, f"the gate does not come to event {position}"
        if process.poll() is not None:
            return
        time.sleep(0.01)


def test_leftover_processes_would_be_found() -> None:
    with subprocess.Popen(["sleep", "60"], env={"LEDGER_ATTEMPT": "run-1.shard-1.candidate.1.1"}) as sleeper:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not marked_processes("run-1"):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert [process.pid for process in marked_processes("run-1")] == [sleeper.pid]
        finally:
            sleeper.kill()
