"""Where the time of a run went: told beside an oracle that walks through the run second by second."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    DriverReplaced,
    DriverStarted,
    GatePolicy,
    Measured,
    Planned,
    PlanPolicy,
    ResumeStarted,
    RunFinished,
    RunStopped,
)
from projections.run.timing import RunTiming, TimingMissing, time_run
from tests.projections.run.conftest import Chance, Timed, at, measured, plan_of, records, timed
from tests.support.makers import attempt_recorded, attempt_started, collections, driver_started, run_started

POLICY = GatePolicy(parallel=2)
Key = tuple[str, str, int]


def timing(*history: Timed, target_seconds: float | None = None) -> RunTiming:
    return time_run(timed(history), target_seconds=target_seconds)


def key(event: AttemptStarted | AttemptRecorded | Measured) -> Key:
    return event.shard, event.side, event.attempt


def attempt(
    began: int, ended: int, shard: str = "shard-1", side: str = "candidate", number: int = 1, **changes: object
) -> list[Timed]:
    """An attempt that ran from one second to the next, and was promised and recorded in those."""
    changes = {"duration_seconds": float(ended - began), "started_at": at(began), "term": 1} | changes
    started = attempt_started(shard, side, number, term=changes["term"])  # type: ignore[arg-type]
    record = attempt_recorded(shard, side, number, **changes)  # type: ignore[arg-type]
    return [(began, started), (ended, record)]


def in_order(*events: list[Timed]) -> list[Timed]:
    return sorted((one for some in events for one in some), key=lambda one: one[0])


def begun(policy: GatePolicy = POLICY) -> list[Timed]:
    return [(0, run_started(policy)), (0, driver_started())]


def collected(plan: Planned, policy: GatePolicy = POLICY) -> list[Timed]:
    """A run that was collected in no time and planned."""
    return [*begun(policy), *((0, event) for event in collections()), (0, plan)]


# The oracle: a run walked through second by second.


def lived(history: list[Timed]) -> tuple[list[int], set[int]]:
    """When each event was recorded by a clock that does not go back, and the seconds in which no driver lived."""
    times = list(accumulate((second for second, _ in history), max))
    promised = {
        key(event): second
        for second, (_, event) in zip(times, history, strict=True)
        if isinstance(event, AttemptStarted)
    }
    dead: set[int] = set()
    drivers = [number for number, (_, event) in enumerate(history) if isinstance(event, DriverStarted | DriverReplaced)]
    for term, number in enumerate(drivers[1:], start=1):
        ends = [
            _ran_until(event, promised[key(event)])
            for _, event in history[number:]
            if isinstance(event, AttemptRecorded) and event.term == term and event.duration_seconds
        ]
        dead |= set(range(max([times[number - 1], *ends]), times[number]))
    return times, dead


def _began(event: AttemptRecorded, promised: int) -> int:
    return next((second for second in range(-10, 5000) if at(second) == event.started_at), promised)


def _ran_until(event: AttemptRecorded, promised: int) -> int:
    return _began(event, promised) + int(event.duration_seconds)


def walked(history: list[Timed], wanted: set[Key]) -> int:
    """The seconds from the first promise to the last record of these attempts in which a driver lived."""
    times, dead = lived(history)
    of_wanted = [
        second
        for second, (_, event) in zip(times, history, strict=True)
        if isinstance(event, AttemptStarted | AttemptRecorded) and key(event) in wanted
    ]
    return len(set(range(min(of_wanted), max(of_wanted))) - dead) if of_wanted else 0


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_time_of_a_run_is_what_a_walk_through_its_seconds_finds(seed: int) -> None:
    history = Chance(seed).history
    told = records(history)
    if not told:
        with pytest.raises(TimingMissing):
            timing(*history)
        return
    found = timing(*history)
    times, dead = lived(history)
    first = next(second for second, (_, event) in zip(times, history, strict=True) if isinstance(event, AttemptStarted))
    ends = {key(e): s for s, (_, e) in zip(times, history, strict=True) if isinstance(e, AttemptRecorded)}
    roots = [end for (_, _, number), end in ends.items() if number == 1]
    assert found.wall_seconds == len(set(range(first, max(ends.values()))) - dead)
    assert found.gap_seconds == len(set(range(first, max(ends.values()))) & dead)
    assert found.root_wall_seconds == len(set(range(first, max(roots))) - dead)
    assert found.wall_seconds == found.root_wall_seconds + found.retry_tail_seconds
    assert found.collection_seconds == walked(history, {k for k in ends if k[0] == COLLECTION})
    assert found.gap_seconds == sum(gap.duration_seconds for gap in found.gaps)
    promises = {key(e): s for s, (_, e) in zip(times, history, strict=True) if isinstance(e, AttemptStarted)}
    delays = [
        max(0, min(_began(event, promises[key(event)]), ends[key(event)]) - promises[key(event)])
        for event in told
        if event.duration_seconds
    ]
    assert found.promised_seconds == sum(delays)
    busy = sum(event.duration_seconds for event in told)
    assert found.idle_slot_seconds == max(0, found.slots * found.wall_seconds - busy)
    assert found.efficiency == (busy / (found.slots * found.wall_seconds) if found.wall_seconds else None)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_attempts_are_summed_up_as_they_are_recorded(seed: int) -> None:
    history = Chance(seed).history
    told = [event for event in records(history) if event.shard != COLLECTION]
    if not told:
        return
    found = timing(*history)
    durations = sorted(event.duration_seconds for event in told if event.duration_seconds)
    assert (found.attempts, found.retries) == (len(told), len([e for e in records(history) if e.attempt > 1]))
    assert found.without_duration == len([event for event in records(history) if not event.duration_seconds])
    assert found.sum_seconds == sum(durations)
    assert [one.duration_seconds for one in found.slowest] == durations[::-1][:5]
    if durations:
        below = durations[(len(durations) - 1) // 2]
        assert found.median_seconds == (below + durations[len(durations) // 2]) / 2
    known = {key(e): e.session_seconds for _, e in history if isinstance(e, Measured) and e.shard != COLLECTION}
    assert (found.overhead.measured, found.overhead.unmeasured) == (len(known), len(told) - len(known))
    if known:
        told_of = list(known.values())
        least = (one for one in told_of if sum(other <= one for other in told_of) * 10 >= 9 * len(told_of))
        assert found.overhead.p90_seconds == min(least)
    by_side: dict[str, float] = {}
    for event in told:
        side = f"{event.shard}/{event.side}"
        by_side[side] = by_side.get(side, 0.0) + event.duration_seconds
    assert {one.side: one.actual_seconds for one in found.sides if one.side in by_side} == by_side


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), target=st.one_of(st.none(), st.integers(1, 400)))
def test_a_target_is_met_only_when_everything_is_known_and_missed_as_soon_as_it_is_passed(
    seed: int, target: int | None
) -> None:
    history = Chance(seed).history
    if not records(history):
        return
    found = timing(*history, target_seconds=target)
    assert found.target_seconds == (target or history[0][1].policy.planning.target_seconds or None)  # type: ignore[attr-defined]
    if found.target_seconds is None:
        assert (found.target, found.doubts) == (None, ())
    elif found.wall_seconds > found.target_seconds:
        assert (found.target, found.doubts) == ("missed", ())
    else:
        doubts = ["run-unfinished"] if not isinstance(history[-1][1], RunFinished) else []
        doubts += ["duration-unknown"] if found.without_duration else []
        assert (found.target, found.doubts) == ("undetermined" if doubts else "met", tuple(doubts))


# By hand.

DONE = (40, RunFinished(verdict="passed"))


def test_a_run_with_a_retry_has_a_tail_and_slots_that_were_idle() -> None:
    tried = in_order(
        attempt(0, 10),
        attempt(0, 6, side="baseline", cause="lost", measured=0),
        attempt(10, 15, "shard-1", "baseline", 2),
    )
    found = timing(*begun(), (0, plan_of(8.0)), *tried, DONE)
    assert (found.wall_seconds, found.root_wall_seconds, found.retry_tail_seconds, found.retries) == (15, 10, 5, 1)
    assert (found.sum_seconds, found.median_seconds) == (21, 6)
    assert (found.slots, found.idle_slot_seconds, found.efficiency) == (2, 9, 0.7)
    assert [one.attempt for one in found.slowest] == [
        "shard-1/candidate/1", "shard-1/baseline/1", "shard-1/baseline/2",
    ]  # fmt: skip
    assert (found.gaps, found.collection_seconds) == ((), 0)


def test_what_was_planned_stands_beside_what_it_took() -> None:
    tried = in_order(
        attempt(0, 12),
        attempt(0, 10, side="baseline"),
        attempt(12, 17, "shard-2"),
        attempt(12, 18, "shard-2", "baseline"),
    )
    found = timing(*collected(plan_of(10.0, 10.0)), *tried, DONE)
    assert [(one.side, one.planned_seconds, one.actual_seconds) for one in found.sides] == [
        ("shard-2/candidate", 10, 5), ("shard-2/baseline", 10, 6), ("shard-1/candidate", 10, 12),
        ("shard-1/baseline", 10, 10),
    ]  # fmt: skip
    assert [one.deviation for one in found.sides] == pytest.approx([-0.5, -0.4, 0.2, 0.0])
    assert found.longest is not None
    assert (found.longest.side, found.longest.actual_seconds) == ("shard-1/candidate", 12)
    assert found.makespan_deviation == pytest.approx(0.2)
    assert found.bound_ratio == pytest.approx(2.4)


def test_a_plan_is_not_judged_while_something_is_owed_or_by_a_part_of_a_side() -> None:
    plan = plan_of(10.0)
    owed = timing(*collected(plan), *attempt(0, 12))
    assert (owed.longest, owed.makespan_deviation, owed.bound_ratio) == (None, None, None)
    assert owed.sides[0].deviation == pytest.approx(0.2)
    lost = timing(*collected(plan), *attempt(0, 12, cause="time-limit", measured=0))
    assert (lost.sides[0].deviation, lost.sides[0].measured) == (None, False)
    part = [(12, attempt_started(side="baseline", targets=("a.py",))), (20, attempt_recorded(side="baseline"))]
    some = timing(*collected(plan, GatePolicy(baseline="on-failure")), *attempt(0, 12), *part, DONE)
    assert {one.side: one.planned_seconds for one in some.sides} == {"shard-1/candidate": 10, "shard-1/baseline": None}
    assert some.longest is not None
    assert some.longest.side == "shard-1/candidate"


def test_a_plan_by_count_has_nothing_to_be_compared_with() -> None:
    found = timing(*collected(plan_of(None)), *in_order(attempt(0, 12), attempt(0, 12, side="baseline")), DONE)
    assert (found.makespan_seconds, found.longest, found.bound_ratio) == (None, None, None)
    assert [(one.planned_seconds, one.deviation) for one in found.sides] == [(None, None)] * 2


def test_the_time_between_a_stop_and_the_next_driver_is_not_counted() -> None:
    history = [
        *begun(), *attempt(0, 10, cause="stopped", measured=0, counted=False), (11, RunStopped(reason="asked", term=1)),
        (111, driver_started(2)), (111, ResumeStarted(step="gate", number=1, owed=())),
        *attempt(112, 120, number=2, term=2),
    ]  # fmt: skip
    found = timing(*history)
    assert (found.wall_seconds, found.gap_seconds) == (20, 100)
    assert [(gap.began_at, gap.ended_at) for gap in found.gaps] == [
        ("2030-01-02T00:00:11.000000Z", "2030-01-02T00:01:51.000000Z")
    ]


def test_a_driver_that_died_lived_as_long_as_what_it_had_started() -> None:
    died = DriverReplaced(term=2, previous_term=1, host="here", pid=2, reason="died")
    started, record = attempt(5, 65, cause="driver-died", measured=0, counted=False)
    told = [*begun(), started, (105, died), (106, record[1])]
    assert (timing(*told).wall_seconds, timing(*told).gap_seconds) == (61, 40)
    unknown = attempt_recorded(cause="lost", measured=0, counted=False, duration_seconds=0.0, started_at=at(106))
    lost = timing(*begun(), started, (105, died), (106, unknown))
    assert (lost.wall_seconds, lost.gap_seconds, lost.without_duration) == (1, 100, 1)


def test_what_was_promised_and_not_started_is_waiting() -> None:
    found = timing(*begun(), *attempt(0, 10, started_at=at(4), duration_seconds=6.0))
    assert found.promised_seconds == 4
    for odd in ("", "yesterday", "2030-01-02", at(-5)):
        assert timing(*begun(), *attempt(0, 10, started_at=odd, duration_seconds=6.0)).promised_seconds == 0


def test_overhead_is_what_sessions_took_beyond_the_tests() -> None:
    told = []
    for number in range(1, 11):
        started, record = attempt(number, number + 1, number=number)
        told += [started, record, (number + 1, measured(started[1], number / 10))]  # type: ignore[arg-type]
    found = timing(*begun(), *told, *attempt(20, 21, side="baseline"))
    assert found.overhead.median_seconds == pytest.approx(0.55)
    assert found.overhead.p90_seconds == 0.9
    assert (found.overhead.measured, found.overhead.unmeasured) == (10, 1)


@pytest.mark.parametrize(
    ("events", "asked", "answer", "doubts"),
    [
        ([*attempt(0, 10), DONE], 10.0, "met", ()),
        ([*attempt(0, 10), DONE], 9.9, "missed", ()),
        (attempt(0, 10), 9.9, "missed", ()),
        (attempt(0, 10), 10.0, "undetermined", ("run-unfinished",)),
        ([*attempt(0, 10, duration_seconds=0.0), DONE], 10.0, "undetermined", ("duration-unknown",)),
        ([*attempt(0, 10), DONE], None, "missed", ()),
    ],
    ids=["met", "missed", "missed-already", "unfinished", "unknown", "of-the-policy"],
)
def test_a_target_has_an_answer(events: list[Timed], asked: float | None, answer: str, doubts: tuple[str, ...]) -> None:
    policy = GatePolicy(plan=PlanPolicy(target_seconds=8.0))
    found = timing(*begun(policy), *events, target_seconds=asked)
    assert (found.target, found.doubts) == (answer, doubts)


def test_without_a_record_there_is_no_time() -> None:
    with pytest.raises(TimingMissing) as missing:
        timing(*begun(), (1, attempt_started()))
    assert (missing.value.code, missing.value.exit_code) == ("timing-missing", 3)
    assert missing.value.hint
