"""A gate that is told to stop, or that is in somebody's way: what it does, what it says, and that it can go on."""

import json
import signal
import time
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import WAITS, both_sides_run, let_go_on, waiting_project
from tests.support.cli import Answer, Project, processes_below, wait_until

pytestmark = [pytest.mark.real, pytest.mark.slow]

STUBBORN = (
    WAITS + "\n    for number in (signal.SIGINT, signal.SIGTERM):\n        signal.signal(number, signal.SIG_IGN)\n"
)
FAILING = WAITS.replace("def test_quick():\n        pass", "def test_quick():\n        assert False")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose tests wait to be let go on."""
    return waiting_project(tmp_path)


def events(project: Project) -> list[tuple[str, dict[str, object]]]:
    """The tags of the latest run's events, with what they say."""
    documents = [json.loads(line) for line in project.ledger("log", "--json").out.splitlines()]
    return [(document["header"]["tag"], document["event"]) for document in documents]


def resumed(project: Project) -> Answer:
    """What the run answers once its tests are let go on and it is taken up again."""
    let_go_on(project)
    return project.ledger("resume", "--from", "gate")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_the_tests_records_what_there_is_and_can_be_resumed(
    number: signal.Signals, project: Project
) -> None:
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        gate.signal(number)
        answer = gate.end()
    assert answer.code == ExitCode.INTERRUPTED
    assert answer.out.startswith("stopped by a signal")
    assert "stopping:" in answer.err
    assert processes_below(project.root) == []
    *_, last = events(project)
    assert last == ("run-stopped", {"reason": "interrupted", "term": 1})
    records = [event for tag, event in events(project) if tag == "attempt-recorded" and event["cause"]]
    assert [(record["cause"], record["counted"]) for record in records] == [("stopped", False)] * 2
    assert resumed(project).code == ExitCode.PASSED


def test_two_signals_end_it_at_once_and_it_can_be_resumed(tmp_path: Path) -> None:
    project = waiting_project(tmp_path, STUBBORN)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        gate.signal(signal.SIGINT)
        wait_until(lambda: "stopping:" in gate.told(), gate.told)
        gate.signal(signal.SIGINT)
        answer = gate.end()
    assert (answer.code, answer.error_code) == (ExitCode.INTERRUPTED, "interrupted")
    assert "Traceback" not in answer.err
    wait_until(lambda: processes_below(project.root) == [])
    assert events(project)[-1][0] != "run-stopped"
    assert project.ledger("status").out.startswith("interrupted")
    assert resumed(project).code == ExitCode.PASSED


def test_a_killed_gate_leaves_no_process_and_no_lock(project: Project) -> None:
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        gate.kill()
    wait_until(lambda: processes_below(project.root) == [])
    assert project.ledger("status").out.startswith("interrupted")
    answer = resumed(project)
    assert answer.code == ExitCode.PASSED
    assert "driver-replaced" in [tag for tag, _ in events(project)]
    assert project.ledger("gate").code == ExitCode.PASSED


def test_while_a_gate_runs_others_are_refused_can_watch_it_and_can_stop_it(project: Project) -> None:
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        for command in (["gate"], ["resume", "--from", "gate"]):
            refused = project.ledger(*command)
            assert (refused.code, refused.error_code) == (ExitCode.REFUSED, "lock-held")
            assert f"process {gate.process.pid}" in refused.err
            assert f"since {time.strftime('%Y', time.gmtime())}-" in refused.err
        plan = project.ledger("resume", "--from", "gate", "--dry-run")
        assert (plan.code, "would be refused" in plan.out) == (ExitCode.PASSED, True)
        status = project.ledger("status")
        assert status.out.startswith("running: 2 of 4 jobs done")
        assert f"process {gate.process.pid}" in status.out
        assert "running now\n  shard-1/candidate for" in status.out
        with (
            project.started("log", "--follow", name="follow") as follow,
            project.started("status", "--watch", "--json", name="watch") as watch,
        ):
            wait_until(lambda: "shard-1/baseline attempt 1" in follow.printed(), follow.printed)
            wait_until(lambda: watch.printed() != "")
            stop = project.ledger("stop")
            assert (stop.code, stop.err) == (ExitCode.PASSED, "")
            assert "stopped on request: 2 of 4 jobs done" in stop.out
            answer, followed, watched = gate.end(), follow.end(), watch.end()
    assert answer.code == ExitCode.OUTSTANDING
    assert answer.out.startswith("stopped on request")
    assert followed.code == watched.code == ExitCode.PASSED
    assert followed.out == project.ledger("log").out
    assert [json.loads(line)["state"] for line in watched.out.splitlines()][-1] == "stopped"
    assert processes_below(project.root) == []
    assert resumed(project).code == ExitCode.PASSED


def test_a_stopped_gate_that_has_seen_failures_does_not_say_that_nothing_failed(tmp_path: Path) -> None:
    project = waiting_project(tmp_path, FAILING)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        assert project.ledger("stop").code == ExitCode.PASSED
        answer = gate.end()
    assert answer.code == ExitCode.UNMEASURED
    assert "1 failure seen on the candidate" in answer.out


def test_leaving_a_watcher_leaves_the_run_alone(project: Project) -> None:
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        for command in (["status", "--watch"], ["log", "--follow"]):
            with project.started(*command, name="watcher") as watcher:
                wait_until(lambda shown=watcher.printed: shown() != "")
                watcher.signal(signal.SIGINT)
                answer = watcher.end()
            assert (answer.code, answer.error_code) == (ExitCode.INTERRUPTED, "interrupted")
            assert "Traceback" not in answer.err
        let_go_on(project)
        assert gate.end().code == ExitCode.PASSED
