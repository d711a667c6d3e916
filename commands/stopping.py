"""Requests to stop: how a driver learns of them, and how another process makes one."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from commands.wiring import Home
from projections.run.summary import RunSummary

if TYPE_CHECKING:
    from commands.effects.ports import StopReason

STOP_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.1


class StopRequests:
    """What asks the driver to stop: a signal to this process, or the stop file of the run.

    The first signal sets a flag that the driver's next tick reads; it cuts a preparation short, which no tick would
    see the end of. The second signal ends this process at once, and the supervisors end their jobs.
    """

    def __init__(self, stop_file: Path) -> None:
        self._stop_file = stop_file
        self._signalled = False
        self._preparing = False

    def install(self, wakeup_fd: int) -> None:
        """Take the signals over; the descriptor is written to when one comes, which ends the driver's sleep."""

        def handle(number: int, frame: FrameType | None) -> None:
            again, self._signalled = self._signalled, True
            if again or self._preparing:
                raise KeyboardInterrupt

        signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, handle)
        signal.signal(signal.SIGTERM, handle)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """While this lasts, the first signal raises KeyboardInterrupt, because no tick would come to see its flag."""
        self._preparing = True
        try:
            yield
        finally:
            self._preparing = False

    def requested(self) -> "StopReason | None":
        """Why to stop, None for going on."""
        if self._signalled:
            return "interrupted"
        return "asked" if self._stop_file.exists() else None

    def answered(self) -> None:
        """The request has been carried out, or there is nothing left to stop."""
        self._stop_file.unlink(missing_ok=True)


def stop_run(home: Home, run: str) -> RunSummary:
    """Ask the run's driver to stop and wait until it has; a run without a driver is left as it is."""
    with home.open_ledger() as opened:
        if opened.driven(run):
            home.stop_file(run).write_text(f"asked by process {os.getpid()}\n", "utf-8")
        deadline = time.monotonic() + STOP_LIMIT_SECONDS
        while opened.driven(run) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return opened.summary(run)
