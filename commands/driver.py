"""The driver: takes one run to its end, or to where it is told to stop. Level-triggered; resuming is driving again.

Each tick: record what has ended; look for a request to stop; handle the next message; start what is promised and does
not run yet; then sleep until something changes. Only this thread appends to the run.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from commands.decide.next import next_message
from commands.effects.ports import Attempts, Machine, StopReason
from commands.executors.api import Executor, Job
from commands.loop import Loop
from commands.messages import Message, RecordAttempt, ResumeRun, StopRun, TakeRun
from ledger.errors import LedgerError
from ledger.events import AttemptStarted
from projections.registry import RunViews

TICK_SECONDS = 1.0


class Driver:
    """Drives the run of one stream. The caller holds the run's lock."""

    def __init__(
        self,
        loop: Loop,
        executor: Executor,
        attempts: Attempts,
        machine: Machine,
        *,
        gathered: Callable[[Message], Message],
        stop_requested: Callable[[], StopReason | None],
        preparing: Callable[[], AbstractContextManager[None]],
        changed: Callable[[RunViews], None],
    ) -> None:
        self._loop, self._executor, self._attempts, self._machine = loop, executor, attempts, machine
        self._gathered = gathered
        self._stop_requested, self._preparing, self._changed = stop_requested, preparing, changed
        self._running: dict[str, AttemptStarted] = {}
        self._waiting = Waiting()

    def take(self, stream: str, host: str, pid: int, process: str) -> None:
        """Become the driver, and bring to rest what an earlier driver left. `process` was never a driver before."""
        self._loop.handle(TakeRun(stream=stream, host=host, pid=pid, process=process))
        views = self._loop.views(stream)
        for attempt in views.gate.in_flight():
            if attempt.started.term < views.run.term:
                name = self._attempts.name(views, attempt.started)
                end = self._executor.settle(name, self._attempts.directory(views, attempt.started))
                self._loop.handle(self._attempts.record(views, attempt.started, end))

    def resume(self, stream: str, step: str) -> None:
        """Take the run up again from this step."""
        self._loop.handle(ResumeRun(stream=stream, step=step))

    def drive(self, stream: str) -> RunViews:
        """Drive until the run is finished or a stop is requested; returns where it then stands."""
        while True:
            self._record_ends(stream)
            views = self._loop.views(stream)
            self._changed(views)
            reason = self._stop_requested()
            if reason is not None:
                return self._stop(stream, reason)
            if views.run.status == "finished":
                return views
            message = next_message(views, stream, self._free_slots(views))
            if message is not None:
                self._loop.handle(self._gathered(message))
            elif not self._start_promised(stream):
                self._executor.wait(TICK_SECONDS)

    def _free_slots(self, views: RunViews) -> int:
        """How many attempts may be promised; none while what found no room is waited for."""
        waiting, limit_seconds = self._waiting, views.run.policy.placing.start_wait_seconds
        in_flight = len(views.gate.in_flight())
        if self._running:
            waiting.restart()
        if waiting.shortage and (self._running or not waiting.is_over(limit_seconds)):
            waiting.shortage = self._machine.shortage(waiting.needed_bytes)
            if waiting.shortage:
                return 0
        return views.run.policy.parallel - in_flight

    def _record_ends(self, stream: str) -> None:
        for end in self._executor.observe():
            attempt = self._running.pop(end.name)
            self._machine.release(end.name)
            views = self._loop.views(stream)
            self._loop.handle(self._attempts.record(views, attempt, end))

    def _start_promised(self, stream: str) -> bool:
        """Start what is promised under this term and does not run yet; True when one could not be."""
        views = self._loop.views(stream)
        for attempt in views.gate.in_flight():
            name = self._attempts.name(views, attempt.started)
            if name in self._running or attempt.started.term != views.run.term:
                continue
            try:
                job = self._prepared(views, attempt.started)
            except LedgerError as error:
                self._loop.handle(_not_prepared(stream, attempt.started, error))
                return True
            if job is None:
                return True
            if not self._has_room(views, stream, name, attempt.started):
                return True
            self._executor.start(job)
            self._running[name] = attempt.started
        return False

    def _has_room(self, views: RunViews, stream: str, name: str, attempt: AttemptStarted) -> bool:
        """Set room aside for an attempt; without any, record that it could not be started.

        That uses up no round as long as room may still come: while others of the run are running, and for a while
        after that.
        """
        needed_bytes = attempt.reserved_bytes or 0
        shortage = self._machine.book(name, needed_bytes)
        if not shortage:
            self._waiting = Waiting()
            return True
        if not self._waiting.shortage:
            self._waiting.restart()
        counted = self._waiting.is_over(views.run.policy.placing.start_wait_seconds)
        self._waiting.shortage, self._waiting.needed_bytes = shortage, needed_bytes
        self._loop.handle(_empty_record(stream, attempt, "no-room", shortage, counted=counted))
        return False

    def _prepared(self, views: RunViews, attempt: AttemptStarted) -> Job | None:
        """The job; None when a request to stop cut its preparation short."""
        try:
            with self._preparing():
                return self._attempts.job(views, attempt)
        except KeyboardInterrupt:
            if self._stop_requested() is None:
                raise
            return None

    def _stop(self, stream: str, reason: StopReason) -> RunViews:
        """End every job, record what each had measured, and record the stop."""
        for name in self._running:
            self._executor.stop(name)
        while self._running:
            self._executor.wait(TICK_SECONDS)
            self._record_ends(stream)
        for attempt in self._loop.views(stream).gate.in_flight():
            self._loop.handle(_never_started(stream, attempt.started))
        self._loop.handle(StopRun(stream=stream, reason=reason))
        views = self._loop.views(stream)
        self._changed(views)
        return views


class Waiting:
    """How long nothing could be started for want of room, since nothing of the run was running any more."""

    def __init__(self) -> None:
        self.shortage, self.needed_bytes = "", 0
        self.restart()

    def restart(self) -> None:
        """Something is running, so there may be room soon."""
        self._since_seconds = time.monotonic()

    def is_over(self, limit_seconds: float) -> bool:
        """Whether it was waited for long enough."""
        return time.monotonic() - self._since_seconds >= limit_seconds


def _not_prepared(stream: str, attempt: AttemptStarted, error: LedgerError) -> RecordAttempt:
    """The attempt could not even be made ready: unmeasured, and it used up its round."""
    return _empty_record(stream, attempt, error.code, f"{error.message} {error.hint}".strip(), counted=True)


def _never_started(stream: str, attempt: AttemptStarted) -> RecordAttempt:
    """The attempt was promised, but the stop came first."""
    return _empty_record(stream, attempt, "stopped", "stopped before it was started", counted=False)


def _empty_record(stream: str, attempt: AttemptStarted, cause: str, detail: str, *, counted: bool) -> RecordAttempt:
    return RecordAttempt(
        stream=stream,
        shard=attempt.shard,
        side=attempt.side,
        attempt=attempt.attempt,
        commit=attempt.commit,
        complete=False,
        counted=counted,
        cause=cause,
        detail=detail,
        targets=len(attempt.targets or ()),
    )
