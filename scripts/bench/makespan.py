"""How long the longest shard takes beside what was planned: on a real project, and on one whose files differ greatly.

Each project is gated several times; the first gate learns, every later one is planned by what the gates before it
measured. Usage: python scripts/bench/makespan.py [--repetitions 3]. Exit code 1 when a median is over the limit.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scripts.bench.measuring.lib import report
from scripts.real.project import LEDGER, Project, interpreter_of, make_project

CANDIDATE, BASELINE = "8.3.0", "8.2.1"
PROCESSES = 2
LIMIT = 0.10
"""The longest shard may take so much more or less than planned, as a part of the plan."""

FILES = 40


def skewed(home: Path) -> Path:
    """A repository of two releases, with test files of very different lengths: most of the time is in a few."""
    chance = random.Random(1)
    checkout = home / "skewed"
    (checkout / "tests").mkdir(parents=True)
    for number in range(FILES):
        wait, sums = chance.lognormvariate(-2.5, 1.5), chance.randrange(20_000, 200_000)
        (checkout / "tests" / f"test_{number:02}.py").write_text(
            "import time\n\n\n"
            f"def test_waits() -> None:\n    time.sleep({wait:.4f})\n\n\n"
            f"def test_works() -> None:\n    assert sum(range({sums})) > 0\n"
        )
    (checkout / "ledger.toml").write_text(
        f"[gate]\nparallel = {PROCESSES}\n[runner]\npython = {json.dumps(sys.executable)}\n"
    )
    _git(checkout, "init", "--quiet", "--initial-branch=main")
    for tag in ("v1", "v2"):
        (checkout / "VERSION").write_text(tag)
        _git(checkout, "add", "--all")
        _git(checkout, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", tag)
        _git(checkout, "tag", tag)
    return checkout


def _git(checkout: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=checkout, check=True, capture_output=True)


def gated(checkout: Path, variables: dict[str, str], candidate: str, baseline: str) -> dict[str, Any]:
    """Where the time of one more gate went."""
    gate = (str(LEDGER), "gate", candidate, "--baseline", baseline)
    subprocess.run(gate, cwd=checkout, env=variables, capture_output=True, check=False)
    told = subprocess.run(
        [LEDGER, "timing", "--json"], cwd=checkout, env=variables, capture_output=True, text=True, check=True
    )
    timing: dict[str, Any] = json.loads(told.stdout)
    return timing


def measured(name: str, checkout: Path, variables: dict[str, str], tags: tuple[str, str], repetitions: int) -> bool:
    """Gate a project, and report how far the longest shard is from the plan."""
    gated(checkout, variables, *tags)
    timings = [gated(checkout, variables, *tags) for _ in range(repetitions)]
    deviations = sorted(abs(timing["makespan_deviation"]) for timing in timings)
    planned = statistics.median(timing["makespan_seconds"] for timing in timings)
    unit = f"of the planned {planned:.1f} s, in {PROCESSES} shards at a time"
    spread = (deviations[0], deviations[-1])
    return report(f"makespan.{name}", statistics.median(deviations), unit=unit, limit=LIMIT, spread=spread)


def main() -> int:
    """Measure both projects; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    repetitions = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        real: Project = make_project(home, interpreter_of("pytest-8"), {"parallel": PROCESSES})
        within = [measured("click", real.checkout, dict(real.variables), (CANDIDATE, BASELINE), repetitions)]
        variables = dict(real.variables)
        within.append(measured("skewed", skewed(home), variables, ("v2", "v1"), repetitions))
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
