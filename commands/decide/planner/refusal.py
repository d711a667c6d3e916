"""What the planner refuses, in this order: the budget, the number of shards, then target by target as they come."""

import math
from collections.abc import Sequence

from commands.decide.planner.model import PlanRequest
from commands.messages import Refusal
from commands.render.words import count, memory


def check_request(request: PlanRequest) -> tuple[str, ...]:
    """The targets without repetitions, each with a usage that can be planned. Raises Refusal."""
    if request.budget_bytes <= 0:
        raise Refusal(
            "budget-invalid", "the memory budget of a shard must be above 0", "name one, such as --budget 2GiB"
        )
    _check_size(request)
    targets = tuple(dict.fromkeys(request.targets))
    for target in targets:
        _check_target(request, target)
    if not targets:
        raise Refusal("nothing-collected", "there are no targets to plan", "check `paths` in ledger.toml")
    return targets


def _check_size(request: PlanRequest) -> None:
    if (request.count is not None and request.count < 1) or request.at_least < 1:
        raise Refusal("shard-count-invalid", "the number of shards must be 1 or more", "leave it out to have it chosen")
    if request.target_seconds is None:
        return
    if request.count is not None:
        raise Refusal("shard-count-invalid", "either a number of shards or a time can be asked for", "leave one out")
    if not 0 < request.target_seconds < math.inf:
        raise Refusal("target-time-invalid", "the time that a plan may take must be above 0", "name one, such as 10m")


def _check_target(request: PlanRequest, target: str) -> None:
    usage = request.usage.get(target)
    if usage is None:
        raise Refusal("usage-missing", f"nothing is known of what {target!r} needs", "measure or estimate it")
    if not target or usage.memory_bytes <= 0 or not 0 <= usage.seconds < math.inf:
        raise Refusal(
            "usage-invalid",
            f"{target!r} cannot need {usage.memory_bytes} bytes and {usage.seconds} s",
            "memory must be above 0, time 0 or more, and the target must have a name",
        )
    if usage.memory_bytes > request.budget_bytes:
        raise Refusal(
            "target-above-budget",
            f"{target!r} needs {memory(usage.memory_bytes)}, more than the {memory(request.budget_bytes)} of a shard",
            "raise the budget, or split the target",
        )


def does_not_fit(memories: Sequence[int], budget: int, number: int, needed: int, *, proved: bool) -> Refusal:
    """The targets do not fit into so many shards; `needed` is what memory asks for at least."""
    known = "that is proved" if proved else "the search for a plan was cut off, so there may be one"
    at_least = f", at least {count(needed, 'shard')}" if needed > number else ""
    return Refusal(
        "plan-does-not-fit",
        f"{count(len(memories), 'target')} cannot fit into {count(number, 'shard')} of {memory(budget)}: "
        f"together they need {memory(sum(memories))}, the largest {memory(max(memories))}{at_least} ({known})",
        "allow more shards or a larger budget",
    )
