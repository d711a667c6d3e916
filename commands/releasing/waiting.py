"""Carries out `wait-until`: waits for a time, and for nothing else."""

import re
import time
from datetime import UTC, datetime, timedelta

from commands.releasing.parts import Bench, Done, failed, passed, unmeasured
from ledger.steps import Step
from projections.release.state import StepAttempt

_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(Z|[+-](?:0\d|1[0-4]):[0-5]\d)")
POLL_SECONDS = 0.5


def time_of(until: str, since: datetime) -> datetime:
    """The time that is meant: a date with a time and its offset from UTC, or a time of day with one, then the next such
    time after `since`. Raises ValueError for anything else."""
    of_day = _OF_DAY.fullmatch(until)
    if not of_day:
        found = datetime.fromisoformat(until)
        if found.tzinfo is None:
            raise ValueError(f"{until!r} has no offset from UTC, such as Z or +02:00")
        return found
    zone = datetime.fromisoformat(f"2000-01-01T00:00:00{of_day[3]}").tzinfo
    here = since.astimezone(zone).replace(hour=int(of_day[1]), minute=int(of_day[2]), second=0, microsecond=0)
    return here if here >= since else here + timedelta(days=1)


def carry_wait(bench: Bench, step: Step, attempt: StepAttempt, adopted: bool) -> Done:
    """Wait. The time is reckoned from when the attempt was begun, so that another driver waits for the same one."""
    try:
        until = time_of(step.until, datetime.fromisoformat(attempt.started_at))
    except ValueError as problem:
        return failed("until-invalid", str(problem))
    if datetime.now(UTC) < until:
        bench.display.note(f"{step.name}: waiting until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    while datetime.now(UTC) < until:
        if bench.stopping():
            return unmeasured("step-stopped", "stopped while it was waited")
        time.sleep(POLL_SECONDS)
    return passed(f"it is past {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
