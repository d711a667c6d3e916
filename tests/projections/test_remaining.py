"""The time that a gate still takes, told beside gates that are really played to their end, second by second."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from commands.causes import UNKNOWNS
from commands.render.progress import time_left
from ledger.events import AttemptStarted, Event, GatePolicy, Planned, PlannedShard
from projections.gate.remaining import Remaining, Work, remaining_time, schedule_seconds
from projections.registry import RunViews
from tests.support.makers import COMMITS, attempt_recorded, attempt_started, begun, collections, recorded

START = datetime(2030, 1, 2, tzinfo=UTC)
TARGETS = ("a.py", "b.py", "c.py", "d.py")


def plan_of(*seconds: float | None, absent: tuple[str, ...] = ()) -> Planned:
    """A plan with a shard of four targets for each of these times."""
    shards = tuple(
        PlannedShard(shard=f"shard-{number}", candidate_targets=len(TARGETS), absent=absent, seconds=one)
        for number, one in enumerate(seconds, start=1)
    )
    return Planned(commit=COMMITS["candidate"], plan="2" * 64, policy="usage/1", shards=shards)


class Played:
    """A gate that is played second by second: what may be started is started, in the order that the views give."""

    def __init__(self, policy: GatePolicy, plan: Planned) -> None:
        self.policy, self.views = policy, RunViews()
        self.second, self._events = 0, 0
        self.failing: dict[str, tuple[str, ...]] = {}
        self.takes = {shard.shard: shard.seconds or 0.0 for shard in plan.shards}
        self._ends: list[tuple[float, AttemptStarted]] = []
        for event in (*begun(policy), *collections(), plan):
            self.take(event)

    def take(self, event: Event) -> None:
        """Record an event now."""
        self._events += 1
        (told,) = recorded([event], start=self._events)
        time = (START + timedelta(seconds=self.second)).isoformat()
        self.views.apply(structs.replace(told, header=structs.replace(told.header, time=time)))

    def start(self) -> None:
        """Start what may be started."""
        while len(self._ends) < self.policy.parallel and (entry := next(self.views.ready(), None)):
            tried = len(self.views.gate.side(entry.shard, entry.side).attempts)
            started = attempt_started(entry.shard, entry.side, tried + 1, targets=entry.targets)
            self.take(started)
            share = 1.0 if entry.targets is None else len(entry.targets) / len(TARGETS)
            self._ends.append((self.second + share * self.takes[entry.shard], started))

    def step(self) -> None:
        """A second passes, and what ends in it is recorded."""
        self.second += 1
        for one in [one for one in self._ends if one[0] <= self.second]:
            self._ends.remove(one)
            self._record(one[1])

    def _record(self, started: AttemptStarted) -> None:
        attention = self.failing.get(started.shard, ()) if started.side == "candidate" else ()
        self.take(
            attempt_recorded(
                started.shard, started.side, started.attempt, measured=len(started.targets or TARGETS),
                duration_seconds=self.takes[started.shard], attention=attention,
            )
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether nothing runs and nothing may be started."""
        return not self._ends and next(self.views.ready(), None) is None

    def told(self) -> Remaining:
        """What is said of the time that is left, now."""
        return remaining_time(self.views.run, self.views.gate, START + timedelta(seconds=self.second))


def play(gate: Played) -> tuple[list[float | None], int]:
    """What was said each second, and when it was over."""
    said = []
    while True:
        gate.start()
        said.append(gate.told().seconds)
        if gate.over:
            return said, gate.second
        gate.step()


@pytest.mark.parametrize("parallel", [1, 2, 3])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_when_all_goes_as_planned_what_is_said_each_second_comes_true(shards: int, parallel: int) -> None:
    for seconds in product((1.0, 2.0, 5.0), repeat=shards):
        said, end = play(Played(GatePolicy(parallel=parallel), plan_of(*seconds)))
        assert said == [end - second for second in range(end + 1)], seconds


@pytest.mark.parametrize("failing", [(), ("a.py",), ("a.py", "b.py"), TARGETS])
def test_a_baseline_on_failure_counts_as_soon_as_it_is_known_to_be_needed(failing: tuple[str, ...]) -> None:
    for seconds, parallel in product(product((4.0, 8.0, 12.0), repeat=2), (1, 2)):
        gate = Played(GatePolicy(parallel=parallel, baseline="on-failure"), plan_of(*seconds))
        gate.failing = {"shard-1": failing}
        said, end = play(gate)
        found = [one for one in said if one is not None]
        assert len(found) == len(said)
        assert all(one <= end - second for second, one in enumerate(found)), seconds
        # Once the first candidate is measured, nothing else can come to be owed.
        known = next(s for s in range(end + 1) if s >= seconds[0])
        assert found[known:] == [end - second for second in range(known, end + 1)], seconds


def test_targets_that_the_baseline_does_not_have_are_no_work() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(4.0, absent=TARGETS))
    assert play(gate) == ([4.0, 3.0, 2.0, 1.0, 0.0], 4)


def test_what_is_missing_is_run_again_for_its_share() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(8.0, absent=TARGETS))
    gate.take(attempt_started())
    gate.take(attempt_recorded(measured=3, missing={"d.py": "lost"}))
    assert gate.told().seconds == 2.0
    gate.take(attempt_started(attempt=2, targets=("d.py",)))
    gate.second += 1
    assert gate.told().seconds == 1.0


def test_a_baseline_on_failure_waits_for_what_its_candidate_still_misses() -> None:
    gate = Played(GatePolicy(parallel=2, baseline="on-failure"), plan_of(8.0))
    gate.take(attempt_started())
    gate.take(attempt_recorded(measured=3, missing={"d.py": "lost"}, attention=("a.py",)))
    assert gate.told().seconds == 4.0
    gate.take(attempt_started(attempt=2, targets=("d.py",)))
    gate.second += 1
    assert gate.told().seconds == 3.0


def test_a_part_that_is_far_slower_than_planned_may_take_twice_what_the_others_took() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(10.0))
    gate.take(attempt_started())
    gate.take(attempt_recorded(duration_seconds=30.0))
    gate.take(attempt_started(side="baseline"))
    said = []
    for second in (25, 60, 61):
        gate.second = second
        said.append(gate.told().seconds)
    assert said == [5.0, 0.0, None]


def test_what_has_used_up_its_rounds_is_no_work() -> None:
    gate = Played(GatePolicy(parallel=1, rounds=1), plan_of(8.0, absent=TARGETS))
    gate.take(attempt_started())
    gate.take(attempt_recorded(measured=0, cause="time-limit"))
    assert gate.told().seconds == 0


@pytest.mark.parametrize(
    ("took", "factor"), [(20.0, 2.0), (5.0, 0.5), (10.0, 1.0), (1000.0, 4.0), (0.5, 0.25)]
)  # fmt: skip
def test_what_ended_says_how_long_the_rest_will_take(took: float, factor: float) -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(10.0))
    assert gate.told() == Remaining(seconds=20.0, reason="", factor=1.0, compared=0)
    gate.take(attempt_started())
    gate.take(attempt_recorded(duration_seconds=took))
    assert gate.told() == Remaining(seconds=10.0 * factor, reason="", factor=factor, compared=1)
    gate.take(attempt_started(side="baseline"))
    gate.second += 1
    assert gate.told().seconds == 10.0 * factor - 1


def test_only_whole_and_complete_attempts_are_compared_with_the_plan() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(10.0))
    gate.take(attempt_started())
    gate.take(attempt_recorded(measured=3, missing={"d.py": "lost"}, duration_seconds=99.0))
    gate.take(attempt_started(attempt=2, targets=("d.py",)))
    gate.take(attempt_recorded(attempt=2, duration_seconds=99.0))
    assert (gate.told().compared, gate.told().seconds) == (0, 10.0)


def test_what_runs_longer_than_planned_is_about_to_end_until_it_is_far_too_long() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(10.0, absent=TARGETS))
    gate.take(attempt_started())
    said = []
    for second in (9, 10, 20, 21):
        gate.second = second
        said.append((gate.told().seconds, gate.told().reason))
    assert said == [(1.0, ""), (0.0, ""), (0.0, ""), (None, "longer-than-planned")]


def test_a_clock_that_went_back_makes_nothing_longer() -> None:
    gate = Played(GatePolicy(parallel=1), plan_of(10.0, absent=TARGETS))
    gate.take(attempt_started())
    gate.second -= 500
    assert gate.told().seconds == 10.0


def test_what_is_not_known_is_not_guessed() -> None:
    unplanned = RunViews()
    for one in recorded([*begun(), *collections()]):
        unplanned.apply(one)
    assert remaining_time(unplanned.run, unplanned.gate, START).reason == "not-planned-yet"
    by_count = Played(GatePolicy(parallel=1), plan_of(None))
    assert (by_count.told().seconds, by_count.told().reason) == (None, "planned-by-count")
    by_count.take(attempt_started())
    assert (by_count.told().seconds, by_count.told().reason) == (None, "planned-by-count")
    some = Played(GatePolicy(parallel=1), plan_of(5.0, None))
    assert some.told().reason == "planned-by-count"


works = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=7)


def work_of(parts: Sequence[tuple[int, bool]]) -> list[Work]:
    return [
        Work(f"shard-{number}", "candidate", float(seconds), running=running)
        for number, (seconds, running) in enumerate(parts)
    ]


@settings(deadline=None)
@given(parts=works, slots=st.integers(1, 3), less=st.integers(1, 9))
def test_when_work_ends_or_shrinks_the_time_that_is_left_never_grows(
    parts: list[tuple[int, bool]], slots: int, less: int
) -> None:
    before = schedule_seconds(work_of(parts), slots)
    for index, (seconds, running) in enumerate(parts):
        assert schedule_seconds(work_of([*parts[:index], *parts[index + 1 :]]), slots) <= before
        shorter = [*parts[:index], (max(0, seconds - less), running), *parts[index + 1 :]]
        assert schedule_seconds(work_of(shorter), slots) <= before


@settings(deadline=None)
@given(parts=works, slots=st.integers(1, 3))
def test_a_schedule_is_between_what_cannot_be_beaten_and_one_after_the_other(
    parts: list[tuple[int, bool]], slots: int
) -> None:
    found = schedule_seconds(work_of(parts), slots)
    running = sum(is_running for _, is_running in parts)
    assert found <= sum(seconds for seconds, _ in parts)
    assert found >= max((seconds for seconds, _ in parts), default=0)
    assert found * max(slots, running) >= sum(seconds for seconds, _ in parts)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Remaining(seconds=90.0, reason="", factor=1.0, compared=0), "about 1 min 30 s, by the plan alone"),
        (Remaining(seconds=0.0, reason="", factor=1.0, compared=0), "less than 1 s, by the plan alone"),
        (
            Remaining(seconds=9.0, reason="", factor=1.5, compared=2),
            "about 9.0 s, if all goes on to take 1.50 times what was planned",
        ),
        (Remaining(seconds=None, reason="planned-by-count", factor=1.0, compared=0), "unknown (planned-by-count)"),
    ],
)
def test_the_time_that_is_left_is_told_with_what_it_rests_on(told: Remaining, words: str) -> None:
    assert time_left(told) == words


def test_every_reason_can_be_explained() -> None:
    assert {"not-planned-yet", "planned-by-count", "longer-than-planned"} <= UNKNOWNS.keys()
