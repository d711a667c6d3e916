"""A real gate of a real project whose tests fail for different reasons: each gets its class, whatever happens to it."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands.cli.exits import ExitCode
from tests.support.cli import Project, wait_until

pytestmark = [pytest.mark.real, pytest.mark.slow]

SETTINGS = {"ledger.toml": '[gate]\nparallel = 2\n[runner]\narguments = ["-p", "no:cacheprovider"]\n'}
BASELINE = {"thing.py": "VALUE = 1\nNEW = False\nstate = []\n"}
CANDIDATE = {"thing.py": "VALUE = 2\nNEW = True\nstate = []\n"}
TESTS = """
    import pathlib
    import time

    import thing

    MARKER = pathlib.Path({marker!r})


    def test_introduced():
        assert thing.VALUE == 1


    def test_preexisting():
        assert thing.VALUE == 3


    def test_flaky():
        if thing.NEW and not MARKER.exists():
            MARKER.touch()
            raise AssertionError("not yet")


    def test_that_leaves_something_behind():
        if thing.NEW:
            thing.state.append(1)


    def test_interference():
        assert thing.state == []


    def test_good():
        time.sleep({pause})
"""
EXPECTED = {
    "test_introduced": ("introduced", "failed"),
    "test_preexisting": ("preexisting", "none"),
    "test_flaky": ("flaky", "none"),
    "test_that_leaves_something_behind": ("passed", "none"),
    "test_interference": ("interference", "unmeasured"),
    "test_good": ("passed", "none"),
}


def make(tmp_path: Path, pause: float = 0) -> Project:
    """The project: its marker is outside of every checkout, so that all attempts share it."""
    tests = {"test_thing.py": TESTS.format(marker=str(tmp_path / "marker"), pause=pause)}
    return Project.make(tmp_path, BASELINE | tests | SETTINGS, CANDIDATE)


def classes(project: Project) -> dict[str, tuple[str, str]]:
    """Class and effect of each test of the newest run."""
    rows: list[dict[str, Any]] = json.loads(project.ledger("query", "classes", "--json").out)["rows"]
    return {row["test"].partition("::")[2]: (row["case_class"], row["effect"]) for row in rows}


def test_each_failure_has_the_class_of_its_reason_and_why_shows_every_run(tmp_path: Path) -> None:
    project = make(tmp_path)
    gate = project.ledger("gate")
    assert gate.code == ExitCode.FAILED, gate.err
    assert classes(project) == EXPECTED
    why = project.ledger("why", "test_flaky").out
    for run in (
        "candidate, shard-1 ",
        "candidate, rerun-alone-",
        "baseline, rerun-alone-",
        "candidate, rerun-bundle-1 ",
    ):
        assert run in why
    assert "failed x" not in why
    assert "run again passed-again -> flaky (classes/2)" in " ".join(why.split())
    assert project.ledger("replay").code == ExitCode.PASSED
    assert project.ledger("verify").code == ExitCode.PASSED


def test_a_driver_that_is_killed_while_it_runs_failures_again_is_resumed_to_the_same_classes(tmp_path: Path) -> None:
    project = make(tmp_path, pause=0.2)
    with project.started("gate") as program:
        wait_until(lambda: "rerun-alone-" in project.ledger("log").out, program.told)
        program.kill()
    resumed = project.ledger("resume", "--from", "gate")
    assert resumed.code == ExitCode.FAILED, resumed.err
    assert classes(project) == EXPECTED
    assert project.ledger("replay").code == ExitCode.PASSED


def test_nothing_is_run_again_where_the_settings_say_so(tmp_path: Path) -> None:
    project = make(tmp_path)
    assert project.ledger("gate", LEDGER_GATE_RERUN="off").code == ExitCode.FAILED
    found = classes(project)
    assert [found[name][0] for name in ("test_introduced", "test_flaky", "test_interference")] == ["introduced"] * 3
    assert "rerun" not in project.ledger("log").out
