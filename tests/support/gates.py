"""A whole gate in memory: the real decisions and folds, driven against files whose results are known beforehand.

It does what the driver does, without a store, processes or a clock: handle the next message, let an attempt end, or be
cut off at any point and be taken up by another driver. Each step is checked for what must hold in every gate.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil, log2
from typing import Literal

from msgspec import Struct, structs

from commands.decide.base import Documents
from commands.decide.next import next_message
from commands.decide.registry import decide, needs
from commands.messages import Message, RecordAttempt, ResumeRun, StartRun, StopRun, TakeRun
from ledger.events import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    Event,
    FailureLine,
    GatePolicy,
    PlannedRerun,
    RecheckPlanned,
    ResumeStarted,
    VerdictDecided,
)
from ledger.tables import CaseRow, Plan, decode_document, encode_document
from ledger.values import Side, TestId
from projections.registry import RunViews
from projections.reuse.circumstances import Circumstances
from projections.run.owed import owed
from tests.support.makers import COMMITS, RUN, case_row, case_table, inventory, record_message, recorded
from tests.support.sides import Files, inventory_targets, rows_of
from tests.support.worlds import FAILS, Mood, World

End = Literal["dies", "blind", "lost", "cut"]
"""How an attempt ends badly: in the middle, with results that nobody trusts, without a trace, cut off from outside."""

RERUNS_AT_A_TIME, TRIES_MOST = 4, 8
CAUSES: dict[End, str] = {"dies": "signalled", "blind": "record-damaged", "lost": "lost", "cut": "driver-died"}
STEPS_MAX = 3000
CIRCUMSTANCES = Circumstances(
    adapter="pytest", runner=("9",), python="3.12", platform="linux", architecture="x86", lock="", distributions=(),
    environment={},
)  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """The tests of both sides. Each of the `killers` kills every attempt that comes to it; when they are `silent`, such
    an attempt leaves nothing but that it left nothing.

    `ends` are how the first attempts of each side of each shard (`shard/side`) end; later ones end well. `moods` are
    what failing tests of the candidate do when they are run again. The `unimportable` targets of the candidate are
    those that its attempts cannot collect, although its collection can.
    """

    candidate: Files
    baseline: Files
    killers: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    ends: Mapping[str, tuple[End, ...]] = field(default_factory=dict)
    moods: Mapping[str, Mood] = field(default_factory=dict)
    silent: bool = False
    unimportable: frozenset[str] = frozenset()

    def files(self, side: Side) -> Files:
        """The files of one side."""
        return self.candidate if side == "candidate" else self.baseline

    def world(self, policy: GatePolicy) -> World:
        """What can be known of this suite at best: all but the killers, and what is not compared because of them."""
        lost = {side: self.killers.get(side, frozenset()) for side in COMMITS}
        not_run = lost["candidate"] & self.baseline.keys() if policy.baseline == "on-failure" else frozenset()
        return World(self.candidate, self.baseline, lost, not_run, self.moods if policy.reruns else {})


class PureGate:
    """A run of a gate over a suite; `seed` decides what is left to chance, which no verdict may depend on.

    With `recheck` only a part is measured, and the rest taken from an earlier gate, whose `documents` these are.
    """

    def __init__(
        self,
        suite: Suite,
        policy: GatePolicy,
        seed: int = 0,
        *,
        recheck: RecheckPlanned | None = None,
        documents: Mapping[str, bytes] | None = None,
    ) -> None:
        self.suite, self.policy, self.recheck = suite, policy, recheck
        self.events: list[Event] = []
        self.views = RunViews()
        self.documents: dict[str, bytes] = dict(documents or {})
        self.measured: dict[Side, set[str]] = {"candidate": set(), "baseline": set()}
        self.circumstances = CIRCUMSTANCES
        self.steps = 0
        self._random = random.Random(seed)
        self._drivers = 0
        self._rounds: dict[str, int] = {}

    def start(self) -> None:
        """Start the run and take it."""
        self.handle(
            StartRun(
                stream=RUN, run=RUN, candidate=COMMITS["candidate"], candidate_ref="HEAD", baseline=COMMITS["baseline"],
                baseline_ref="v1", baseline_reason="as asked for", dirty=False, policy=self.policy, config="f" * 64,
                recheck=self.recheck,
            )
        )  # fmt: skip
        self._take()

    def resume(self) -> None:
        """Another driver takes the run up: it brings to rest what the last one left, then resumes."""
        self._take()
        self.handle(ResumeRun(stream=RUN, step="gate"))

    def _take(self) -> None:
        self._drivers += 1
        self.handle(TakeRun(stream=RUN, host="here", pid=self._drivers))
        for attempt in self.views.gate.in_flight():
            self.handle(self._result(attempt.started, "cut"))

    def stop(self) -> None:
        """What the driver does on a request to stop: every running attempt is cut off and recorded first."""
        for attempt in self.views.gate.in_flight():
            self.handle(self._result(attempt.started, "cut"))
        self.handle(StopRun(stream=RUN, reason="asked"))

    def drive(self, *, until: int = STEPS_MAX) -> bool:
        """Drive until the run is finished, or until so many steps were taken; says whether it is finished."""
        while self.steps < until:
            if self.views.run.status == "finished":
                return True
            self.steps += 1
            running = self.views.gate.in_flight()
            message = next_message(self.views, RUN, self.policy.parallel - len(running))
            if message is not None and (not running or self._random.random() < 0.7):
                self.handle(message)
            else:
                assert running, "there is nothing to do and nothing to wait for, and no verdict"
                attempt = self._random.choice(running)
                self.handle(self._result(attempt.started, self._next_end(attempt.started)))
        assert until < STEPS_MAX, "the gate does not come to an end"
        return self.views.run.status == "finished"

    @property
    def verdict(self) -> VerdictDecided:
        """The verdict of the finished run."""
        assert self.views.gate.verdict is not None
        return self.views.gate.verdict

    def handle(self, message: Message) -> None:
        """Decide, store, append and fold, with every check that holds after each event."""
        decided = decide(message, self.views, self.documents_for(message, self.views))
        for data in decided.documents:
            self.documents[sha256(data).hexdigest()] = data
        for event in decided.events:
            self._check(event)
            self.events.append(event)
            self.views.apply(recorded([event], start=len(self.events))[0])
        ready = [entry for entry in owed(self.views.gate, self.policy) if entry.ready and entry.shard != COLLECTION]
        assert list(self.views.ready()) == ready

    def documents_for(self, message: Message, views: RunViews) -> Documents:
        """The evidence that this decision declares."""
        wanted = needs(message, views)
        return Documents({digest: decode_document(self.documents[digest], kind) for digest, kind in wanted.items()})

    def _check(self, event: Event) -> None:
        if isinstance(event, AttemptStarted):
            self._check_promise(event)
        elif isinstance(event, AttemptRecorded):
            label = f"{event.shard}/{event.side}"
            self._rounds[label] = self._rounds.get(label, 0) + event.counted
        elif isinstance(event, ResumeStarted):
            self._rounds.clear()

    def _check_promise(self, event: AttemptStarted) -> None:
        running = [attempt.started for attempt in self.views.gate.in_flight()]
        assert (event.shard, event.side) not in {(one.shard, one.side) for one in running}
        assert event.term == self.views.run.term
        self._check_tries(event)
        if event.shard == COLLECTION:
            return
        assert len(running) < self.policy.parallel
        asked = self._asked(event)
        assert asked, "an attempt on nothing"
        if event.shard in self.views.gate.reruns:
            self._check_rerun(event, [one for one in running if one.shard in self.views.gate.reruns])
            return
        assert not set(asked) & self.measured[event.side], "something that was measured is run again"
        if event.side == "baseline" and self.policy.baseline == "on-failure":
            assert set(asked) <= {target for target in self.measured["candidate"] if self._needs_attention(target)}

    def _check_tries(self, event: AttemptStarted) -> None:
        """Rounds are kept; only what is told apart on the ladder is tried more often than that."""
        tries, side = self._rounds.get(f"{event.shard}/{event.side}", 0), self.views.gate.side(event.shard, event.side)
        if tries >= self.policy.rounds:
            assert self.policy.ladder
            assert self.policy.rounds > 1
            assert event.targets is not None
            if self.policy.halves:
                assert tries < TRIES_MOST + 4 * ceil(log2(len(self._all_targets(event))))
                return
            assert tries < TRIES_MOST
            assert len(event.targets) == 1 or not set(event.targets) & side.suspects.keys()

    def _check_rerun(self, event: AttemptStarted, running: list[AttemptStarted]) -> None:
        rerun = self.views.gate.reruns[event.shard]
        assert len(running) < RERUNS_AT_A_TIME
        assert event.targets == rerun.targets, "a re-run is not as it was planned"
        whole = rerun.kind == "bundle" or rerun.test in rerun.targets
        assert event.tests == (None if whole else (rerun.test,))
        assert not self.views.gate.side(event.shard, event.side).measured, "a re-run that was measured is run again"

    def _asked(self, started: AttemptStarted) -> tuple[str, ...]:
        return self._all_targets(started) if started.targets is None else started.targets

    def _all_targets(self, started: AttemptStarted) -> tuple[str, ...]:
        assert self.views.gate.plan is not None
        plan = decode_document(self.documents[self.views.gate.plan.plan], Plan)
        shard = next(shard for shard in plan.shards if shard.shard == started.shard)
        return shard.candidate if started.side == "candidate" else shard.baseline

    def _needs_attention(self, target: str) -> bool:
        rows = rows_of(target, self.suite.candidate[target])
        hidden = self.suite.candidate[target].skipped is not None or target in self.suite.unimportable
        return hidden or any(row.outcome not in ("passed", "xpassed") for row in rows)

    def _next_end(self, started: AttemptStarted) -> End | None:
        ends = self.suite.ends.get(f"{started.shard}/{started.side}", ())
        return ends[started.attempt - 1] if started.attempt <= len(ends) else None

    def _result(self, started: AttemptStarted, end: End | None) -> RecordAttempt:
        if started.shard == COLLECTION:
            return self._collection(started, end)
        rerun = self.views.gate.reruns.get(started.shard)
        if rerun is not None and end is None and self._is_out_of_time(rerun, started):
            return record_message(started.shard, started.side, started.attempt, measured=0, cause="time-limit")
        asked = self._asked(started)
        reached = self._reached(asked, started.side, end)
        died = asked[reached : reached + 1]
        causes: dict[str, str | None] = dict.fromkeys(asked[:reached])
        causes |= dict.fromkeys(died, CAUSES[end or "dies"]) | dict.fromkeys(asked[reached + 1 :], "not-run")
        told = end not in ("blind", "lost")
        if not told:
            causes = dict.fromkeys(asked, CAUSES[end or "lost"])
        silent = self.suite.silent and bool(set(asked) & self.suite.killers.get(started.side, frozenset()))
        if silent:
            causes = dict.fromkeys(asked, CAUSES[end or "dies"])
        listed = {target: cause for target, cause in causes.items() if cause is not None}
        measured = tuple(target for target in asked if target not in listed)
        rows = [] if silent else self._rows(started.side, causes, rerun)
        if rerun is None:
            self.measured[started.side].update(measured)
        else:
            whole = rerun.test in ("", *rerun.targets)
            rows = [self._again(row, rerun, started.side) for row in rows if whole or row.test.text() == rerun.test]
        table = case_table(started.side, causes, rows)
        return record_message(
            started.shard, started.side, started.attempt, measured=len(measured),
            missing=listed if told or self._random.random() < 0.5 else {},
            cause=CAUSES[end or "dies"] if listed or end else None, counted=end != "cut",
            attention=tuple(t for t in measured if started.side == "candidate" and self._needs_attention(t)),
            table=None if end == "lost" else self._store(table),
            failures=tuple(FailureLine(row.test.text(), row.line) for row in rows if row.outcome in FAILS),
        )  # fmt: skip

    def _is_out_of_time(self, rerun: PlannedRerun, started: AttemptStarted) -> bool:
        """Whether the time of an attempt is not enough for a test that takes its time."""
        slow = self.suite.moods.get(rerun.test) == "slow" and started.side == "candidate"
        counted = self._rounds.get(f"{started.shard}/{started.side}", 0)
        return slow and counted == 0

    def _again(self, row: CaseRow, rerun: PlannedRerun, side: Side) -> CaseRow:
        """What a test reports when it is run again, by its mood."""
        mood = self.suite.moods.get(row.test.text(), "steady")
        if row.outcome in FAILS and side == "candidate" and self._passes(row.test.text(), rerun):
            return structs.replace(row, outcome="passed", line="")
        if rerun.kind == "alone" and mood == "dependent" and row.outcome in (*FAILS, "passed", "xpassed"):
            return structs.replace(row, outcome="failed", line="failed: alone")
        return row

    def _passes(self, test: str, rerun: PlannedRerun) -> bool:
        """Whether a failing test of the candidate passes when it is run again, by its mood."""
        passes = ("flaky", "slow", "interfering") if rerun.kind == "alone" else ("flaky", "slow")
        return self.suite.moods.get(test, "steady") in passes

    def _reached(self, asked: tuple[str, ...], side: Side, end: End | None) -> int:
        """How many of the targets are measured: those before the first killer, or fewer if the end comes before."""
        killers = [number for number, target in enumerate(asked) if target in self.suite.killers.get(side, ())]
        reached = killers[0] if killers else len(asked)
        return self._random.randrange(reached + 1) if end == "cut" else self._before(reached, len(asked), end)

    def _before(self, reached: int, asked: int, end: End | None) -> int:
        return self._random.randrange(min(reached + 1, asked)) if end == "dies" else reached

    def _rows(self, side: Side, causes: Mapping[str, str | None], rerun: PlannedRerun | None) -> list[CaseRow]:
        """Every row of what was measured, and some rows of what was not, as a record that breaks off has them."""
        files, broken = self.suite.files(side), self.suite.unimportable if side == "candidate" else frozenset()
        rows = []
        for target in causes:
            fails = target in broken and not (rerun is not None and self._passes(target, rerun))
            rows += [case_row(TestId(target), "error")] if fails else rows_of(target, files[target])
        return [row for row in rows if causes[row.test.target] is None or self._random.random() < 0.5]

    def _collection(self, started: AttemptStarted, end: End | None) -> RecordAttempt:
        if end is not None:
            return record_message(
                COLLECTION, started.side, started.attempt, measured=0, cause=CAUSES[end], counted=end != "cut"
            )
        files = self.suite.files(started.side)
        held = inventory(started.side, *inventory_targets(files))
        return record_message(
            COLLECTION,
            started.side,
            started.attempt,
            measured=len(held.targets),
            inventory=self._store(held),
            evidence_key=self._store(self.circumstances),
        )

    def _store(self, document: Struct) -> str:
        data = encode_document(document)
        digest = sha256(data).hexdigest()
        self.documents[digest] = data
        return digest


def finished(suite: Suite, policy: GatePolicy, seed: int = 0) -> PureGate:
    """The gate, driven to its end without interruption."""
    gate = PureGate(suite, policy, seed)
    gate.start()
    assert gate.drive()
    return gate


def doubted(gate: PureGate) -> Iterator[list[Event]]:
    """The history before the verdict, with one attempt's record less, or with one that says less or claims more."""
    history = [event for event in gate.events if not isinstance(event, VerdictDecided)][:-2]
    for number, event in enumerate(history):
        if not isinstance(event, AttemptRecorded) or event.shard == COLLECTION:
            continue
        for changed in (
            [],
            [_changed(event, table=None)],
            [_changed(event, attention=())],
            [_changed(event, complete=False, missing=())],
            [_changed(event, complete=True, missing=(), measured_targets=event.targets)],
            [_changed(event, complete=False, missing=(), measured_targets=0, table=None, attention=())],
        ):
            yield [*history[:number], *changed, *history[number + 1 :]]


def _changed(event: AttemptRecorded, **changes: object) -> AttemptRecorded:
    return structs.replace(event, **changes)
