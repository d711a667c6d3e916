"""The composition root: where implementations are chosen and put together. Heavy parts are imported when they are
used."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from commands.config.load import Loaded, load_settings, store_location, usable_processors
from commands.config.settings import decode_runner
from commands.effects.clock import Clock
from commands.effects.git import Git, NotARepository
from commands.effects.locks import LockHeld, OwnedLock, is_held, owner_details, read_owner
from commands.render.words import safe
from ledger.errors import ForeignLedger, LedgerError, LedgerMissing, NewerFormat
from ledger.events import STREAM, RunStarted, Unknown
from ledger.evidence import EvidenceStore
from ledger.record import Actor, RecordedEvent, Stamp
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.tables import CaseTable, ClassTable, Document, decode_document
from ledger.values import Commit, Digest, Side
from projections.registry import RunViews
from projections.run.lookup import find_run
from projections.run.moment import Past, locate, locate_in_ledger, parse_moment
from projections.run.summary import RunSummary, summarize_run

if TYPE_CHECKING:
    from commands.driver import Driver
    from commands.effects.history.cache import History
    from commands.effects.history.known import Known
    from commands.loop import Loop
    from ledger.store.writer import Writer

LOG_LINES = 12
MEMBER_LOCK = "member-local.lock"
RECOVERY = "recover"


class VerdictMissing(LedgerError):
    """The run has no verdict yet that could be explained."""

    code = "verdict-missing"
    exit_code = 2


class Home(Struct, frozen=True):
    """A repository with its settings and the directory of its ledger; or a ledger that was named, and no repository."""

    repository: Git | NotARepository
    loaded: Loaded
    directory: Path

    @property
    def git(self) -> Git:
        """The repository. Raises NotARepository where a ledger is only read, far from what it is about."""
        if isinstance(self.repository, NotARepository):
            raise self.repository
        return self.repository

    @property
    def ledger_file(self) -> Path:
        """The file that holds the events."""
        return self.directory / LEDGER_FILE

    def require_ledger(self) -> Path:
        """The file that holds the events. Raises LedgerMissing with what to do when there is none yet."""
        if not self.ledger_file.exists():
            raise LedgerMissing(
                f"there is no ledger at {self.directory} yet", "`ledger gate` starts one with the first gate"
            )
        return self.ledger_file

    def open_ledger(self) -> "OpenLedger":
        """Open the ledger for reading. Raises LedgerMissing when there is none yet."""
        return OpenLedger(self, Reader.open(self.require_ledger()))

    def run_lock(self, run: str) -> Path:
        """The lock that the driver of a run holds."""
        return self.directory / "locks" / f"run-{run}.lock"

    def stop_file(self, run: str) -> Path:
        """The file whose presence asks the driver of a run to stop."""
        return self.directory / "locks" / f"run-{run}.stop"


def find_home(directory: Path, flags: Mapping[str, Any], *, files: bool = True) -> Home:
    """The repository around a directory. `flags` are the values that the command line gave; without `files` those of
    files are left out.

    Raises NotARepository when there is none, unless a flag or a variable says where the ledger is.
    """
    try:
        git = Git.discover(directory)
    except NotARepository as missing:
        loaded = load_settings(directory, flags, files=files)
        if not loaded.settings.store:
            raise
        return Home(missing, loaded, store_location(loaded.settings, Git(directory)))
    loaded = load_settings(git.toplevel, flags, files=files)
    return Home(git, loaded, store_location(loaded.settings, git))


class OpenLedger:
    """A ledger opened for reading: runs, their views, their summaries and the evidence of their verdicts."""

    def __init__(self, home: Home, reader: Reader) -> None:
        self._home, self._reader = home, reader
        self._evidence = EvidenceStore(home.directory / EVIDENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()

    def find_run(self, wanted: str) -> str:
        """The run that is meant, by its name, the beginning of one, or the version of a release.

        However many runs there are, only those that could be are looked at.
        """
        if "." in wanted:
            # No run's name has a dot, and every version has.
            of_version = [run for run, version in self.releases() if version == wanted]
            if of_version:
                return of_version[-1]
        newest = self._reader.newest_run()
        named = wanted not in ("", "latest") and wanted.isprintable()
        found = self._reader.streams(wanted) if named else []
        runs = [head.stream for head in found if head.stream not in (STREAM, newest)]
        return find_run([*runs, newest] if newest else [], wanted)

    def releases(self) -> list[tuple[str, str]]:
        """Every release as its run and its version, in the order in which they began."""
        started = (self._started(head.stream) for head in self._reader.streams() if head.stream != STREAM)
        return [(one.run, str(one.version)) for one in started if one is not None and one.kind == "release"]

    def is_release(self, run: str) -> bool:
        """Whether this run is a release."""
        started = self._started(run)
        return started is not None and started.kind == "release"

    def release_of(self, run: str) -> str:
        """The release that a gate is a step of; "" for one of its own, and for a release."""
        started = self._started(run)
        return started.release or "" if started is not None else ""

    def gate_of(self, run: str) -> str:
        """The run itself, or the newest gate of a release; the release itself while it has none."""
        gates = self.gates_of(run)
        return gates[-1] if gates else run

    def gates_of(self, run: str) -> list[str]:
        """The gates of a release, in the order in which they were begun; none of a gate."""
        if not self.is_release(run):
            return []
        steps = self.views(run).release.steps.values()
        attempts = sorted((one.position, one.gate) for state in steps for one in state.attempts if one.gate)
        return list(dict.fromkeys(gate for _, gate in attempts))

    def _started(self, run: str) -> RunStarted | None:
        first = next(self._reader.events(run, after=0, until=1), None)
        return first.event if first is not None and isinstance(first.event, RunStarted) else None

    def events(self, run: str | None, after: int, past: Past | None = None) -> Iterator[RecordedEvent]:
        """The run's events after a position, up to a past one; those before a damage are given before it is raised.

        Without a run all events of the ledger, after a sequence.
        """
        return self._reader.events(run, after=after, until=past.position if past else None)

    def past(self, run: str, at: str | None) -> Past | None:
        """Where the run stood at a moment such as `#17`; None for now. Raises MomentUnknown."""
        if at is None:
            return None
        return locate(parse_moment(at), run, self.events(run, 0), self._reader.head().sequence)

    def sequence_at(self, at: str | None) -> int | None:
        """The sequence of the last event of the whole ledger at a moment; None for now. Raises MomentUnknown."""
        if at is None:
            return None
        return locate_in_ledger(parse_moment(at), self.events(None, 0), self._reader.head().sequence)

    @contextmanager
    def history(self, until: int | None = None) -> Iterator["History"]:
        """The history of all runs, now or as it was at a sequence."""
        from commands.effects.history.cache import open_history

        with open_history(
            self._home.directory, self._reader, lambda digest: self.document(digest, CaseTable), until
        ) as history:
            yield history

    def known_events(self, run: str, past: Past | None = None) -> Iterator[RecordedEvent]:
        """The run's events now, or as it was. Raises NewerFormat for an unknown one, which might change any view."""
        for recorded in self.events(run, 0, past):
            if isinstance(recorded.event, Unknown):
                where = f"{run} #{recorded.header.position}"
                raise NewerFormat(
                    f"{where} is a {recorded.header.tag!r} event, which this version does not know",
                    f"use the version of ledger that wrote it, or a newer one; `ledger log {run}` shows what is known",
                )
            yield recorded

    def views(self, run: str, past: Past | None = None) -> RunViews:
        """The run's views now, or as it was."""
        views = RunViews()
        for recorded in self.known_events(run, past):
            views.apply(recorded)
        return views

    def summary(self, run: str, past: Past | None = None) -> RunSummary:
        """The run's summary now, or as it was; whether a driver lived then, nobody can tell any more."""
        if past is not None:
            return summarize_run(self.views(run, past), past.time, alive=None, as_of=past.as_of, load=self.document)
        # The lock is looked at first: a driver that finishes in between then shows as finished, not as gone.
        alive = self.driven(run)
        return summarize_run(self.views(run), datetime.now(UTC), alive=alive, load=self.document)

    def driven(self, run: str) -> bool:
        """Whether a living process drives the run: its lock is held."""
        return is_held(self._home.run_lock(run))

    def version(self) -> int:
        """A number that changes when the ledger does."""
        return self._reader.data_version()

    def class_tables(self, run: str, past: Past | None = None) -> tuple[ClassTable, dict[Digest, CaseTable]]:
        """The class table of the run's verdict and the case tables of its attempts, now or as they were."""
        views = self.views(run, past)
        table = self.class_table(views)
        if table is None:
            then = f" at #{past.position}" if past else ""
            raise VerdictMissing(f"run {run} has no verdict yet{then}", f"`ledger status {run}` says where it stands")
        records = (a.recorded for side in views.gate.sides.values() for a in side.attempts)
        digests = {record.table for record in records if record is not None and record.table is not None}
        tables = {digest: decode_document(self._evidence.get(digest), CaseTable) for digest in digests}
        return table, tables

    def class_table(self, views: RunViews) -> ClassTable | None:
        """The class table of the verdict that stands in these views; None without one."""
        verdict = views.gate.verdict
        return None if verdict is None else decode_document(self.evidence(verdict.classes), ClassTable)

    def evidence(self, digest: Digest) -> bytes:
        """A piece of evidence. Raises EvidenceDamaged."""
        return self._evidence.get(digest)

    def document(self, digest: Digest, kind: type[Document]) -> Document:
        """A document of the evidence. Raises EvidenceDamaged."""
        return decode_document(self.evidence(digest), kind)

    def log_end(self, log: Digest) -> list[str]:
        """The last lines that an attempt printed."""
        return self._evidence.get(log).decode("utf-8", "replace").rstrip().splitlines()[-LOG_LINES:]


class Workshop(Struct, frozen=True):
    """Everything that changes a ledger and drives runs, for the time that the locks are held."""

    home: Home
    loop: "Loop"
    evidence: EvidenceStore
    ledger_id: str
    who: str


@contextmanager
def open_workshop(home: Home, run: str) -> Iterator[Workshop]:
    """Hold this machine's place in the pool and the run's lock, with the ledger open for writing.

    Raises LockHeld when another process works here, ForeignLedger for another project's ledger, RecoveryUnfinished when
    a recovery of it was cut short.
    """
    owner = owner_details(run, Clock().utc_now())
    with (
        OwnedLock(home.directory / "locks" / MEMBER_LOCK, owner),
        OwnedLock(home.run_lock(run), owner),
        _opened(home, owner) as workshop,
    ):
        yield workshop


@contextmanager
def open_desk(home: Home) -> Iterator[Workshop]:
    """The ledger open for what people decide, while runs may be driven.

    Raises LedgerMissing, LockHeld while it is recovered, and what `open_workshop` raises. A recovery and this look for
    each other after they took their own locks, so that nothing is written to a file that is being moved.
    """
    home.require_ledger()
    owner = owner_details(STREAM, Clock().utc_now())
    member = home.directory / "locks" / MEMBER_LOCK
    with OwnedLock(home.run_lock(STREAM), owner):
        if is_held(member) and read_owner(member).get("run") == RECOVERY:
            raise LockHeld(member, read_owner(member))
        with _opened(home, owner) as workshop:
            yield workshop


@contextmanager
def _opened(home: Home, owner: Mapping[str, object]) -> Iterator[Workshop]:
    """The ledger open for writing, begun when there is none; the locks are the caller's."""
    import socket

    from commands.loop import Loop
    from commands.messages import CreateLedger
    from ledger import __version__

    clock = Clock()
    with _open_writer(home) as writer, Reader.open(home.ledger_file) as reader:
        evidence = EvidenceStore(home.directory / EVIDENCE)
        actor = Actor(who=str(owner["user"]), host=socket.gethostname(), tool=f"ledger {__version__}")
        loop = Loop(reader, writer, evidence, clock, actor)
        identity = reader.identity()
        project, root_commit = _project(home)
        if identity is None:
            ledger_id = clock.unique_id()
            loop.handle(CreateLedger(stream=STREAM, ledger_id=ledger_id, project=project, root_commit=root_commit))
        else:
            ledger_id = identity.ledger_id
            _check_project(home, identity.project, identity.root_commit)
        yield Workshop(home, loop, evidence, ledger_id, actor.who)


@contextmanager
def standstill(home: Home) -> Iterator[Stamp]:
    """Hold this machine's place in the pool while no run is driven; yields the stamp of what is done meanwhile.

    Raises LockHeld when somebody works on the ledger.
    """
    import socket

    from ledger import __version__

    clock = Clock()
    owner = owner_details(RECOVERY, clock.utc_now())
    locks = home.directory / "locks"
    with OwnedLock(locks / MEMBER_LOCK, owner):
        for lock in sorted(locks.glob("run-*.lock")):
            if is_held(lock):
                raise LockHeld(lock, read_owner(lock))
        actor = Actor(who=str(owner["user"]), host=socket.gethostname(), tool=f"ledger {__version__}")
        yield Stamp(time=clock.utc_now(), actor=actor, command=clock.unique_id())


def _open_writer(home: Home) -> "Writer":
    """Open the ledger for writing, unless a recovery has to be finished first."""
    from ledger.proof.receipt import refuse_unfinished
    from ledger.store.writer import Writer

    refuse_unfinished(home.ledger_file)
    return Writer.open(home.ledger_file, create=True)


def _project(home: Home) -> tuple[str, str | None]:
    return home.loaded.settings.project or safe(home.git.toplevel.name), home.git.root_commit()


def _check_project(home: Home, project: str, root_commit: str | None) -> None:
    """A ledger belongs to the history that it began with. Raises ForeignLedger."""
    _, ours = _project(home)
    if root_commit and ours and root_commit != ours:
        raise ForeignLedger(
            f"the ledger at {home.directory} belongs to the project {project!r}, whose history begins with "
            f"{root_commit[:12]}; this repository's begins with {ours[:12]}",
            "name another place with --store or LEDGER_STORE",
        )


@contextmanager
def build_driver(
    workshop: Workshop,
    run: str,
    changed: Callable[[RunViews], None],
    note: Callable[[str], None],
    stop_file: Path | None = None,
) -> Iterator["Driver"]:
    """A driver of this run. Afterwards its jobs have ended, and the worktrees of a finished run are gone.

    `stop_file` is whose presence asks it to stop, for a run that is a part of another.
    """
    from commands.driver import Driver
    from commands.effects.attempts import LocalAttempts
    from commands.effects.history.gathering import Gathering
    from commands.effects.pool.machine import Machine, shared_directory
    from commands.effects.sides import Workplace
    from commands.effects.signals import Announced, StopRequests
    from commands.effects.worktrees import work_root
    from commands.executors.local import LocalExecutor
    from commands.runners.choice import runner_of

    git, begun = workshop.home.git, workshop.loop.views(run).run.begun
    settings = decode_runner(workshop.evidence.get(begun.config))
    runner = runner_of(settings)
    root = work_root(workshop.home.loaded.settings, workshop.ledger_id, git.toplevel)
    commits: dict[Side, Commit] = {"candidate": begun.candidate, "baseline": begun.baseline}
    workplace = Workplace(git, settings, runner, root, workshop.ledger_id, run, commits)
    workplace.reap(lambda other: is_held(workshop.home.run_lock(other)))
    executor = LocalExecutor()
    slots = max(usable_processors(), workshop.loop.views(run).run.policy.parallel)
    machine = Machine(shared_directory(), run, slots)
    requests = StopRequests(stop_file or workshop.home.stop_file(run))
    if stop_file is None:
        requests.answered()
    requests.install(executor.wakeup_fd())
    try:
        yield Driver(
            workshop.loop,
            executor,
            LocalAttempts(git, settings, runner, workplace, workshop.evidence),
            machine,
            gathered=Gathering(
                workshop.loop.views, workshop.evidence, lambda: known_usage(workshop.home, begun.candidate), note
            ),
            stop_requested=Announced(requests.requested, note),
            preparing=requests.preparing,
            changed=changed,
        )
        if stop_file is None:
            requests.answered()
        if workshop.loop.views(run).run.status == "finished" and (left := workplace.remove()):
            note(left)
    finally:
        # A signal from here on must not be written to what is closed now.
        signal.set_wakeup_fd(-1)
        executor.close()
        machine.close()


def known_usage(home: Home, commit: Commit) -> "Known":
    """What is known of the targets of a commit, from the ledger's runs and from the file that the settings name.

    Raises LedgerMissing, NewerFormat, UsageFileInvalid, and what a damaged history raises.
    """
    from commands.effects.history.known import known_targets

    plan = home.loaded.settings.plan
    durations = home.git.file(commit, plan.durations_file) if plan.durations_file else None
    with home.open_ledger() as opened, opened.history() as history:
        return known_targets(history, plan.split_seconds, durations)


def machine_memory_bytes() -> int:
    """The memory of this machine, or of the container that this is."""
    from commands.effects.pool.machine import memory_total_bytes

    return memory_total_bytes()


PLANS = "plans"
"""What owns the checkouts that are made for a plan alone; no ledger has such an id."""


class CollectionFailed(LedgerError):
    """The tests of a commit could not be collected, so there is nothing to plan."""

    code = "collection-failed"
    exit_code = 3


def collect_targets(home: Home, commit: Commit) -> tuple[str, ...]:
    """The targets of a commit, collected in a checkout that is gone afterwards; nothing is recorded.

    Raises CollectionFailed, and LedgerError when the commit cannot be made ready.
    """
    import secrets

    from commands.effects.attempts import collect_once
    from commands.effects.sides import Workplace
    from commands.effects.worktrees import work_root
    from commands.executors.local import LocalExecutor
    from commands.runners.choice import runner_of

    settings = home.loaded.settings
    root = work_root(settings, PLANS, home.git.toplevel)
    runner = runner_of(settings.runner)
    workplace = Workplace(home.git, settings.runner, runner, root, PLANS, secrets.token_hex(8), {"candidate": commit})
    # What died without tidying up left its checkout; whatever still lives is not provably dead.
    workplace.reap(lambda other: False)
    executor = LocalExecutor()
    try:
        reading = collect_once(executor, runner, workplace, settings.gate, "candidate")
    finally:
        executor.close()
        workplace.remove()
    if reading.cause is not None:
        raise CollectionFailed(
            f"{commit[:12]} could not be collected ({reading.cause}): {reading.detail}",
            f"`ledger explain {reading.cause}` says what that means",
        )
    return tuple(target.target for target in reading.targets)
