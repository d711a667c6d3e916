"""The driver: takes one run to its end, or to where it is told to stop. Level-triggered; resuming is driving again.

Each tick: record what has ended; look for a request to stop; handle the next message; start what is promised and does
not run yet; then sleep until something changes. Only this thread appends to the run.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from commands.decide.next import next_message
from commands.effects.ports import Attempts, StopReason
from commands.executors.api import Executor, Job
from commands.loop import Loop
from commands.messages import RecordAttempt, ResumeRun, StopRun, TakeRun
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
        *,
        stop_requested: Callable[[], StopReason | None],
        preparing: Callable[[], AbstractContextManager[None]],
        changed: Callable[[RunViews], None],
    ) -> None:
        self._loop, self._executor, self._attempts = loop, executor, attempts
        self._stop_requested, self._preparing, self._changed = stop_requested, preparing, changed
        self._running: dict[str, AttemptStarted] = {}

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
            free_slots = views.run.policy.parallel - len(views.gate.in_flight())
            message = next_message(views, stream, free_slots)
            if message is not None:
                self._loop.handle(message)
            elif not self._start_promised(stream):
                self._executor.wait(TICK_SECONDS)

    def _record_ends(self, stream: str) -> None:
        for end in self._executor.observe():
            attempt = self._running.pop(end.name)
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
            self._executor.start(job)
            self._running[name] = attempt.started
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
