"""pytest as a runner: the interpreter of each side is probed, and the record of the plug-in is read."""

import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from commands.config.settings import RunnerSettings
from commands.readers.attempt import AttemptReading, CollectionReading
from commands.readers.pytest_lines import READER, read_attempt, read_collection
from commands.runners import pytest as adapter
from commands.runners.api import Circumstances, EvidenceKey, Ground, Hands, Launch, Left, Wanted
from ledger.errors import LedgerError
from ledger.tables import Inventory
from ledger.values import Commit, Side

_RECORDS = "record*.jsonl"
_JOINED = "joined.jsonl"
_TARGETS = "targets.json"


class ProbeFailed(LedgerError):
    """The project's interpreter could not say what it is."""

    code = "probe-failed"
    exit_code = 3


class PytestMissing(LedgerError):
    """The project's interpreter has no pytest."""

    code = "pytest-missing"
    exit_code = 3


class PytestSide(Struct, frozen=True, kw_only=True):
    """pytest in the interpreter of one side."""

    settings: RunnerSettings
    ground: Ground
    python: Path
    probe: adapter.Probe
    import_paths: tuple[str, ...]
    first_party: tuple[str, ...]

    def collect(self, directory: Path) -> Launch:
        """What collects what the settings name."""
        return self._launch(adapter.collect_command(self.settings, self.python, directory / "tmp"), directory)

    def run(self, directory: Path, wanted: Wanted) -> Launch:
        """What runs the targets, which are named in a file."""
        argv = adapter.run_command(self.settings, self.python, directory / "tmp")
        document = adapter.targets_document(wanted.targets, wanted.last, wanted.tests)
        return self._launch(argv, directory, targets={_TARGETS: document})

    def evidence_key(self, launch: Launch, circumstances: Circumstances) -> EvidenceKey:
        """What a result of this launch counts for."""
        return adapter.evidence_key(
            circumstances.tree_id,
            self.probe,
            launch.command,
            circumstances.lock,
            circumstances.environment,
            circumstances.memory_limit_bytes,
        )

    def _launch(self, argv: tuple[str, ...], directory: Path, targets: dict[str, str] | None = None) -> Launch:
        environment = adapter.plugin_environment(
            record_directory=directory,
            tree=self.ground.tree,
            checkout=self.ground.checkout,
            other_tree=self.ground.other_tree,
            first_party=self.first_party,
        )
        if targets:
            environment["LEDGER_TARGETS_FILE"] = str(directory / _TARGETS)
        return Launch(
            argv=argv,
            command=argv,
            files=targets or {},
            environment=environment,
            import_paths=(*self.import_paths, str(adapter.PLUGIN_DIRECTORY)),
            activity=(_RECORDS,),
        )


class PytestRunner:
    """pytest, in an interpreter of the project's."""

    readers = (READER, READER)

    def __init__(self, settings: RunnerSettings) -> None:
        self._settings = settings

    def prepare_version(self, hands: Hands, cache: Path) -> str:
        """The version of the interpreter that `prepare` finds, before there is one of its own."""
        python = hands.find_python(RunnerSettings(), cache)
        return hands.ask((str(python), "--version"), "prepare").stdout.decode("utf-8", "replace").strip()

    def make_ready(self, ground: Ground, hands: Hands) -> PytestSide:
        """pytest in the side's interpreter. Raises PythonMissing, ProbeFailed and PytestMissing."""
        settings = self._settings
        python = hands.find_python(settings, ground.cache)
        probe = _probe(python, ground.side, hands)
        if not probe.pytest:
            raise PytestMissing(
                f"the interpreter {python} of the {ground.side} cannot import pytest",
                "install pytest there, let `prepare` do it, or name another interpreter with `python` in [runner]",
            )
        return PytestSide(
            settings=settings,
            ground=ground,
            python=python,
            probe=probe,
            import_paths=adapter.import_paths(settings, ground.tracked, probe, ground.checkout),
            first_party=settings.first_party or self._first_party(ground, probe),
        )

    def record(self, directory: Path, tree: Path, *, collection: bool) -> Path | None:
        """What the plug-in wrote; the files of several processes are joined."""
        files = sorted(directory.glob(_RECORDS))
        if len(files) > 1:
            joined = directory / _JOINED
            joined.write_bytes(b"\n".join(file.read_bytes() for file in files))
            return joined
        return files[0] if files and files[0].stat().st_size else None

    def read_collection(self, left: Left) -> CollectionReading:
        """What the record and the end of the process tell of a collection."""
        return read_collection(_bytes(left.record), left.end)

    def read_attempt(
        self, left: Left, wanted: Wanted, side: Side, commit: Commit, inventory: Inventory
    ) -> AttemptReading:
        """What the record and the end of the process tell of a run."""
        return read_attempt(
            _bytes(left.record),
            left.end,
            side=side,
            commit=commit,
            requested=wanted.targets,
            inventory=inventory,
            tests=wanted.tests,
        )

    def _first_party(self, ground: Ground, probe: adapter.Probe) -> tuple[str, ...]:
        by_tree = not self._settings.lock
        copied = adapter.copied_names(probe, ground.checkout, ground.tree, ground.work, by_tree=by_tree)
        return tuple(sorted({*adapter.first_party_names(ground.tracked), *copied}))


def _bytes(record: Path | None) -> bytes:
    return record.read_bytes() if record else b""


def _probe(python: Path, side: Side, hands: Hands) -> adapter.Probe:
    try:
        answer = hands.ask((str(python), str(adapter.PROBE)), "probe")
        return msgspec.json.decode(answer.stdout, type=adapter.Probe)
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError) as error:
        raise ProbeFailed(
            f"the interpreter {python} of the {side} could not be asked what it is: {error}",
            "does it run? `python` in [runner] names another one",
        ) from error
