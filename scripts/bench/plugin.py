"""The pytest plug-in beside a session without it: what it adds to many small tests of a real project.

Usage: python scripts/bench/plugin.py [--repetitions 15]. Exit code 1 over a limit. Where valgrind is installed,
instructions are counted, which hardly differ between runs; elsewhere the CPU time of repeated sessions is compared.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from commands.config.settings import RunnerSettings
from commands.runners import pytest as adapter
from scripts.bench.measuring.lib import Run, Watch, compare, report
from scripts.bench.measuring.programs import cpu_seconds
from scripts.real.project import RELEASES, interpreter_of, plain_variables, write_release

TARGETS = ("tests/test_basic.py", "tests/test_options.py")
LIMIT = 1.03

Session = tuple[Sequence[str], Path, dict[str, str]]
"""A command line, its folder and its variables."""


def sessions(home: Path) -> tuple[Session, Session]:
    """The session of an attempt, and the same without the plug-in, in one checkout."""
    tree, record, other = home / "tree", home / "record", home / "other"
    write_release(tree, RELEASES["8.3.0"])
    record.mkdir()
    (home / "targets.json").write_text(adapter.targets_document(TARGETS), "utf-8")
    # The order of a set must not make a difference between two sessions.
    variables = plain_variables(home) | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(tree / "src")}
    recording = adapter.plugin_environment(
        record_directory=record, tree=tree, checkout=other, other_tree=other, first_party=("click",)
    )
    recording["LEDGER_TARGETS_FILE"] = str(home / "targets.json")
    recording["PYTHONPATH"] = f"{tree / 'src'}:{adapter.PLUGIN_DIRECTORY}"
    argv = adapter.run_command(RunnerSettings(), interpreter_of("pytest-8"), home / "tmp")
    without = argv.index("-p")
    plain = (*argv[:without], *argv[without + 2 :], *TARGETS)
    return (argv, tree, variables | recording), (plain, tree, variables)


def instructions(valgrind: str, session: Session) -> int:
    """How many instructions the session takes in user space, without the programs that its tests start."""
    argv, tree, variables = session
    counting = (valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null")
    ended = subprocess.run((*counting, *argv), cwd=tree, env=variables, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", ended.stderr)
    if found is None:
        raise RuntimeError(f"valgrind counted nothing: {ended.stderr[-500:]}")
    return int(found[1])


def timed(session: Session) -> Run:
    """The session as a measured run."""

    def run(watch: Watch) -> None:
        watch.cpu_seconds += cpu_seconds(*session)

    return run


def measure(home: Path, repetitions: int) -> bool:
    """The one figure."""
    recorded, plain = sessions(home)
    for session in (recorded, plain):
        cpu_seconds(*session)  # Everything is compiled from here on.
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        unit = "x CPU time of the session without the plug-in"
        return compare("plugin.cpu", timed(recorded), timed(plain), unit=unit, limit=LIMIT, repetitions=repetitions)
    ratio = instructions(valgrind, recorded) / instructions(valgrind, plain)
    unit = "x instructions of the session without the plug-in"
    # No machine and no bad moment makes a difference here, so nothing is tolerated.
    return report("plugin.instructions", ratio, unit=unit, limit=LIMIT, spread=(ratio, ratio)) and ratio <= LIMIT


def main() -> int:
    """Measure; 1 when the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    repetitions = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as name:
        within = measure(Path(name), repetitions)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
