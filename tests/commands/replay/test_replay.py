"""Replay: what is sound agrees, what was changed does not, and what is not known never agrees."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from commands.causes import DOUBTS
from commands.decide.base import stored
from commands.decide.registry import DECISIONS
from commands.messages import CreateLedger
from commands.messages import gate as gate_messages
from commands.messages import run as run_messages
from commands.replay import Finding, replay
from ledger.codec import encode
from ledger.events import (
    AttemptRecorded,
    AttemptStarted,
    Event,
    GatePolicy,
    Planned,
    RerunsPlanned,
    ResumeStarted,
    RunFinished,
    RunStarted,
    RunStopped,
    StepFinished,
    Unknown,
    VerdictDecided,
)
from ledger.tables import Plan, ShardTargets, decode_document
from tests.support.gates import End, Suite
from tests.support.replays import KeptGate, Past, linked, past_of
from tests.support.sides import File
from tests.support.worlds import REPORTED, TARGETS, files

BROKEN = Suite(
    candidate={"a.py": File({"t": "failed", "u": "passed"}), "b.py": File({"t": "passed"})},
    baseline={"a.py": File({"t": "passed", "u": "passed"}), "b.py": File({"t": "passed"})},
)
HALVES = GatePolicy(rerun="on", retry="ladder/2")
ENDS: tuple[End, ...] = ("dies", "blind", "lost", "cut")

suites = st.builds(
    Suite,
    candidate=files(extra=True, told=REPORTED, least=1),
    baseline=files(extra=False, told=REPORTED, least=1),
    killers=st.fixed_dictionaries({"candidate": st.frozensets(st.sampled_from(TARGETS), max_size=1)}),
    ends=st.dictionaries(
        st.sampled_from(["collection/candidate", "shard-1/candidate", "shard-1/baseline"]),
        st.lists(st.sampled_from(ENDS), max_size=2).map(tuple),
    ),
)
policies = st.builds(
    GatePolicy,
    baseline=st.sampled_from(["always", "on-failure"]),
    flaky=st.sampled_from(["warn", "block"]),
    shards=st.integers(0, 3),
    parallel=st.integers(1, 3),
)


@pytest.fixture(scope="module")
def past() -> Past:
    """A gate of a candidate that broke a test, stopped and resumed before it ended."""
    gate = KeptGate(BROKEN, GatePolicy(shards=2, rerun="on"))
    gate.start()
    gate.drive(until=8)
    gate.stop()
    gate.resume()
    assert gate.drive()
    return gate.past()


def at(past: Past, position: int) -> Finding:
    """The finding of the command that wrote this event."""
    return next(one for one in past.findings() if one.first <= position <= one.last)


def others_agree(past: Past, *positions: int) -> bool:
    """Whether all commands agree but those that wrote these events."""
    doubtful = [one for one in past.findings() if one.outcome != "agree"]
    return all(any(one.first <= position <= one.last for position in positions) for one in doubtful)


def test_every_decision_of_a_sound_run_agrees(past: Past) -> None:
    report = past.report()
    assert report.outcome == "agree"
    assert report.counts == {"agree": len(report.findings), "disagree": 0, "not-derivable": 0}
    # Everything that a gate can be asked for; what people and releases ask for has tests of its own.
    of_gates = [kind for kind in DECISIONS if kind.__module__ in (gate_messages.__name__, run_messages.__name__)]
    assert {one.message for one in report.findings} == {
        str(kind.__struct_config__.tag) for kind in of_gates if kind is not CreateLedger
    }


@pytest.mark.parametrize(("policy", "tries"), [(GatePolicy(), 2), (GatePolicy(rerun="on"), 7), (HALVES, 6)])
def test_every_run_is_decided_again_by_the_ladder_that_it_was_started_under(policy: GatePolicy, tries: int) -> None:
    everything = {f"{name}.py": File({"t": "passed"}) for name in "abcde"}
    killers = frozenset({"e.py"})
    suite = Suite(everything, everything, killers={"candidate": killers}, silent=True)
    past = past_of(suite, structs.replace(policy, shards=1))
    assert past.report().outcome == "agree"
    events = [one.event for one in past.events]
    shard = [one for one in events if isinstance(one, AttemptStarted) and one.shard == "shard-1"]
    assert len([one for one in shard if one.side == "candidate"]) == tries


def test_every_event_belongs_to_exactly_one_finding(past: Past) -> None:
    covered = [position for one in past.findings() for position in range(one.first, one.last + 1)]
    assert covered == list(range(1, len(past.events) + 1))


def test_a_planted_verdict_disagrees_and_both_answers_are_shown(past: Past) -> None:
    verdict = past.first(VerdictDecided)
    planted = structs.replace(verdict.event, verdict="passed", reason="no-regression", blocking=())
    changed = past.with_event(verdict.header.position, planted)
    finding = at(changed, verdict.header.position)
    assert (finding.outcome, finding.reason) == ("disagree", "answer-differs")
    assert finding.recorded is not None
    assert finding.derived is not None
    assert [one.tag for one in finding.recorded.events] == ["verdict-decided", "step-finished", "run-finished"]
    assert (finding.recorded.events[0].event.verdict, finding.derived.events[0].event.verdict) == ("passed", "failed")
    assert others_agree(changed, verdict.header.position)
    assert changed.report().outcome == "disagree"


def test_a_verdict_that_was_changed_in_all_three_of_its_events_still_disagrees(past: Past) -> None:
    verdict = past.first(VerdictDecided)
    planted = structs.replace(verdict.event, verdict="passed", reason="no-regression", blocking=())
    changed = past.with_event(verdict.header.position, planted)
    changed = changed.with_event(past.first(StepFinished).header.position, StepFinished(step="gate", outcome="passed"))
    changed = changed.with_event(past.first(RunFinished).header.position, RunFinished(verdict="passed"))
    assert at(changed, verdict.header.position).outcome == "disagree"


@settings(max_examples=40, deadline=None)
@given(suite=suites, policy=policies, seed=st.integers(0, 2**32), steps=st.integers(0, 20), stop=st.booleans())
def test_every_run_that_the_decisions_can_produce_agrees(
    suite: Suite, policy: GatePolicy, seed: int, steps: int, stop: bool
) -> None:
    gate = KeptGate(suite, policy, seed)
    gate.start()
    if not gate.drive(until=steps):
        if stop:
            gate.stop()
        gate.resume()
    gate.drive()
    assert gate.past().report().outcome == "agree"


def changes(event: Event) -> Iterator[Event]:
    """The event with one of its plain fields changed to something that can still be stored."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        for other in (not value, 7, "other", "passed", "failed", None, "candidate", "baseline", "died", "taken-over"):
            try:
                changed = structs.replace(event, **{name: other})
                encode(changed)
            except (TypeError, ValueError, AttributeError):
                continue
            if changed != event:
                yield changed
                break


def test_whatever_field_of_whatever_event_is_changed_its_command_does_not_agree(past: Past) -> None:
    tried = set()
    for recorded in past.events:
        for changed in changes(recorded.event):
            position = recorded.header.position
            assert at(past.with_event(position, changed), position).outcome != "agree", changed
            tried.add(type(changed))
    assert tried == {type(recorded.event) for recorded in past.events}


def test_an_event_that_is_left_out_is_noticed_by_the_rest_of_its_command(past: Past) -> None:
    together = [one for one in past.findings() if len(one.tags) > 1]
    assert len(together) >= 3
    for left_out in [past.events[n - 1] for one in together for n in range(one.first, one.last + 1)]:
        rest = [(one.header, one.event) for one in past.events if one is not left_out]
        assert Past(linked(rest), past.evidence).report().outcome != "agree", left_out.event


class TestMissing:
    def test_a_decision_whose_message_is_gone_cannot_be_derived(self, past: Past) -> None:
        for recorded in past.events:
            lost = past.without_evidence(recorded.header.message)
            finding = at(lost, recorded.header.position)
            assert (finding.outcome, finding.reason) == ("not-derivable", "evidence-damaged")
            assert lost.report().outcome == "not-derivable"

    def test_a_decision_whose_evidence_is_gone_cannot_be_derived_and_the_others_agree(self, past: Past) -> None:
        verdict = past.first(VerdictDecided).header.position
        tables = {one.event.table for one in past.events_of(AttemptRecorded)} - {None}
        reruns = [one.header.position for one in past.events_of(RerunsPlanned)]
        plan = past.first(Planned)
        assert len(tables) > 1
        for digest in (*tables, plan.event.plan):
            lost = past.without_evidence(digest)
            assert at(lost, verdict).reason == "evidence-damaged"
            assert others_agree(lost, verdict, *reruns)
            assert lost.report().outcome == "not-derivable"

    def test_without_an_inventory_neither_plan_nor_verdict_can_be_derived(self, past: Past) -> None:
        plan = past.first(Planned)
        inventory = decode_document(past.evidence[plan.event.plan], Plan).candidate_inventory
        lost = past.without_evidence(inventory)
        doubtful = [one.message for one in lost.findings() if one.outcome == "not-derivable"]
        assert list(dict.fromkeys(doubtful)) == ["make-plan", "plan-reruns", "judge"]

    def test_events_that_name_no_message_cannot_be_derived(self, past: Past) -> None:
        changed = past.with_header(1, message="")
        assert (at(changed, 1).outcome, at(changed, 1).reason) == ("not-derivable", "message-missing")


class TestUnknown:
    def test_from_an_unknown_event_on_nothing_can_be_derived(self, past: Past) -> None:
        position = past.first(Planned).header.position
        unknown = Unknown(tag="planned-otherwise", version=1, payload="{}")
        changed = past.with_event(position, unknown)
        for finding in changed.findings():
            expected = ("agree", "") if finding.last < position else ("not-derivable", "event-unknown")
            assert (finding.outcome, finding.reason) == expected

    @pytest.mark.parametrize("policy", ["", "0", "2", "1.1"])
    def test_another_policy_version_cannot_be_derived(self, past: Past, policy: str) -> None:
        changed = past.with_header(1, policy=policy)
        assert (at(changed, 1).outcome, at(changed, 1).reason) == ("not-derivable", "policy-unknown")

    def test_a_verdict_by_another_table_cannot_be_derived(self, past: Past) -> None:
        verdict = past.first(VerdictDecided)
        changed = past.with_event(verdict.header.position, structs.replace(verdict.event, table="classes/0"))
        assert at(changed, verdict.header.position).reason == "table-unknown"
        assert changed.report().outcome == "not-derivable"

    @pytest.mark.parametrize(
        "data", [b"", b"{", b"null", b'{"message":"from-the-future"}', b'{"message":"judge"}', b"\xff", b"[" * 100_000]
    )
    def test_a_message_that_cannot_be_read_cannot_be_derived(self, past: Past, data: bytes) -> None:
        digest = past.events[0].header.message
        changed = Past(past.events, {**past.evidence, digest: data})
        assert (at(changed, 1).outcome, at(changed, 1).reason) == ("not-derivable", "message-unknown")

    def test_a_history_that_no_run_can_have_gives_no_answer_and_no_crash(self, past: Past) -> None:
        headless = [(one.header, one.event) for one in past.events if not isinstance(one.event, RunStarted)]
        outcomes = {one.outcome for one in Past(linked(headless), past.evidence).findings()}
        assert "not-derivable" in outcomes


class TestOtherPlanner:
    def planned(self, past: Past, plan: Plan) -> Finding:
        """The finding of a plan that another planner made."""
        recorded = past.first(Planned)
        digest, data = stored(plan)
        shards = tuple(
            structs.replace(
                recorded.event.shards[0],
                shard=shard.shard,
                candidate_targets=len(shard.candidate),
                absent=tuple(sorted(set(shard.candidate) - set(shard.baseline))),
            )
            for shard in plan.shards
        )
        event = structs.replace(recorded.event, policy="other/1", plan=digest, shards=shards)
        changed = Past(past.events, {**past.evidence, digest: data}).with_event(recorded.header.position, event)
        return at(changed, recorded.header.position)

    def plan(self, past: Past, *shards: tuple[str, ...]) -> Plan:
        """A plan with these targets on both sides of its shards."""
        held = decode_document(past.evidence[past.first(Planned).event.plan], Plan)
        made = tuple(ShardTargets(shard=f"s{n}", candidate=one, baseline=one) for n, one in enumerate(shards))
        return structs.replace(held, policy="other/1", shards=made)

    def test_a_partition_of_another_planner_is_no_agreement(self, past: Past) -> None:
        finding = self.planned(past, self.plan(past, ("b.py", "a.py")))
        assert (finding.outcome, finding.reason) == ("not-derivable", "planner-unknown")

    @pytest.mark.parametrize(
        "shards",
        [
            (("a.py",),),
            (("a.py", "b.py"), ("b.py",)),
            (("a.py", "b.py", "c.py"),),
            (("a.py", "b.py"), ()),
            (("a.py", "a.py", "b.py"),),
        ],
    )
    def test_what_is_no_partition_disagrees_whoever_planned_it(
        self, past: Past, shards: tuple[tuple[str, ...], ...]
    ) -> None:
        finding = self.planned(past, self.plan(past, *shards))
        assert (finding.outcome, finding.reason) == ("disagree", "plan-not-proved")

    def test_a_baseline_that_loses_a_target_disagrees(self, past: Past) -> None:
        plan = self.plan(past, ("a.py", "b.py"))
        poorer = structs.replace(plan, shards=(structs.replace(plan.shards[0], baseline=("a.py",)),))
        assert self.planned(past, poorer).reason == "plan-not-proved"

    def test_a_plan_that_is_gone_is_no_agreement(self, past: Past) -> None:
        recorded = past.first(Planned)
        changed = past.with_event(recorded.header.position, structs.replace(recorded.event, policy="other/1"))
        finding = at(changed.without_evidence(recorded.event.plan), recorded.header.position)
        assert (finding.outcome, finding.reason) == ("not-derivable", "evidence-damaged")


class TestForeign:
    def test_a_message_for_another_stream_disagrees(self, past: Past) -> None:
        taken = past.events[1].header
        told = msgspec.json.decode(past.evidence[taken.message]) | {"stream": "another-run"}
        changed = Past(past.events, {**past.evidence, taken.message: msgspec.json.encode(told)})
        assert (at(changed, 2).outcome, at(changed, 2).reason) == ("disagree", "message-foreign")

    def test_a_record_under_another_command_than_its_own_disagrees(self, past: Past) -> None:
        lone = next(one for one in past.events_of(AttemptRecorded) if one.event.table)
        changed = past.with_header(lone.header.position, command="record/somewhere/else")
        assert at(changed, lone.header.position).reason == "message-foreign"

    def test_events_of_one_command_that_name_two_messages_disagree(self, past: Past) -> None:
        last = past.first(RunFinished).header.position
        changed = past.with_header(last, message=past.events[0].header.message)
        assert at(changed, last).reason == "message-foreign"


def test_what_the_rules_refuse_disagrees_and_the_refusal_is_shown() -> None:
    past = past_of(BROKEN, GatePolicy(shards=1, parallel=1))
    record = past.events_of(AttemptRecorded)[-1]
    without = [(one.header, one.event) for one in past.events if one is not record]
    changed = Past(linked(without), past.evidence)
    finding = changed.findings()[-1]
    assert (finding.message, finding.outcome) == ("judge", "disagree")
    assert finding.derived is not None
    assert finding.derived.events == ()
    assert finding.derived.refused.startswith("not-settled: ")


def test_what_was_decided_twice_disagrees(past: Past) -> None:
    resumed = past.first(ResumeStarted)
    events = [(one.header, one.event) for one in past.events]
    position = resumed.header.position
    twice = structs.replace(resumed.header, command="again")
    events.insert(position, (twice, structs.replace(resumed.event, number=resumed.event.number)))
    assert at(Past(linked(events), past.evidence), position + 1).outcome == "disagree"


class TestUntil:
    def test_a_command_that_is_cut_by_the_moment_is_left_out(self, past: Past) -> None:
        verdict = past.first(VerdictDecided).header.position
        assert past.findings(until=verdict)[-1].last == verdict - 1
        assert past.findings(until=verdict + 2)[-1].last == verdict + 2

    def test_at_every_moment_of_a_sound_run_all_agrees(self, past: Past) -> None:
        for position in range(1, len(past.events) + 1):
            assert {one.outcome for one in past.findings(until=position)} == {"agree"}


def test_every_reason_that_a_replay_gives_can_be_explained() -> None:
    text = Path(inspect.getfile(replay)).read_text("utf-8")
    given = set(re.findall(r'NotAnswered\("[\w-]+", "([\w-]+)"', text)) | {"answer-differs"}
    assert given == set(DOUBTS)


def test_the_worst_finding_decides(past: Past) -> None:
    lost = past.without_evidence(past.first(RunStopped).header.message)
    assert lost.report().outcome == "not-derivable"
    verdict = past.first(VerdictDecided)
    planted = lost.with_event(verdict.header.position, structs.replace(verdict.event, reason="because"))
    assert planted.report().outcome == "disagree"
    assert planted.report().counts["not-derivable"] == 1


def test_an_attempt_that_was_started_out_of_turn_disagrees(past: Past) -> None:
    started = past.events_of(AttemptStarted)[-1]
    changed = past.with_event(started.header.position, structs.replace(started.event, targets=("a.py", "b.py")))
    assert at(changed, started.header.position).outcome == "disagree"
