"""The fold of a gate's shards: attempts, what they measured, rounds, and the laws that every view obeys."""

import pytest

from ledger.events import Carried, Event, GatePolicy, LedgerCreated, ResumeStarted, RunStopped, Unknown
from projections.fold import fold
from projections.gate.shards import SHARDS, GateView, ShardSide
from projections.registry import VIEWS, RunViews
from projections.run.state import RUN
from tests.support.makers import (
    SEQUENCE_OF_FIRST,
    attempt_recorded,
    attempt_started,
    begun,
    collections,
    placed,
    planned,
    recorded,
    verdict_decided,
    views_of,
)

BASE: list[Event] = [*begun(), *collections(), planned(), *placed("shard-1")]
RESUMED = ResumeStarted(step="gate", number=1, owed=("shard-1/candidate",))


def side_after(*events: Event) -> ShardSide:
    """The candidate of the shard after these events."""
    return views_of(*BASE, *events).gate.side("shard-1", "candidate")


def test_a_gate_has_what_was_collected_planned_and_placed() -> None:
    gate = views_of(*BASE).gate
    assert set(gate.inventories) == {"candidate", "baseline"}
    assert gate.plan == planned()
    assert gate.placements == {"shard-1": "local"}
    assert all(side.measured for side in gate.collections())
    assert gate.in_flight() == []


def test_what_was_carried_counts_for_the_verdict_that_it_was_told_with() -> None:
    """A gate that is resumed comes to another verdict, which tells it again as far as it is still so."""
    told = Carried(gate="gate-0", commit="1" * 40, classes="0" * 64, targets=1, cases=2)
    assert views_of(*BASE).gate.carried == 0
    assert views_of(*BASE, told, verdict_decided()).gate.carried == 2
    assert views_of(*BASE, told, verdict_decided(), RESUMED).gate.carried == 0


def test_an_attempt_without_a_record_is_in_flight_in_the_order_of_starts() -> None:
    events = [attempt_started(side="baseline"), attempt_started(side="candidate")]
    gate = views_of(*BASE, *events).gate
    assert [attempt.started for attempt in gate.in_flight()] == events
    assert gate.side("shard-1", "candidate").status(GatePolicy(rounds=2)) == "running"
    after = views_of(*BASE, *events, attempt_recorded(side="baseline")).gate
    assert [attempt.started.side for attempt in after.in_flight()] == ["candidate"]


def test_a_complete_attempt_measures_the_side_and_keeps_its_place_and_times() -> None:
    side = side_after(attempt_started(), attempt_recorded())
    attempt = side.attempts[0]
    assert side.measured
    assert side.status(GatePolicy(rounds=2)) == "measured"
    assert attempt.recorded == side.last == attempt_recorded()
    assert attempt.sequence == SEQUENCE_OF_FIRST + 2 * len(BASE)
    assert attempt.recorded_at > attempt.started_at


def test_a_partial_attempt_leaves_its_missing_targets_with_their_reason_codes() -> None:
    missing = {"b.py": "signalled", "c.py": "not-run"}
    side = side_after(attempt_started(), attempt_recorded(missing=missing, attention=("a.py",)))
    assert side.missing == missing
    assert side.suspects == {"b.py": 1}
    assert side.attention == {"a.py"}
    assert side.status(GatePolicy(rounds=2)) == "owed"
    assert side.status(GatePolicy(rounds=1)) == "unmeasured"


def test_an_attempt_that_died_in_its_first_target_still_says_which_targets_it_did_not_reach() -> None:
    missing = {"a.py": "signalled", "b.py": "not-run"}
    side = side_after(attempt_started(), attempt_recorded(missing=missing, measured=0, cause="signalled"))
    assert side.missing == missing
    assert side.suspects == {"a.py": 1}


def test_an_attempt_that_can_tell_nothing_apart_leaves_everything_owed() -> None:
    side = side_after(attempt_started(), attempt_recorded(cause="wrong-tree", measured=0))
    assert side.missing is None
    assert not side.measured
    assert side.status(GatePolicy(rounds=2)) == "owed"


def test_a_narrowed_attempt_that_can_tell_nothing_apart_leaves_what_it_was_asked_for() -> None:
    side = side_after(
        attempt_started(), attempt_recorded(missing={"b.py": "signalled"}),
        attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2, cause="wrong-tree", measured=0),
    )  # fmt: skip
    assert side.missing == {"b.py": "wrong-tree"}
    assert side.covered == set()


def test_an_attempt_that_died_after_its_last_target_has_measured_them_all() -> None:
    died = attempt_recorded(cause="session-ended-early", measured=2)
    assert not died.complete
    assert side_after(attempt_started(), died).measured
    assert side_after(attempt_started(targets=("a.py", "b.py")), died).covered == {"a.py", "b.py"}


@pytest.mark.parametrize("measured", [0, 1])
def test_an_incomplete_attempt_that_lists_nothing_as_missing_measures_nothing(measured: int) -> None:
    contradiction = attempt_recorded(complete=False, measured=measured, targets=2)
    assert not side_after(attempt_started(), contradiction).measured
    assert side_after(attempt_started(targets=("a.py", "b.py")), contradiction).missing == {
        "a.py": "unmeasured",
        "b.py": "unmeasured",
    }


def test_a_complete_attempt_that_lists_something_as_missing_is_not_believed() -> None:
    side = side_after(attempt_started(), attempt_recorded(complete=True, missing={"b.py": "not-run"}))
    assert side.missing == {"b.py": "not-run"}


def test_a_narrowed_attempt_covers_the_targets_that_it_was_asked_for_and_measured() -> None:
    side = side_after(
        attempt_started(targets=("a.py", "b.py")), attempt_recorded(missing={"b.py": "time-limit"}),
        attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2, attention=("b.py",)),
    )  # fmt: skip
    assert side.covered == {"a.py", "b.py"}
    assert side.attention == {"b.py"}
    assert side.missing == {}


def test_attention_of_an_earlier_attempt_stays() -> None:
    side = side_after(
        attempt_started(), attempt_recorded(missing={"b.py": "signalled"}, attention=("a.py",)),
        attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2),
    )  # fmt: skip
    assert side.attention == {"a.py"}


def test_only_counted_attempts_use_up_rounds_and_a_resume_gives_them_back() -> None:
    lost = {"cause": "record-missing", "measured": 0}
    events = [
        attempt_started(), attempt_recorded(**lost),
        attempt_started(attempt=2), attempt_recorded(attempt=2, counted=False, **lost),
    ]  # fmt: skip
    assert side_after(*events).rounds == 1
    third = [attempt_started(attempt=3), attempt_recorded(attempt=3, **lost)]
    assert side_after(*events, *third).status(GatePolicy(rounds=2)) == "unmeasured"
    resumed = side_after(*events, *third, RESUMED)
    assert (resumed.rounds, resumed.status(GatePolicy(rounds=2))) == (0, "owed")
    assert len(resumed.attempts) == 3


def test_a_resume_takes_the_verdict_away_and_nothing_that_was_measured() -> None:
    events = [attempt_started(), attempt_recorded(), verdict_decided()]
    before, after = views_of(*BASE, *events).gate, views_of(*BASE, *events, RESUMED).gate
    assert before.verdict == verdict_decided()
    assert after.verdict is None
    assert after.side("shard-1", "candidate").measured
    assert (after.plan, after.placements, after.inventories) == (before.plan, before.placements, before.inventories)


def test_a_record_belongs_to_the_attempt_that_it_names_even_when_a_later_one_was_started() -> None:
    side = side_after(attempt_started(), attempt_started(attempt=2), attempt_recorded(attempt=1))
    assert [attempt.recorded is not None for attempt in side.attempts] == [True, False]
    assert side.status(GatePolicy(rounds=2)) == "running"


def test_a_record_that_no_attempt_promised_measures_nothing() -> None:
    side = side_after(attempt_started(), attempt_recorded(attempt=7, attention=("a.py",)))
    assert not side.measured
    assert side.attention == set()
    assert side.last is None


def test_asking_for_a_side_that_nothing_happened_to_leaves_the_view_as_it_is() -> None:
    gate = GateView()
    assert gate.side("shard-9", "baseline").status(GatePolicy(rounds=2)) == "pending"
    assert gate.sides == {}


HISTORY: list[Event] = [
    *BASE,
    attempt_started(),
    attempt_recorded(missing={"b.py": "signalled"}, attention=("a.py",)),
    attempt_started(side="baseline"),
    RunStopped(reason="asked", term=1),
    RESUMED,
    attempt_recorded(side="baseline", counted=False, cause="stopped", measured=0),
    attempt_started(attempt=2, targets=("b.py",)),
    attempt_recorded(attempt=2),
    verdict_decided(),
]


@pytest.mark.parametrize("name", VIEWS)
def test_folding_twice_from_the_start_is_equal(name: str) -> None:
    assert fold(VIEWS[name], recorded(HISTORY)) == fold(VIEWS[name], recorded(HISTORY))


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("length", range(len(HISTORY) + 1))
def test_a_view_as_of_a_sequence_is_the_view_of_the_events_up_to_it(name: str, length: int) -> None:
    last = SEQUENCE_OF_FIRST + 2 * (length - 1)
    prefix = fold(VIEWS[name], recorded(HISTORY[:length]))
    assert fold(VIEWS[name], recorded(HISTORY), as_of=last) == prefix
    assert fold(VIEWS[name], recorded(HISTORY), as_of=last + 1) == prefix


def test_the_views_of_a_run_are_the_registered_views_folded_in_one_pass() -> None:
    views = views_of(*HISTORY)
    assert views.gate == fold(SHARDS, recorded(HISTORY))
    alone = fold(RUN, recorded(HISTORY))
    alone.position, alone.sequence = len(HISTORY), SEQUENCE_OF_FIRST + 2 * (len(HISTORY) - 1)
    assert views.run == alone


@pytest.mark.parametrize("name", VIEWS)
def test_an_event_that_does_not_concern_a_view_leaves_it_as_it_is(name: str) -> None:
    foreign = [
        LedgerCreated(ledger_id="1", project="p", root_commit=None, format_version=1),
        Unknown(tag="dreamt", version=9, payload="{}"),
    ]
    assert fold(VIEWS[name], recorded(foreign)) == VIEWS[name].initial()


def test_views_have_their_own_name_and_say_what_they_answer() -> None:
    assert all(view.name == name and view.question.endswith("?") for name, view in VIEWS.items())


def test_two_runs_share_nothing() -> None:
    first, second = RunViews(), RunViews()
    for one in recorded(HISTORY):
        first.apply(one)
    assert second == RunViews()
