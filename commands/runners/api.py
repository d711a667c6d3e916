"""What every test runner offers: what to start for a collection and for a run, and how to read what they leave.

A `Runner` needs nothing but settings. Made ready for one side it is a `ReadyRunner`, which knows the places of that
side.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from commands.config.settings import RunnerSettings
from commands.executors.api import JobEnd
from commands.readers.attempt import AttemptReading, CollectionReading
from ledger.tables import Inventory
from ledger.values import Commit, Digest, Side, TestId

CREDENTIAL = "(set)"
"""What is recorded of a variable that may hold a secret."""


class EvidenceKey(Struct, frozen=True, kw_only=True):
    """What a result counts for: two results with the same document may stand for each other.

    `tree` is the git id of the files; `runner` names the test runner with the version of it and of its plug-ins, and
    how its reports are read; `python` is empty where none is known to take part; `lock` is the digest of the lock
    files, "" without any, and then `distributions` name what is installed. Places that differ from attempt to attempt
    are not in it.
    """

    tree: str
    adapter: str
    runner: tuple[str, ...]
    python: str
    platform: str
    architecture: str
    command: tuple[str, ...]
    lock: str
    distributions: tuple[str, ...]
    environment: dict[str, str]
    memory_limit_bytes: int


class Answer(NamedTuple):
    """How a helper program ended; `returncode` is negative for a signal."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Hands(Protocol):
    """What a runner may do in the worktree of a side while that is made ready."""

    def find_python(self, settings: RunnerSettings, cache: Path) -> Path:
        """The interpreter that these settings name or lead to. Raises PythonMissing."""

    def ask(self, argv: Sequence[str], purpose: str) -> Answer:
        """Run a short helper program to its end. Raises OSError and subprocess.TimeoutExpired."""


class Ground(Struct, frozen=True, kw_only=True):
    """Where a side is made ready: its worktree and the other side's, the user's checkout, the directory below which all
    worktrees are, and what `prepare` installed. `tracked` are the paths in git."""

    side: Side
    tree: Path
    other_tree: Path
    checkout: Path
    work: Path
    cache: Path
    tracked: tuple[str, ...]


class Launch(Struct, frozen=True, kw_only=True):
    """A command to start in the worktree, and what it needs.

    `files` are to be written into the attempt's directory before. `environment` is set besides what every test gets;
    `import_paths` come first on PYTHONPATH. `activity` are globs of files in the attempt's directory whose growth is a
    sign of life; `stdout_file`, a name in there, keeps standard output apart. `command` is what identifies the command.
    """

    argv: tuple[str, ...]
    command: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    import_paths: tuple[str, ...] = ()
    activity: tuple[str, ...] = ()
    stdout_file: str = ""


class Circumstances(Struct, frozen=True, kw_only=True):
    """What identifies a result besides the runner: files, lock files, environment, memory."""

    tree_id: str
    lock: Digest
    environment: Mapping[str, str]
    memory_limit_bytes: int


class Wanted(Struct, frozen=True, kw_only=True):
    """What a run is asked for: targets, those of them that run after all others, and the only tests of those that are
    not to run as a whole. A runner that cannot select tests runs whole targets."""

    targets: tuple[str, ...]
    last: tuple[str, ...] = ()
    tests: Mapping[str, tuple[TestId, ...]] = {}


class Left(Struct, frozen=True, kw_only=True):
    """What an attempt left: its directory, its record (None when there is none), the side's worktree, and how it
    ended."""

    directory: Path
    record: Path | None
    tree: Path
    end: JobEnd


class ReadyRunner(Protocol):
    """A runner for one side."""

    def collect(self, directory: Path) -> Launch:
        """What collects the targets of the side, and runs no test. `directory` is the attempt's."""

    def run(self, directory: Path, wanted: Wanted) -> Launch:
        """What runs targets. Raises LedgerError when that cannot be measured."""

    def evidence_key(self, launch: Launch, circumstances: Circumstances) -> EvidenceKey:
        """What a result of this launch counts for."""


class Runner(Protocol):
    """A way to run tests. `readers` are the names of its readers: of collections, and of attempts."""

    @property
    def readers(self) -> tuple[str, str]: ...

    def prepare_version(self, hands: Hands, cache: Path) -> str:
        """What of this machine decides what the `prepare` commands install."""

    def make_ready(self, ground: Ground, hands: Hands) -> ReadyRunner:
        """The runner for a side. Raises LedgerError when the side cannot be tested."""

    def record(self, directory: Path, tree: Path, *, collection: bool) -> Path | None:
        """The file with everything that the attempt reported, in its directory; None when there is nothing.

        May be called again.
        """

    def read_collection(self, left: Left) -> CollectionReading:
        """What a collection gave."""

    def read_attempt(
        self, left: Left, wanted: Wanted, side: Side, commit: Commit, inventory: Inventory
    ) -> AttemptReading:
        """What a run gave of what was wanted, whose tests are those that the side's inventory plans."""


def lock_digest(files: Mapping[str, bytes]) -> Digest:
    """The digest of the lock files, by name; "" when there are none."""
    if not files:
        return ""
    document = {name: sha256(data).hexdigest() for name, data in sorted(files.items())}
    return sha256(json.dumps(document).encode()).hexdigest()
