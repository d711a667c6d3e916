"""The planner by usage: targets with measured time and memory into shards that fit a budget and end together."""

from commands.decide.planner.model import (
    PLANNER,
    LowerBound,
    Origin,
    PlannerPolicy,
    PlanRequest,
    Usage,
    UsagePlan,
    UsageShard,
)
from commands.decide.planner.plan import plan_shards_by_usage

__all__ = [
    "PLANNER", "LowerBound", "Origin", "PlanRequest", "PlannerPolicy", "Usage", "UsagePlan", "UsageShard",
    "plan_shards_by_usage",
]  # fmt: skip
