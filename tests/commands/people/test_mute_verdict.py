"""The verdict of a gate with mutings: from the message to what is recorded."""

from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import structs

from commands.decide.registry import decide
from commands.messages import Judge
from commands.reconsider import reconsider
from ledger.events import GatePolicy, Muted, MuteUsed, VerdictDecided
from tests.support.gates import PureGate, Suite
from tests.support.makers import RUN, muted
from tests.support.replays import KeptGate
from tests.support.sides import File

FAILS = Suite(
    candidate={"a.py": File({"test_a": "failed", "test_b": "passed"})},
    baseline={"a.py": File({"test_a": "passed", "test_b": "passed"})},
)
LOST = Suite(FAILS.candidate, FAILS.baseline, killers={"candidate": frozenset({"a.py"})})
LINUX = muted(environment={"platform": "linux"})
POLICY = GatePolicy(rounds=1, shards=1)


def with_mutes(gate_type: type[PureGate]) -> Any:
    """A gate in memory whose verdicts are given what was gathered of mutings."""

    class Muting(gate_type):  # type: ignore[valid-type, misc]
        def __init__(self, suite: Suite, gathered: Judge) -> None:
            super().__init__(suite, POLICY, 0)
            self._gathered = gathered

        def handle(self, message: object) -> None:
            super().handle(self._gathered if isinstance(message, Judge) else message)

    return Muting


def gathered(*mutes: Muted, date: str = "2030-01-15", **environment: str) -> Judge:
    return Judge(stream=RUN, mutes=mutes, date=date, environment=environment, basis=7)


def verdict(suite: Suite, judge: Judge) -> VerdictDecided:
    """What is recorded at the end of a gate."""
    gate = with_mutes(PureGate)(suite, judge)
    gate.start()
    assert gate.drive()
    return next(event for event in gate.events if isinstance(event, VerdictDecided))


@pytest.mark.parametrize(
    ("judge", "found"),
    [
        (gathered(), "failed"),
        (gathered(muted()), "passed"),
        (gathered(muted("a.py::test_b")), "failed"),
        (gathered(muted(), date="2030-01-31"), "passed"),
        (gathered(muted(), date="2030-02-01"), "failed"),
        (gathered(LINUX), "failed"),
        (gathered(LINUX, platform="win32"), "failed"),
        (gathered(LINUX, platform="linux"), "passed"),
        (gathered(LINUX, muted(mute="mute-2"), platform="win32"), "passed"),
    ],
)
def test_a_verdict_knows_the_mutings_that_were_gathered_for_it(judge: Judge, found: str) -> None:
    assert verdict(FAILS, judge).verdict == found
    assert verdict(LOST, judge) == verdict(LOST, gathered()), "what could not be measured stays so"


def test_what_was_used_is_recorded() -> None:
    found = verdict(FAILS, gathered(muted(lines=("KeyError",))))
    assert (found.reason, found.counts) == ("no-regression", {"muted": 1, "passed": 1})
    assert found.muted == (MuteUsed("mute-1", "a.py::test_a", 1, 1, "failed: it said so"),)


@settings(max_examples=30, deadline=None)
@over(
    tests=st.lists(st.sampled_from(["a.py::test_a", "a.py::test_b"]), max_size=2, unique=True),
    days=st.sampled_from(["2030-01-15", "2030-02-01"]),
)
def test_a_replay_and_todays_rules_look_at_the_mutings_of_then(tests: list[str], days: str) -> None:
    gate = with_mutes(KeptGate)(FAILS, gathered(*(muted(test) for test in tests), date=days))
    gate.start()
    assert gate.drive()
    past = gate.past()
    assert past.report().outcome == "agree"
    (one,) = reconsider(past.events, past.load, POLICY)
    assert (one.verdict, one.classes, one.why_not) == (one.recorded_verdict, (), "")


def test_a_verdict_is_not_to_be_had_by_muting_after_the_fact() -> None:
    gate = with_mutes(KeptGate)(FAILS, gathered())
    gate.start()
    assert gate.drive()
    past = gate.past()
    place = past.first(VerdictDecided)
    green = structs.replace(place.event, verdict="passed", muted=(MuteUsed("mute-1", "a.py::test_a", 1, 0, ""),))
    assert past.with_event(place.header.position, green).report().outcome == "disagree"
    assert decide(gathered(muted()), gate.views, None).events == (), "one that is decided stays decided"  # type: ignore[arg-type]
