"""Releases in memory under random steps, outcomes, tips, drivers, waivers and answers: what must hold, holds, and from
every state that is not the end there is a way to go on."""

import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs

from ledger.steps import Step, StepGraph
from ledger.values import Verdict
from projections.release.graph import contradictions
from tests.support.release_lives import Life
from tests.support.releases import BRANCH, step

OUTCOMES: tuple[Verdict, ...] = ("passed", "failed", "unmeasured")
KINDS = ("run", "gate", "prepare", "approve", "observer", "tolerated", "waivable", "irreversible", "retried")
ENDS: tuple[tuple[str, ...], ...] = (
    (),
    (),
    ("approve", "irreversible"),
    ("prepare", "approve", "irreversible", "waivable"),
)
REASONS = ("Help does not close", "Help is slow", "it is fixed", "")
HAPPENS = ("driver", "mute", "archive")
ANSWERS = ("choice", "choice", "deferred", "cancelled", "unreadable")
UNASKED = ("begin", "begin-swapped", "end", "finish", "again")


@st.composite
def graphs(draw: st.DrawFn) -> StepGraph:
    """Two to six steps that do not contradict each other; some are followed by steps that run when they fail."""
    found: list[Step] = []
    end = draw(st.sampled_from(ENDS))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2 - min(len(end), 2), max_size=6 - len(end)))
    for number, kind in enumerate((*kinds, *end)):
        before = tuple(one.name for one in found if not one.observer)
        some = draw(st.lists(st.sampled_from(before), unique=True, max_size=2)) if before else []
        needs = before[-1:] if draw(st.booleans()) else tuple(some)
        found.append(_step(draw, f"s{number}", kind, needs, found))
    if draw(st.booleans()):
        found.insert(0, step("cut", "cut"))
    decides = [one for one in found if not (one.observer or one.tolerated)]
    graph = StepGraph(steps=tuple(found), attempts_max=draw(st.integers(1, 3)), autoheal=draw(st.booleans()))
    leads_aside = draw(st.booleans())
    if decides and leads_aside:
        leads = draw(st.sampled_from(decides))
        edges = draw(st.sampled_from([("aside", ""), ("", "aside"), ("aside", "aside")]))
        graph = _with_a_handler(graph, leads, *edges)
    assume(not contradictions(graph))
    return graph


def _step(draw: st.DrawFn, name: str, kind: str, needs: tuple[str, ...], before: list[Step]) -> Step:
    if kind in ("gate", "prepare", "approve"):
        taken = kind == "prepare" and any(one.uses == "prepare" for one in before)
        waivable = kind == "gate" and draw(st.booleans())
        return step(name, "run" if taken else kind, needs=needs, waivable=waivable)
    approvals = tuple(one.name for one in before if one.uses == "approve")
    if kind == "irreversible" and approvals:
        return step(name, irreversible=True, needs=tuple(dict.fromkeys((*needs, draw(st.sampled_from(approvals))))))
    own = draw(st.sampled_from([True, True, False]))
    flags: dict[str, Any] = {kind: True} if kind in ("observer", "tolerated", "waivable") else {}
    return step(name, needs=needs, consumes_candidate=own, retries=int(kind == "retried"), **flags)


def _with_a_handler(graph: StepGraph, leads: Step, on_failed: str, on_unmeasured: str) -> StepGraph:
    changed = structs.replace(leads, on_failed=on_failed, on_unmeasured=on_unmeasured)
    steps = tuple(changed if one.name == leads.name else one for one in graph.steps)
    return structs.replace(graph, steps=(*steps, step("aside", observer=True)))


class Releases(RuleBasedStateMachine):
    """One release, and everything that can happen to it."""

    @initialize(graph=graphs(), branch=st.sampled_from(["", BRANCH, BRANCH]))
    def start(self, graph: StepGraph, branch: str) -> None:
        self.life = Life(graph, branch)

    @precondition(lambda self: not self.life.finished)
    @rule(moves=st.integers(1, 4), outcome=st.sampled_from(OUTCOMES), asks=st.booleans())
    def drive(self, moves: int, outcome: Verdict, asks: bool) -> None:
        self.life.drive(moves, outcome, asks=asks)

    @precondition(lambda self: not self.life.finished)
    @rule(moves=st.integers(1, 20), answers=st.booleans())
    def drive_well(self, moves: int, answers: bool) -> None:
        self.life.drive(moves, "passed", answers=answers)

    @rule(forward=st.sampled_from([True, True, True, False]))
    def the_branch_moves(self, forward: bool) -> None:
        self.life.branch_moves(forward=forward)

    @rule(what=st.sampled_from(HAPPENS))
    def something_happens(self, what: str) -> None:
        self.life.happens(what)

    @precondition(lambda self: not self.life.passed)
    @rule(data=st.data(), allow=st.sampled_from(["", "we need it"]))
    def resume(self, data: st.DataObject, allow: str) -> None:
        name = data.draw(st.sampled_from([self.life.unsettled, *self.life.release.graph.names(), "nothing"]))
        self.life.say(self.life.release.resume(name, allow_attempt=allow))

    @precondition(lambda self: not self.life.passed)
    @rule(data=st.data(), reason=st.sampled_from(REASONS))
    def waive(self, data: st.DataObject, reason: str) -> None:
        name = data.draw(st.sampled_from([self.life.unsettled, *self.life.release.graph.names()]))
        accept = (("R1", "Settings do not persist"),) if data.draw(st.booleans()) else ()
        self.life.say(self.life.release.resume(name, waive=name, reason=reason, accept=accept, allow_attempt="yes"))

    @precondition(lambda self: self.life.finished)
    @rule(waive=st.booleans())
    def go_on_from_the_end(self, waive: bool) -> None:
        asked: dict[str, Any] = {"waive": self.life.unsettled, "reason": REASONS[0]} if waive else {}
        self.life.say(
            self.life.release.resume(self.life.unsettled, tip=self.life.release.views.release.commit, **asked)
        )

    @rule(decision=st.sampled_from(["approved", "rejected"]), data=st.data())
    def answer(self, decision: str, data: st.DataObject) -> None:
        approvals = [one.name for one in self.life.release.graph.steps if one.uses == "approve"]
        if approvals:
            self.life.say(self.life.release.answer(data.draw(st.sampled_from(approvals)), decision))

    @rule(outcome=st.sampled_from(ANSWERS), data=st.data())
    def reply(self, outcome: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.life.release.graph.names()))
        self.life.say(self.life.release.reply(name, outcome))

    @rule(what=st.sampled_from(UNASKED), data=st.data(), outcome=st.sampled_from(OUTCOMES), which=st.integers(0, 99))
    def somebody_says_what_nobody_asked_for(self, what: str, data: st.DataObject, outcome: Verdict, which: int) -> None:
        self.life.unasked(what, data.draw(st.sampled_from(self.life.release.graph.names())), outcome, which)

    @invariant()
    def what_must_hold_holds(self) -> None:
        self.life.check()

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.check_the_past()


Releases.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestReleases = Releases.TestCase


def live(life: Life, chance: random.Random) -> None:
    """One more thing happens, mostly what drivers and people do."""
    graph, release = life.release.graph, life.release
    somewhere = chance.choice([life.unsettled, life.unsettled, chance.choice(graph.names())])
    what = chance.random()
    if what < 0.5:
        asks = chance.random() < 0.2
        life.drive(chance.randint(1, 4), chance.choice((*OUTCOMES, "passed", "passed")), asks=asks)
    elif what < 0.6 and not life.passed:
        life.say(release.resume(somewhere, allow_attempt=chance.choice(["", "we need it"])))
    elif what < 0.7 and not life.passed:
        tip = chance.choice([release.tip, release.views.release.commit])
        asked = {"waive": somewhere, "reason": chance.choice(REASONS[:2]), "tip": tip, "allow_attempt": "we need it"}
        accept = ((f"R{chance.randrange(3)}", "Settings do not persist"),) if chance.random() < 0.3 else ()
        life.say(release.resume(somewhere, accept=accept, **asked))
    elif what < 0.8:
        approvals = [one.name for one in graph.steps if one.uses == "approve"]
        if approvals:
            life.say(release.answer(chance.choice(approvals), chance.choice(["approved", "approved", "rejected"])))
        life.say(release.reply(chance.choice(graph.names()), chance.choice(ANSWERS)))
    elif what < 0.85:
        life.branch_moves(forward=chance.random() < 0.8)
    elif what < 0.92:
        life.happens(chance.choice(HAPPENS))
    else:
        life.unasked(
            chance.choice(UNASKED), chance.choice(graph.names()), chance.choice(OUTCOMES), chance.randrange(99)
        )


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), branch=st.sampled_from(["", BRANCH, BRANCH]), seed=st.integers(0, 2**32))
def test_whatever_happens_to_a_release_for_long_what_must_hold_holds(graph: StepGraph, branch: str, seed: int) -> None:
    life, chance = Life(graph, branch), random.Random(seed)
    for _ in range(40):
        live(life, chance)
        life.check()
        if life.passed:
            break
    life.check_the_past()
