"""The limits of an attempt: every combination of plan, policy and past, beside rules that are written another way."""

from itertools import product
from typing import Any

import pytest
from msgspec import structs

from commands.decide.attempts.limits import gets_more_memory, limits_of
from ledger.events import AttemptStarted, GatePolicy, MachinePolicy, PlanPolicy
from projections.run.owed import Owed
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, planned, views_of

MIB = 2**20
ENTRY = Owed("shard-1", "candidate", "pending", None, ready=True)
MACHINE = MachinePolicy(reservation_bytes=100 * MIB, headroom_percent=150)


def limits(policy: GatePolicy, *ends: str, memory: int | None = None, deadline: int | None = None) -> tuple[Any, ...]:
    """The limits of the next attempt, after attempts that ended with these causes."""
    plan = planned()
    shard = structs.replace(plan.shards[0], memory_bytes=memory, deadline_seconds=deadline, seconds=memory and 1.0)
    plan = structs.replace(plan, shards=(shard, *plan.shards[1:]), budget_bytes=None if memory is None else 1000 * MIB)
    past = [
        event
        for number, cause in enumerate(ends, start=1)
        for event in (attempt_started(attempt=number), attempt_recorded(attempt=number, cause=cause, measured=0))
    ]
    return tuple(limits_of(ENTRY, views_of(*begun(policy), *collections(), plan, *past)))


CAUSES = [(), ("lost",), ("memory-limit",), ("memory-limit", "memory-limit"), ("time-limit",), ("time-limit", "lost")]


@pytest.mark.parametrize(
    ("memory", "gate_memory", "deadline", "gate_time", "ends"),
    list(
        product(
            [None, 10 * MIB, 400 * MIB, 900 * MIB],
            [0, 200 * MIB, 2000 * MIB],
            [None, 1200, 50],
            [0.0, 60.0, 3600.0],
            CAUSES,
        )
    ),
)
def test_limits_follow_from_plan_policy_and_past(
    memory: int | None, gate_memory: int, deadline: int | None, gate_time: float, ends: tuple[str, ...]
) -> None:
    policy = GatePolicy(
        parallel=2, memory_limit_bytes=gate_memory, time_limit_seconds=gate_time, machine=MACHINE, plan=PlanPolicy()
    )
    reserved, memory_limit, time_limit = limits(policy, *ends, memory=memory, deadline=deadline)
    if memory is None:
        assert memory_limit == gate_memory
    else:
        wanted = max(100 * MIB, memory + memory // 2)
        for _ in range(ends.count("memory-limit")):
            wanted += wanted
        # The machine has 2 GiB for two at a time.
        assert memory_limit == (min(wanted, gate_memory) if gate_memory else min(wanted, 2000 * MIB))
    assert reserved == max(100 * MIB, memory_limit)
    if deadline is None:
        assert time_limit == gate_time
    else:
        wanted_time = deadline * (4 if ends.count("time-limit") == 2 else 2 if "time-limit" in ends else 1)
        assert time_limit == (wanted_time if gate_time == 0 else min(wanted_time, gate_time))


@pytest.mark.parametrize(
    ("planned_memory", "gate_memory", "cause", "had", "more"),
    [
        (100 * MIB, 0, "memory-limit", 150 * MIB, True),
        (100 * MIB, 0, "memory-limit", 300 * MIB, False),
        (100 * MIB, 0, "lost", 150 * MIB, False),
        (100 * MIB, 200 * MIB, "memory-limit", 150 * MIB, True),
        (100 * MIB, 200 * MIB, "memory-limit", 200 * MIB, False),
        (None, 200 * MIB, "memory-limit", 200 * MIB, False),
        (None, 0, "memory-limit", 200 * MIB, True),
        (100 * MIB, 0, "memory-limit", None, False),
    ],
)
def test_more_memory_is_to_be_had_while_the_next_limit_is_higher(
    planned_memory: int | None, gate_memory: int, cause: str, had: int | None, more: bool
) -> None:
    policy = GatePolicy(parallel=2, memory_limit_bytes=gate_memory, machine=MACHINE, plan=PlanPolicy())
    plan = planned()
    shard = structs.replace(plan.shards[0], memory_bytes=planned_memory, seconds=1.0)
    plan = structs.replace(plan, shards=(shard, *plan.shards[1:]), budget_bytes=1000 * MIB)
    tried = [attempt_started(memory_limit_bytes=had), attempt_recorded(cause=cause, measured=0)]
    assert not gets_more_memory(ENTRY, views_of(*begun(policy), *collections(), plan))
    assert gets_more_memory(ENTRY, views_of(*begun(policy), *collections(), plan, *tried)) is more


def test_a_run_of_a_program_without_reservations_has_the_limits_of_its_policy() -> None:
    assert limits(GatePolicy(memory_limit_bytes=5), memory=10) == (None, None, None)


def test_what_is_promised_says_its_limits() -> None:
    started = AttemptStarted(
        shard="s", side="candidate", attempt=1, term=1, commit="c", member="local", targets=None,
        reserved_bytes=1, memory_limit_bytes=0, time_limit_seconds=2.0,
    )  # fmt: skip
    assert (started.reserved_bytes, started.memory_limit_bytes, started.time_limit_seconds) == (1, 0, 2.0)
