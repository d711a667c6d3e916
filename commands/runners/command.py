"""Any command as a runner: what the settings say is started, and the JUnit reports of the attempt are read."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from commands.config.keys import TARGETS
from commands.config.settings import CommandSettings
from commands.readers import target_list
from commands.readers.attempt import AttemptReading, CollectionReading
from commands.readers.junit import Report
from commands.readers.junit.reading import READER
from commands.readers.junit_attempt import read_junit_attempt
from commands.readers.target_list import read_targets
from commands.runners.api import CREDENTIAL, Circumstances, EvidenceKey, Ground, Hands, Launch, Left, Wanted
from ledger.errors import LedgerError
from ledger.tables import Inventory
from ledger.values import Commit, Side

ADAPTER = "command/1"

_PRINTED = "targets.list"
_REPORT = "report.xml"
_OUT_OF_TREE = "from-tree"
_RECORD = "reports.tar"
_OUTPUT = "output.log"
_CHUNK_BYTES = 2**16


class VersionUnknown(LedgerError):
    """The command that prints the version of the test runner failed."""

    code = "version-unknown"
    exit_code = 3


class LinkInTheWay(LedgerError):
    """A path that is to lead to what `prepare` installed is taken by a file of the tree."""

    code = "link-in-the-way"
    exit_code = 3


class ReportNotFresh(LedgerError):
    """There is a report in the tree before the tests have run, so nobody could tell it from theirs."""

    code = "report-not-fresh"
    exit_code = 3


class CommandSide(Struct, frozen=True, kw_only=True):
    """The command in the worktree of one side."""

    settings: CommandSettings
    ground: Ground
    version: str

    def collect(self, directory: Path) -> Launch:
        """What lists the targets: git for globs, else the command of the settings."""
        if self.settings.list:
            argv = self._expanded(self.settings.list, directory)
            return self._launch(argv, self.settings.list, directory, stdout_file=_PRINTED)
        patterns = tuple(f":(glob){pattern}" for pattern in self.settings.targets)
        # The repository may belong to another user; that its files are listed lets nobody do anything.
        argv = ("git", "-c", "safe.directory=*", "ls-files", "-z", "--", *patterns)
        return self._launch(argv, ("git", "ls-files", *patterns), directory, stdout_file=_PRINTED)

    def run(self, directory: Path, wanted: Wanted) -> Launch:
        """What runs the targets, each an argument. Raises ReportNotFresh."""
        in_the_way = next(_matches(self.ground.tree, self.settings.report_in_tree), None)
        if in_the_way is not None:
            raise ReportNotFresh(
                f"{in_the_way.relative_to(self.ground.tree)} is in the tree of the {self.ground.side} before its tests "
                "have run",
                "take it out of git, and see to it that `prepare` leaves none",
            )
        last = frozenset(wanted.last)
        targets = sorted(wanted.targets, key=lambda target: target in last)
        argv: list[str] = []
        for part in self.settings.command:
            (expanded,) = self._expanded((part,), directory)
            argv += [expanded.replace(TARGETS, target) for target in targets] if TARGETS in part else [expanded]
        return self._launch(tuple(argv), self.settings.command, directory)

    def evidence_key(self, launch: Launch, circumstances: Circumstances) -> EvidenceKey:
        """What a result of this launch counts for."""
        settings, recorded = self.settings, circumstances.environment
        # Places are told by the names that the settings give them, so that the key is the same wherever they are.
        named = {name: settings.set_environment[name] for name in launch.environment if recorded[name] != CREDENTIAL}
        codes = [f"exit {code} {meaning}" for code, meaning in sorted(settings.exit_codes.items())]
        return EvidenceKey(
            tree=circumstances.tree_id,
            adapter=ADAPTER,
            runner=(self.version, f"dialect {settings.dialect}", f"profile {settings.profile}", *codes),
            python="",
            platform=sys.platform,
            architecture=platform.machine(),
            command=launch.command,
            lock=circumstances.lock,
            distributions=(),
            environment=dict(sorted({**recorded, **named}.items())),
            memory_limit_bytes=circumstances.memory_limit_bytes,
        )

    def _expanded(self, argv: Sequence[str], directory: Path) -> tuple[str, ...]:
        places = {**_places(self.ground), "{directory}": str(directory), "{report}": str(directory / _REPORT)}
        return tuple(_replaced(part, places) for part in argv)

    def _launch(
        self, argv: tuple[str, ...], command: tuple[str, ...], directory: Path, stdout_file: str = ""
    ) -> Launch:
        variables = self.settings.set_environment
        values = zip(variables, self._expanded(tuple(variables.values()), directory), strict=True)
        return Launch(
            argv=argv,
            command=command,
            environment={name: value for name, value in values if value != variables[name]},
            import_paths=self.settings.import_paths,
            activity=(stdout_file or self.settings.report,),
            stdout_file=stdout_file,
        )


class CommandRunner:
    """Any program that runs tests and writes JUnit reports. It cannot be asked for some tests of a target."""

    readers = (target_list.READER, READER)

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings

    def prepare_version(self, hands: Hands, cache: Path) -> str:
        """Nothing is known of what the `prepare` commands themselves are run with but the machine that it is for."""
        return f"{sys.platform} {platform.machine()}"

    def make_ready(self, ground: Ground, hands: Hands) -> CommandSide:
        """The command for a side, its links made. Raises LinkInTheWay and VersionUnknown."""
        for name, place in self._settings.links.items():
            self._link(ground.tree / name, _replaced(place, _places(ground)))
        return CommandSide(settings=self._settings, ground=ground, version=self._version(ground, hands))

    def _link(self, link: Path, place: str) -> None:
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place)
        except OSError as error:
            raise LinkInTheWay(
                f"{link} cannot be made to lead to {place}: {error.strerror}",
                "correct `links` in [runner], or take the file out of git",
            ) from error

    def record(self, directory: Path, tree: Path, *, collection: bool) -> Path | None:
        """What was listed; or the reports of the attempt, those in the tree moved out of it, in one archive."""
        if collection:
            printed = directory / _PRINTED
            return printed if printed.is_file() and printed.stat().st_size else None
        for report in list(_matches(tree, self._settings.report_in_tree)):
            place = directory / _OUT_OF_TREE / report.relative_to(tree)
            # What cannot be moved is no report of this attempt; the next one will be refused for it.
            with suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                shutil.move(report, place)
        reports = self._reports(directory)
        return _archive(directory / _RECORD, directory, reports) if reports else None

    def read_collection(self, left: Left) -> CollectionReading:
        """What the list and the end of its command tell."""
        printed = _beginning(left.record, target_list.LIST_BYTES + 1) if left.record else b""
        tree = os.path.realpath(left.tree)
        reading = read_targets(printed, left.end, terminated=not self._settings.list, tree=tree)
        if reading.cause != "list-failed":
            return reading
        return CollectionReading(
            complete=False, cause=reading.cause, detail=f"{reading.detail}: {_last_line(left.directory)}", targets=()
        )

    def read_attempt(
        self, left: Left, wanted: Wanted, side: Side, commit: Commit, inventory: Inventory
    ) -> AttemptReading:
        """What the reports and the end of the process tell of a run."""
        settings = self._settings
        return read_junit_attempt(
            [Report(path.name, _Chunks(path)) for path in self._reports(left.directory)],
            left.end,
            side=side,
            commit=commit,
            requested=wanted.targets,
            inventory=inventory,
            root=os.path.realpath(left.tree),
            dialect=settings.dialect,
            profile=settings.profile,
            exit_codes=settings.exit_codes,
        )

    def _reports(self, directory: Path) -> list[Path]:
        if self._settings.report_in_tree:
            return list(_matches(directory / _OUT_OF_TREE, self._settings.report_in_tree))
        return list(_matches(directory, self._settings.report))

    def _version(self, ground: Ground, hands: Hands) -> str:
        """What the runner says of itself; "" when nobody is to ask."""
        if not self._settings.version:
            return ""
        argv = [_replaced(part, _places(ground)) for part in self._settings.version]
        try:
            answer = hands.ask(argv, "version")
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _version_unknown(argv, ground.side, str(error)) from error
        said = (answer.stdout + answer.stderr).decode("utf-8", "replace").strip()
        if answer.returncode:
            raise _version_unknown(argv, ground.side, f"exit code {answer.returncode}, {said[:400]}")
        return said


class _Chunks:
    """The bytes of a file in pieces, as often as they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


def _version_unknown(argv: Sequence[str], side: Side, what: str) -> VersionUnknown:
    return VersionUnknown(
        f"{list(argv)} of the {side} did not tell the version of the test runner: {what}",
        "correct `version` in [runner], or let `prepare` install what it names",
    )


def _places(ground: Ground) -> dict[str, str]:
    return {"{tree}": str(ground.tree), "{cache}": str(ground.cache)}


def _replaced(text: str, places: dict[str, str]) -> str:
    """The text with places for their names, all at once: a place may itself look like a name."""
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found.group()], text)


def _matches(directory: Path, pattern: str) -> Iterator[Path]:
    """The files below the directory that match and can be read, in the order of their names; none behind a link."""
    if pattern:
        inside = os.path.realpath(directory)
        for path in sorted(directory.glob(pattern)):
            real = os.path.realpath(path) == os.path.join(inside, path.relative_to(directory))
            if real and path.is_file() and os.access(path, os.R_OK):
                yield path


def _archive(archive: Path, directory: Path, reports: Sequence[Path]) -> Path:
    """The files as one, whose bytes tell nothing but their names and contents."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for report in reports:
            member = tarfile.TarInfo(str(report.relative_to(directory)))
            member.size = report.stat().st_size
            with report.open("rb") as content:
                tar.addfile(member, content)
    return archive


def _beginning(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        return file.read(length)


def _last_line(directory: Path) -> str:
    """The last thing that the command said."""
    try:
        lines = (directory / _OUTPUT).read_text("utf-8", "replace").split("\n")
    except OSError:
        return "it said nothing"
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it said nothing")
