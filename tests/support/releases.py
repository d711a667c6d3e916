"""A whole release in memory: the real decisions and folds, driven like the driver does it, without a store, processes
or a clock. What its steps come to is told by the test."""

import copy
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import pytest

from commands.decide.base import Decided, Documents, stored
from commands.decide.registry import decide, needs
from commands.decide.release.next import Begin, Execute, Finish, Heal, Move, Settle, Wait, next_move
from commands.messages import (
    AnswerQuestion,
    AskQuestion,
    BeginReleaseStep,
    DecideApproval,
    EndReleaseStep,
    FinishRelease,
    HealGate,
    Message,
    Refusal,
    ResumeRelease,
    StartRelease,
    TakeRun,
    decode_message,
    encode_message,
)
from ledger.events import Event, GatePolicy, QuestionPolicy, StepReport
from ledger.steps import Step, StepGraph
from ledger.tables import decode_document
from ledger.values import Commit, Verdict
from projections.registry import RunViews
from projections.release.approval import shown_now
from projections.release.standing import Now, Standing, standings
from projections.release.state import STEP_ASKS, archive_of
from projections.release.trouble import OwedSide, Trouble
from tests.support.makers import COMMITS, RUN, digest_of, question, recorded

TODAY, BRANCH, VERSION = "2030-01-02", "release/1.2.3", "1.2.3"
OWN_COMMIT = ("run", "gate", "prepare")
MOVES_MAX = 50

Outcomes = Callable[[str], Verdict]


def commit(number: int) -> Commit:
    """The candidate (0), or a commit after it."""
    return COMMITS["candidate"] if number == 0 else f"{number:040x}"


def step(name: str, uses: str = "run", **flags: Any) -> Step:
    """A step with what its kind takes."""
    values: dict[str, Any] = {
        "run": ("make", name) if uses in ("run", "prepare") else (),
        "until": "2030-01-02T12:00:00+00:00" if uses == "wait-until" else "",
        "consumes_candidate": uses in OWN_COMMIT and not flags.get("observer", False),
    }
    return Step(name=name, uses=uses, **values | flags)  # type: ignore[arg-type]


def chain(*steps: Step, **limits: Any) -> StepGraph:
    """A graph in which each step that names no needs has those of the one before it: what the settings make of it."""
    aside = {name for one in steps for name in (one.on_failed, one.on_unmeasured) if name}
    found, before = [], ""
    for one in steps:
        chained = before and not one.needs and one.name not in aside
        found.append(Step(**{**_fields(one), "needs": (before,)}) if chained else one)
        before = before if one.observer or one.name in aside else one.name
    return StepGraph(steps=tuple(found), **limits)


def _fields(one: Step) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


def usual(**limits: Any) -> StepGraph:
    """The steps of a usual release: cut, gate, screens (waivable), prepare, approve, publish (irreversible), docs."""
    return chain(
        step("cut", "cut"),
        step("gate", "gate", waivable=True, on_failed="triage"),
        step("triage", observer=True),
        step("screens", waivable=True),
        step("prepare", "prepare"),
        step("approve", "approve"),
        step("publish", irreversible=True),
        step("docs"),
        **limits,
    )


class PureRelease:
    """A release of these steps. `tip` is where its branch is on its remote, and `forward` how it came there.

    A `careful` one checks each decision for what every decision has to stand.
    """

    def __init__(self, graph: StepGraph, *, branch: str = BRANCH) -> None:
        self.graph, self.branch = graph, branch
        self.events: list[Event] = []
        self.views = RunViews()
        self.documents: dict[str, bytes] = {}
        self.tip, self.forward = commit(0), True
        self.mutes: tuple[str, ...] = ()
        self.drivers = 0
        self.careful = True

    def start(self) -> "PureRelease":
        """Start the release and take it."""
        digest, data = stored(self.graph)
        self.documents[digest] = data
        self.handle(
            StartRelease(
                stream=RUN, run=RUN, version=VERSION, candidate=commit(0), candidate_ref="HEAD",
                baseline=COMMITS["baseline"], baseline_ref="v1", baseline_reason="as asked for", dirty=False,
                policy=GatePolicy(), config="f" * 64, graph=digest, branch=self.branch,
                remote="origin" if self.branch else "",
            )
        )  # fmt: skip
        self.take()
        return self

    def take(self) -> None:
        """Another driver takes the release."""
        self.drivers += 1
        self.handle(TakeRun(stream=RUN, host="here", pid=self.drivers))

    def handle(self, message: Message) -> tuple[Event, ...]:
        """Decide, store, append and fold."""
        decided = self._decide_with_care(message) if self.careful else self._decide(message)
        self.documents |= {sha256(data).hexdigest(): data for data in decided.documents}
        for event in decided.events:
            self.events.append(event)
            self.views.apply(recorded([event], start=len(self.events))[0])
        return decided.events

    def _decide(self, message: Message) -> Decided:
        return decide(message, self.views, self.documents_for(message))

    def _decide_with_care(self, message: Message) -> Decided:
        before = copy.deepcopy(self.views)
        assert decode_message(encode_message(message)) == message
        try:
            decided = self._decide(message)
        finally:
            assert self.views == before, "a decision changed the views that it was given"
        assert self._decide(decode_message(encode_message(message))) == decided
        return decided

    def refusal(self, message: Message) -> Refusal:
        """The rule that says no to this. Nothing is decided then."""
        events, documents = list(self.events), dict(self.documents)
        with pytest.raises(Refusal) as refused:
            self.handle(message)
        assert (self.events, self.documents) == (events, documents)
        assert refused.value.message
        return refused.value

    def documents_for(self, message: Message) -> Documents:
        """The evidence that this decision declares."""
        wanted = needs(message, self.views)
        return Documents({digest: decode_document(self.documents[digest], kind) for digest, kind in wanted.items()})

    @property
    def now(self) -> Now:
        """The present."""
        return Now(TODAY, digest_of(shown_now(self.views.release, self.graph, TODAY, self.mutes)))

    def to_do(self) -> Move:
        """What is to be done next."""
        return next_move(self.views, self.graph, self.now)

    def standing(self) -> dict[str, Standing]:
        """Where each step stands."""
        return standings(self.views.release, self.graph, self.now)

    def states(self) -> dict[str, str]:
        """The state of each step."""
        return {name: one.state for name, one in self.standing().items()}

    def begin(self, name: str, **changes: Any) -> BeginReleaseStep:
        """The message that begins a step as the driver would."""
        archive = archive_of(self.views.release)
        gate = f"gate-{len(self.events)}" if self.graph.step(name).uses == "gate" else ""
        values: dict[str, Any] = {
            "date": TODAY, "mutes": self.mutes, "gate": gate, "archive": archive.digest if archive else "",
        }  # fmt: skip
        return BeginReleaseStep(stream=RUN, step=name, **values | changes)

    def end(self, name: str, outcome: Verdict, cause: str = "") -> EndReleaseStep:
        """The message that ends the running attempt at a step; an archive is named for the commit that it is of."""
        attempt = self.views.release.steps[name].last
        assert attempt is not None
        built = outcome == "passed" and self.graph.step(name).uses == "prepare"
        digest = sha256(f"{attempt.commit} {attempt.number}".encode()).hexdigest() if built else ""
        return EndReleaseStep(
            stream=RUN, step=name, attempt=attempt.number, commit=attempt.commit, outcome=outcome,
            report=StepReport(cause=cause or ("" if outcome == "passed" else "exit-1")), digest=digest,
            size_bytes=1 if built else 0, files=1 if built else 0, place="releases/1.2.3" if built else "",
        )  # fmt: skip

    def answer(self, name: str, decision: str = "approved", **changes: Any) -> DecideApproval:
        """The message that answers an approval."""
        values: dict[str, Any] = {"by": "ada", "reason": "looks right", "date": TODAY, "mutes": self.mutes}
        return DecideApproval(stream=RUN, step=name, decision=decision, **values | changes)  # type: ignore[arg-type]

    def finish(self) -> FinishRelease:
        """The message that ends the release."""
        return FinishRelease(stream=RUN, date=TODAY, mutes=self.mutes)

    def resume(self, name: str, **changes: Any) -> ResumeRelease:
        """The message that takes the release up again from a step."""
        values: dict[str, Any] = {"by": "ada", "date": TODAY, "tip": self.tip, "forward": self.forward}
        return ResumeRelease(stream=RUN, step=name, **values | ({} if self.branch else {"tip": None}) | changes)

    def reply(self, name: str, outcome: str = "choice") -> Message:
        """The message that answers what the release waits for at this step: an approval, or the newest question."""
        asked = [one for one in self.views.questions.questions.values() if one.content.step == name]
        if self.graph.step(name).uses == "approve" or not asked:
            return self.answer(name)
        choice = asked[-1].content.options[0].label if outcome == "choice" else ""
        return AnswerQuestion(
            stream=RUN, question=asked[-1].question, by="ada", outcome=outcome, choice=choice  # type: ignore[arg-type]
        )  # fmt: skip

    def heal(self, name: str) -> HealGate:
        """The message about a gate that did not pass: it has failed, or an attempt at a shard was killed."""
        attempt = self.views.release.steps[name].attempts[-1]
        owed = (OwedSide(shard="shard-1", what="shard-1/candidate", codes=("signalled",)),)
        trouble = Trouble(verdict="failed") if attempt.outcome == "failed" else Trouble(verdict="unmeasured", owed=owed)
        return HealGate(stream=RUN, step=name, attempt=attempt.number, trouble=trouble)

    def ask(self, name: str) -> None:
        """The running command of a step asks something that it did not ask before."""
        content = question(step=name, key=f"key-{len(self.events)}", impact="critical")
        self.handle(AskQuestion(stream=RUN, content=content, policy=QuestionPolicy()))
        assert self.handle(self.end(name, "unmeasured", STEP_ASKS))

    def act(self, outcome: Verdict = "passed", *, asks: bool = False) -> Move:
        """Do the next thing, as the driver does it; a running step comes to this outcome, unless it is a command that
        `asks`. Returns what was done."""
        move = self.to_do()
        if isinstance(move, Begin):
            assert self.handle(self.begin(move.step)), f"{move.step} does not begin"
        elif isinstance(move, Execute) and asks and self.graph.step(move.step).uses == "run":
            self.ask(move.step)
        elif isinstance(move, Execute):
            assert self.handle(self.end(move.step, outcome))
        elif isinstance(move, Heal):
            assert self.handle(self.heal(move.step))
        elif isinstance(move, Settle):
            assert self.handle(self.end(move.step, "unmeasured", "step-driver-died"))
        elif isinstance(move, Finish):
            assert self.handle(self.finish())
        return move

    def drive(self, outcomes: Mapping[str, Verdict] | None = None) -> str:
        """Drive until it has ended or waits for somebody; steps pass unless another outcome is told. Returns the
        verdict, or the name of the approval that it waits for."""
        for _ in range(MOVES_MAX):
            if self.views.run.status == "finished":
                return str(self.views.run.verdict)
            move = self.to_do()
            if isinstance(move, Wait):
                return move.step
            self.act((outcomes or {}).get(move.step, "passed"))
        raise AssertionError("the release does not come to an end")

    def until(self, name: str) -> "PureRelease":
        """Drive until this step would begin; everything before it passes, and is approved of."""
        for _ in range(MOVES_MAX):
            move = self.to_do()
            if move == Begin(name):
                return self
            if isinstance(move, Wait):
                self.handle(self.reply(move.step))
            else:
                assert not isinstance(move, Finish), f"ends before {name} begins"
                self.act()
        raise AssertionError(f"{name} never begins")

    def came_to(self, name: str, outcome: Verdict) -> "PureRelease":
        """Drive until this step has ended so, and as far as that leads."""
        self.until(name)
        self.drive({name: outcome})
        return self
