"""Measure one way of doing something against another, side by side in one process, by the CPU time of the process.

Absolute times drift with the machine; the ratio of two runs that follow each other hardly does.
"""

import gc
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

TOLERANCE = 1.3
"""A figure fails only beyond its limit by this factor: so much do machines, and their bad moments, differ."""


class Run(Protocol):
    """One measured run: does its preparation untimed, and the subject itself within `watch.timed()`."""

    def __call__(self, watch: "Watch") -> None: ...


class Watch:
    """Adds up the CPU seconds of what is done within `timed()`."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the CPU time of the block."""
        gc.collect()
        start = time.process_time()
        yield
        self.cpu_seconds += time.process_time() - start


def compare(figure: str, subject: Run, reference: Run, *, unit: str, limit: float, repetitions: int = 5) -> bool:
    """Print the median ratio of the subject's CPU time to the reference's as a JSON line; True as `report` says."""
    ratios = sorted(_seconds(subject) / _seconds(reference) for _ in range(repetitions))
    return report(figure, statistics.median(ratios), unit=unit, limit=limit, spread=(ratios[0], ratios[-1]))


def report(figure: str, ratio: float, *, unit: str, limit: float, spread: tuple[float, float]) -> bool:
    """Print one figure as a JSON line; True when it is within its limit and the tolerance."""
    line = {
        "figure": figure,
        "ratio": round(ratio, 3),
        "limit": limit,
        "spread": [round(end, 3) for end in spread],
        "unit": unit,
    }
    print(json.dumps(line), flush=True)
    return ratio <= limit * TOLERANCE


def _seconds(run: Run) -> float:
    watch = Watch()
    run(watch)
    return watch.cpu_seconds
