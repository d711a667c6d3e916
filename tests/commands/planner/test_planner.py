"""Plans by usage: a partition within the budget, the same for the same inputs, never worse than simpler planners."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commands.decide.planner import PlannerPolicy, PlanRequest, Usage, UsagePlan, plan_shards_by_usage
from commands.messages import Refusal
from tests.commands.planner.oracles import Need, all_ways, longest_first, makespan, original

BUDGET = 1000
NAMES = st.text(min_size=1, max_size=5)
SECONDS = st.one_of(st.sampled_from([0.0, 0.1, 0.2, 1.0, 1.0, 30.0]), st.floats(0, 1e6), st.integers(0, 50))
USAGES = st.builds(
    Usage,
    memory_bytes=st.one_of(st.sampled_from([1, 250, 333, 334, 500, 501, BUDGET]), st.integers(1, BUDGET)),
    seconds=SECONDS,
    origin=st.sampled_from(["measured", "aged", "estimated"]),
)
NEEDS = st.dictionaries(NAMES, USAGES, min_size=1, max_size=25)
FEW_NEEDS = st.dictionaries(NAMES, USAGES, min_size=1, max_size=6)


def asked(usage: dict[str, Usage], **more: object) -> PlanRequest:
    """A request for these targets."""
    given = {"targets": tuple(usage), "budget_bytes": BUDGET} | more
    return PlanRequest(usage=usage, **given)  # type: ignore[arg-type]


def even(number: int) -> dict[str, Usage]:
    """So many targets of 100 bytes and 10 seconds."""
    return {f"t{place:02}": Usage(memory_bytes=100, seconds=10.0) for place in range(number)}


def needs(usage: dict[str, Usage]) -> list[Need]:
    """The same for the oracles."""
    return [Need(name, Fraction(one.memory_bytes), Fraction(one.seconds)) for name, one in usage.items()]


def exact_makespan(plan: UsagePlan, usage: dict[str, Usage]) -> Fraction:
    """The time of the longest shard, without rounding."""
    return max(sum((Fraction(usage[name].seconds) for name in shard.targets), Fraction(0)) for shard in plan.shards)


def planned_or_none(request: PlanRequest) -> UsagePlan | None:
    """The plan; None when the targets do not fit."""
    try:
        return plan_shards_by_usage(request)
    except Refusal as refusal:
        if refusal.code != "plan-does-not-fit":
            raise
        return None


@given(usage=NEEDS, count=st.none() | st.integers(1, 30), at_least=st.integers(1, 9))
def test_a_plan_is_a_partition_within_the_budget_without_an_empty_shard(
    usage: dict[str, Usage], count: int | None, at_least: int
) -> None:
    plan = planned_or_none(asked(usage, count=count, at_least=at_least))
    assume(plan is not None)
    assert plan is not None
    assert Counter(name for shard in plan.shards for name in shard.targets) == Counter(list(usage))
    for shard in plan.shards:
        assert shard.targets
        assert list(shard.targets) == sorted(shard.targets, key=lambda name: name.encode("utf-8", "surrogatepass"))
        assert shard.memory_bytes == sum(usage[name].memory_bytes for name in shard.targets) <= BUDGET
        assert shard.seconds == float(sum(Fraction(usage[name].seconds) for name in shard.targets))
    if count is not None:
        assert len(plan.shards) == min(count, len(usage))
    else:
        assert len(plan.shards) >= min(at_least, len(usage))
    assert [shard.shard for shard in plan.shards] == [f"shard-{place + 1}" for place in range(len(plan.shards))]
    assert plan.makespan_seconds == plan.shards[0].seconds >= plan.bound.seconds


@given(usage=NEEDS, count=st.none() | st.integers(3, 9), seed=st.integers(0, 2**16))
def test_the_order_of_the_inputs_changes_nothing(usage: dict[str, Usage], count: int | None, seed: int) -> None:
    mixed = random.Random(seed).sample(list(usage), len(usage))
    policy = PlannerPolicy(heavy_percent=90, spawn_targets=tuple(usage)[:3])
    backwards = PlannerPolicy(heavy_percent=90, spawn_targets=tuple(usage)[:3][::-1])
    one = planned_or_none(asked(usage, count=count, policy=policy))
    other = planned_or_none(
        asked({name: usage[name] for name in mixed}, targets=(*mixed, mixed[0]), count=count, policy=backwards)
    )
    assert one == other


@given(usage=NEEDS, count=st.none() | st.integers(1, 12))
def test_a_plan_is_never_longer_than_that_of_the_original(usage: dict[str, Usage], count: int | None) -> None:
    theirs = original(needs(usage), Fraction(BUDGET), count)
    ours = planned_or_none(asked(usage, count=count))
    assume(theirs is not None)
    assert theirs is not None
    assert ours is not None
    assert len(ours.shards) == len(theirs)
    assert exact_makespan(ours, usage) <= makespan(theirs)


@given(usage=NEEDS, count=st.integers(1, 12))
def test_where_memory_does_not_matter_a_plan_is_never_longer_than_the_longest_first(
    usage: dict[str, Usage], count: int
) -> None:
    ours = plan_shards_by_usage(asked(usage, count=count, budget_bytes=BUDGET * len(usage)))
    assert exact_makespan(ours, usage) <= makespan(longest_first(needs(usage), count))


@given(usage=NEEDS, count=st.integers(1, 12))
def test_where_the_longest_first_fits_a_plan_is_never_longer(usage: dict[str, Usage], count: int) -> None:
    theirs = longest_first(needs(usage), count)
    assume(all(sum(need.memory for need in shard) <= BUDGET for shard in theirs))
    ours = plan_shards_by_usage(asked(usage, count=count))
    assert exact_makespan(ours, usage) <= makespan(theirs)


@given(usage=FEW_NEEDS, count=st.integers(1, 3))
def test_what_is_refused_for_its_memory_fits_in_no_way_and_the_bound_holds_for_every_way(
    usage: dict[str, Usage], count: int
) -> None:
    ways = list(all_ways(needs(usage), Fraction(BUDGET), count))
    plan = planned_or_none(asked(usage, count=count))
    assert (plan is None) == (not ways)
    if plan is not None:
        best = min(makespan(way) for way in ways)
        assert Fraction(plan.bound.seconds) <= best * (1 + Fraction(1, 2**50))
        assert best <= exact_makespan(plan, usage)
        assert plan.bound.shards_by_memory <= min(len(way) for way in ways)


def test_the_sum_of_a_shard_is_exact_where_floats_would_be_above_or_below() -> None:
    usage = {name: Usage(memory_bytes=1, seconds=0.1) for name in "abcdefghij"}
    plan = plan_shards_by_usage(asked(usage, count=1))
    assert plan.makespan_seconds == float(10 * Fraction(0.1)) == 1.0
    assert sum(one.seconds for one in usage.values()) != 1.0
    huge = {name: Usage(memory_bytes=2**60 + (name == "a"), seconds=1.0) for name in "ab"}
    assert len(plan_shards_by_usage(asked(huge, budget_bytes=2**61)).shards) == 2
    assert len(plan_shards_by_usage(asked(huge, budget_bytes=2**61 + 1)).shards) == 1


def test_times_beyond_every_float_add_up_to_the_largest_one() -> None:
    usage = {name: Usage(memory_bytes=1, seconds=1e308) for name in "abc"}
    plan = plan_shards_by_usage(asked(usage, count=1))
    assert (plan.makespan_seconds, plan.shards[0].deadline_seconds) == (1.7976931348623157e308, 3600)


def test_heavy_targets_are_alone_and_all_others_share_what_is_left() -> None:
    usage = {"big": Usage(memory_bytes=600, seconds=1.0), "edge": Usage(memory_bytes=500, seconds=1.0)} | even(4)
    plan = plan_shards_by_usage(asked(usage, count=2, policy=PlannerPolicy(heavy_percent=50)))
    assert {shard.targets for shard in plan.shards} == {("big",), ("edge", "t00", "t01", "t02", "t03")}


@pytest.mark.parametrize(("listed", "shards"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_the_spawn_lane_has_three_shards_of_its_own_as_far_as_there_are_targets(listed: int, shards: int) -> None:
    usage = even(12)
    lane = tuple(usage)[:listed]
    plan = plan_shards_by_usage(asked(usage, count=6, policy=PlannerPolicy(spawn_targets=(*lane, "not-planned"))))
    own = [shard for shard in plan.shards if set(shard.targets) & set(lane)]
    assert len(own) == shards
    assert sorted(name for shard in own for name in shard.targets) == sorted(lane)
    assert len(plan.shards) == 6


def test_the_spawn_lane_has_more_shards_where_its_memory_asks_for_them() -> None:
    usage = {f"t{place}": Usage(memory_bytes=600, seconds=1.0) for place in range(5)}
    plan = plan_shards_by_usage(asked(usage, policy=PlannerPolicy(spawn_targets=tuple(usage))))
    assert len(plan.shards) == 5


def test_lanes_that_need_more_shards_than_are_allowed_are_refused() -> None:
    usage = even(6)
    with pytest.raises(Refusal, match=r"at least 4 shards \(that is proved\)") as refused:
        plan_shards_by_usage(asked(usage, count=3, policy=PlannerPolicy(spawn_targets=tuple(usage)[:5])))
    assert refused.value.code == "plan-does-not-fit"


@given(usage=NEEDS, target=st.floats(1e-3, 1e7))
def test_a_time_is_kept_with_few_shards_or_the_plan_says_what_keeps_it_longer(
    usage: dict[str, Usage], target: float
) -> None:
    plan = plan_shards_by_usage(asked(usage, target_seconds=target))
    goal = Fraction(max(target, *(one.seconds for one in usage.values())))
    assert exact_makespan(plan, usage) <= goal
    assert any("asked for" in warning for warning in plan.warnings) == (plan.makespan_seconds > target)
    if len(plan.shards) > len(plan_shards_by_usage(asked(usage)).shards):
        fewer = planned_or_none(asked(usage, count=len(plan.shards) - 1))
        assert fewer is None or exact_makespan(fewer, usage) > goal


def test_a_start_that_is_better_does_not_hide_one_that_ends_better() -> None:
    needs = [(333, 1001.0), (500, 0.0), (500, 0.0), (334, 0.0), (250, 0.0), (500, 0.0), (333, 0.1), (1, 0.1)]
    names = ["0", "1", "2", "3", "4", "00", "000", "0000"]
    usage = {name: Usage(memory_bytes=used, seconds=time) for name, (used, time) in zip(names, needs, strict=True)}
    fewest = plan_shards_by_usage(asked(usage, target_seconds=1.0))
    assert (len(fewest.shards), fewest.makespan_seconds) == (3, 1001.0)


def test_a_time_is_kept_with_as_few_shards_as_that_takes() -> None:
    assert len(plan_shards_by_usage(asked(even(9), target_seconds=30.0)).shards) == 3
    assert len(plan_shards_by_usage(asked(even(9), target_seconds=29.9)).shards) == 5
    assert len(plan_shards_by_usage(asked(even(9), target_seconds=1e9)).shards) == 1


@pytest.mark.parametrize(
    ("seconds", "floor", "deadline"),
    [(1000.0, 1200, 1500), (100.0, 1200, 1200), (4000.0, 1200, 3600), (4000.0, 5000, 5000), (1000.001, 1200, 1501)],
)
def test_the_deadline_grows_with_the_time_between_floor_and_cap(seconds: float, floor: int, deadline: int) -> None:
    usage = {"a": Usage(memory_bytes=1, seconds=seconds)}
    plan = plan_shards_by_usage(asked(usage, policy=PlannerPolicy(deadline_floor_seconds=floor)))
    assert plan.shards[0].deadline_seconds == deadline
    assert any("deadline" in warning for warning in plan.warnings) == (seconds > deadline)


def test_the_plan_says_what_it_rests_on() -> None:
    usage = {
        "a": Usage(memory_bytes=1, seconds=1.0),
        "b": Usage(memory_bytes=2, seconds=1.0, origin="estimated"),
        "c": Usage(memory_bytes=2, seconds=1.0, origin="aged"),
    }
    plan = plan_shards_by_usage(asked(usage))
    assert plan.origins == {"measured": 1, "aged": 1, "estimated": 1}
    assert plan.warnings == (
        "every target is planned with the same time, as if none had ever been measured",
        "1 target of 3 planned with an estimate",
        "1 target of 3 planned with an old measurement",
    )
    assert plan_shards_by_usage(asked({"a": usage["a"]})).warnings == ()


def test_the_bound_says_what_it_is_made_of() -> None:
    usage = {name: Usage(memory_bytes=400, seconds=time) for name, time in zip("abcd", (9, 8, 7, 1), strict=True)}
    bound = plan_shards_by_usage(asked(usage, count=3)).bound
    assert (bound.mean_seconds, bound.longest_seconds, bound.crowded_seconds) == (25 / 3, 9, 8)
    assert (bound.seconds, bound.shards_by_memory) == (9, 2)
    crowd = plan_shards_by_usage(asked(even(9), count=4)).bound
    assert (crowd.mean_seconds, crowd.crowded_seconds, crowd.seconds) == (22.5, 30.0, 30.0)


def test_the_id_of_a_plan_stands_for_everything_that_it_was_made_from() -> None:
    usage = even(4)
    first = asked(usage, count=2)
    changed = [
        asked(usage, count=3), asked(usage), asked(usage, target_seconds=20.0), asked(usage, at_least=2),
        asked(usage, count=2, budget_bytes=BUDGET + 1), asked(even(5), count=2),
        asked(usage, count=2, policy=PlannerPolicy(spawn_targets=("t00",))),
        asked(usage | {"t00": Usage(memory_bytes=101, seconds=10.0)}, count=2),
        asked(usage | {"t00": Usage(memory_bytes=100, seconds=10.5)}, count=2),
        asked(usage | {"t00": Usage(memory_bytes=100, seconds=10.0, origin="aged")}, count=2),
    ]  # fmt: skip
    ids = {plan_shards_by_usage(one).plan_id for one in (first, *changed)}
    assert len(ids) == 1 + len(changed)
    same = asked(usage | {"t00": Usage(memory_bytes=100, seconds=10), "not-planned": usage["t01"]}, count=2)
    wanted = plan_shards_by_usage(first)
    assert plan_shards_by_usage(PlanRequest(**{**_fields(same), "targets": first.targets})) == wanted
    assert wanted.plan_id == "4ef9f6568ff59c526e0e84a9baf628bde6aa3c9afe09676ac614934445a1a68b"


def _fields(request: PlanRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"budget_bytes": 0, "count": 0}, "budget-invalid"),
        ({"budget_bytes": -1}, "budget-invalid"),
        ({"count": 0, "targets": ("unknown",)}, "shard-count-invalid"),
        ({"count": -3}, "shard-count-invalid"),
        ({"at_least": 0}, "shard-count-invalid"),
        ({"count": 2, "target_seconds": 10.0}, "shard-count-invalid"),
        ({"target_seconds": 0.0}, "target-time-invalid"),
        ({"target_seconds": float("nan")}, "target-time-invalid"),
        ({"target_seconds": float("inf")}, "target-time-invalid"),
        ({"targets": ()}, "nothing-collected"),
        ({"targets": ("t00", "unknown", "wrong")}, "usage-missing"),
        ({"targets": ("wrong", "unknown")}, "usage-invalid"),
        ({"targets": ("large", "unknown")}, "target-above-budget"),
        ({"targets": ("",)}, "usage-invalid"),
        ({"targets": ("forever",)}, "usage-invalid"),
        ({"targets": ("weightless",)}, "usage-invalid"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_order(more: dict[str, object], code: str) -> None:
    usage = even(3) | {
        "wrong": Usage(memory_bytes=1, seconds=-1.0),
        "large": Usage(memory_bytes=BUDGET + 1, seconds=1.0),
        "forever": Usage(memory_bytes=1, seconds=float("inf")),
        "weightless": Usage(memory_bytes=0, seconds=1.0),
        "": Usage(memory_bytes=1, seconds=1.0),
    }
    with pytest.raises(Refusal) as refused:
        plan_shards_by_usage(asked(usage, **({"targets": ("t00",)} | more)))
    assert refused.value.code == code
    assert refused.value.hint


def test_what_does_not_fit_is_told_with_its_sums_and_whether_that_is_proved() -> None:
    usage = {f"t{place}": Usage(memory_bytes=600, seconds=1.0) for place in range(4)}
    with pytest.raises(Refusal) as refused:
        plan_shards_by_usage(asked(usage, count=3))
    assert refused.value.message == (
        "4 targets cannot fit into 3 shards of 0 MiB: together they need 0 MiB, the largest 0 MiB, "
        "at least 4 shards (that is proved)"
    )


@pytest.mark.parametrize(("number", "count"), [(60, 8), (60, 16), (300, 16), (300, 32), (2000, 32)])
def test_where_memory_does_not_matter_plans_of_times_with_a_long_tail_are_close_to_the_bound(
    number: int, count: int
) -> None:
    ratios = []
    for seed in range(20):
        chance = random.Random(seed)
        usage = {f"t{place}": Usage(memory_bytes=1, seconds=chance.lognormvariate(2, 1.2)) for place in range(number)}
        plan = plan_shards_by_usage(asked(usage, count=count, budget_bytes=number))
        ratios.append(plan.makespan_seconds / plan.bound.seconds)
    assert sum(ratios) / len(ratios) <= 1.005
    assert max(ratios) <= 1.02
