"""The time, and what names a process beyond doubt: its number, its start time, and the boot of both."""

import os
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path


class Clock:
    """The real clock. Tests give the loop one of another kind."""

    def utc_now(self) -> str:
        """The time in UTC as ISO 8601 with microseconds, `2026-01-31T08:00:00.000000Z`."""
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Seconds since some moment in the past; never goes backwards."""
        return time.monotonic()

    def unique_id(self) -> str:
        """A name that was never given before: 32 hexadecimal digits."""
        return uuid.uuid4().hex


def boot_id() -> str:
    """Names this boot and its numbering of processes; "" where the system does not tell.

    The numbering is part of it because containers on one machine share the boot, but each counts for itself.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def process_start(pid: int) -> str | None:
    """When the process started, in clock ticks since boot; None when it does not exist or has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    state, *fields = status[status.rindex(b")") + 1 :].split()
    return None if state in (b"Z", b"X") else fields[18].decode("ascii")


def process_alive(pid: int, started: str, boot: str) -> bool | None:
    """Whether that very process lives; None when it cannot be known, as for one of another boot."""
    if not boot or boot != boot_id():
        return None
    try:
        return process_start(pid) == started
    except PermissionError:
        return None
