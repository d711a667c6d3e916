"""What the planner by usage is given, and what it answers."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from ledger.values import Digest

PLANNER = "usage/1"

Origin = Literal["measured", "aged", "estimated"]
"""Where a usage comes from: from a run of late, from one long ago, or from what other targets need."""


class Usage(Struct, frozen=True, kw_only=True):
    """What a target needs: peak memory in bytes (above 0) and time in seconds (0 or more)."""

    memory_bytes: int
    seconds: float
    origin: Origin = "measured"


class PlannerPolicy(Struct, frozen=True, kw_only=True):
    """The rules of the planner; they are part of a plan's id.

    A target that needs more than `heavy_percent` of the budget is alone in its shard. Those of `spawn_targets` that are
    planned share `spawn_shards` shards of their own, or more where memory asks for it. The deadline of a shard is
    `deadline_percent` of its planned time, at most the cap, and at least the floor whatever the cap. `search_steps` and
    `improvement_steps` bound the search for shards that fit and for a shorter plan.
    """

    heavy_percent: int = 100
    spawn_targets: tuple[str, ...] = ()
    spawn_shards: int = 3
    deadline_floor_seconds: int = 1200
    deadline_percent: int = 150
    deadline_cap_seconds: int = 3600
    search_steps: int = 500_000
    improvement_steps: int = 300_000


class PlanRequest(Struct, frozen=True, kw_only=True):
    """What to plan: targets (repetitions count once) with the usage of each, and the memory budget of a shard.

    With `count` there are exactly so many shards, or one for each target when those are fewer. With `target_seconds`
    there are as few as are found to end within that time. With neither there are as few as memory asks for and
    `at_least` so many, or one for each target.
    """

    targets: tuple[str, ...]
    usage: Mapping[str, Usage]
    budget_bytes: int
    count: int | None = None
    target_seconds: float | None = None
    at_least: int = 1
    policy: PlannerPolicy = PlannerPolicy()


class LowerBound(Struct, frozen=True, kw_only=True):
    """The time that no plan with as many shards can go below, and what it is made of.

    `mean_seconds` is all time shared out evenly, `longest_seconds` that of the longest target. `crowded_seconds` is
    that of targets that must meet, because there are more of about their length than shards (0 when there is a shard
    for each). `shards_by_memory` is the number of shards that memory alone asks for.
    """

    seconds: float
    mean_seconds: float
    longest_seconds: float
    crowded_seconds: float
    shards_by_memory: int


class UsageShard(Struct, frozen=True, kw_only=True):
    """A planned shard: its targets in byte order, the sums of what they need, and when to give up on it."""

    shard: str
    targets: tuple[str, ...]
    memory_bytes: int
    seconds: float
    deadline_seconds: int


class UsagePlan(Struct, frozen=True, kw_only=True):
    """The shards, those that take longest first. `plan_id` is the digest of all that the plan was made from.

    `makespan_seconds` is the time of the longest shard, `origins` the number of targets by origin of their usage.
    """

    policy: str
    plan_id: Digest
    budget_bytes: int
    shards: tuple[UsageShard, ...]
    makespan_seconds: float
    bound: LowerBound
    origins: dict[str, int]
    warnings: tuple[str, ...]


class Item(NamedTuple):
    """A target as the algorithms see it. Times are whole units, so that no sum is ever rounded."""

    time: int
    memory: int
    target: str


Assignment = list[list[int]]
"""For each shard the positions of its items, ascending."""
