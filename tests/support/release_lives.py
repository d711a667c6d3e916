"""Lives of releases: everything that can happen to one, and what must hold whatever happens."""

import copy
from collections import Counter

from commands.decide.release.next import Wait
from commands.messages import Message, RecordQuarantine, Refusal
from ledger.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    ResumeStarted,
    RunFinished,
    StepFinished,
    StepStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.steps import Shown, Step, StepGraph
from ledger.tables import decode_document
from ledger.values import Commit, Verdict
from projections.registry import RunViews
from projections.release.approval import shown_now
from projections.release.graph import main_steps, needed_by
from projections.release.resume import Tip, plan_release
from projections.release.standing import Now, standings
from projections.release.state import archive_of
from tests.support.makers import RUN, recorded
from tests.support.releases import TODAY, PureRelease, commit


class Watch:
    """Looks at each event before it is taken in, with nothing but the events before it."""

    def __init__(self, release: PureRelease) -> None:
        self.release, self.graph = release, release.graph

    def look(self, event: Event, before: list[Event]) -> None:
        """Fail when this event must not come after these."""
        if isinstance(event, StepStarted):
            self._begins(event, before)
        elif isinstance(event, Waived):
            self._is_waived(event, before)
        elif isinstance(event, RunFinished) and event.verdict == "passed":
            for one in main_steps(self.graph):
                assert self.settled(one, before), f"passed without {one.name}"
                if one.uses == "gate":
                    assert self.outcome(one, before) == "passed" or self._waived(one, before)
        elif isinstance(event, TipMoved):
            done = [one.name for one in self.graph.steps if one.irreversible and self._done(one.name, before)]
            assert not done, f"the commit moved after {done}"

    def _begins(self, event: StepStarted, before: list[Event]) -> None:
        one = self.graph.step(event.step)
        started = [old for old in before if isinstance(old, StepStarted)]
        ended = {(old.step, old.attempt) for old in before if isinstance(old, StepFinished)}
        running = [old.step for old in started if (old.step, old.attempt) not in ended]
        assert all(self.graph.step(name).uses == "approve" for name in running), f"{event.step} beside {running}"
        assert event.commit == self.counting(before)
        for name in needed_by(self.graph, event.step):
            assert self.settled(self.graph.step(name), before), f"{event.step} before {name} has settled"
        if one.irreversible:
            assert not self._done(one.name, before), f"{one.name} is done twice"
            approvals = [need for need in needed_by(self.graph, one.name) if self.graph.step(need).uses == "approve"]
            assert approvals
            for name in approvals:
                assert self._approved(name, before) == self._what_is_so(before)

    def settled(self, one: Step, before: list[Event]) -> bool:
        """Whether what needs this step may go on."""
        if one.observer:
            return True
        if one.uses == "approve":
            return self._approved(one.name, before) is not None
        outcome = self.outcome(one, before)
        return outcome == "passed" or (one.tolerated and outcome is not None) or self._waived(one, before)

    def outcome(self, one: Step, before: list[Event]) -> str | None:
        """What the step came to, on the commit that counts and since it was last asked for again; None for nothing."""
        found = None
        for event in before:
            if isinstance(event, StepStarted | StepFinished) and event.step == one.name:
                found = (event.outcome, event.commit) if isinstance(event, StepFinished) else None
            elif isinstance(event, ResumeStarted) and one.name in (event.again or ()):
                found = None
        if found is None or (one.consumes_candidate and found[1] != self.counting(before)):
            return None
        return found[0]

    def counting(self, before: list[Event]) -> Commit:
        """The commit that counts."""
        return next((old.commit for old in reversed(before) if isinstance(old, TipMoved)), commit(0))

    def _done(self, name: str, before: list[Event]) -> bool:
        now = self.counting(before)
        return any(
            isinstance(old, StepFinished) and (old.step, old.outcome, old.commit) == (name, "passed", now)
            for old in before
        )

    def _waived(self, one: Step, before: list[Event]) -> bool:
        """A waiver that nothing has happened to the step since; its retirement is not asked for."""
        for event in reversed(before):
            if isinstance(event, Waived) and event.step == one.name:
                return event.commit == self.counting(before)
            if isinstance(event, StepStarted) and event.step == one.name:
                return False
            if isinstance(event, ResumeStarted) and one.name in (event.again or ()):
                return False
        return False

    def _is_waived(self, event: Waived, before: list[Event]) -> None:
        one = self.graph.step(event.step)
        assert one.waivable
        outcome = self.outcome(one, before)
        assert outcome in (("unmeasured",) if one.uses == "gate" else ("failed", "unmeasured"))

    def _approved(self, name: str, before: list[Event]) -> Shown | None:
        """What was approved of, when the last thing that happened to the approval was that somebody did."""
        for event in reversed(before):
            if isinstance(event, ApprovalDecided) and event.step == name:
                if event.decision == "rejected" or event.commit != self.counting(before):
                    return None
                return decode_document(self.release.documents[event.shown], Shown)
            if isinstance(event, ApprovalRequested | StepStarted) and event.step == name:
                return None
        return None

    def _what_is_so(self, before: list[Event]) -> Shown:
        views = RunViews()
        for one in recorded(before):
            views.apply(one)
        shown = shown_now(views.release, self.graph, TODAY, self.release.mutes)
        assert shown.commit == self.counting(before)
        standing = [event for event in before if isinstance(event, Waived | WaiverRetired)]
        retired = {event.waiver for event in standing if isinstance(event, WaiverRetired)}
        waived = [one for one in standing if isinstance(one, Waived) and one.commit == shown.commit]
        assert {name for name, _ in shown.waivers} <= {one.step for one in waived if one.waiver not in retired}
        return shown


class Life:
    """One release, everything that can happen to it, and what must hold after each of it."""

    def __init__(self, graph: StepGraph, branch: str) -> None:
        self.release = PureRelease(graph, branch=branch)
        self.watch = Watch(self.release)
        self.refused: Counter[str] = Counter()
        self._seen = 0
        self._moment: object = None
        self._commits = 0
        self._sent: list[Message] = []
        self.release.start()

    @property
    def finished(self) -> bool:
        """Whether it has ended, so that only somebody who takes it up again goes on."""
        return self.release.views.run.status == "finished"

    @property
    def passed(self) -> bool:
        """Whether it has passed, which is the end."""
        return self.finished and self.release.views.run.verdict == "passed"

    @property
    def unsettled(self) -> str:
        """The first step that has not settled, or the first of all."""
        return _first_unsettled(self.release)

    def drive(self, moves: int, outcome: Verdict, *, asks: bool = False, answers: bool = False) -> None:
        """A driver does what is next; what it runs comes to this outcome, or asks."""
        for _ in range(moves):
            if not self.finished:
                move = self.release.act(outcome, asks=asks)
                if isinstance(move, Wait) and answers:
                    self.release.handle(self.release.reply(move.step))

    def branch_moves(self, *, forward: bool) -> None:
        """Somebody moves the branch, if there is one."""
        if self.release.branch:
            self._commits += 1
            self.release.tip, self.release.forward = commit(self._commits), forward

    def happens(self, what: str) -> None:
        """Another `driver` takes over; somebody changes a `mute`; the `archive` is moved aside."""
        archive = archive_of(self.release.views.release)
        if what == "driver":
            self.release.take()
        elif what == "mute":
            self.release.mutes = () if self.release.mutes else ("a.py::test_a",)
        elif archive is not None:
            place = f"quarantine/{len(self.release.events)}"
            self.say(
                RecordQuarantine(stream=RUN, place=place, digest=archive.digest, size_bytes=1, reason="moved-aside")
            )

    def unasked(self, what: str, name: str, outcome: Verdict, which: int) -> None:
        """Somebody begins or ends this step, ends the release, or says something once more, without being asked."""
        begun = self.release.views.release.steps[name].last is not None
        if what == "begin":
            self.say(self.release.begin(name))
        elif what == "begin-swapped":
            self.say(self.release.begin(name, archive="f" * 64))
        elif what == "end" and begun:
            self.say(self.release.end(name, outcome))
        elif what == "finish":
            self.say(self.release.finish())
        elif what == "again" and self._sent:
            self.say(self._sent[which % len(self._sent)])

    def say(self, message: Message) -> None:
        """Decide this, or have it refused."""
        try:
            self.release.handle(message)
            # A report that comes twice is kept once, by its name: that is for the store.
            self._sent += [message] if message.command() is None else []
        except Refusal as refusal:
            self.refused[refusal.code] += 1

    def check(self) -> None:
        """No event came too early; what is waived has not passed; somebody can go on."""
        events = self.release.events
        for number in range(self._seen, len(events)):
            self.watch.look(events[number], events[:number])
        self._seen = len(events)
        for one in self.release.standing().values():
            assert bool(one.waiver) == (one.state == "waived")
        if (moment := (len(events), self.release.tip, self.release.mutes)) != self._moment:
            self._moment = moment
            self._somebody_can_go_on()

    def _somebody_can_go_on(self) -> None:
        """Somebody who does what is told comes to the end: drives, answers, and resumes."""
        world = copy.deepcopy(self.release)
        world.careful = False
        if not world.forward:
            world.tip, world.forward = world.views.release.commit, True
        steps = len(world.graph.steps)
        for _ in range(3 * steps):
            if _driven_to_its_end(world, 6 * steps + 6) == "passed":
                return
            _take_up_again(world)
        raise AssertionError(f"the release goes round in circles: {world.states()}")

    def check_the_past(self) -> None:
        """Every beginning can be folded and looked at, and the whole is what it was."""
        views, graph = RunViews(), self.release.graph
        for one in recorded(self.release.events):
            views.apply(one)
            standings(views.release, graph, Now(TODAY, "0" * 64))
            assert shown_now(views.release, graph, TODAY).commit == views.release.commit
            for step in main_steps(graph):
                plan = plan_release(views.release, graph, step.name, Tip(commit=commit(99)), TODAY)
                assert [each.step for each in plan.steps] == [each.name for each in main_steps(graph)]
        assert views == self.release.views


def _first_unsettled(release: PureRelease) -> str:
    standing = release.standing()
    names = [one.name for one in main_steps(release.graph)]
    return next((name for name in names if not standing[name].settled), names[0])


def _driven_to_its_end(world: PureRelease, moves: int) -> str:
    for _ in range(moves):
        if world.views.run.status == "finished":
            return str(world.views.run.verdict)
        move = world.act()
        if isinstance(move, Wait):
            assert world.handle(world.reply(move.step)), f"it waits for what was answered at {move.step}"
    raise AssertionError(f"it takes more than {moves} moves: {world.states()}")


def _take_up_again(world: PureRelease) -> None:
    """Resume from the first step that is open, or from the one that a refusal names."""
    name = _first_unsettled(world)
    try:
        assert world.handle(world.resume(name, allow_attempt="we need it")), f"nothing to do from {name}"
    except Refusal as refusal:
        if refusal.code != "after-consumer":
            raise
        told = refusal.hint.removeprefix("resume --from ")
        assert world.handle(world.resume(told, allow_attempt="we need it")), f"nothing to do from {told}"
