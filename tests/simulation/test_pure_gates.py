"""Whole gates in memory: they end, keep their rounds, run nothing twice, and come to the right verdict in pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from commands.decide.registry import decide
from commands.messages import Judge, Refusal, ResumeRun
from ledger.events import COLLECTION, DriverReplaced, Event, GatePolicy, ResumeStarted, VerdictDecided
from projections.fold import fold
from projections.gate.shards import SHARDS
from projections.registry import RunViews
from projections.run.owed import owed
from projections.run.state import RUN as RUN_VIEW
from tests.support.gates import End, PureGate, Suite, doubted, finished
from tests.support.makers import RUN, recorded, views_of
from tests.support.sides import File, Files
from tests.support.worlds import MOODS, NAMES, REPORTED, TARGETS, files, right_verdict, with_failures_seen

ENOUGH_ROUNDS = 7
SIDES_OF_SHARDS = [
    f"{shard}/{side}"
    for shard in (COLLECTION, "shard-1", "shard-2", "rerun-alone-1", "rerun-bundle-1")
    for side in ("candidate", "baseline")
]
TESTS = [f"{target}::{name}" for target in TARGETS for name in (*NAMES, "x")]
ENDS: tuple[End, ...] = ("dies", "blind", "lost", "cut")
SLOW = settings(max_examples=40, deadline=None)

policies = st.builds(
    GatePolicy,
    baseline=st.sampled_from(["always", "on-failure"]),
    flaky=st.sampled_from(["warn", "block"]),
    rounds=st.just(ENOUGH_ROUNDS),
    shards=st.integers(1, 3),
    parallel=st.sampled_from([1, 2, 3, 6]),
    rerun=st.sampled_from([UNSET, "off", "on", "on"]),
    retry=st.sampled_from([UNSET, "ladder/2"]),
)
seeds = st.integers(0, 2**32)


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    """Two sides with a file each at least, a killer on each at most, and up to two bad ends for a side of a shard."""
    some = st.frozensets(st.sampled_from(TARGETS), max_size=1)
    return Suite(
        candidate=draw(files(extra=True, told=REPORTED, least=1)),
        baseline=draw(files(extra=False, told=REPORTED, least=1)),
        killers={"candidate": draw(some), "baseline": draw(some)},
        ends=draw(
            st.dictionaries(st.sampled_from(SIDES_OF_SHARDS), st.lists(st.sampled_from(ENDS), max_size=2).map(tuple))
        ),
        moods=draw(st.dictionaries(st.sampled_from(TESTS), st.sampled_from(MOODS))),
    )


def right(suite: Suite, policy: GatePolicy) -> set[str]:
    """The verdicts of a person who knows everything but what the killers keep from being seen.

    There are two when a killed attempt may have reported a new failure before it died, or may not.
    """
    world, flaky_blocks = suite.world(policy), policy.flaky == "block"
    verdicts = {right_verdict(world, flaky_blocks=flaky_blocks)}
    if verdicts == {"unmeasured"} and policy.retry is not UNSET:
        verdicts.add(right_verdict(with_failures_seen(world), flaky_blocks=flaky_blocks))
    return verdicts


@SLOW
@given(suite=suites(), policy=policies, seed=seeds)
def test_a_gate_ends_with_the_right_verdict_whatever_its_attempts_went_through(
    suite: Suite, policy: GatePolicy, seed: int
) -> None:
    gate = finished(suite, policy, seed)
    assert gate.verdict.verdict in right(suite, policy)
    assert gate.views.run.verdict == gate.verdict.verdict
    again = views_of(*gate.events)
    assert (gate.views.run, gate.views.gate) == (again.run, again.gate)


@SLOW
@given(suite=suites(), policy=policies, seed=seeds, cuts=st.lists(st.integers(0, 25), min_size=1, max_size=4))
def test_a_gate_that_is_cut_off_anywhere_and_resumed_comes_to_the_same_verdict(
    suite: Suite, policy: GatePolicy, seed: int, cuts: list[int]
) -> None:
    gate = PureGate(suite, policy, seed)
    gate.start()
    for steps in cuts:
        gate.drive(until=gate.steps + steps)
        gate.resume()
    assert gate.drive()
    assert gate.verdict.verdict in right(suite, policy)


@SLOW
@given(suite=suites(), policy=policies, seed=seeds, steps=st.integers(0, 25))
def test_a_gate_that_is_stopped_anywhere_and_resumed_comes_to_the_same_verdict(
    suite: Suite, policy: GatePolicy, seed: int, steps: int
) -> None:
    gate = PureGate(suite, policy, seed)
    gate.start()
    if not gate.drive(until=steps):
        gate.stop()
        assert gate.views.run.status == "stopped"
        assert gate.views.gate.in_flight() == []
        gate.resume()
        assert not any(isinstance(event, DriverReplaced) for event in gate.events)
    assert gate.drive()
    assert gate.verdict.verdict in right(suite, policy)


@SLOW
@given(suite=suites(), policy=policies, seed=seeds)
def test_no_doubt_about_an_attempt_turns_a_verdict_into_passed(suite: Suite, policy: GatePolicy, seed: int) -> None:
    gate = finished(suite, policy, seed)
    if gate.verdict.verdict == "passed":
        return
    for history in doubted(gate):
        assert judged_again(gate, history) in ("failed", "unmeasured", "not-settled", "not-rerun")


def judged_again(gate: PureGate, history: list[Event]) -> str:
    """The verdict on this history, or the code of the refusal to decide one."""
    views = views_of(*history)
    try:
        verdict = decide(Judge(stream=RUN), views, gate.documents_for(Judge(stream=RUN), views)).events[0]
    except Refusal as refusal:
        return refusal.code
    assert isinstance(verdict, VerdictDecided)
    return verdict.verdict


@SLOW
@given(suite=suites(), policy=policies, rounds=st.integers(1, 2), seed=seeds)
def test_few_rounds_may_leave_a_gate_unmeasured_but_never_wrong_and_resuming_gets_it_right(
    suite: Suite, policy: GatePolicy, rounds: int, seed: int
) -> None:
    gate = finished(suite, GatePolicy(**{**_fields(policy), "rounds": rounds}), seed)
    verdicts = right(suite, policy)
    for _ in range(2 * ENOUGH_ROUNDS):
        assert gate.verdict.verdict in {*verdicts, "unmeasured"}
        gate.resume()
        assert gate.drive()
    assert gate.verdict.verdict in verdicts


def _fields(policy: GatePolicy) -> dict[str, object]:
    return {name: getattr(policy, name) for name in policy.__struct_fields__}


@SLOW
@given(suite=suites(), policy=policies, seed=seeds)
def test_the_views_of_any_beginning_of_a_gate_can_be_folded_and_are_those_of_that_moment(
    suite: Suite, policy: GatePolicy, seed: int
) -> None:
    history = recorded(finished(suite, policy, seed).events)
    views = RunViews()
    for one in history:
        views.apply(one)
        assert fold(SHARDS, history, as_of=one.sequence) == views.gate
        assert fold(RUN_VIEW, history, as_of=one.sequence).status == views.run.status


GOOD: Files = {
    "a.py": File({"t": "passed", "u": "skipped"}),
    "b.py": File({"t": "passed"}),
    "c.py": File({"t": "passed"}),
}
BROKEN: Files = GOOD | {"b.py": File({"t": "failed"})}
FIXED_SUITES = {
    "passed": Suite(GOOD, GOOD),
    "failed": Suite(BROKEN, GOOD, ends={"shard-1/candidate": ("dies",), "collection/baseline": ("lost",)}),
    "preexisting": Suite(BROKEN, BROKEN, ends={"shard-1/baseline": ("cut", "blind")}),
    "killer-in-front": Suite(GOOD, GOOD, killers={"candidate": frozenset({"a.py"})}),
    "failed-behind-killer": Suite(BROKEN, GOOD, killers={"candidate": frozenset({"a.py"})}),
    "baseline-killer": Suite(BROKEN, GOOD, killers={"baseline": frozenset({"b.py"})}),
    "no-collection": Suite(GOOD, GOOD, ends={"collection/candidate": ("lost",) * 99}),
    "flaky": Suite(BROKEN, GOOD, moods={"b.py::t": "flaky"}),
    "interfering": Suite(BROKEN, GOOD, moods={"b.py::t": "interfering"}),
    "dependent": Suite(BROKEN, GOOD, moods={"b.py::t": "dependent"}, ends={"rerun-bundle-1/candidate": ("dies",)}),
    "slow": Suite(BROKEN, GOOD, moods={"b.py::t": "slow"}),
}


@pytest.mark.parametrize("rerun", ["on", "off"])
@pytest.mark.parametrize("baseline", ["always", "on-failure"])
@pytest.mark.parametrize("name", FIXED_SUITES)
def test_a_gate_cut_off_after_any_step_comes_to_the_verdict_of_one_that_was_not(
    name: str, baseline: str, rerun: str
) -> None:
    policy = GatePolicy(baseline=baseline, rounds=3, shards=2, rerun=rerun)  # type: ignore[arg-type]
    whole = finished(FIXED_SUITES[name], policy)
    for steps in range(whole.steps + 1):
        gate = PureGate(FIXED_SUITES[name], policy, seed=steps)
        gate.start()
        gate.drive(until=steps)
        gate.resume()
        assert gate.drive()
        assert gate.verdict.verdict == whole.verdict.verdict, steps
        assert gate.verdict.counts == whole.verdict.counts, steps
        assert gate.verdict.blocking == whole.verdict.blocking, steps
        assert {case.test for case in gate.verdict.unmeasured} == {case.test for case in whole.verdict.unmeasured}, (
            steps
        )


def test_the_fixed_gates_have_the_verdicts_that_they_are_made_for() -> None:
    policy = GatePolicy(rounds=3, shards=2, rerun="on")
    verdicts = {name: finished(suite, policy).verdict for name, suite in FIXED_SUITES.items()}
    assert {name: verdict.verdict for name, verdict in verdicts.items()} == {
        "passed": "passed", "failed": "failed", "preexisting": "passed", "killer-in-front": "unmeasured",
        "failed-behind-killer": "failed", "baseline-killer": "unmeasured", "no-collection": "unmeasured",
        "flaky": "passed", "interfering": "unmeasured", "dependent": "failed", "slow": "passed",
    }  # fmt: skip
    assert [one.case_class for one in verdicts["interfering"].unmeasured] == ["interference"]
    assert [case.test for case in verdicts["killer-in-front"].unmeasured] == ["a.py"]


@pytest.mark.parametrize("kind", ["alone", "bundle"])
def test_a_re_run_that_is_never_read_leaves_the_gate_unmeasured_until_a_resume_reads_it(kind: str) -> None:
    ends: dict[str, tuple[End, ...]] = {f"rerun-{kind}-1/candidate": ("lost", "blind")}
    gate = finished(Suite(BROKEN, GOOD, moods={"b.py::t": "flaky"}, ends=ends), GatePolicy(rounds=2, rerun="on"))
    assert gate.verdict.verdict == "unmeasured"
    assert [(one.case_class, one.line) for one in gate.verdict.unmeasured] == [("unresolved", "record-damaged")]
    assert [entry.label for entry in owed(gate.views.gate, gate.policy)] == [f"rerun-{kind}-1/candidate"]
    gate.resume()
    assert gate.drive()
    assert (gate.verdict.verdict, gate.verdict.counts["flaky"]) == ("passed", 1)
    assert owed(gate.views.gate, gate.policy) == []


def test_a_killer_at_the_front_of_a_shard_keeps_nobody_else_from_being_measured() -> None:
    gate = finished(FIXED_SUITES["killer-in-front"], GatePolicy(rounds=2, shards=1))
    assert gate.measured["candidate"] == {"b.py", "c.py"}


def test_a_gate_without_interruption_takes_one_attempt_for_each_side_and_compares_only_what_has_to_be() -> None:
    always = finished(FIXED_SUITES["passed"], GatePolicy(shards=1))
    assert {label: len(side.attempts) for label, side in always.views.gate.sides.items()} == {
        (shard, side): 1 for shard in (COLLECTION, "shard-1") for side in ("candidate", "baseline")
    }
    compared = finished(FIXED_SUITES["passed"], GatePolicy(shards=1, baseline="on-failure"))
    assert compared.measured["baseline"] == {"a.py"}


def test_a_finished_gate_that_owes_nothing_is_not_reopened() -> None:
    gate = finished(FIXED_SUITES["failed"], GatePolicy(rounds=3))
    assert owed(gate.views.gate, gate.policy) == []
    before = len(gate.events)
    gate.handle(ResumeRun(stream=RUN, step="gate"))
    assert len(gate.events) == before


def test_a_gate_with_a_killer_is_reopened_for_that_alone() -> None:
    gate = finished(FIXED_SUITES["killer-in-front"], GatePolicy(rounds=2, shards=1))
    gate.resume()
    (resumed,) = (event for event in gate.events if isinstance(event, ResumeStarted))
    assert resumed.owed == ("shard-1/candidate",)
    assert [entry.targets for entry in owed(gate.views.gate, gate.policy)] == [("a.py",)]
