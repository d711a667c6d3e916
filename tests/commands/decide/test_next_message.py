"""The next message over every station of a gate, against the sentences of its table."""

from dataclasses import dataclass
from itertools import product

import pytest

from commands.decide.next import MEMBER, next_message
from commands.messages import BeginStep, Collect, Judge, MakePlan, Message, Place, StartAttempts
from ledger.events import COLLECTION, Event, GatePolicy, RunFinished, StepFinished
from ledger.tables import Plan, ShardTargets
from tests.support.makers import RUN, begun, histories, placed, planned, verdict_decided, views_of

POLICY = GatePolicy(rounds=2)
SHARDS = ("shard-1", "shard-2")
PLAN = Plan(
    policy="count/1",
    candidate_inventory="1" * 64,
    baseline_inventory="2" * 64,
    shards=tuple(ShardTargets(shard=name, candidate=(f"{name}.py",), baseline=(f"{name}.py",)) for name in SHARDS),
)
STATES = tuple(histories("shard-1", "candidate"))
OVER = ("measured", "unmeasured")
MAY_START = ("pending", "owed")


@dataclass(frozen=True)
class Station:
    """Where a gate stands: its collections, and once planned, the places and the sides of its first shard.

    The second shard is measured, so that the first one decides.
    """

    collections: tuple[str, str]
    planned: bool = False
    places: tuple[str, ...] = ()
    sides: tuple[str, str] = ("pending", "pending")
    judged: bool = False

    def events(self) -> list[Event]:
        found = [*begun(POLICY)]
        for side, state in zip(("candidate", "baseline"), self.collections, strict=True):
            found += histories(COLLECTION, side)[state]
        if not self.planned:
            return found
        found += [planned(PLAN), *placed(*self.places)]
        for side, state in zip(("candidate", "baseline"), self.sides, strict=True):
            found += [*histories("shard-1", side)[state], *histories("shard-2", side)["measured"]]
        if self.judged:
            found += [verdict_decided(), StepFinished(step="gate", outcome="passed"), RunFinished(verdict="passed")]
        return found


def expected(station: Station, free_slots: int) -> Message | None:
    """The rows of the table as sentences about this station, which knows nothing of what is owed."""
    collected = station.collections == ("measured", "measured")
    if station.judged:
        return None
    if any(state in MAY_START for state in station.collections):
        return Collect(stream=RUN, member=MEMBER, slots=free_slots) if free_slots else None
    if "running" in station.collections:
        return None
    if not collected:
        return Judge(stream=RUN)
    if not station.planned:
        return MakePlan(stream=RUN)
    if set(station.places) != set(SHARDS):
        return Place(stream=RUN, members=(MEMBER,))
    if all(state in OVER for state in station.sides):
        return Judge(stream=RUN)
    if free_slots and any(state in MAY_START for state in station.sides):
        return StartAttempts(stream=RUN, slots=free_slots)
    return None


STATIONS = [
    *(Station(pair) for pair in product(STATES, STATES)),
    *(
        Station(("measured", "measured"), True, places, sides)
        for places in ((), SHARDS[:1], SHARDS)
        for sides in product(STATES, STATES)
    ),
    Station(("measured", "measured"), True, SHARDS, ("measured", "measured"), judged=True),
    Station(("measured", "measured"), True, SHARDS, ("unmeasured", "measured"), judged=True),
]


def name(station: Station) -> str:
    words = [*station.collections, *(("planned", *station.places, *station.sides) if station.planned else ())]
    return "-".join([*words, *(["judged"] if station.judged else [])])


@pytest.mark.parametrize("free_slots", [0, 1, 3])
@pytest.mark.parametrize("station", STATIONS, ids=name)
def test_the_next_message_is_the_one_of_the_table(station: Station, free_slots: int) -> None:
    views = views_of(*station.events())
    assert next_message(views, RUN, free_slots) == expected(station, free_slots)
    assert next_message(views, RUN, free_slots) == expected(station, free_slots), "the same state, another answer"


@pytest.mark.parametrize("free_slots", [-1, 0, 1])
def test_a_gate_that_has_not_begun_begins(free_slots: int) -> None:
    views = views_of(*begun()[:2])
    assert next_message(views, RUN, free_slots) == BeginStep(stream=RUN, step="gate")


def test_no_attempt_is_started_while_more_run_than_there_are_slots() -> None:
    station = Station(("measured", "measured"), True, SHARDS)
    assert next_message(views_of(*station.events()), RUN, -1) is None


def test_a_baseline_that_waits_for_its_candidate_is_not_started() -> None:
    policy = GatePolicy(baseline="on-failure", rounds=2)
    events = [*begun(policy), *Station(("measured", "measured"), True, SHARDS, ("running", "pending")).events()[3:]]
    assert next_message(views_of(*events), RUN, 5) is None
