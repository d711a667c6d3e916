"""The planner beside the original's recorded plans: it refuses the same, is never worse, and differences are listed.

Every kind of difference stands in a table with its count, so that none comes or goes unseen.
"""

import json
import math
import statistics
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from commands.decide.planner import PlanRequest, Usage, UsagePlan, plan_shards_by_usage
from commands.messages import Refusal

VECTORS = Path(__file__).parents[2] / "vectors"
SAFE_INTEGER_MAX = 2**53 - 1

REFUSED_FOR = {
    "invalid shard memory budget": {"budget-invalid"},
    "invalid shard count": {"shard-count-invalid"},
    "missing or invalid RSS/seconds measurement": {"usage-missing", "usage-invalid"},
    "test file exceeds shard memory budget": {"target-above-budget"},
    "test files exceed": {"plan-does-not-fit"},
}
"""The codes that stand for each of the original's errors."""

SAME = "as long"
SHORTER = "shorter"
FEASIBLE = "planned, where the original's greedy way finds nothing although there is a plan"
EXACT = "planned, where the original's sum of floats is above a budget that the numbers on paper meet"
FEWER = "one shard less, because the original's sum of floats is above a budget that the numbers on paper meet"

DIFFERENCES = {
    "plan": {SAME: 111, SHORTER: 38, FEASIBLE: 7, EXACT: 1, FEWER: 2, "refused": 81},
    "plan-overflow-later": {SAME: 8, SHORTER: 9, "refused": 19},
}


def vectors(name: str) -> list[dict[str, Any]]:
    """The vectors of a set."""
    found = json.loads((VECTORS / f"{name}.public.json").read_text("utf-8"))["vectors"]
    assert isinstance(found, list)
    return found


def number(value: object) -> float | None:
    """A number as JSON has it; None for everything that cannot be held by a field for a number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def request(given: dict[str, Any]) -> PlanRequest:
    """A vector's input as the planner takes it: memory in whole units that are so small that nothing is rounded.

    What is no number at all cannot come out of a measurement, so it is missing; a count that is none is 0.
    """
    memories = {target: number(memory) for target, memory in given["rssMb"]}
    seconds = {target: number(taken) for target, taken in given["seconds"]}
    budget = number(given["budgetGiB"]) or 0
    unit = _units(budget, *memories.values())
    count = given.get("shardCount", "Infinity")
    if count != "Infinity":
        count = count if isinstance(count, int) and number(count) and count <= SAFE_INTEGER_MAX else 0
    return PlanRequest(
        targets=tuple(given["files"]),
        usage={
            target: Usage(memory_bytes=math.ceil(exact(memory) * unit), seconds=taken)
            for target, memory in memories.items()
            if memory is not None and (taken := seconds.get(target)) is not None
        },
        budget_bytes=math.floor(exact(budget) * 1024 * unit),
        count=None if count == "Infinity" else count,
    )


def exact(value: float) -> Fraction:
    """The number as it is written."""
    return Fraction(repr(value))


def _units(*values: float | None) -> int:
    """Into how many whole units a MiB is cut; bytes, where numbers are so far apart that no unit suits them all."""
    unit = math.lcm(*(exact(value).denominator for value in values if value is not None))
    return unit if unit < 10**60 else 2**20


def time_of(targets: list[str], usage: dict[str, Usage]) -> Fraction:
    """The time of targets one after the other."""
    return sum((Fraction(usage[target].seconds) for target in targets), Fraction(0))


def difference(vector: dict[str, Any], asked: PlanRequest, plan: UsagePlan) -> str:
    """What kind of difference there is to the recorded plan, or to the recorded error."""
    if "error" in vector:
        assert vector["error"].startswith("test files exceed"), vector["id"]
        kinds = {"feasible-but-rejected": FEASIBLE, "float-sum-over-nominal-budget": EXACT}
        (kind,) = {kinds[tag] for tag in vector["tags"] if tag in kinds}
        return kind
    usage = dict(asked.usage)
    ours = max(time_of(list(shard.targets), usage) for shard in plan.shards)
    theirs = max(time_of(shard["files"], usage) for shard in vector["output"])
    if len(plan.shards) < len(vector["output"]):
        assert "float-sum-over-nominal-budget" in vector["tags"], vector["id"]
        return FEWER
    assert len(plan.shards) == len(vector["output"]), vector["id"]
    assert ours <= theirs, vector["id"]
    return SAME if ours == theirs else SHORTER


def outcome(vector: dict[str, Any]) -> str:
    """Refused as by the original, or else what kind of difference there is."""
    asked = request(vector["input"])
    try:
        plan = plan_shards_by_usage(asked)
    except Refusal as refusal:
        errors = [error for error, codes in REFUSED_FOR.items() if refusal.code in codes]
        return "refused" if vector.get("error", "").startswith(errors[0]) else f"{vector['id']}: {refusal.code}"
    return difference(vector, asked, plan)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_difference_to_the_original_is_a_listed_one(name: str) -> None:
    assert Counter(map(outcome, vectors(name))) == DIFFERENCES[name]


@pytest.mark.parametrize("start", ["missing or invalid", "test file exceeds"])
def test_the_target_that_is_named_is_the_one_that_the_original_names(start: str) -> None:
    refused = [vector for vector in vectors("plan") if vector.get("error", "").startswith(start)]
    assert refused
    for vector in refused:
        with pytest.raises(Refusal) as refusal:
            plan_shards_by_usage(request(vector["input"]))
        assert repr(vector["error"].partition(": ")[2]) in refusal.value.message


def test_where_there_are_no_memories_it_is_never_longer_than_the_longest_first() -> None:
    """The set holds plans by time alone, where a repeated file is planned repeatedly and an unknown one gets the
    median; ours plans each target once, so the repetitions are given names of their own."""
    shorter = Counter[bool]()
    for vector in vectors("shard-plan-lpt"):
        given = vector["input"]
        # The last word on a file counts, also when it is none.
        last = dict(given["durations"]).items()
        known = {file: time for file, time in last if number(time) is not None and time >= 0}
        taken = [known[file] for file in given["files"] if file in known]
        median = statistics.median(taken) if taken else 1.0
        times = {f"{place}/{file}": known.get(file, median) for place, file in enumerate(given["files"])}
        asked = PlanRequest(
            targets=tuple(times),
            usage={target: Usage(memory_bytes=1, seconds=time) for target, time in times.items()},
            budget_bytes=max(1, len(times)),
            count=given["count"] if isinstance(given["count"], int) else 0,
        )
        if "error" in vector:
            with pytest.raises(Refusal, match="number of shards"):
                plan_shards_by_usage(asked)
            continue
        plan = plan_shards_by_usage(asked)
        theirs = max(shard["plannedSeconds"] for shard in vector["output"])
        assert len(plan.shards) == len(vector["output"]), vector["id"]
        assert plan.makespan_seconds <= theirs + 1e-9, vector["id"]
        shorter[plan.makespan_seconds < theirs - 1e-9] += 1
    assert shorter == {False: 55, True: 1}
