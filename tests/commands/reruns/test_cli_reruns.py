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
OTHER = "def test_other():\n    assert True\n"
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
    for told in (gate.out, project.ledger("status").out):
        assert "failed and then passed\n  flaky: test_thing.py::test_flaky\n      AssertionError: not yet\n" in told
    (named,) = json.loads(project.ledger("status", "--json").out)["flaky"]
    assert named[0] == "test_thing.py::test_flaky"
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


IMPORTED = """
    import pathlib

    import thing

    MARKER = pathlib.Path({marker!r})
    if thing.NEW:
        imports = int(MARKER.read_text()) if MARKER.exists() else 0
        MARKER.write_text(str(imports + 1))
        if imports in {broken}:
            raise ImportError("not this time")


    def test_good():
        assert True
"""


@pytest.mark.parametrize(
    ("broken", "expected", "again"),
    [
        # The first import is that of the collection, the second that of the attempt.
        ((1,), ("flaky", "none"), ["rerun-alone-1/baseline", "rerun-alone-1/candidate", "rerun-bundle-1/candidate"]),
        ((1, 2, 3), ("introduced", "failed"), ["rerun-alone-1/baseline", "rerun-alone-1/candidate"]),
        ((0, 1, 2, 3), ("introduced", "failed"), []),
    ],
)
def test_an_import_that_failed_once_is_told_from_one_that_fails(
    tmp_path: Path, broken: tuple[int, ...], expected: tuple[str, str], again: list[str]
) -> None:
    tests = {"test_thing.py": IMPORTED.format(marker=str(tmp_path / "imports"), broken=broken), "test_other.py": OTHER}
    project = Project.make(tmp_path, BASELINE | tests | SETTINGS, CANDIDATE)
    project.ledger("gate", LEDGER_GATE_SHARDS="1")
    assert classes(project)[""] == expected, project.ledger("log").out
    log = [json.loads(line) for line in project.ledger("log", "--json").out.splitlines()]
    started = [line["event"] for line in log if line["header"]["tag"] == "attempt-started"]
    assert sorted(f"{one['shard']}/{one['side']}" for one in started if one["shard"].startswith("rerun")) == again
    assert project.ledger("replay").code == ExitCode.PASSED


KILLING = """
    import os
    import pathlib

    import thing

    MARKER = pathlib.Path({marker!r})
    if thing.NEW and MARKER.exists():
        os.kill(os.getpid(), 9)
    if thing.NEW:
        MARKER.touch()


    def test_never_comes():
        assert True
"""


def test_a_file_that_kills_every_attempt_before_the_first_test_is_found_by_halves(tmp_path: Path) -> None:
    """Its first import is that of the collection; each later one ends a session of which nothing was run yet."""
    tests = {f"test_{name}.py": OTHER.replace("other", name) for name in "abde"}
    killing = {"test_c.py": KILLING.format(marker=str(tmp_path / "collected"))}
    project = Project.make(tmp_path, BASELINE | tests | killing | SETTINGS, CANDIDATE)
    assert project.ledger("gate", LEDGER_GATE_SHARDS="1").code == ExitCode.UNMEASURED
    rows: list[dict[str, Any]] = json.loads(project.ledger("query", "classes", "--json").out)["rows"]
    unmeasured = {row["test"] for row in rows if row["case_class"] != "passed"}
    assert (len(rows), unmeasured) == (5, {"test_c.py::test_never_comes"}), project.ledger("log").out
    log = [json.loads(line) for line in project.ledger("log", "--json").out.splitlines()]
    asked = [line["event"]["targets"] for line in log if line["header"]["tag"] == "attempt-started"
             and (line["event"]["shard"], line["event"]["side"]) == ("shard-1", "candidate")]  # fmt: skip
    assert [len(targets) for targets in asked[1:]] == [5, 3, 2, 2, 1]
    assert asked[-1] == ["test_c.py"]
    assert project.ledger("replay").code == ExitCode.PASSED


def test_nothing_is_run_again_where_the_settings_say_so(tmp_path: Path) -> None:
    project = make(tmp_path)
    assert project.ledger("gate", LEDGER_GATE_RERUN="off").code == ExitCode.FAILED
    found = classes(project)
    assert [found[name][0] for name in ("test_introduced", "test_flaky", "test_interference")] == ["introduced"] * 3
    assert "rerun" not in project.ledger("log").out


DYING = """
    import os

    import thing


    def test_introduced():
        assert thing.VALUE == 1


    def test_that_kills_its_process():
        if thing.NEW:
            os.kill(os.getpid(), 9)
"""


def test_what_failed_before_the_process_died_is_run_again_and_blocks_while_the_rest_stays_owed(tmp_path: Path) -> None:
    project = Project.make(tmp_path, BASELINE | {"test_thing.py": DYING} | SETTINGS, CANDIDATE)
    gate = project.ledger("gate")
    assert gate.code == ExitCode.FAILED, gate.err
    rows = json.loads(project.ledger("query", "classes", "--json").out)["rows"]
    assert {row["test"]: row["case_class"] for row in rows} == {
        "test_thing.py": "unmeasured",
        "test_thing.py::test_introduced": "introduced",
        "test_thing.py::test_that_kills_its_process": "unmeasured",
    }
    assert "failed-again" in project.ledger("why", "test_introduced").out
    assert project.ledger("replay").code == ExitCode.PASSED
