"""Histories of runs with the time of each event: made by hand, or by chance."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from msgspec import structs

from ledger.events import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    DriverReplaced,
    Event,
    GatePolicy,
    Measured,
    Planned,
    PlannedShard,
    PlanPolicy,
    ResumeStarted,
    RunFinished,
    RunStopped,
    StepStarted,
)
from ledger.record import RecordedEvent
from ledger.values import SIDES, Side
from tests.support.makers import COMMITS, attempt_recorded, attempt_started, driver_started, recorded, run_started

START = datetime(2030, 1, 2, tzinfo=UTC)
Timed = tuple[int, Event]
"""An event, and when it is recorded, in seconds from the start."""


def at(second: int) -> str:
    """This second, as it is stored."""
    return (START + timedelta(seconds=second)).isoformat()


def timed(history: Iterable[Timed]) -> list[RecordedEvent]:
    """The events as they come back from the ledger, each with its time."""
    pairs = list(history)
    told = recorded(event for _, event in pairs)
    return [
        structs.replace(one, header=structs.replace(one.header, time=at(second)))
        for one, (second, _) in zip(told, pairs, strict=True)
    ]


def measured(started: AttemptStarted, session_seconds: float) -> Measured:
    """What an attempt needed, of which only the session's own time matters."""
    return Measured(
        shard=started.shard, side=started.side, attempt=started.attempt, commit=COMMITS[started.side], table="1" * 64,
        targets=1, seconds=1.0, session_seconds=session_seconds, session_memory_bytes=None, peak_memory_bytes=None,
        memory_basis="none", memory_method="pss", sampling_seconds=None, exceeded=(),
    )  # fmt: skip


def plan_of(*seconds: float | None, targets: int = 2) -> Planned:
    """A plan with a shard for each of these times."""
    shards = tuple(
        PlannedShard(shard=f"shard-{number}", candidate_targets=targets, absent=(), seconds=one)
        for number, one in enumerate(seconds, start=1)
    )
    known = [one for one in seconds if one is not None]
    return Planned(
        commit=COMMITS["candidate"], plan="2" * 64, policy="usage/1", shards=shards,
        makespan_seconds=max(known, default=None), bound_seconds=max(known) / 2 if known else None,
    )  # fmt: skip


class Chance:
    """A run in which everything happens by chance: attempts, deaths of drivers, stops, and a clock that may go back."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.history: list[Timed] = []
        self._second, self._term = 0, 1
        self._in_flight: list[tuple[int, AttemptStarted]] = []
        self._tried: dict[tuple[str, Side], int] = {}
        target = self._random.choice([0.0, 10.0, 1e9])
        policy = GatePolicy(parallel=self._random.randint(1, 3), plan=PlanPolicy(target_seconds=target))
        for event in (run_started(policy), driver_started(), StepStarted(step="gate")):
            self._tell(event)
        for side in SIDES:
            self._start(COLLECTION, side)
        self._shards = [f"shard-{number}" for number in range(1, self._random.randint(1, 3) + 1)]
        self._tell(plan_of(*(self._random.choice([None, 10.0, 20.0]) for _ in self._shards)))
        for _ in range(self._random.randint(0, 25)):
            self._step()
        if self._random.random() < 0.5:
            self._finish()

    def _step(self) -> None:
        chosen = self._random.random()
        if chosen < 0.4:
            self._start(self._random.choice(self._shards), self._random.choice(SIDES))
        elif chosen < 0.8 and self._in_flight:
            self._record(self._random.randrange(len(self._in_flight)))
        elif chosen < 0.9:
            self._die()
        else:
            self._stop()

    def _tell(self, event: Event, least: int = -3, most: int = 20) -> None:
        self._second = max(0, self._second + self._random.randint(least, most))
        self.history.append((self._second, event))

    def _start(self, shard: str, side: Side) -> None:
        if any((one.shard, one.side) == (shard, side) for _, one in self._in_flight):
            return
        number = self._tried[shard, side] = self._tried.get((shard, side), 0) + 1
        targets = ("a.py",) if self._random.random() < 0.2 else None
        started = attempt_started(shard, side, number, term=self._term, targets=targets)
        self._tell(started)
        self._in_flight.append((self._second, started))

    def _record(self, index: int) -> None:
        promised, started = self._in_flight.pop(index)
        began = promised + self._random.randint(-1, 3)
        duration = 0 if self._random.random() < 0.2 else self._random.randint(0, max(0, self._second - began))
        event = attempt_recorded(
            started.shard, started.side, started.attempt, term=started.term, duration_seconds=float(duration),
            started_at=at(began) if self._random.random() < 0.9 else "", cause=self._random.choice([None, "lost"]),
            measured=self._random.randint(0, 1),
        )  # fmt: skip
        self._tell(event)
        if self._random.random() < 0.5:
            self._tell(measured(started, self._random.randint(0, 9)), 0, 0)

    def _die(self) -> None:
        self._term += 1
        replaced = DriverReplaced(term=self._term, previous_term=self._term - 1, host="here", pid=1, reason="died")
        self._tell(replaced, 0, 60)
        # A driver that dies again before it has settled anything leaves that to the next one.
        while self._in_flight and self._random.random() < 0.8:
            self._record(0)

    def _stop(self) -> None:
        while self._in_flight:
            self._record(0)
        self._tell(RunStopped(reason="asked", term=self._term))
        self._term += 1
        self._tell(driver_started(self._term), 0, 60)
        self._tell(ResumeStarted(step="gate", number=1, owed=()))

    def _finish(self) -> None:
        while self._in_flight:
            self._record(0)
        self._tell(RunFinished(verdict="passed"))


def records(history: Iterable[Timed]) -> list[AttemptRecorded]:
    """The records of a history."""
    return [event for _, event in history if isinstance(event, AttemptRecorded)]
