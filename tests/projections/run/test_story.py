"""The story of a run: everything that happened is told once, in order, with who, when and on what evidence."""

import pytest
from msgspec import structs

from ledger.events import (
    AttemptStarted,
    DriverReplaced,
    DriverStarted,
    Event,
    GatePolicy,
    ResumeStarted,
    RunStopped,
    VerdictDecided,
)
from ledger.record import Actor
from projections.run.story import RunStory, tell_story
from tests.support.gates import PureGate, Suite
from tests.support.makers import COMMITS, RUN, recorded
from tests.support.sides import File

SUITE = Suite(
    candidate={"a.py": File({"t": "failed"}), "b.py": File({"t": "passed"}), "c.py": File(error="SyntaxError")},
    baseline={"a.py": File({"t": "passed"}), "b.py": File({"t": "passed"})},
    killers={"candidate": frozenset({"b.py"})},
)


@pytest.fixture(scope="module")
def gate() -> PureGate:
    """A gate that was stopped, resumed, cut off, resumed, decided, and resumed and decided once more."""
    made = PureGate(SUITE, GatePolicy(shards=2))
    made.start()
    made.drive(until=7)
    made.stop()
    made.resume()
    made.drive(until=made.steps + 2)
    made.resume()
    assert made.drive()
    made.resume()
    assert made.drive()
    return made


@pytest.fixture(scope="module")
def story(gate: PureGate) -> RunStory:
    """Its story."""
    return tell_story(recorded(gate.events))


def positions(gate: PureGate, *kinds: type[Event]) -> list[int]:
    """Where events of these types stand."""
    return [number for number, event in enumerate(gate.events, start=1) if isinstance(event, kinds)]


def test_what_was_compared_is_told_with_the_reasons(story: RunStory) -> None:
    assert (story.run, story.kind, story.state) == (RUN, "gate", "finished")
    assert (story.candidate.commit, story.candidate.ref) == (COMMITS["candidate"], "HEAD")
    assert (story.baseline.commit, story.baseline.reason) == (COMMITS["baseline"], "as asked for")
    assert (story.policy, story.settings) == (GatePolicy(shards=2), "f" * 64)
    assert story.asked.actor == Actor("someone", "here", "ledger 0")


def test_every_driver_stop_resumption_and_verdict_is_told_at_its_place(gate: PureGate, story: RunStory) -> None:
    assert [one.told.position for one in story.drivers] == positions(gate, DriverStarted, DriverReplaced)
    assert [one.told.position for one in story.turns] == positions(gate, ResumeStarted, RunStopped)
    assert [one.told.position for one in story.verdicts] == positions(gate, VerdictDecided)
    assert [one.kind for one in story.turns] == ["stopped", "resumed", "resumed", "resumed"]
    assert [one.replaced for one in story.drivers] == ["", "", "died", ""]
    assert [one.term for one in story.drivers] == [1, 2, 3, 4]


def test_a_verdict_that_a_later_resumption_set_aside_does_not_hold(gate: PureGate, story: RunStory) -> None:
    assert [one.superseded for one in story.verdicts] == [True, False]
    last = story.verdicts[-1]
    assert (last.verdict, last.table, last.policy) == ("failed", "classes/1", "1")
    assert last.classes == gate.verdict.classes
    assert (last.blocking, last.unmeasured) == (gate.verdict.blocking, gate.verdict.unmeasured)


def test_every_attempt_is_told_once_in_the_order_of_its_start(gate: PureGate, story: RunStory) -> None:
    started = [event for event in gate.events if isinstance(event, AttemptStarted)]
    assert [(one.shard, one.side, one.attempt) for one in story.attempts] == [
        (event.shard, event.side, event.attempt) for event in started
    ]
    killed = next(one for one in story.attempts if one.cause == "signalled")
    assert (killed.outcome, killed.member, killed.duration_seconds) == ("incomplete", "local", 1.5)
    assert {one.outcome for one in story.attempts} == {"complete", "incomplete"}
    assert all(set(one.evidence) <= {"table", "record", "log", "evidence_key"} for one in story.attempts)
    assert any(one.evidence for one in story.attempts)


def test_inventories_and_plan_are_told_with_their_evidence(gate: PureGate, story: RunStory) -> None:
    candidate, baseline = story.inventories
    assert (candidate.side, candidate.commit, candidate.targets) == ("candidate", COMMITS["candidate"], 3)
    assert (baseline.side, baseline.commit, baseline.targets) == ("baseline", COMMITS["baseline"], 2)
    assert candidate.inventory == gate.views.gate.inventories["candidate"].inventory
    assert gate.views.gate.plan is not None
    assert story.plan is not None
    assert (story.plan.planner, story.plan.plan) == (gate.views.gate.plan.policy, gate.views.gate.plan.plan)
    assert [(one.shard, one.candidate_targets, one.baseline_targets, one.member) for one in story.plan.shards] == [
        ("shard-1", 2, 2, "local"),
        ("shard-2", 1, 0, "local"),
    ]


def test_the_head_is_the_last_event_of_the_run(gate: PureGate, story: RunStory) -> None:
    last = recorded(gate.events)[-1]
    assert (story.position, story.sequence, story.head) == (last.header.position, last.sequence, last.digest)


def test_the_story_of_every_beginning_of_a_run_can_be_told(gate: PureGate) -> None:
    events = recorded(gate.events)
    for length in range(1, len(events) + 1):
        told = tell_story(events[:length])
        assert told.position == length
        assert len(told.attempts) == sum(isinstance(one.event, AttemptStarted) for one in events[:length])
        assert not [one for one in told.verdicts if one.told.position > length]


def test_an_attempt_without_a_record_is_told_as_running(gate: PureGate) -> None:
    events = recorded(gate.events)
    (first,) = positions(gate, AttemptStarted)[:1]
    running = tell_story(events[:first]).attempts[0]
    assert (running.outcome, running.duration_seconds, running.evidence) == ("running", None, {})


def test_each_event_is_told_as_that_of_whoever_wrote_it(gate: PureGate) -> None:
    events = recorded(gate.events)
    (stopped,) = positions(gate, RunStopped)
    other = Actor("another", "elsewhere", "ledger 1")
    events[stopped - 1] = structs.replace(
        events[stopped - 1], header=structs.replace(events[stopped - 1].header, actor=other)
    )
    told = tell_story(events)
    assert [turn.told.actor == other for turn in told.turns] == [True, False, False, False]
    assert other not in [driver.told.actor for driver in told.drivers]
