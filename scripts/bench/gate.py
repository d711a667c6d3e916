"""A whole gate of a real project beside plain pytest runs of the same targets, on the same number of processes.

Usage: python scripts/bench/gate.py [--repetitions 5]. Exit code 1 over a limit. The plain runs are those of the gate's
plan (one for each side of each shard) in fresh checkouts, as the gate's are, with the same interpreter and variables.
"""

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ledger.events import Planned
from ledger.evidence import EvidenceStore
from ledger.store.reader import Reader
from ledger.tables import Plan, decode_document
from scripts.bench.measuring.lib import report
from scripts.bench.measuring.programs import cpu_seconds
from scripts.real.project import (
    LEDGER,
    RACES,
    RELEASES,
    Project,
    interpreter_of,
    make_project,
    plain_variables,
    write_release,
)

CANDIDATE, BASELINE = "8.3.0", "8.2.1"
PROCESSES = 2
LIMIT = 1.25


class Cost(NamedTuple):
    """What something took, in seconds."""

    wall: float
    cpu: float


def gate_cost(project: Project) -> Cost:
    """One gate from nothing to its verdict."""
    start = time.monotonic()
    argv = (LEDGER, "gate", CANDIDATE, "--baseline", BASELINE)
    cpu = cpu_seconds(argv, project.checkout, project.variables)
    return Cost(time.monotonic() - start, cpu)


def plain_cost(project: Project, plan: Plan) -> Cost:
    """The plain runs of a plan, candidate before baseline, in fresh checkouts."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(PROCESSES) as pool:
        home = Path(name)
        for tag in (CANDIDATE, BASELINE):
            write_release(home / tag, RELEASES[tag])
        sides = [side for shard in plan.shards for side in ((CANDIDATE, shard.candidate), (BASELINE, shard.baseline))]
        start = time.monotonic()
        costs = [pool.submit(_session, project.python, home, tag, targets) for tag, targets in sides]
        cpu = sum(cost.result() for cost in costs)
        return Cost(time.monotonic() - start, cpu)


def _session(python: Path, home: Path, tag: str, targets: tuple[str, ...]) -> float:
    """The CPU time of one plain session."""
    variables = plain_variables(home) | {"PYTHONPATH": str(home / tag / "src")}
    argv: list[str | Path] = [python, "-m", "pytest", "-p", "no:cacheprovider", *RACES, *targets]
    return cpu_seconds(argv, home / tag, variables)


def plan_of(project: Project) -> Plan:
    """The plan of the newest gate."""
    directory = project.checkout / ".git" / "ledger"
    with Reader.open(directory / "ledger.sqlite") as reader:
        plans = [recorded.event.plan for recorded in reader.events() if isinstance(recorded.event, Planned)]
    return decode_document(EvidenceStore(directory / "evidence").get(plans[-1]), Plan)


def main() -> int:
    """Measure both figures; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    repetitions = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as name:
        project = make_project(Path(name), interpreter_of("pytest-8"), {"parallel": PROCESSES})
        # The first gate compiles the ledger's own modules and gives the plan.
        gate_cost(project)
        plan = plan_of(project)
        pairs = [(gate_cost(project), plain_cost(project, plan)) for _ in range(repetitions)]
    within = []
    for figure in ("wall", "cpu"):
        ratios = sorted(getattr(gate, figure) / getattr(plain, figure) for gate, plain in pairs)
        plain_seconds = statistics.median(getattr(plain, figure) for _, plain in pairs)
        unit = f"x {figure} time of the plain runs ({plain_seconds:.1f} s), {PROCESSES} at a time"
        spread = (ratios[0], ratios[-1])
        within.append(report(f"gate.{figure}", statistics.median(ratios), unit=unit, limit=LIMIT, spread=spread))
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
