"""A plan by usage as text."""

from collections.abc import Iterable
from typing import NamedTuple

from commands.decide.planner import LowerBound, UsagePlan, UsageShard
from commands.render.words import clipped, count, counted, memory, safe, seconds, short, wrapped

MOST_SHARDS = 40
MOST_TARGETS = 3


class PlanFacts(NamedTuple):
    """What a plan is of, where its budget and its usage come from, and what each shard needs besides its targets."""

    candidate: str
    ref: str
    budget_origin: str
    usage_origin: str
    session_seconds: float
    session_memory_bytes: int


def plan_lines(known: PlanFacts, plan: UsagePlan, assumptions: Iterable[str], width: int) -> list[str]:
    """What is planned, how good it is, its shards, and what it rests on."""
    targets = sum(plan.origins.values())
    lines = wrapped(
        f"plan {plan.plan_id[:12]} of {short(known.candidate)} ({known.ref}): {count(targets, 'target')} in "
        f"{count(len(plan.shards), 'shard')}",
        width,
    )
    facts = (
        (
            "budget",
            f"{memory(plan.budget_bytes + known.session_memory_bytes)} of memory a shard ({known.budget_origin})",
        ),
        ("usage", f"{counted(plan.origins)} ({known.usage_origin})"),
        *_session(known),
        ("longest", f"{seconds(plan.makespan_seconds)}, {_beside(plan)}"),
        ("bound", f"{seconds(plan.bound.seconds)}: {_bound(plan.bound)}"),
    )
    for name, text in facts:
        lines += wrapped(f"{name:<9}{text}", width, " " * 9)
    lines += ["", f"{'shard':<10}{'targets':>7}{'memory':>9}{'time':>12}{'deadline':>12}"]
    for shard in plan.shards[:MOST_SHARDS]:
        lines += _shard_lines(shard, width)
    if len(plan.shards) > MOST_SHARDS:
        lines.append(f"... and {len(plan.shards) - MOST_SHARDS} more (--json has all)")
    notes = [*assumptions, *plan.warnings]
    lines += [""] if notes else []
    for note in notes:
        lines += wrapped(f"note: {note}", width, " " * 6)
    return lines


def _session(known: PlanFacts) -> Iterable[tuple[str, str]]:
    if known.session_seconds or known.session_memory_bytes:
        yield (
            "session",
            f"{seconds(known.session_seconds)} and {memory(known.session_memory_bytes)} more in every shard",
        )


def _beside(plan: UsagePlan) -> str:
    if plan.makespan_seconds <= plan.bound.seconds:
        return "as short as any plan can be"
    return f"{plan.makespan_seconds / plan.bound.seconds:.3f} times the bound"


def _bound(bound: LowerBound) -> str:
    parts = f"mean {seconds(bound.mean_seconds)}, longest target {seconds(bound.longest_seconds)}"
    crowded = f", targets that must meet {seconds(bound.crowded_seconds)}" if bound.crowded_seconds else ""
    return f"{parts}{crowded}; memory asks for {count(bound.shards_by_memory, 'shard')}"


def _shard_lines(shard: UsageShard, width: int) -> Iterable[str]:
    memory_text, time, deadline = memory(shard.memory_bytes), seconds(shard.seconds), seconds(shard.deadline_seconds)
    yield f"{shard.shard:<10}{len(shard.targets):>7}{memory_text:>9}{time:>12}{deadline:>12}"
    for target in shard.targets[:MOST_TARGETS]:
        yield clipped(f"    {safe(target)}", width)
    if len(shard.targets) > MOST_TARGETS:
        yield f"    ... and {len(shard.targets) - MOST_TARGETS} more"
