"""A slow file in parts: the same verdicts as if it had run as a whole, and nothing of it is ever lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.measures.test_cli_learning import events
from tests.support.cli import Project

pytestmark = pytest.mark.slow

SETTINGS = "[gate]\nparallel = 2\nrounds = 1\n[plan]\nsplit_seconds = 0.4\n"
SLOW = """
import os, time, pytest
from product import answer

@pytest.mark.parametrize("n", [1, 2, 3])
def test_sleeps(n):
    time.sleep(0.25)
    assert answer(n) == n

def test_works():
    time.sleep(0.25)
    assert answer(4) == 4

def test_ends():
    time.sleep(0.25)
    if answer(5) != 5:
        os._exit(1)
"""


def project_with(root: Path, candidate: str) -> Project:
    """A project whose candidate has this product, and whose slow file was measured once before."""
    files = {
        "product.py": "def answer(n):\n    return n\n",
        "tests/test_slow.py": SLOW,
        "tests/test_quick.py": "def test_quick():\n    pass\n",
        "ledger.toml": SETTINGS,
    }
    project = Project.make(root, files, {"README.txt": "The same.\n"})
    first = project.ledger("gate")
    assert first.code == 0, first.err
    project.commit({"product.py": candidate})
    return project


def rows(project: Project, view: str) -> list[dict[str, Any]]:
    """The rows of a view."""
    found: list[dict[str, Any]] = json.loads(project.ledger("query", view, "--format", "json").out)["rows"]
    return found


def classes(project: Project) -> dict[str, str]:
    """The class of each test."""
    return {row["test"]: row["case_class"] for row in rows(project, "classes")}


def test_every_test_of_a_split_file_is_judged_and_a_regression_in_any_part_is_found(tmp_path: Path) -> None:
    project = project_with(tmp_path, "def answer(n):\n    return n if n != 3 else 0\n")
    answer = project.ledger("gate")
    assert answer.code == 1, answer.err
    (planned,) = events(project, "planned")
    started = [one for one in events(project, "attempt-recorded") if one["shard"].startswith("shard")]
    assert planned["policy"] == "usage/1"
    assert len(planned["shards"]) == 2
    assert all(one["complete"] for one in started)
    told = classes(project)
    slow = {test: found for test, found in told.items() if test.startswith("tests/test_slow.py")}
    assert slow == {
        "tests/test_slow.py::test_ends": "passed",
        "tests/test_slow.py::test_sleeps[1]": "passed",
        "tests/test_slow.py::test_sleeps[2]": "passed",
        "tests/test_slow.py::test_sleeps[3]": "introduced",
        "tests/test_slow.py::test_works": "passed",
    }
    parts = {row["target"] for row in rows(project, "targets")}
    assert {"tests/test_slow.py::part-1-of-2", "tests/test_slow.py::part-2-of-2"} <= parts
    assert "attempt" in project.ledger("why", "test_works").out
    assert project.ledger("replay").code == 0
    assert project.ledger("verify").code == 0


def test_a_part_that_dies_leaves_the_whole_file_unmeasured_and_is_resumed(tmp_path: Path) -> None:
    project = project_with(tmp_path, "def answer(n):\n    return n if n != 5 else 0\n")
    answer = project.ledger("gate")
    assert answer.code == 3, answer.out + answer.err
    told = classes(project)
    assert told["tests/test_slow.py::test_ends"] == "unmeasured"
    assert told["tests/test_quick.py::test_quick"] == "passed"
    # A part that has a shard to itself is all of it, and not named once more.
    (owed,) = rows(project, "owed")
    assert (owed["side"], owed["cause"]) == ("candidate", "session-ended-early")
    assert all(target.startswith("tests/test_slow.py::part-") for target in owed["targets"] or ())
    assert project.ledger("replay").code == 0
    again = project.ledger("resume", "--from", "gate")
    assert again.code == 3
    assert project.ledger("replay").code == 0
    assert project.ledger("verify").code == 0
