"""A plan without a run: the targets of a commit, what is known of them, and the shards that a gate could cut."""

from msgspec import Struct
from msgspec.structs import replace

from commands.decide.known_usage import budget_bytes, planning_request, spawn_warnings
from commands.decide.planner import UsagePlan, plan_shards_by_usage
from commands.readers.usage_file import read_usage
from commands.wiring import Home, collect_targets, known_usage, machine_memory_bytes
from ledger.tables import KnownTarget, UsageTable
from ledger.values import Commit


class Wishes(Struct, frozen=True, kw_only=True):
    """What is asked for; None leaves it to the settings. `usage` is the content of a file with usage."""

    usage: bytes | None = None
    budget_bytes: int | None = None
    shards: int | None = None
    target_seconds: float | None = None


class PlanAnswer(Struct, frozen=True, kw_only=True):
    """A plan with what it is for. `usage_origin` says where it is known from what targets need, `budget_origin` where
    the memory budget of a shard comes from, `assumptions` what was assumed where something was unknown, and which
    settings do nothing. Every shard has a session besides its targets, whose needs are not in the plan's numbers."""

    candidate: Commit
    candidate_ref: str
    usage_origin: str
    budget_origin: str
    session_seconds: float
    session_memory_bytes: int
    plan: UsagePlan
    assumptions: tuple[str, ...]


def plan_commit(home: Home, ref: str, wishes: Wishes) -> PlanAnswer:
    """Plan the commit that `ref` names; nothing is run but its collection, and nothing is recorded.

    Without a file, the plan is made from what earlier runs of this ledger measured, as a gate's is. Raises
    UsageFileInvalid, CollectionFailed, and the Refusals of the planner.
    """
    commit = home.git.resolve(ref)
    known, origin = _known(home, commit, wishes)
    budget, budget_origin = _budget(home, wishes)
    targets = collect_targets(home, commit)
    request, assumptions = planning_request(targets, known, home.loaded.settings.policy, budget, strict=True)
    if wishes.shards is not None or wishes.target_seconds is not None:
        request = replace(request, count=wishes.shards, target_seconds=wishes.target_seconds)
    return PlanAnswer(
        candidate=commit,
        candidate_ref=ref,
        usage_origin=origin,
        budget_origin=budget_origin,
        session_seconds=known.session_seconds,
        session_memory_bytes=known.session_memory_bytes,
        plan=plan_shards_by_usage(request),
        assumptions=(*spawn_warnings(home.loaded.settings.plan, targets), *assumptions),
    )


def _known(home: Home, commit: Commit, wishes: Wishes) -> tuple[UsageTable, str]:
    """What is known of targets, and where from."""
    if wishes.usage is not None:
        rows = (
            KnownTarget(name, one.seconds, one.memory_bytes, "none" if one.memory_bytes is None else "alone", False)
            for name, one in sorted(read_usage(wishes.usage).items())
        )
        return UsageTable(session_seconds=0.0, session_memory_bytes=0, targets=tuple(rows)), "the file"
    known = known_usage(home, commit) if home.ledger_file.exists() else None
    if known is None or not known.table.targets:
        nothing = UsageTable(session_seconds=0.0, session_memory_bytes=0, targets=())
        return nothing, "nothing was measured yet; until then a gate cuts shards of equal numbers"
    return known.table, f"what was measured up to @{known.basis}"


def _budget(home: Home, wishes: Wishes) -> tuple[int, str]:
    """The memory of a shard, and where it comes from: as asked for, else what a gate would take."""
    policy = home.loaded.settings.policy
    if wishes.budget_bytes is not None:
        return wishes.budget_bytes, "as asked for"
    origin = f"this machine's memory for {policy.parallel} at a time"
    if policy.planning.budget_bytes or policy.memory_limit_bytes:
        origin = "plan.budget_bytes" if policy.planning.budget_bytes else "gate.memory_limit_bytes"
    return budget_bytes(policy, machine_memory_bytes()), origin
