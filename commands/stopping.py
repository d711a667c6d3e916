"""`ledger stop`: asks the driver of a run to stop, and waits until it has."""

import os
import time

from commands.wiring import Home
from ledger.errors import LedgerError
from projections.run.summary import RunSummary

STOP_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.1


class StopPending(LedgerError):
    """The driver was asked to stop and is still at work."""

    code = "stop-pending"
    exit_code = 4


def stop_run(home: Home, run: str) -> RunSummary:
    """Ask the run's driver to stop and wait until it has; a run without a driver is left as it is.

    Raises StopPending when the driver does not answer in time.
    """
    request = home.stop_file(run)
    with home.open_ledger() as opened:
        deadline = time.monotonic() + STOP_LIMIT_SECONDS
        while opened.driven(run):
            if time.monotonic() > deadline:
                raise StopPending(
                    f"run {run} was asked to stop and has not stopped within {STOP_LIMIT_SECONDS:g} s",
                    f"it may be ending its tests; `ledger status {run}` says when it has stopped",
                )
            # A driver that has only just begun takes an older request away, so it is made again until it works.
            if not request.exists():
                request.write_text(f"asked by process {os.getpid()}\n", "utf-8")
            time.sleep(POLL_SECONDS)
        return opened.summary(run)
