"""What is not known is estimated high, never above the budget, and every estimate is said to be one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.decide.planner import PlanRequest, Usage, plan_shards_by_usage
from commands.decide.planner.estimate import KnownUsage, complete_usage, quantile

BUDGET = 1000
KNOWN = st.builds(KnownUsage, seconds=st.floats(0, 1e6), memory_bytes=st.none() | st.integers(1, BUDGET))


def test_an_unknown_target_gets_what_nine_in_ten_of_the_known_ones_do_not_go_above() -> None:
    known = {f"t{place}": KnownUsage(seconds=float(place), memory_bytes=10 * place) for place in range(1, 11)}
    estimated = complete_usage(["t3", "new"], known, BUDGET)
    assert estimated.usage == {
        "t3": Usage(memory_bytes=30, seconds=3.0),
        "new": Usage(memory_bytes=90, seconds=9.0, origin="estimated"),
    }
    assert estimated.assumptions == (
        "1 target of unknown time planned with 9.0 s: 90% of the known targets need no more",
        "1 target of unknown memory planned with 0 MiB: 90% of the known targets need no more",
    )


def test_where_all_is_known_nothing_is_assumed() -> None:
    estimated = complete_usage(["a"], {"a": KnownUsage(seconds=1.0, memory_bytes=5)}, BUDGET)
    assert estimated.assumptions == ()
    assert estimated.usage["a"].origin == "measured"


def test_where_no_memory_is_known_it_decides_nothing() -> None:
    known = {name: KnownUsage(seconds=1.0) for name in "abcdefg"}
    estimated = complete_usage(list(known), known, BUDGET)
    assert {one.memory_bytes for one in estimated.usage.values()} == {BUDGET // 7}
    assert "it decides nothing" in estimated.assumptions[0]
    asked = PlanRequest(targets=tuple(known), usage=estimated.usage, budget_bytes=BUDGET, count=1)
    assert len(plan_shards_by_usage(asked).shards) == 1


def test_where_nothing_is_known_all_targets_are_the_same_and_the_plan_warns_of_it() -> None:
    estimated = complete_usage(["a", "b"], {}, BUDGET)
    assert [one.seconds for one in estimated.usage.values()] == [1.0, 1.0]
    plan = plan_shards_by_usage(PlanRequest(targets=("a", "b"), usage=estimated.usage, budget_bytes=BUDGET, count=2))
    assert [warning[:41] for warning in plan.warnings[:2]] == [
        "every target is planned with the same tim", "every target is planned with the same mem",
    ]  # fmt: skip


@given(
    known=st.dictionaries(st.sampled_from("abcdefgh"), KNOWN),
    targets=st.lists(st.sampled_from("abcdefghijkl"), min_size=1, unique=True),
)
def test_what_is_known_stays_as_it_is_and_no_estimate_is_above_the_budget(
    known: dict[str, KnownUsage], targets: list[str]
) -> None:
    estimated = complete_usage(targets, known, BUDGET)
    assert list(estimated.usage) == targets
    for name, one in estimated.usage.items():
        found = known.get(name)
        assert (one.origin == "measured") == (found is not None and found.memory_bytes is not None)
        if found is not None:
            assert one.seconds == found.seconds
            assert one.memory_bytes == found.memory_bytes or found.memory_bytes is None
        assert 0 < one.memory_bytes <= BUDGET
    plan_shards_by_usage(PlanRequest(targets=tuple(targets), usage=estimated.usage, budget_bytes=BUDGET))


@pytest.mark.parametrize(
    ("values", "found"), [([5], 5), ([1, 2], 2), (list(range(1, 11)), 9), (list(range(1, 12)), 10)]
)
def test_the_quantile_is_one_of_the_values(values: list[float], found: float) -> None:
    assert quantile(reversed(values)) == found
