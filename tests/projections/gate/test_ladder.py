"""The retry ladder: its table against sentences, each step of a side, and whole gates whose attempts die."""

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.causes import CAUSES
from ledger.events import COLLECTION, AttemptStarted, Event, GatePolicy, ResumeStarted
from ledger.tables import Plan, ShardTargets
from ledger.values import Side
from projections.gate.ladder import RUNGS, SAME_CAUSE_LEAST, TRIES_MOST, rung
from projections.gate.shards import GateView, ShardSide
from projections.run.owed import owed
from projections.run.summary import RunSummary, summarize_run
from tests.support.gates import End, PureGate, Suite, finished
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, planned, views_of
from tests.support.sides import File

NAMED = [line.split()[0] for line in RUNGS.strip().splitlines()[1:]]
# What it takes to see the same again: a target that ends or stops its process, a mishap around it, or nothing at all.
A_TARGET_DID_IT = {
    "signalled", "worker-crashed", "session-ended-early", "interrupted", "exit-code-unexpected", "time-limit",
    "idle-limit", "memory-limit", "cases-missing", "record-truncated", "target-missing", "runner-internal-error",
    "report-missing", "report-empty", "report-malformed", "case-unnamed",
}  # fmt: skip
A_SECOND_TRY_MAY_HELP = {
    "runner-internal-error", "collection-aborted", "nothing-collected", "record-missing", "foreign-tests",
    "not-started", "prepare-failed", "probe-failed", "list-failed", "list-invalid",
}  # fmt: skip
IT_WILL_BE_THE_SAME = {
    "runner-usage-error", "wrong-tree", "pytest-missing", "python-missing", "report-not-fresh", "link-in-the-way",
    "version-unknown",
}  # fmt: skip


@pytest.mark.parametrize("cause", sorted({*CAUSES, *NAMED, "dreamt"}))
def test_every_cause_has_the_answer_that_its_nature_asks_for(cause: str) -> None:
    found = rung(cause)
    assert found.isolated == (cause in A_TARGET_DID_IT)
    assert found.again == (0 if cause in IT_WILL_BE_THE_SAME else 1 if cause in A_SECOND_TRY_MAY_HELP else None)


COSTS_A_WHOLE_LIMIT = {"time-limit", "idle-limit", "memory-limit"}


@pytest.mark.parametrize("cause", sorted({*CAUSES, *NAMED, "dreamt"}))
def test_what_is_told_apart_is_halved_for_two_and_for_one_where_each_try_costs_a_limit(cause: str) -> None:
    tells_apart = cause in A_TARGET_DID_IT
    assert rung(cause).halves == (2 if cause in COSTS_A_WHOLE_LIMIT else 4 if tells_apart else 0)


def test_every_cause_of_the_table_is_explained_and_named_once() -> None:
    assert set(NAMED) <= set(CAUSES)
    assert len(set(NAMED)) == len(NAMED)


CAUSES_BY_NATURE = ("signalled", "runner-internal-error", "prepare-failed", "wrong-tree", "lost")
TARGETS = ("a.py", "b.py")


def side(
    cause: str, tries: int, missing: dict[str, str], *, given_up: bool = False, shard: str = "shard-1"
) -> ShardSide:
    """A side after so many attempts at all of its targets that this cause ended."""
    events = [
        event
        for number in range(1, tries + 1)
        for event in (
            attempt_started(shard, attempt=number),
            attempt_recorded(shard, attempt=number, cause=cause, missing=missing, measured=1),
        )
    ]
    found = views_of(*begun(), *collections(), planned(), *events).gate.side(shard, "candidate")
    found.given_up = given_up
    return found


def oracle(cause: str, tries: int, rounds: int, missing: dict[str, str], *, given_up: bool) -> str:
    """What a person would do next."""
    if tries == 0:
        return "again"
    if given_up:
        return "stop"
    helps_once = cause in A_SECOND_TRY_MAY_HELP
    hopeless = cause in IT_WILL_BE_THE_SAME
    if not hopeless and tries < rounds and not (helps_once and tries >= 2):
        return "again"
    if rounds == 1 or cause not in A_TARGET_DID_IT or tries >= 8 or not missing:
        return "stop"
    return "others" if "not-run" in missing.values() else "alone"


MISSING = ({"a.py": "signalled", "b.py": "not-run"}, {"a.py": "signalled"}, {"b.py": "not-run"})


@pytest.mark.parametrize("given_up", [False, True])
@pytest.mark.parametrize(("cause", "rounds"), [*product(CAUSES_BY_NATURE, (1, 2, 3))])
def test_each_step_is_what_a_person_would_do_next(cause: str, rounds: int, given_up: bool) -> None:
    policy = GatePolicy(rounds=rounds, rerun="off")
    for tries, missing in product(range(10), MISSING):
        state = side(cause, tries, missing, given_up=given_up)
        assert state.step(policy) == oracle(cause, tries, rounds, missing, given_up=given_up), (tries, missing)
        assert state.status(policy) == (
            "pending" if tries == 0 else "unmeasured" if state.step(policy) == "stop" else "owed"
        )


@pytest.mark.parametrize(("cause", "rounds", "tries"), [*product(CAUSES_BY_NATURE, (1, 2, 3), range(5))])
def test_runs_of_older_programs_know_nothing_but_rounds(cause: str, rounds: int, tries: int) -> None:
    state = side(cause, tries, MISSING[0], given_up=True)
    assert state.step(GatePolicy(rounds=rounds)) == ("again" if tries < rounds else "stop")


@pytest.mark.parametrize("shard", ["rerun-alone-1", "rerun-bundle-1"])
def test_a_re_run_is_never_taken_apart(shard: str) -> None:
    assert side("signalled", 2, MISSING[0], shard=shard).step(GatePolicy(rounds=2, rerun="on")) == "stop"


def test_a_target_is_tried_alone_once() -> None:
    events = [
        attempt_started(), attempt_recorded(cause="signalled", missing={"a.py": "signalled"}),
        attempt_started(attempt=2, targets=("a.py",)),
        attempt_recorded(attempt=2, cause="signalled", missing={"a.py": "signalled"}, measured=0),
    ]  # fmt: skip
    state = views_of(*begun(), *collections(), planned(), *events).gate.side("shard-1", "candidate")
    assert state.step(GatePolicy(rounds=2, rerun="on")) == "stop"


def test_what_an_attempt_at_a_part_was_not_asked_for_stays_missing() -> None:
    events = [
        attempt_started(), attempt_recorded(cause="signalled", missing={"a.py": "signalled", "b.py": "not-run"}),
        attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2),
    ]  # fmt: skip
    gate = views_of(*begun(), *collections(), planned(), *events).gate
    assert gate.side("shard-1", "candidate").missing == {"a.py": "signalled"}


FILES = {f"{name}.py": File({"t": "passed"}) for name in "abcdef"}


@settings(max_examples=60, deadline=None)
@given(
    killers=st.frozensets(st.sampled_from(sorted(FILES)), max_size=4),
    seed=st.integers(0, 2**32),
    rounds=st.integers(2, 3),
)
def test_nobody_goes_unmeasured_because_of_a_few_others_that_kill_their_attempts(
    killers: frozenset[str], seed: int, rounds: int
) -> None:
    suite = Suite(FILES, FILES, killers={"candidate": killers})
    gate = finished(suite, GatePolicy(rounds=rounds, rerun="on", shards=1), seed)
    assert gate.measured["candidate"] == FILES.keys() - killers
    started = [
        e for e in gate.events if isinstance(e, AttemptStarted) and e.side == "candidate" and e.shard != COLLECTION
    ]
    assert len(started) <= TRIES_MOST


@settings(max_examples=60, deadline=None)
@given(
    killers=st.frozensets(st.sampled_from(sorted(FILES)), min_size=1, max_size=2),
    silent=st.booleans(),
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(1, 12), max_size=3),
)
def test_nor_do_they_where_nobody_knows_who_killed_an_attempt_whatever_cuts_the_driver_off(
    killers: frozenset[str], silent: bool, seed: int, cuts: list[int]
) -> None:
    suite = Suite(FILES, FILES, killers={"candidate": killers}, silent=silent)
    gate = PureGate(suite, GatePolicy(rounds=2, rerun="on", retry="ladder/2", shards=1), seed)
    gate.start()
    for steps in cuts:
        gate.drive(until=gate.steps + steps)
        gate.resume()
    assert gate.drive()
    assert gate.measured["candidate"] == FILES.keys() - killers
    assert {one.test.partition("::")[0] for one in gate.verdict.unmeasured} == killers
    alone = {e.targets for e in gate.events if isinstance(e, AttemptStarted) and e.targets and len(e.targets) == 1}
    assert alone >= {(one,) for one in killers}


def test_the_last_tries_take_those_that_kill_their_attempts_one_by_one() -> None:
    suite = Suite(FILES, FILES, killers={"candidate": frozenset({"a.py", "b.py", "c.py"})})
    gate = finished(suite, GatePolicy(rounds=2, rerun="on", shards=1))
    asked = [e.targets for e in gate.events if isinstance(e, AttemptStarted) and e.side == "candidate"]
    assert asked[-3:] == [("a.py",), ("b.py",), ("c.py",)]
    assert gate.verdict.verdict == "unmeasured"
    assert [one.test for one in gate.verdict.unmeasured] == ["a.py", "b.py", "c.py"]


def first_tries_lost(count: int, ends: tuple[End, ...] = ("lost", "lost")) -> Suite:
    """So many shards, of which each first attempt is lost."""
    return Suite(FILES, FILES, ends={f"shard-{number}/candidate": ends for number in range(1, count + 1)})


def tries(gate: PureGate) -> dict[str, int]:
    """How often each shard of the plan was tried on the candidate."""
    return {shard: len(s.attempts) for (shard, where), s in gate.views.gate.sides.items()
            if where == "candidate" and shard != COLLECTION}  # fmt: skip


def test_a_cause_that_leaves_most_shards_without_a_result_is_not_tried_again_before_a_resume() -> None:
    gate = finished(first_tries_lost(6), GatePolicy(rounds=3, rerun="on", shards=6, parallel=6))
    assert gate.views.gate.tripped == ("candidate", "lost")
    assert sum(tries(gate).values()) < 2 * 6
    assert gate.verdict.verdict == "unmeasured"
    assert told_of(gate).cut_short == ("same-cause",)
    for _ in range(3):
        gate.resume()
        assert gate.drive()
    assert gate.verdict.verdict == "passed"
    assert owed(gate.views.gate, gate.policy) == []
    assert told_of(gate).cut_short == ()


def told_of(gate: PureGate) -> RunSummary:
    """The summary of the finished run."""
    return summarize_run(gate.views, datetime.now(UTC), alive=None)


@pytest.mark.parametrize(("lost", "shards"), [(SAME_CAUSE_LEAST - 1, 2), (3, 6)])
def test_a_cause_of_few_shards_or_of_not_more_than_half_is_tried_again(lost: int, shards: int) -> None:
    gate = finished(first_tries_lost(lost, ("lost",)), GatePolicy(rounds=2, rerun="on", shards=shards, parallel=6))
    assert gate.views.gate.tripped is None
    assert gate.verdict.verdict == "passed"


def test_a_run_of_an_older_program_is_tried_again_whatever_ended_most_shards() -> None:
    gate = finished(first_tries_lost(6, ("lost",)), GatePolicy(rounds=2, shards=6, parallel=6))
    assert gate.verdict.verdict == "passed"


SIX = Plan(
    policy="count/1",
    candidate_inventory="1" * 64,
    baseline_inventory="2" * 64,
    shards=tuple(ShardTargets(shard=f"shard-{n}", candidate=("a.py",), baseline=("a.py",)) for n in range(1, 7)),
)


def ended(shard: int, side: Side = "candidate", attempt: int = 1, **changes: Any) -> list[Event]:
    """An attempt of one of six shards, which leaves nothing unless it is said otherwise."""
    result: dict[str, Any] = {"cause": "lost", "measured": 0} | changes
    name = f"shard-{shard}"
    return [attempt_started(name, side, attempt), attempt_recorded(name, side, attempt, **result)]


def six(*histories: list[Event]) -> GateView:
    """A gate of six shards after these attempts."""
    events = [event for history in histories for event in history]
    return views_of(*begun(), *collections(), planned(SIX), *events).gate


@pytest.mark.parametrize("where", ["candidate", "baseline"])
def test_a_cause_is_given_up_when_it_has_left_more_than_half_of_a_side_without_any_result(where: Side) -> None:
    three = [ended(number, where) for number in (1, 2, 3)]
    assert six(*three).tripped is None
    gate = six(*three, ended(4, where))
    assert gate.tripped == (where, "lost")
    assert [gate.side(f"shard-{number}", where).given_up for number in range(1, 7)] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    "fourth",
    [
        ended(4, "baseline"),
        ended(4, cause="signalled"),
        ended(4, measured=1, missing={"b.py": "lost"}),
        ended(4, counted=False),
        ended(4) + ended(4, attempt=2, cause=None, measured=1),
    ],
    ids=["another side", "another cause", "some result", "cut off from outside", "measured since"],
)
def test_what_is_not_alike_is_not_counted_together(fourth: list[Event]) -> None:
    assert six(fourth, *(ended(number) for number in (1, 2, 3))).tripped is None


def test_a_resume_forgets_what_was_given_up() -> None:
    policy = GatePolicy(rounds=2, rerun="on")
    lost = [ended(number) for number in (1, 2, 3, 4)]
    assert six(*lost).side("shard-1", "candidate").step(policy) == "stop"
    resumed: list[Event] = [ResumeStarted(step="gate", number=1, owed=())]
    again = six(*lost, resumed, ended(1, attempt=2))
    assert again.tripped is None
    assert again.side("shard-1", "candidate").step(policy) == "again"


def test_an_end_from_outside_does_not_hide_what_ended_the_attempt_before() -> None:
    hopeless, cut = ended(1, cause="wrong-tree"), ended(1, attempt=2, cause="driver-died", counted=False)
    assert six(hopeless, cut).side("shard-1", "candidate").step(GatePolicy(rounds=2, rerun="on")) == "stop"
