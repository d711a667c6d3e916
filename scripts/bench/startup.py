"""How long a user waits for nothing: `ledger --version` beside a bare interpreter, `ledger status` beside its imports.

Usage: python scripts/bench/startup.py [--repetitions 15]. Exit code 1 over a limit. Measured is the
wheel, installed as a user does, so that all modules are compiled.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.measuring.lib import Run, Watch, compare
from scripts.bench.measuring.programs import cpu_seconds
from scripts.bench.replay import build

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("ledger", "projections", "commands")
RUNS_OF_EVENTS = (100, 10_000)
LIMIT = 2.0
STARTS = 5
"""One start is too short to be measured alone."""


def install(directory: Path) -> Path:
    """Build the wheel from a copy, install it with what it needs, and return the folder of its programs."""
    copy, environment = directory / "source", directory / "venv"
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    _run(sys.executable, *pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", directory, copy)
    _run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    _run(python, *pip, "install", "--compile", "--require-hashes", "-r", ROOT / "requirements.lock")
    _run(python, *pip, "install", "--compile", "--no-deps", *directory.glob("*.whl"))
    return environment / "bin"


def make_repository(repository: Path, events: int) -> Path:
    """A repository whose ledger holds one run of about so many events."""
    _run("git", "init", "--quiet", repository)
    build(repository / ".git" / "ledger", events)
    return repository


def starts(directory: Path, *argv: str | Path) -> Run:
    """Start a program a few times, and count its CPU time."""
    hidden = ("PYTHON", "LEDGER_", "VIRTUAL_ENV", "COV_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}

    def run(watch: Watch) -> None:
        for _ in range(STARTS):
            watch.cpu_seconds += cpu_seconds(argv, directory, variables)

    return run


def measure(directory: Path, repetitions: int) -> list[bool]:
    """The figures."""
    programs = install(directory)

    def figure(name: str, verb: str, repository: Path, code: str) -> bool:
        return compare(
            name,
            starts(repository, programs / "ledger", verb),
            starts(repository, programs / "python", "-c", code),
            unit=f"x CPU of python -c '{code}'",
            limit=LIMIT,
            repetitions=repetitions,
        )

    within = [figure("startup.version", "--version", directory, "pass")]
    for events in RUNS_OF_EVENTS:
        repository = make_repository(directory / str(events), events)
        within.append(figure(f"startup.status-{events}", "status", repository, "import click, msgspec, sqlite3"))
    return within


def _run(*argv: str | Path) -> None:
    subprocess.run(argv, check=True, stdout=sys.stderr)


def main() -> int:
    """Measure everything; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    repetitions = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as name:
        within = measure(Path(name), repetitions)
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
