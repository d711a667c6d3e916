"""A plan without a run: the targets of a commit, what is known of them, and the shards that a gate could cut."""

import os

from msgspec import Struct

from commands.decide.planner import PlanRequest, UsagePlan, plan_shards_by_usage
from commands.decide.planner.estimate import complete_usage
from commands.readers.usage_file import read_usage
from commands.wiring import Home, collect_targets
from ledger.values import Commit


class Wishes(Struct, frozen=True, kw_only=True):
    """What is asked for; None leaves it to the settings. `usage` is the content of a file with usage."""

    usage: bytes | None = None
    budget_bytes: int | None = None
    shards: int | None = None
    target_seconds: float | None = None


class PlanAnswer(Struct, frozen=True, kw_only=True):
    """A plan with what it is for. `budget_origin` says where the memory budget of a shard comes from, `assumptions`
    what was assumed where something was unknown."""

    candidate: Commit
    candidate_ref: str
    budget_origin: str
    plan: UsagePlan
    assumptions: tuple[str, ...]


def plan_commit(home: Home, ref: str, wishes: Wishes) -> PlanAnswer:
    """Plan the commit that `ref` names; nothing is run but its collection, and nothing is recorded.

    Raises UsageFileInvalid, CollectionFailed, and the Refusals of the planner.
    """
    known = {} if wishes.usage is None else read_usage(wishes.usage)
    commit = home.git.resolve(ref)
    budget, origin = _budget(home, wishes)
    targets = collect_targets(home, commit)
    estimated = complete_usage(targets, known, budget)
    gate = home.loaded.settings.gate
    plan = plan_shards_by_usage(
        PlanRequest(
            targets=targets,
            usage=estimated.usage,
            budget_bytes=budget,
            count=(gate.shards or None) if wishes.shards is None and wishes.target_seconds is None else wishes.shards,
            target_seconds=wishes.target_seconds,
            at_least=gate.parallel,
        )
    )
    return PlanAnswer(
        candidate=commit, candidate_ref=ref, budget_origin=origin, plan=plan, assumptions=estimated.assumptions
    )


def _budget(home: Home, wishes: Wishes) -> tuple[int, str]:
    """The memory of a shard: as asked for, else the limit that is configured, else an even part of this machine's."""
    gate = home.loaded.settings.gate
    if wishes.budget_bytes is not None:
        return wishes.budget_bytes, "as asked for"
    if gate.memory_limit_bytes:
        return gate.memory_limit_bytes, "gate.memory_limit_bytes"
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return machine_bytes // gate.parallel, f"this machine's memory for {gate.parallel} at a time"
