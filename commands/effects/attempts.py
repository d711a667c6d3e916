"""Attempts on this machine: from a promise to a job, and from the job's end to what is recorded, evidence included."""

import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from commands.config.settings import RunnerSettings
from commands.effects.environment import missing_variable_hint
from commands.effects.git import Git
from commands.effects.sides import ReadySide, Workplace
from commands.effects.targets.asked import Asked, parts_on
from commands.effects.targets.holders import Holders
from commands.executors.api import Executor, Job, JobEnd
from commands.messages import RecordAttempt
from commands.readers.attempt import AttemptReading, CollectionReading, voided
from commands.render.words import safe
from commands.runners.api import Launch, Left, Runner, Wanted
from ledger.errors import LedgerError
from ledger.events import COLLECTION, AttemptStarted, GatePolicy
from ledger.evidence import EvidenceStore
from ledger.tables import Inventory, InventoryTarget, Plan, decode_document, encode_document
from ledger.values import Digest, Side, TestId
from projections.gate.shards import NOT_REACHED
from projections.registry import RunViews

KEY_FILE = "evidence-key"
_LOOK_AGAIN_SECONDS = 1.0
_NAMED = 3

OUTSIDE_ENDS = frozenset({"driver-died", "stopped"})
"""Ends that come from outside the attempt, which therefore used up no round."""


class LocalAttempts:
    """Makes jobs of one run's attempts and reads what they leave."""

    def __init__(
        self, git: Git, settings: RunnerSettings, runner: Runner, workplace: Workplace, evidence: EvidenceStore
    ) -> None:
        self._git, self._settings, self._runner = git, settings, runner
        self._workplace, self._evidence = workplace, evidence
        self._inventories: dict[Digest, Inventory] = {}
        self._plans: dict[Digest, Plan] = {}
        self._active: set[str] = set()

    def name(self, views: RunViews, attempt: AttemptStarted) -> str:
        """`run.shard.side.attempt.term`."""
        return f"{views.run.run}.{attempt.shard}.{attempt.side}.{attempt.attempt}.{attempt.term}"

    def directory(self, views: RunViews, attempt: AttemptStarted) -> Path:
        """Below the run's directory, named after the attempt."""
        return (
            self._workplace.directory / "attempts" / f"{attempt.shard}.{attempt.side}.{attempt.attempt}.{attempt.term}"
        )

    def job(self, views: RunViews, attempt: AttemptStarted) -> Job:
        """The job of this attempt, its side made ready. Raises LedgerError when it cannot be."""
        ready = self._workplace.side(attempt.side)
        self._clean(views, attempt.side)
        directory = self.directory(views, attempt)
        if attempt.shard == COLLECTION:
            launch = ready.runner.collect(directory)
        else:
            launch = ready.runner.run(directory, _wanted(self._asked(views, attempt), views, attempt))
        environment = _furnish(self._workplace, ready, directory, launch)
        policy = _limited(views.run.policy, attempt)
        key = self._workplace.evidence_key(ready, launch, environment, directory, policy.memory_limit_bytes)
        (directory / KEY_FILE).write_text(self._evidence.put_bytes(encode_document(key)), "ascii")
        self._active.add(self.name(views, attempt))
        return _job(self.name(views, attempt), launch, ready, environment, directory, policy)

    def _clean(self, views: RunViews, side: Side) -> None:
        """Bring the checkout of a side back to its commit; while tests are running in it, only what they may change."""
        running = {self.name(views, one.started) for one in views.gate.in_flight() if one.started.side == side}
        guard = self._workplace.guard(side)
        if running & self._active:
            guard.put_back()
        else:
            guard.restore()

    def record(self, views: RunViews, attempt: AttemptStarted, end: JobEnd) -> RecordAttempt:
        """What this attempt gave; its record, its output and its table become evidence."""
        collection = attempt.shard == COLLECTION
        left = self._left(self.directory(views, attempt), attempt.side, end, collection=collection)
        log = left.directory / "output.log"
        taken_over = attempt.term < views.run.term and end.end in ("lost", "not-started")
        told = RecordAttempt(
            stream=views.run.run,
            shard=attempt.shard,
            side=attempt.side,
            attempt=attempt.attempt,
            commit=attempt.commit,
            complete=False,
            counted=end.end not in OUTSIDE_ENDS and not taken_over,
            cause=None,
            exit_code=end.exit_code,
            signal=end.signal,
            started_at=end.started_at,
            duration_seconds=end.duration_seconds,
            peak_memory_bytes=end.peak_memory_bytes,
            reader=self._runner.readers[0 if collection else 1],
            evidence_key=_read_key(left.directory),
            record=self._evidence.put_file(left.record) if left.record else None,
            log=self._evidence.put_file(log) if log.exists() else None,
        )
        if collection:
            return self._record_collection(views, told, left)
        return self._record_tests(views, attempt, told, left)

    def _left(self, directory: Path, side: Side, end: JobEnd, *, collection: bool) -> Left:
        tree = self._workplace.tree(side)
        record = self._runner.record(directory, tree, collection=collection)
        return Left(directory=directory, record=record, tree=tree, end=end)

    def _record_collection(self, views: RunViews, told: RecordAttempt, left: Left) -> RecordAttempt:
        reading = self._runner.read_collection(left)
        if trouble := self._tree_trouble(told.side):
            return replace(told, cause=trouble[0], detail=trouble[1])
        if reading.cause is not None:
            return replace(told, cause=reading.cause, detail=reading.detail)
        try:
            ours = Holders(self._git.blobs(told.commit))
            other = Holders(self._git.blobs(views.run.begun.candidate)) if told.side == "baseline" else None
        except LedgerError as error:
            return replace(told, cause=error.code, detail=error.message)
        places = reading.places
        targets = tuple(_with_blob(one, places.get(one.target, one.target), ours, other) for one in reading.targets)
        inventory = Inventory(side=told.side, commit=told.commit, targets=targets)
        return replace(
            told,
            complete=True,
            detail=reading.detail,
            inventory=self._evidence.put_bytes(encode_document(inventory)),
            targets=len(targets),
            measured_targets=len(targets),
            cases=sum(len(target.cases) for target in targets),
            errors=tuple(target.target for target in targets if target.error is not None),
        )

    def _record_tests(self, views: RunViews, attempt: AttemptStarted, told: RecordAttempt, left: Left) -> RecordAttempt:
        asked = self._asked(views, attempt)
        wanted = _wanted(asked, views, attempt)
        inventory = self._inventory(views.gate.inventories[attempt.side].inventory)
        reading = asked.named(self._runner.read_attempt(left, wanted, attempt.side, attempt.commit, inventory))
        if trouble := self._tree_trouble(attempt.side):
            reading = voided(reading, *trouble)
        hints = (self._hint(line.line) for line in reading.failures)
        return replace(
            told,
            complete=reading.complete,
            cause=reading.cause,
            detail="; ".join(filter(None, (reading.detail, next(filter(None, hints), "")))),
            table=self._evidence.put_bytes(encode_document(reading.table)),
            targets=len(wanted.targets),
            measured_targets=reading.measured_targets,
            missing=reading.missing,
            attention=reading.attention,
            counts=reading.counts,
            failures=reading.failures,
            **_usage(reading, left.end),
        )

    def _tree_trouble(self, side: Side) -> tuple[str, str] | None:
        """Why what was tested on a side is not known to be its commit: a reason code and a detail. None when it is."""
        guard = self._workplace.guard(side)
        try:
            changes = guard.changes() if guard.is_set else ()
        except LedgerError as error:
            return error.code, error.message
        if not changes:
            return None
        more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
        return (
            "tree-changed",
            f"changed in the checkout while tests were running: {', '.join(map(safe, changes[:_NAMED]))}{more}",
        )

    def _asked(self, views: RunViews, attempt: AttemptStarted) -> Asked:
        """What the attempt was asked for: the promised targets, else all of its side of the shard."""
        if views.gate.plan is None:
            raise LookupError("an attempt of a shard comes after the plan")
        plan, rerun = self._plan(views.gate.plan.plan), views.gate.reruns.get(attempt.shard)
        planned = rerun.of if rerun else attempt.shard
        shard = next(shard for shard in plan.shards if shard.shard == planned)
        names = shard.candidate if attempt.side == "candidate" else shard.baseline
        names = names if attempt.targets is None else attempt.targets
        return Asked(names, parts_on(attempt.side, names, shard.parts))

    def _plan(self, digest: Digest) -> Plan:
        if digest not in self._plans:
            self._plans[digest] = decode_document(self._evidence.get(digest), Plan)
        return self._plans[digest]

    def _inventory(self, digest: Digest) -> Inventory:
        if digest not in self._inventories:
            self._inventories[digest] = decode_document(self._evidence.get(digest), Inventory)
        return self._inventories[digest]

    def _hint(self, message: str) -> str | None:
        let_through = dict.fromkeys(self._settings.pass_environment, "") | self._settings.set_environment
        return missing_variable_hint(message, os.environ, let_through)


def collect_once(
    executor: Executor, runner: Runner, workplace: Workplace, policy: GatePolicy, side: Side
) -> CollectionReading:
    """Collect a side outside of any run: nothing is recorded. Raises LedgerError when the side cannot be prepared."""
    ready, directory = workplace.side(side), workplace.directory / "attempts" / "collection"
    launch = ready.runner.collect(directory)
    environment = _furnish(workplace, ready, directory, launch)
    executor.start(_job(f"{workplace.directory.name}.{COLLECTION}", launch, ready, environment, directory, policy))
    while not (ends := executor.observe()):
        executor.wait(_LOOK_AGAIN_SECONDS)
    record = runner.record(directory, ready.tree, collection=True)
    return runner.read_collection(Left(directory=directory, record=record, tree=ready.tree, end=ends[0]))


def _furnish(workplace: Workplace, ready: ReadySide, directory: Path, launch: Launch) -> dict[str, str]:
    """Make the attempt's directory with what the launch needs in it; the environment of its tests."""
    environment = workplace.environment(ready, directory, launch)
    for name, text in launch.files.items():
        (directory / name).write_text(text, "utf-8")
    return environment


def _job(
    name: str, launch: Launch, ready: ReadySide, environment: dict[str, str], directory: Path, policy: GatePolicy
) -> Job:
    return Job(
        name=name,
        argv=launch.argv,
        directory=ready.tree,
        environment=environment,
        attempt_directory=directory,
        activity=launch.activity,
        stdout_file=launch.stdout_file,
        time_limit_seconds=policy.time_limit_seconds,
        idle_limit_seconds=policy.idle_limit_seconds,
        memory_limit_bytes=policy.memory_limit_bytes,
    )


def _wanted(asked: Asked, views: RunViews, attempt: AttemptStarted) -> Wanted:
    return asked.wanted(_suspects(views, attempt), _tests(attempt))


def _tests(attempt: AttemptStarted) -> tuple[TestId, ...] | None:
    """The only tests that the attempt was asked for; None for all of its targets."""
    return None if attempt.tests is None else tuple(map(TestId.parse, attempt.tests))


def _limited(policy: GatePolicy, attempt: AttemptStarted) -> GatePolicy:
    """The policy with the limits of this attempt."""
    named = {"memory_limit_bytes": attempt.memory_limit_bytes, "time_limit_seconds": attempt.time_limit_seconds}
    return replace(policy, **{name: limit for name, limit in named.items() if limit is not None})


def _usage(reading: AttemptReading, end: JobEnd) -> dict[str, Any]:
    """What `measured` says, as fields of the message."""
    measured = [row for row in reading.table.targets if row.cause is None]
    bases = {row.memory_basis for row in measured} & {"alone", "upper-bound"}
    return {
        "session_seconds": reading.usage.session_seconds,
        "session_memory_bytes": reading.usage.session_memory_bytes,
        "target_seconds": sum(row.duration_seconds for row in measured),
        "memory_basis": min(bases, default="none"),
        "memory_method": end.memory_method,
        "sampling_seconds": end.sampling_seconds,
        "exceeded": reading.usage.exceeded,
    }


def _with_blob(target: InventoryTarget, place: str, ours: Holders, candidate: Holders | None) -> InventoryTarget:
    """The target with its bytes in git and, on the baseline, whether the candidate has the same bytes."""
    blob = ours.get(place)
    told = replace(target, blob=blob.oid if blob else None)
    return told if candidate is None else replace(told, kept=blob is not None and candidate.get(place) == blob)


def _suspects(views: RunViews, attempt: AttemptStarted) -> tuple[str, ...]:
    """The targets that earlier attempts of this side did not come past; for a bundle, those that the attempt which it
    repeats knew of, so that the order is the same."""
    rerun = views.gate.reruns.get(attempt.shard)
    if rerun is None or rerun.kind != "bundle":
        return tuple(sorted(views.gate.side(attempt.shard, attempt.side).suspects))
    before = (one.recorded for one in views.gate.side(rerun.of, attempt.side).attempts[: rerun.attempt - 1])
    missing = (entry for record in before if record is not None for entry in record.missing)
    return tuple(sorted({entry.target for entry in missing if entry.cause != NOT_REACHED}))


def _read_key(directory: Path) -> Digest | None:
    """The evidence key that was stored before the job was started; None when it never came so far."""
    try:
        return (directory / KEY_FILE).read_text("ascii")
    except FileNotFoundError:
        return None
