"""How a job ended, in short."""

from typing import Any

from commands.executors.api import JobEnd


def ended(code: int, **fields: Any) -> JobEnd:
    """An end as Python reports it: a negative code is a signal. It took ten seconds."""
    values: dict[str, Any] = {
        "name": "job",
        "end": "signalled" if code < 0 else "exited",
        "exit_code": None if code < 0 else code,
        "signal": -code if code < 0 else None,
        "started_at": "2026-01-01T00:00:00.000000Z",
        "duration_seconds": 10.0,
        "peak_memory_bytes": None,
        "memory_method": "none",
    }
    return JobEnd(**{**values, **fields})
