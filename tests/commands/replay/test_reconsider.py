"""Today's rules on yesterday's evidence: the same rules say the same, and no other rule makes a pass out of nothing."""

from dataclasses import replace

import pytest
from msgspec import structs

from commands.reconsider import Reconsidered, reconsider
from ledger.events import AttemptRecorded, GatePolicy, Planned, Unknown, VerdictDecided
from tests.support.gates import Suite
from tests.support.replays import KeptGate, Past, past_of
from tests.support.sides import File

ONCE_FAILED = Suite(
    candidate={"a.py": File({"t": "rerun"}), "b.py": File({"t": "passed"})},
    baseline={"a.py": File({"t": "passed"}), "b.py": File({"t": "passed"})},
)
KILLED = replace(ONCE_FAILED, killers={"candidate": frozenset({"b.py"})})


def reconsidered(past: Past, policy: GatePolicy, until: int | None = None) -> list[Reconsidered]:
    """The verdicts of this past under a policy."""
    return list(reconsider(past.events, past.load, policy, until))


@pytest.mark.parametrize("suite", [ONCE_FAILED, KILLED])
@pytest.mark.parametrize("policy", [GatePolicy(), GatePolicy(baseline="on-failure"), GatePolicy(flaky="block")])
def test_the_same_rules_say_the_same(suite: Suite, policy: GatePolicy) -> None:
    (one,) = reconsidered(past_of(suite, policy), policy)
    assert (one.verdict, one.reason, one.table) == (one.recorded_verdict, one.recorded_reason, one.recorded_table)
    assert (one.classes, one.why_not, one.derivable) == ((), "", True)
    assert not any(fact.differs for fact in one.policy)


def test_a_rule_that_blocks_more_shows_the_verdict_and_the_tests_that_it_changes() -> None:
    past = past_of(ONCE_FAILED, GatePolicy(flaky="warn"))
    (one,) = reconsidered(past, GatePolicy(flaky="block"))
    assert (one.recorded_verdict, one.verdict, one.reason) == ("passed", "failed", "regression")
    assert [(fact.name, fact.left, fact.right) for fact in one.policy if fact.differs] == [("flaky", "warn", "block")]
    (change,) = one.classes
    assert (change.test, change.left, change.right) == ("a.py::t", "flaky", "flaky")
    assert (change.left_effect, change.right_effect) == ("none", "failed")
    assert past.first(VerdictDecided).header.position == one.position


def test_a_rule_that_wants_more_than_was_measured_decides_nothing() -> None:
    past = past_of(ONCE_FAILED, GatePolicy(baseline="on-failure"))
    (one,) = reconsidered(past, GatePolicy(baseline="always"))
    assert one.recorded_verdict == "passed"
    assert one.verdict is None
    assert one.why_not.startswith("not-settled: ")
    assert one.derivable


def test_more_rounds_would_have_been_tried_before_a_verdict() -> None:
    (one,) = reconsidered(past_of(KILLED, GatePolicy(rounds=1)), GatePolicy(rounds=2))
    assert (one.recorded_verdict, one.verdict) == ("unmeasured", None)
    assert one.why_not.startswith("not-settled: ")


def test_every_verdict_of_a_resumed_run_is_decided_again() -> None:
    gate = KeptGate(KILLED, GatePolicy())
    gate.start()
    assert gate.drive()
    gate.resume()
    assert gate.drive()
    past = gate.past()
    both = reconsidered(past, GatePolicy())
    assert [one.position for one in both] == [one.header.position for one in past.events_of(VerdictDecided)]
    assert [one.verdict for one in both] == ["unmeasured", "unmeasured"]
    assert reconsidered(past, GatePolicy(), until=both[0].position) == both[:1]
    assert reconsidered(past, GatePolicy(), until=both[0].position - 1) == []


@pytest.fixture(scope="module")
def past() -> Past:
    """A gate that passed with a flaky test."""
    return past_of(ONCE_FAILED)


class TestNotDerivable:
    def test_without_a_table_that_the_verdict_reads(self, past: Past) -> None:
        table = next(one.event.table for one in past.events_of(AttemptRecorded) if one.event.table)
        (one,) = reconsidered(past.without_evidence(table), GatePolicy())
        assert (one.verdict, one.derivable, one.why_not[:17]) == (None, False, "evidence-damaged:")

    def test_without_the_table_of_its_classes(self, past: Past) -> None:
        classes = past.first(VerdictDecided).event.classes
        (one,) = reconsidered(past.without_evidence(classes), GatePolicy())
        assert (one.verdict, one.derivable) == (None, False)

    def test_after_an_event_of_a_newer_version(self, past: Past) -> None:
        position = past.first(Planned).header.position
        changed = past.with_event(position, Unknown(tag="planned", version=2, payload="{}"))
        (one,) = reconsidered(changed, GatePolicy())
        assert (one.verdict, one.derivable, one.why_not[:14]) == (None, False, "event-unknown:")

    def test_a_second_verdict_without_a_resumption_between(self, past: Past) -> None:
        verdict = past.first(VerdictDecided)
        header = structs.replace(verdict.header, command="again")
        events = [*past.events, structs.replace(verdict, header=header)]
        assert [one.derivable for one in reconsidered(Past(events, past.evidence), GatePolicy())] == [True, False]
