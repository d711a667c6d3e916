"""`ledger stop`: asks the driver of a run to stop, and waits until it has."""

import os
import time

from commands.wiring import Home
from projections.run.summary import RunSummary

STOP_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.1


def stop_run(home: Home, run: str) -> RunSummary:
    """Ask the run's driver to stop and wait until it has; a run without a driver is left as it is."""
    with home.open_ledger() as opened:
        if opened.driven(run):
            home.stop_file(run).write_text(f"asked by process {os.getpid()}\n", "utf-8")
        deadline = time.monotonic() + STOP_LIMIT_SECONDS
        while opened.driven(run) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return opened.summary(run)
