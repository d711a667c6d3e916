"""What is owed, over every short history of two sides, against an oracle that counts single targets.

The code works on statuses of whole sides; the oracle knows for each target of each side whether an attempt measured it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import pytest

from ledger.events import COLLECTION, Event, GatePolicy, ResumeStarted
from ledger.tables import Plan, ShardTargets
from ledger.values import SIDES, Side
from projections.run.owed import Owed, collection_owed, owed
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, planned, views_of
from tests.support.makers import histories as collecting

SHARED, NEW = ("a.py", "b.py"), "n.py"
TARGETS: dict[Side, tuple[str, ...]] = {"candidate": (*SHARED, NEW), "baseline": SHARED}
PLAN = Plan(
    policy="count/1",
    candidate_inventory="1" * 64,
    baseline_inventory="2" * 64,
    shards=(ShardTargets(shard="shard-1", candidate=TARGETS["candidate"], baseline=SHARED),),
)
BaselinePolicy = Literal["always", "on-failure"]


@dataclass(frozen=True)
class Try:
    """One attempt on `asked`: it measured the first `reached` of them, and unless that was all it died in the next.

    A blind one cannot tell its targets apart, one that is cut short is not counted, a running one has no record.
    """

    asked: tuple[str, ...]
    reached: int = 0
    blind: bool = False
    cut_short: bool = False
    running: bool = False

    @property
    def measured(self) -> tuple[str, ...]:
        return self.asked[: self.reached]

    @property
    def left(self) -> tuple[str, ...]:
        """What is still missing, with the target that it died in at the end."""
        missing = self.asked[self.reached :]
        return missing if self.blind or self.running else (*missing[1:], *missing[:1])


History = tuple[Try, ...]


@cache
def histories(asked: tuple[str, ...], rounds: int, tries: int = 2) -> tuple[History, ...]:
    """Every history of a side that has to measure `asked`, with at most so many tries and rounds."""
    return tuple(_histories(asked, rounds, tries))


def _histories(asked: tuple[str, ...], rounds: int, tries: int) -> Iterator[History]:
    yield ()
    if not asked or not tries or not rounds:
        return
    yield (Try(asked, running=True),)
    ends = [Try(asked, reached=reached) for reached in range(len(asked) + 1)]
    ends += [Try(asked, blind=True), Try(asked, reached=len(asked) - 1, cut_short=True)]
    for end in ends:
        for later in histories(end.left, rounds - (not end.cut_short), tries - 1):
            yield (end, *later)


@dataclass(frozen=True)
class Scenario:
    """The histories of both sides of the one shard, and the candidate's targets that need a comparison."""

    policy: GatePolicy
    candidate: History
    baseline: History
    attention: tuple[str, ...]

    def history(self, side: Side) -> History:
        return self.candidate if side == "candidate" else self.baseline

    def events(self) -> list[Event]:
        compared = self.policy.baseline == "on-failure"
        return [
            *begun(self.policy),
            *collections(),
            planned(PLAN),
            *_attempts("candidate", self.candidate, self.attention, named=False),
            *_attempts("baseline", self.baseline, (), named=compared),
        ]


def _attempts(side: Side, history: History, attention: tuple[str, ...], *, named: bool) -> Iterator[Event]:
    for number, one in enumerate(history, start=1):
        yield attempt_started("shard-1", side, number, targets=one.asked if named else None)
        if one.running:
            return
        missing = {} if one.blind else dict.fromkeys(one.asked[one.reached :], "not-run")
        missing.update(dict.fromkeys(tuple(missing)[:1], "signalled"))
        yield attempt_recorded(
            "shard-1",
            side,
            number,
            measured=one.reached,
            missing=missing,
            cause="wrong-tree" if one.blind else None,
            counted=not one.cut_short,
            attention=tuple(target for target in one.measured if target in attention),
        )
        named = named or not one.blind


def scenarios(baseline: BaselinePolicy, rounds: int) -> Iterator[Scenario]:
    """Every pair of histories that this policy allows."""
    policy = GatePolicy(baseline=baseline, rounds=rounds)
    for candidate in histories(TARGETS["candidate"], rounds):
        measured = {target for one in candidate for target in one.measured}
        for attention in {(), *((target,) for target in measured), tuple(sorted(measured))}:
            wanted = SHARED if baseline == "always" else tuple(t for t in SHARED if t in attention)
            if baseline == "on-failure" and not settled(candidate, TARGETS["candidate"], rounds):
                wanted = ()
            for there in histories(wanted, rounds):
                yield Scenario(policy, candidate, there, attention)


def unmeasured(history: History, asked: tuple[str, ...]) -> set[str]:
    return set(asked) - {target for one in history for target in one.measured}


def is_running(history: History) -> bool:
    return any(one.running for one in history)


def has_rounds(history: History, rounds: int) -> bool:
    return sum(not one.cut_short and not one.running for one in history) < rounds


def settled(history: History, asked: tuple[str, ...], rounds: int) -> bool:
    if is_running(history):
        return False
    return not unmeasured(history, asked) or not has_rounds(history, rounds)


def owed_targets(scenario: Scenario, side: Side) -> set[str]:
    """The oracle: the targets of this side that some attempt has still to measure."""
    if side == "candidate" or scenario.policy.baseline == "always":
        return unmeasured(scenario.history(side), TARGETS[side])
    return unmeasured(scenario.baseline, tuple(set(SHARED) & set(scenario.attention)))


def may_start(scenario: Scenario, side: Side) -> bool:
    """The oracle: whether an attempt of this side may be started now."""
    history, rounds = scenario.history(side), scenario.policy.rounds
    waits = side == "baseline" and scenario.policy.baseline == "on-failure"
    if waits and not settled(scenario.candidate, TARGETS["candidate"], rounds):
        return False
    return not is_running(history) and has_rounds(history, rounds)


def check(scenario: Scenario) -> None:
    views = views_of(*scenario.events())
    entries = owed(views.gate, scenario.policy)
    expected = [side for side in SIDES if owed_targets(scenario, side)]
    assert [entry.label for entry in entries] == [f"shard-1/{side}" for side in expected], scenario
    for entry in entries:
        targets = TARGETS[entry.side] if entry.targets is None else entry.targets
        assert set(targets) == owed_targets(scenario, entry.side), scenario
        assert len(targets) == len(set(targets)), scenario
        assert entry.ready == may_start(scenario, entry.side), scenario
        check_status(entry, scenario)
        check_suspects(entry, scenario)


def check_status(entry: Owed, scenario: Scenario) -> None:
    history = scenario.history(entry.side)
    if is_running(history):
        assert entry.status == "running", scenario
    elif not history:
        assert entry.status == "pending", scenario
    else:
        spent = not has_rounds(history, scenario.policy.rounds)
        assert entry.status == ("unmeasured" if spent else "owed"), scenario


def check_suspects(entry: Owed, scenario: Scenario) -> None:
    """Whatever an attempt died in runs after everything that no attempt died in, the latest at the end."""
    ended = [one for one in scenario.history(entry.side) if not one.running]
    died = [one.asked[one.reached] for one in ended if not one.blind and one.reached < len(one.asked)]
    suspects = [target for target in dict.fromkeys(reversed(died)) if target in (entry.targets or ())]
    assert list(entry.targets or ())[::-1][: len(suspects)] == suspects, scenario


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("baseline", ["always", "on-failure"])
def test_what_is_owed_agrees_with_counting_targets_in_every_short_history(
    baseline: BaselinePolicy, rounds: int
) -> None:
    found = list(scenarios(baseline, rounds))
    assert len(found) > 100
    for scenario in found:
        check(scenario)


COLLECTIONS: dict[Side, dict[str, list[Event]]] = {side: collecting(COLLECTION, side) for side in SIDES}


@pytest.mark.parametrize("planned_already", [False, True])
@pytest.mark.parametrize(("candidate", "baseline"), list(product(COLLECTIONS["candidate"], COLLECTIONS["baseline"])))
def test_no_shard_is_owed_before_both_collections_are_measured(
    candidate: str, baseline: str, planned_already: bool
) -> None:
    events = [*COLLECTIONS["candidate"][candidate], *COLLECTIONS["baseline"][baseline]]
    views = views_of(*begun(), *events, *([planned(PLAN)] if planned_already else []))
    entries = owed(views.gate, GatePolicy())
    states = {"candidate": candidate, "baseline": baseline}
    open_ones = [side for side in SIDES if states[side] != "measured"]
    if open_ones:
        assert [entry.label for entry in entries] == [f"{COLLECTION}/{side}" for side in open_ones]
        assert [entry.status for entry in entries] == [states[side] for side in open_ones]
        assert [entry.ready for entry in entries] == [states[side] in ("pending", "owed") for side in open_ones]
    else:
        assert [entry.label for entry in entries] == [f"shard-1/{side}" for side in SIDES if planned_already]
    assert collection_owed(entries) == bool(open_ones)


def test_a_shard_whose_targets_are_all_new_owes_no_baseline() -> None:
    shard = ShardTargets(shard="shard-1", candidate=("n.py",), baseline=())
    plan = Plan(policy="count/1", candidate_inventory="1" * 64, baseline_inventory="2" * 64, shards=(shard,))
    for baseline in ("always", "on-failure"):
        policy = GatePolicy(baseline=baseline)
        events = [*begun(policy), *collections(), planned(plan), attempt_started()]
        failing = attempt_recorded(attention=("n.py",))
        assert [entry.label for entry in owed(views_of(*events).gate, policy)] == ["shard-1/candidate"]
        assert owed(views_of(*events, failing).gate, policy) == []


def test_shards_are_owed_in_the_order_of_the_plan() -> None:
    names = [f"shard-{number}" for number in range(1, 12)]
    shards = tuple(ShardTargets(shard=name, candidate=(f"{name}.py",), baseline=(f"{name}.py",)) for name in names)
    plan = Plan(policy="count/1", candidate_inventory="1" * 64, baseline_inventory="2" * 64, shards=shards)
    entries = owed(views_of(*begun(), *collections(), planned(plan)).gate, GatePolicy())
    assert [entry.label for entry in entries] == [f"{name}/{side}" for name in names for side in SIDES]


def test_a_side_without_rounds_stays_owed_and_a_resume_gives_it_its_rounds_anew() -> None:
    policy = GatePolicy(rounds=1)
    spent = attempt_recorded(missing={"b.py": "signalled"}, measured=2)
    events = [*begun(policy), *collections(), planned(PLAN), attempt_started(), spent]
    before, *_ = owed(views_of(*events).gate, policy)
    resumed = ResumeStarted(step="gate", number=1, owed=("shard-1/candidate",))
    after, *_ = owed(views_of(*events, resumed).gate, policy)
    assert (before.status, before.ready, before.targets) == ("unmeasured", False, ("b.py",))
    assert (after.status, after.ready, after.targets) == ("owed", True, ("b.py",))


def test_a_baseline_that_was_compared_owes_what_a_later_candidate_attempt_brings_up() -> None:
    policy = GatePolicy(baseline="on-failure", rounds=1)
    before = [
        *begun(policy), *collections(), planned(PLAN),
        attempt_started(), attempt_recorded(missing={"b.py": "signalled"}, measured=2, attention=("a.py",)),
        attempt_started(side="baseline", targets=("a.py",)), attempt_recorded(side="baseline"),
    ]  # fmt: skip
    resumed = ResumeStarted(step="gate", number=1, owed=("shard-1/candidate",))
    after = [attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2, attention=("b.py",))]
    (entry,) = owed(views_of(*before, resumed, *after).gate, policy)
    assert entry == Owed("shard-1", "baseline", "owed", ("b.py",), True)
    (spent,) = owed(views_of(*before, *after).gate, policy)
    assert spent == Owed("shard-1", "baseline", "unmeasured", ("b.py",), False)


def test_targets_that_kill_in_turn_cannot_keep_another_from_running() -> None:
    killers, victim = {"k1.py", "k2.py", "k3.py"}, "v.py"
    asked: tuple[str, ...] | None = ("k1.py", "k2.py", "k3.py", "v.py")
    events: list[Event] = [*begun(), *collections(), planned(PLAN)]
    for number in range(1, 5):
        assert asked is not None
        events.append(attempt_started(attempt=number, targets=asked if number > 1 else None))
        killer = next(target for target in asked if target in killers)
        reached = asked[: asked.index(killer)]
        rest = sorted(set(asked) - set(reached) - {killer})
        missing = {killer: "signalled", **dict.fromkeys(rest, "not-run")}
        events.append(attempt_recorded(attempt=number, measured=len(reached), missing=missing))
        asked = owed(views_of(*events).gate, GatePolicy(rounds=9))[0].targets
    assert asked is not None
    assert victim not in asked
