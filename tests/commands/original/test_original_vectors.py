"""The policy `original` beside what the original itself was recorded to do: the same plans, runs and endings."""

from typing import Any

import pytest

from tests.commands.original.greedy import Bundle, OriginalError, greedy_plan
from tests.commands.original.policy import Ending, run_original
from tests.commands.original.replies import TREES, number, scenario_of
from tests.commands.original.vectors import vectors


def by_id(vector: dict[str, Any]) -> str:
    """Name a test's case after its vector."""
    return str(vector["id"])


def told(shards: list[Bundle] | tuple[Bundle, ...]) -> list[dict[str, object]]:
    """Shards as a vector has them."""
    return [
        {"id": one.shard, "files": one.files, "plannedRssMb": one.memory_mb, "plannedSeconds": one.seconds}
        for one in shards
    ]


def finite(shards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The shards of a vector, with numbers for what JSON has no words for."""
    return [{name: number(value) for name, value in shard.items()} for shard in shards]


@pytest.mark.parametrize("vector", vectors("plan"), ids=by_id)
def test_the_greedy_plan_is_the_recorded_one_or_fails_with_the_recorded_message(vector: dict[str, Any]) -> None:
    given = vector["input"]
    memories, seconds = ({file: number(value) for file, value in given[measure]} for measure in ("rssMb", "seconds"))
    limits = [number(given[limit]) for limit in ("budgetGiB", "shardCount") if limit in given]
    if "error" in vector:
        with pytest.raises(OriginalError) as error:
            greedy_plan(given["files"], memories, seconds, *limits)
        assert str(error.value) == vector["error"]
    else:
        assert told(greedy_plan(given["files"], memories, seconds, *limits)) == finite(vector["output"])


@pytest.mark.parametrize("vector", vectors("shard-run"), ids=by_id)
def test_a_run_makes_the_recorded_calls_in_their_order_and_ends_as_recorded(vector: dict[str, Any]) -> None:
    scenario = scenario_of(vector["input"])
    if "error" in vector:
        with pytest.raises(OriginalError) as error:
            run_original(scenario)
        assert str(error.value) == vector["error"]
        return
    ending, recorded = run_original(scenario), vector["output"]
    assert [[TREES[side], list(files)] for side, files in ending.calls] == recorded["calls"]
    assert told(ending.shards) == finite(recorded["shards"])
    assert attempts(ending) == recorded["attempts"]
    assert ending.reason == recorded.get("reason")
    aggregate = recorded["aggregate"]
    assert (ending.status, list(ending.retry)) == (aggregate["status"], aggregate["retryShardIds"])
    failures = aggregate.get("report", {"failures": []})["failures"]
    assert (ending.failures or {}) == {failure["name"]: failure["attribution"] for failure in failures}


def attempts(ending: Ending) -> list[dict[str, object]]:
    """The attempts as a vector has them."""
    return [
        {
            "shardId": one.shard.shard,
            "attempt": one.number,
            "currentExitCode": one.candidate.exit_code,
            "baselineExitCode": one.baseline.exit_code,
            "hasCurrentJUnit": one.candidate.junit is not None,
            "hasBaselineJUnit": one.baseline.junit is not None,
        }
        for one in ending.attempts
    ]
