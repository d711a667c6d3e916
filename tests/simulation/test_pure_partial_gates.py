"""Gates in memory after a repair of tests: a part is measured, the rest carried, the verdict is that of a whole one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_field

from ledger.events import Carried, GatePolicy, RecheckPlanned
from ledger.tables import ClassTable, decode_document
from projections.reuse.circumstances import collection_key
from projections.reuse.partial import CARRIED, Full, Prior, plan_partial
from tests.simulation.test_pure_gates import policies, right, seeds, suites
from tests.support.gates import PureGate, Suite, finished
from tests.support.sides import File
from tests.support.worlds import REPORTED, TARGETS, files

SLOW = settings(max_examples=60, deadline=None)
PASS = File({"t": "passed"})


@st.composite
def repairs(draw: st.DrawFn) -> tuple[Suite, Suite, tuple[str, ...]]:
    """A suite with targets that pass on both sides, what it is after a repair of some of its tests, and these."""
    drawn = draw(suites())
    steady = dict.fromkeys(draw(st.sets(st.sampled_from(TARGETS), min_size=1, max_size=2)), PASS)
    before = replace(drawn, candidate={**drawn.candidate, **steady}, baseline={**drawn.baseline, **steady})
    names = sorted(before.candidate)
    changed = draw(st.sets(st.sampled_from(names), min_size=1, max_size=max(1, len(names) - 1)))
    rewritten = draw(files(extra=True, told=REPORTED, least=len(TARGETS)))
    after = {name: rewritten.get(name, PASS) if name in changed else file for name, file in before.candidate.items()}
    return before, replace(before, candidate=after), tuple(sorted(changed))


def plan_after(prior: PureGate, suite: Suite, changed: tuple[str, ...]) -> RecheckPlanned | Full:
    """What is measured again after the gate."""
    return plan_partial(
        Prior(
            gate="before",
            commit="1" * 40,
            classes=prior.verdict.classes,
            targets=frozenset(prior.suite.candidate),
            key=collection_key(prior.views.gate),
            declared=True,
        ),
        classes_of(prior),
        "2" * 40,
        changed,
        suite.candidate.keys(),
        {},
    )


def classes_of(gate: PureGate) -> ClassTable:
    """The judgements of a finished gate."""
    return decode_document(gate.documents[gate.verdict.classes], ClassTable)


@SLOW
@given(repair=repairs(), policy=policies, seed=seeds, cuts=st.lists(st.integers(0, 25), max_size=3))
def test_a_partial_gate_cut_off_anywhere_comes_to_a_verdict_of_the_whole(
    repair: tuple[Suite, Suite, tuple[str, ...]], policy: GatePolicy, seed: int, cuts: list[int]
) -> None:
    before, after, changed = repair
    prior = finished(before, policy, seed)
    plan = plan_after(prior, after, changed)
    assert isinstance(plan, RecheckPlanned)
    gate = PureGate(after, policy, seed, recheck=plan, documents=prior.documents)
    gate.start()
    for steps in cuts:
        gate.drive(until=gate.steps + steps)
        gate.resume()
    assert gate.drive()
    assert gate.verdict.verdict in right(after, policy) or gate.verdict.reason == "nothing-ran"
    carried = {row.test.target for row in classes_of(gate).rows if row.note == CARRIED}
    assert not carried & {*gate.measured["candidate"], *gate.measured["baseline"], *plan.targets}
    # A gate that was left unmeasured, and is resumed, comes to another verdict, which carries the same.
    told = {event.targets for event in gate.events if isinstance(event, Carried)}
    assert told == ({len(carried)} if carried else set())


def test_one_repaired_test_of_three_is_all_that_runs() -> None:
    passing = dict.fromkeys(TARGETS, PASS)
    prior = finished(Suite({**passing, "b.py": File({"t": "failed"})}, passing), GatePolicy())
    assert prior.verdict.verdict == "failed"
    plan = plan_after(prior, Suite(passing, passing), ("b.py",))
    assert isinstance(plan, RecheckPlanned)
    gate = PureGate(Suite(passing, passing), GatePolicy(), recheck=plan, documents=prior.documents)
    gate.start()
    assert gate.drive()
    assert (gate.verdict.verdict, gate.verdict.counts) == ("passed", {"passed": 3})
    assert gate.measured["candidate"] == {"b.py"}
    (told,) = (event for event in gate.events if isinstance(event, Carried))
    assert (told.gate, told.targets, told.cases) == ("before", 2, 2)


@pytest.mark.parametrize("known", [True, False])
def test_where_something_else_is_installed_now_or_nobody_knows_everything_is_measured(known: bool) -> None:
    passing = dict.fromkeys(TARGETS, PASS)
    prior = finished(Suite({**passing, "b.py": File({"t": "failed"})}, passing), GatePolicy())
    plan = plan_after(prior, Suite(passing, passing), ("b.py",))
    assert isinstance(plan, RecheckPlanned)
    if not known:
        plan = replace_field(plan, key=None)
    gate = PureGate(Suite(passing, passing), GatePolicy(), recheck=plan, documents=prior.documents)
    if known:
        gate.circumstances = replace_field(gate.circumstances, distributions=("lib==2",))
    gate.start()
    assert gate.drive()
    assert gate.measured["candidate"] == set(TARGETS)
    assert not any(isinstance(event, Carried) for event in gate.events)
    assert gate.verdict.verdict == "passed"
