"""The default policy beside the policy `original`: where status, retry set or rounds differ, a listed kind says why.

Both get the same replies. On the recorded scenarios each kind has its count, so that none comes or goes unseen.
"""

from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.commands.original.differences import (
    AGAIN,
    HALVES,
    NO_BASELINE,
    NO_COUNT,
    NO_FILES,
    OTHER_SHARDS,
    PROVEN,
    SKIPPED,
    TOO_HEAVY,
    TOO_MANY,
    UNCOMPARED,
    UNKNOWN,
    by_shard,
    differs,
    kinds,
    unexplained,
)
from tests.commands.original.greedy import OriginalError, is_number
from tests.commands.original.policy import Ending, run_original
from tests.commands.original.replies import Scenario, scenario_of
from tests.commands.original.scripted_gate import Answer, run_default
from tests.commands.original.vectors import vectors
from tests.commands.original.worlds import beside, scenarios, scripted, shared_out_badly

SCENARIOS = [scenario_of(vector["input"]) for vector in vectors("shard-run")]

SAME = {"passed": 22, "failed": 13, "unmeasured": 6}
"""How many recorded scenarios end the same, by status."""

DIFFERENCES = {
    (NO_COUNT, "error", "refused"): 2,
    (NO_COUNT, "error", "unmeasured"): 1,
    (NO_FILES, "unmeasured", "refused"): 1,
    (TOO_HEAVY, "unmeasured", "unmeasured"): 2,
    (TOO_HEAVY, "unmeasured", "passed"): 2,
    (TOO_MANY, "unmeasured", "unmeasured"): 2,
    (UNKNOWN, "unmeasured", "unmeasured"): 3,
    (UNKNOWN, "unmeasured", "passed"): 1,
    (NO_BASELINE, "unmeasured", "unmeasured"): 3,
    (UNCOMPARED, "unmeasured", "passed"): 2,
}
"""How many recorded scenarios differ, by kind and by the status of both policies."""

PROCESSES = {"original": 218, "default": 135}
"""How many test processes the recorded scenarios start that both policies run to the end."""


def both(scenario: Scenario, seed: int = 0) -> tuple[Ending | None, Answer]:
    """How a scenario ends under both policies; None where the original throws. `seed` stands for chance."""
    ours = run_default(scenario, seed)
    try:
        return run_original(scenario), ours
    except OriginalError:
        return None, ours


def test_every_difference_on_the_recorded_scenarios_is_of_a_listed_kind() -> None:
    same, different = Counter[str](), Counter[tuple[str, str, str]]()
    for scenario in SCENARIOS:
        theirs, ours = both(scenario)
        if differs(theirs, ours):
            (kind,) = kinds(scenario, theirs, ours)
            different[kind, theirs.status if theirs else "error", ours.status] += 1
        else:
            same[ours.status] += 1
    assert same == SAME
    assert different == DIFFERENCES


def test_the_default_starts_no_process_that_the_original_does_not_start_and_none_only_to_measure() -> None:
    started = Counter[str]()
    for scenario in SCENARIOS:
        theirs, ours = both(scenario)
        if theirs is None or not theirs.attempts:
            continue
        measuring = len(set(scenario.files))
        runs = Counter((side, frozenset(files)) for side, files in theirs.calls[measuring:])
        assert ours.calls <= runs
        started.update(original=len(theirs.calls), default=ours.calls.total())
    assert started == PROCESSES


@pytest.mark.parametrize("kind", [TOO_HEAVY, TOO_MANY])
def test_what_has_no_room_for_the_original_gets_shards_within_the_budget_or_one_of_its_own(kind: str) -> None:
    found = [(scenario, *both(scenario)) for scenario in SCENARIOS]
    found = [(scenario, theirs, ours) for scenario, theirs, ours in found if kind in kinds(scenario, theirs, ours)]
    assert found
    for scenario, _, ours in found:
        assert is_number(scenario.budget_gib)
        assert frozenset().union(*ours.shards) == set(scenario.files)
        for files in ours.shards:
            memories = [scenario.script().answer("candidate", (file,)).memory_mb for file in files]
            needed = sum(memory for memory in memories if is_number(memory))
            assert len(files) == 1 or needed <= scenario.budget_gib * 1024


@settings(max_examples=100, deadline=None)
@given(scenario=scenarios(), seed=st.integers(0, 2**32))
def test_on_random_scenarios_every_difference_is_of_a_listed_kind_and_only_some_of_them_let_more_pass(
    scenario: Scenario, seed: int
) -> None:
    theirs, ours = both(scenario, seed)
    assert theirs is not None
    found = kinds(scenario, theirs, ours)
    assert bool(found) == differs(theirs, ours)
    for kind in found:
        event(kind)
    if ours.status == "passed" and theirs.status == "failed":
        assert AGAIN in found
    if ours.status == "passed" and theirs.status == "unmeasured":
        assert found & {UNKNOWN, TOO_HEAVY, TOO_MANY, HALVES, UNCOMPARED, SKIPPED}
        assert not any(unexplained(attempts) for attempts in by_shard(theirs).values())


SOUND, KILLED = ("passed", "sound"), ("passed", "killed")


@pytest.mark.parametrize(
    ("candidate", "baseline", "kind", "statuses"),
    [
        ([SOUND, KILLED], [KILLED, SOUND], HALVES, ("unmeasured", "passed")),
        ([SOUND, SOUND], [KILLED, KILLED], UNCOMPARED, ("unmeasured", "passed")),
        ([("skipped", "sound")], [("skipped", "sound")], SKIPPED, ("unmeasured", "unmeasured")),
        ([("skipped", "sound")], [SOUND], SKIPPED, ("unmeasured", "failed")),
        ([SOUND, ("failed", "sound")], [KILLED, SOUND], AGAIN, ("failed", "passed")),
        ([("failed", "sound"), SOUND], [KILLED, SOUND], AGAIN, ("passed", "failed")),
    ],
)
def test_each_kind_that_no_recorded_scenario_shows_has_an_example(
    candidate: list[tuple[str, str]], baseline: list[tuple[str, str]], kind: str, statuses: tuple[str, str]
) -> None:
    scenario = scripted({"candidate": candidate, "baseline": baseline})
    theirs, ours = both(scenario)
    assert theirs is not None
    assert (theirs.status, ours.status) == statuses
    assert kind in kinds(scenario, theirs, ours)


def test_a_proven_regression_blocks_by_default_while_another_shard_is_unmeasured() -> None:
    regression = scripted({"candidate": [("failed", "sound")], "baseline": [SOUND]}, "t/a.test.ts")
    killed = scripted({"candidate": [KILLED], "baseline": [SOUND]}, "t/b.test.ts")
    scenario = beside(regression, killed)
    theirs, ours = both(scenario)
    assert theirs is not None
    assert (theirs.status, ours.status) == ("unmeasured", "failed")
    assert kinds(scenario, theirs, ours) == {PROVEN}
    assert ours.owed == {frozenset(["t/b.test.ts"])}


def test_shards_that_are_cut_in_another_way_meet_other_replies() -> None:
    scenario = shared_out_badly()
    theirs, ours = both(scenario)
    assert theirs is not None
    assert (theirs.status, ours.status) == ("passed", "unmeasured")
    assert kinds(scenario, theirs, ours) == {OTHER_SHARDS}


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [([KILLED], [SOUND]), ([("failed", "sound")], [KILLED]), ([("failed", "cut")], [("failed", "cut")])],
)
def test_what_is_unmeasured_for_a_reason_of_its_own_is_unmeasured_for_both(
    candidate: list[tuple[str, str]], baseline: list[tuple[str, str]]
) -> None:
    scenario = scripted({"candidate": candidate, "baseline": baseline})
    theirs, ours = both(scenario)
    assert theirs is not None
    assert (theirs.status, ours.status) == ("unmeasured", "unmeasured")
    assert not differs(theirs, ours)
