"""Halves: who kills an attempt that leaves no trace is found by trying parts, against runners whose secret is known."""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import ceil, log2

import pytest

from ledger.events import AttemptStarted, Event, GatePolicy, ResumeStarted
from ledger.tables import Plan, ShardTargets
from projections.gate.ladder import LADDER_VERSION, Blame, next_part
from projections.gate.shards import ShardSide
from projections.run.owed import Owed, owed
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, planned, views_of

POLICY = GatePolicy(rounds=2, rerun="on", retry=LADDER_VERSION)
SIZES = range(1, 18)


def names(count: int) -> tuple[str, ...]:
    """So many targets, in byte order."""
    return tuple(f"t{number:02d}.py" for number in range(count))


class Machine:
    """The candidate of one shard: attempts die without a trace when they are asked for one of the culprits.

    `located`: the runner says in which target it died, and what came before that is measured.
    """

    def __init__(
        self,
        targets: Sequence[str],
        culprits: Sequence[str],
        *,
        cause: str = "report-missing",
        policy: GatePolicy = POLICY,
        located: bool = False,
    ) -> None:
        self.targets, self.culprits, self.cause, self.policy = tuple(targets), set(culprits), cause, policy
        self.located = located
        plan = Plan(
            policy="count/1",
            candidate_inventory="1" * 64,
            baseline_inventory="2" * 64,
            shards=(ShardTargets(shard="shard-1", candidate=self.targets, baseline=()),),
        )
        self.events: list[Event] = [*begun(policy), *collections(), planned(plan)]
        self.asked: list[tuple[str, ...]] = []

    @property
    def side(self) -> ShardSide:
        """The side as it stands, folded anew."""
        return views_of(*self.events).gate.side("shard-1", "candidate")

    def entry(self) -> Owed | None:
        """What may be started next."""
        return next((one for one in owed(views_of(*self.events).gate, self.policy) if one.ready), None)

    def cut_off(self) -> None:
        """The next attempt is started, and its driver dies."""
        number = self._start()
        self.events.append(
            attempt_recorded(attempt=number, cause="driver-died", counted=False, measured=0, targets=len(self.targets))
        )

    def _start(self) -> int:
        entry, number = self.entry(), len(self.side.attempts) + 1
        assert entry is not None
        self.events.append(attempt_started(attempt=number, targets=entry.next_targets))
        return number

    def run(self) -> None:
        """Run the next attempt to its end."""
        number = self._start()
        started = self.events[-1]
        assert isinstance(started, AttemptStarted)
        asked = self.targets if started.targets is None else started.targets
        self.asked.append(asked)
        self.events.append(self._result(number, asked))

    def _result(self, number: int, asked: tuple[str, ...]) -> Event:
        if not self.culprits & set(asked):
            return attempt_recorded(attempt=number, measured=len(asked))
        if not self.located:
            missing = dict.fromkeys(asked, self.cause)
            return attempt_recorded(attempt=number, cause=self.cause, measured=0, missing=missing)
        died = min(number for number, target in enumerate(asked) if target in self.culprits)
        missing = {asked[died]: self.cause} | dict.fromkeys(asked[died + 1 :], "not-run")
        return attempt_recorded(attempt=number, cause=self.cause, measured=died, missing=missing)

    def to_the_end(self) -> "Machine":
        """Run until nothing may be started."""
        while self.entry() is not None:
            self.run()
        return self


def most(cause: str, count: int) -> int:
    """The cap that is documented."""
    halves = 2 if cause.endswith("-limit") else 4
    return 8 + (halves * ceil(log2(count)) if count > 1 else 0)


def singles() -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every single culprit of every size."""
    yield from ((count, (one,)) for count in SIZES for one in range(count))


def pairs() -> Iterator[tuple[int, tuple[int, ...]]]:
    """Pairs of culprits: all of the small sizes, and some of the others."""
    chosen = random.Random(5)
    for count in SIZES:
        every = list(combinations(range(count), 2))
        yield from ((count, pair) for pair in chosen.sample(every, min(len(every), 8)))


def found(machine: Machine, culprits: set[str]) -> None:
    """Every innocent target was measured, and every culprit tried alone and named."""
    assert set(machine.side.missing or ()) == culprits
    assert {asked[0] for asked in machine.asked if len(asked) == 1} >= culprits
    # No attempt is made twice, but for the rounds at everything.
    parts = machine.asked[2:]
    assert len(set(parts)) == len(parts)


@pytest.mark.parametrize("cause", ["report-missing", "signalled", "time-limit"])
def test_a_single_culprit_is_found_among_any_number_of_targets(cause: str) -> None:
    for count, (one,) in singles():
        targets = names(count)
        machine = Machine(targets, [targets[one]], cause=cause).to_the_end()
        found(machine, {targets[one]})
        assert len(machine.asked) <= 2 + 2 * ceil(log2(max(count, 1))) <= most(cause, count)


def test_a_pair_of_culprits_is_found_among_any_number_of_targets() -> None:
    for count, numbers in pairs():
        targets = names(count)
        culprits = {targets[number] for number in numbers}
        machine = Machine(targets, sorted(culprits)).to_the_end()
        found(machine, culprits)
        assert len(machine.asked) <= most("report-missing", count)


@pytest.mark.parametrize("cause", ["report-missing", "memory-limit"])
@pytest.mark.parametrize("count", [2, 16, 100])
def test_a_side_of_nothing_but_culprits_is_given_up_after_so_many_tries(cause: str, count: int) -> None:
    machine = Machine(names(count), names(count), cause=cause).to_the_end()
    assert len(machine.asked) == min(most(cause, count), 2 + 2 * (count - 1))
    assert set(machine.side.missing or ()) == set(names(count))


def test_the_first_half_is_the_larger_one_and_the_rest_is_tried_before_a_half_of_a_half() -> None:
    a, b, c, d, e, f, g = names(7)
    assert Machine(names(7), [b]).to_the_end().asked == [
        names(7), names(7), (a, b, c, d), (e, f, g), (a, b), (c, d), (a,), (b,),
    ]  # fmt: skip
    assert Machine(names(7), [a, g]).to_the_end().asked[2:] == [
        (a, b, c, d), (e, f, g), (a, b), (c, d), (e, f), (g,), (a,), (b,),
    ]  # fmt: skip


def test_a_death_that_is_located_needs_no_halves() -> None:
    _, b, c, d, e = names(5)
    machine = Machine(names(5), [b, d], located=True).to_the_end()
    assert machine.asked == [names(5), (c, d, e, b), (e,), (b,), (d,)]
    assert set(machine.side.missing or ()) == {b, d}


def test_several_that_ran_when_an_attempt_died_are_tried_alone_without_halves() -> None:
    targets = names(6)
    machine = Machine(targets, [])
    missing = {targets[1]: "worker-crashed", targets[3]: "worker-crashed", targets[4]: "worker-crashed"}
    for number in (1, 2):
        machine.events += [
            attempt_started(attempt=number),
            attempt_recorded(attempt=number, cause="worker-crashed", missing=missing, measured=3),
        ]
    assert machine.to_the_end().asked == [(targets[1],), (targets[3],), (targets[4],)]


def test_what_was_not_reached_goes_on_without_those_that_are_told_apart() -> None:
    a, b, c = names(3)
    machine = Machine(names(3), [a])
    missing = {a: "signalled", b: "signalled", c: "not-run"}
    for number in (1, 2):
        machine.events += [
            attempt_started(attempt=number),
            attempt_recorded(attempt=number, cause="signalled", missing=missing, measured=0),
        ]
    assert machine.to_the_end().asked == [(c,), (a,), (b,)]


def test_an_attempt_that_came_to_nothing_may_have_died_in_any_of_its_targets() -> None:
    a, b, c, d = names(4)
    machine = Machine(names(4), [d])
    for number in (1, 2):
        missing = dict.fromkeys(names(4), "not-run")
        machine.events += [
            attempt_started(attempt=number),
            attempt_recorded(attempt=number, cause="signalled", missing=missing, measured=0),
        ]
    assert machine.to_the_end().asked == [(a, b), (c, d), (c,), (d,)]


def test_a_part_that_is_lost_with_its_list_counts_for_all_that_it_was_asked_for() -> None:
    targets = names(4)
    machine = Machine(targets, [targets[3]])
    for _ in range(2):
        machine.run()
    machine.events += [
        attempt_started(attempt=3, targets=targets[:2]),
        attempt_recorded(attempt=3, cause="signalled", measured=0, targets=0),
    ]
    a, b, c, d = targets
    assert machine.to_the_end().asked[2:] == [(c, d), (a,), (b,), (c,), (d,)]


@pytest.mark.parametrize("seed", range(20))
def test_the_same_parts_are_tried_whatever_cuts_a_driver_off(seed: int) -> None:
    chosen = random.Random(seed)
    count = chosen.randint(2, 17)
    culprits = chosen.sample(names(count), min(count, chosen.randint(1, 3)))
    calm, rough = Machine(names(count), culprits).to_the_end(), Machine(names(count), culprits)
    while rough.entry() is not None:
        if chosen.random() < 0.4:
            rough.cut_off()
        else:
            rough.run()
    assert rough.asked == calm.asked


def resumed(machine: Machine, culprits: Sequence[str]) -> Machine:
    """A person has looked into it, and it goes on."""
    machine.events.append(ResumeStarted(step="gate", number=1, owed=()))
    machine.asked.clear()
    machine.culprits = set(culprits)
    return machine.to_the_end()


def test_a_resume_goes_on_where_the_halves_had_come_to() -> None:
    machine = Machine(names(100), names(100), cause="time-limit").to_the_end()
    before = set(machine.asked)
    assert min(map(len, before)) > 1
    assert [sorted(asked) for asked in resumed(machine, names(100)).asked[:2]] == [list(names(100))] * 2
    assert not before & set(machine.asked[2:])


def test_who_was_tried_alone_is_tried_once_more_after_a_resume() -> None:
    machine = Machine(names(16), names(16)).to_the_end()
    resumed(machine, [names(16)[-1]])
    assert set(machine.side.missing or ()) == {names(16)[-1]}
    assert len(set(machine.asked[2:])) == len(machine.asked[2:])
    assert len(resumed(machine, [names(16)[-1]]).asked) == 2
    assert resumed(machine, []).side.measured


def test_runs_of_the_version_before_do_without_halves() -> None:
    before = GatePolicy(rounds=2, rerun="on")
    asked = Machine(names(4), ["t03.py"], policy=before).to_the_end().asked
    assert asked == [names(4)] * 2 + [(name,) for name in names(4)]
    assert len(Machine(names(17), ["t16.py"], policy=before).to_the_end().asked) == 8


@pytest.mark.parametrize("cause", ["nothing-collected", "wrong-tree", "lost"])
def test_what_no_target_can_have_done_is_never_halved(cause: str) -> None:
    machine = Machine(names(6), names(6), cause=cause).to_the_end()
    assert set(machine.asked) == {names(6)}


def test_one_round_is_one_try() -> None:
    policy = GatePolicy(rounds=1, rerun="on", retry=LADDER_VERSION)
    assert Machine(names(6), names(6), policy=policy).to_the_end().asked == [names(6)]


def test_the_next_part_does_not_depend_on_the_order_in_which_targets_are_given() -> None:
    blames = dict.fromkeys(names(5), Blame(attempt=2, asked=5, blamed=5))
    for shuffled in (names(5), names(5)[::-1], names(5)[2:] + names(5)[:2]):
        assert next_part(shuffled, blames, 1) == names(3)
    assert next_part((), blames, 1) == next_part(names(5), {}, 1) == ()
