"""What a gate learns from the gates before it: real tests, measured, and planned by what they needed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Project

pytestmark = pytest.mark.slow

SLOW = {
    f"tests/test_{name}.py": f"import time\n\ndef test_{name}():\n    time.sleep({seconds})\n"
    for name, seconds in (("a", 0.05), ("b", 0.05), ("c", 0.05), ("z", 1.0))
}
HUNGRY = {"tests/test_hungry.py": "def test_hungry():\n    assert len(bytearray(b'x') * (300 << 20)) > 0\n"}
LITTLE = {"tests/test_little.py": "def test_little():\n    pass\n"}
SETTINGS = "[gate]\nparallel = 2\nrounds = 1\n"


def events(project: Project, tag: str, run: str = "latest") -> list[dict[str, Any]]:
    """What the events of a tag say, in the order of the stream, with the header as `header`."""
    lines = [json.loads(line) for line in project.ledger("log", run, "--json").out.splitlines()]
    return [line["event"] | {"header": line["header"]} for line in lines if line["header"]["tag"] == tag]


def test_the_second_gate_plans_by_what_the_first_one_measured(tmp_path: Path) -> None:
    project = Project.make(tmp_path, SLOW | {"ledger.toml": SETTINGS}, {"README.txt": "Sleeps.\n"})
    assert project.ledger("gate").code == 0
    (first,) = events(project, "planned")
    assert first["policy"] == "count/1"
    measured = events(project, "measured")
    assert {(one["shard"], one["side"]) for one in measured} == {
        (shard["shard"], side) for shard in first["shards"] for side in ("candidate", "baseline")
    }
    assert all(one["memory_method"] == "pss" and one["sampling_seconds"] < 1 for one in measured)
    assert all(one["session_seconds"] > 0 and one["peak_memory_bytes"] > 5 << 20 for one in measured)

    answer = project.ledger("gate")
    assert answer.code == 0, answer.err
    (second,) = events(project, "planned")
    assert second["policy"] == "usage/1"
    assert second["header"]["basis"] > 0
    assert second["origins"] == {"measured": 4, "aged": 0, "estimated": 0}
    assert [shard["candidate_targets"] for shard in second["shards"]] == [1, 3]
    assert second["shards"][0]["seconds"] > 1
    assert second["makespan_seconds"] == second["shards"][0]["seconds"]
    started = [one for one in events(project, "attempt-started") if one["shard"] != "collection"]
    assert all(one["reserved_bytes"] == one["memory_limit_bytes"] >= 256 << 20 for one in started)
    assert {one["time_limit_seconds"] for one in started} == {1200.0}
    lone = [one for one in events(project, "measured") if one["targets"] == 1]
    assert {one["memory_basis"] for one in lone} == {"alone"}
    assert project.ledger("replay").code == 0
    assert project.ledger("verify").code == 0


def test_what_ran_out_of_memory_is_planned_with_more_and_gets_it(tmp_path: Path) -> None:
    tight = "[machine]\nreservation_bytes = '100MiB'\n"
    limited = SETTINGS.replace("[gate]", "[gate]\nmemory_limit_bytes = '150MiB'") + tight
    project = Project.make(tmp_path, HUNGRY | LITTLE | {"ledger.toml": limited}, {"README.txt": "Eats.\n"})
    answer = project.ledger("gate")
    assert answer.code == 3, answer.err
    exceeded = [one for one in events(project, "measured") if one["exceeded"]]
    assert {(tuple(one["exceeded"]), one["side"]) for one in exceeded} == {
        (("tests/test_hungry.py",), "candidate"), (("tests/test_hungry.py",), "baseline"),
    }  # fmt: skip

    project.write({"ledger.toml": SETTINGS + tight})
    answer = project.ledger("gate")
    assert answer.code == 0, answer.out + answer.err
    (planned,) = events(project, "planned")
    hungry = max(planned["shards"], key=lambda shard: shard["memory_bytes"])
    assert hungry["memory_bytes"] >= 2 * 100 << 20
    (attempt, *_) = [one for one in events(project, "attempt-started") if one["shard"] == hungry["shard"]]
    assert attempt["memory_limit_bytes"] > 300 << 20


def test_a_limit_that_the_plan_set_too_low_is_raised_on_the_next_attempt(tmp_path: Path) -> None:
    files = {
        "tests/test_grows.py": "import os\n\ndef test_grows():\n    assert bytearray(b'x') * int(os.environ['MUCH'])\n",
        "ledger.toml": SETTINGS.replace("rounds = 1", "rounds = 3")
        + "[machine]\nreservation_bytes = '100MiB'\n[runner]\npass_environment = ['MUCH']\n",
    }
    project = Project.make(tmp_path, files, {"README.txt": "Grows.\n"})
    assert project.ledger("gate", MUCH=str(1 << 20)).code == 0
    answer = project.ledger("gate", MUCH=str(250 << 20))
    assert answer.code == 0, answer.out + answer.err
    recorded = [one for one in events(project, "attempt-recorded") if one["shard"] != "collection"]
    assert "memory-limit" in {one["cause"] for one in recorded}
    limits = [one["memory_limit_bytes"] for one in events(project, "attempt-started") if one["side"] == "candidate"][1:]
    assert limits == sorted(limits)
    assert limits[-1] >= 2 * limits[0]


def test_a_first_gate_plans_by_a_file_with_times_and_says_that_nothing_was_measured(tmp_path: Path) -> None:
    durations = {f"tests/test_{name}.py::test_{name}": seconds for name, seconds in (("a", 1), ("b", 1), ("z", 9))}
    settings = SETTINGS + "[plan]\ndurations_file = '.test_durations'\n"
    files = {"ledger.toml": settings, ".test_durations": json.dumps(durations)}
    project = Project.make(tmp_path, SLOW | files, {"README.txt": "Sleeps.\n"})
    assert project.ledger("gate").code == 0
    (planned,) = events(project, "planned")
    assert planned["policy"] == "usage/1"
    assert planned["origins"] == {"measured": 0, "aged": 0, "estimated": 4}
    assert any("1 target of unknown time" in warning for warning in planned["warnings"])
    project.commit({".test_durations": "[]"})
    answer = project.ledger("gate")
    assert "what is known of the tests' times is not used for the plan" in answer.err
    assert answer.code == 0
    assert events(project, "planned")[0]["policy"] == "count/1"
