"""Real pytest sessions of small projects, run with the plug-in and read with the reader.

LEDGER_TEST_PYTHON names another interpreter for them, to try other versions of Python and pytest.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from commands.config.settings import RunnerSettings
from commands.executors.api import JobEnd
from commands.readers.attempt import AttemptReading, CollectionReading
from commands.readers.pytest_lines import read_attempt, read_collection
from commands.runners import pytest as adapter
from ledger.tables import CaseRow, Inventory
from ledger.values import TestId

PYTHON = Path(os.environ.get("LEDGER_TEST_PYTHON", sys.executable))
COMMIT = "c" * 40
LIMIT_SECONDS = 120


def pytest_version() -> tuple[int, ...]:
    """The version of the pytest that the sessions run."""
    code = "import pytest; print(pytest.__version__)"
    answer = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return tuple(int(part) for part in answer.stdout.strip().split(".")[:2])


def ended(code: int, name: str = "job") -> JobEnd:
    """The end of a process as Python reports it: a negative code is a signal."""
    return JobEnd(
        name=name,
        end="signalled" if code < 0 else "exited",
        exit_code=None if code < 0 else code,
        signal=-code if code < 0 else None,
        started_at="2026-01-01T00:00:00.000000Z",
        duration_seconds=10.0,
        peak_memory_bytes=None,
        memory_method="",
    )


class Project:
    """A project in a directory of its own, and what is needed to collect and run it as the gate does."""

    def __init__(self, directory: Path, python: Path = PYTHON) -> None:
        self.tree, self.python = directory / "tree", python
        self.checkout, self.other_tree = directory / "checkout", directory / "other"
        self.directory, self.attempts = directory, 0
        self.tree.mkdir(parents=True)
        self.log = ""
        self.record = b""
        self.exit_code = 0

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the tree; the text may be indented."""
        for name, text in files.items():
            file = self.tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text), "utf-8")

    def collect(self, **options: object) -> CollectionReading:
        """Collect the project and read what that gave."""
        settings = self._settings(options)
        command = adapter.collect_command(settings, self.python, self.directory / "cache")
        return read_collection(self._session(command, options), ended(self.exit_code))

    def inventory(self, **options: object) -> Inventory:
        """What the project collects. Fails the test when it cannot be collected."""
        reading = self.collect(**options)
        assert reading.complete, (reading.cause, reading.detail, self.log)
        return Inventory(side="candidate", commit=COMMIT, targets=reading.targets)

    def run(
        self,
        *targets: str,
        inventory: Inventory | None = None,
        tests: tuple[TestId, ...] | None = None,
        **options: object,
    ) -> AttemptReading:
        """Run targets, all that the inventory has if none is given, or only some tests; and read what that gave."""
        planned = inventory or self.inventory(**options)
        requested = targets or tuple(target.target for target in planned.targets)
        chosen = None if tests is None else {name: tuple(t for t in tests if t.target == name) for name in requested}
        settings = self._settings(options)
        command = adapter.run_command(settings, self.python, self.directory / "cache")
        record = self._session(command, {**options, "tests": chosen}, requested)
        return read_attempt(
            record,
            ended(self.exit_code),
            side="candidate",
            commit=COMMIT,
            requested=requested,
            inventory=planned,
            tests=chosen,
        )

    def _settings(self, options: Mapping[str, object]) -> RunnerSettings:
        arguments, paths = options.get("arguments", ()), options.get("paths", ())
        assert isinstance(arguments, tuple)
        assert isinstance(paths, tuple)
        return RunnerSettings(arguments=arguments, paths=paths)

    def _session(
        self, command: Sequence[str], options: Mapping[str, object], targets: Sequence[str] | None = None
    ) -> bytes:
        self.attempts += 1
        attempt = self.directory / f"attempt-{self.attempts}"
        for name in ("home", "tmp"):
            (attempt / name).mkdir(parents=True)
        first_party, import_paths = options.get("first_party", ()), options.get("import_paths", ())
        assert isinstance(first_party, tuple)
        assert isinstance(import_paths, tuple)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(attempt / "home"),
            "TMPDIR": str(attempt / "tmp"),
            "PYTHONPATH": os.pathsep.join(
                (*(str(self.tree / path) for path in import_paths), str(adapter.PLUGIN_DIRECTORY))
            ),
            **adapter.plugin_environment(
                record_directory=attempt,
                tree=self.tree,
                checkout=self.checkout,
                other_tree=self.other_tree,
                first_party=first_party,
            ),
        }
        if targets is not None:
            last = options.get("last", ())
            assert isinstance(last, tuple)
            tests = options.get("tests")
            assert tests is None or isinstance(tests, dict)
            (attempt / "targets.json").write_text(adapter.targets_document(targets, last, tests), "utf-8")
            environment["LEDGER_TARGETS_FILE"] = str(attempt / "targets.json")
        finished = subprocess.run(
            command,
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.exit_code, self.log = finished.returncode, finished.stdout.decode("utf-8", "replace")
        self.record = b"\n".join(path.read_bytes() for path in sorted(attempt.glob("record*.jsonl")))
        return self.record


def rows(reading: AttemptReading) -> dict[str, CaseRow]:
    """The cases of a reading by the text form of their identity."""
    return {row.test.text(): row for row in reading.table.cases}


def outcomes(reading: AttemptReading) -> dict[str, str]:
    """The outcomes of a reading by the text form of the identity."""
    return {test: row.outcome for test, row in rows(reading).items()}


def unmeasured(reading: AttemptReading) -> dict[str, str]:
    """The targets of the table that were not measured, with the reason code."""
    return {row.target: row.cause for row in reading.table.targets if row.cause is not None}
