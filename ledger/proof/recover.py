"""Recovery: a damaged ledger file is moved aside, whole, and a new one is made of the events that are proved.

1. *Plan*: verify, and write down what will be done. From here on nobody else may write to the ledger.
2. *Keep*: give the damaged file and its write-ahead log a second name in the quarantine.
3. *Rebuild*: copy every event before the first doubtful one, byte for byte, into a new file beside them, add
   `quarantined`, and verify it.
4. *Replace*: take the old log's first name away, and give the new file the name of the old.
5. *Finish*: move the plan into the quarantine, as the receipt.

A recovery that was cut short anywhere is taken up again from its plan and ends the same: until step 4 the file still
has its name, and at every moment all of its bytes have a name. Nothing is ever deleted.
"""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import structs

from ledger.disk import make_directory, sync_directory
from ledger.errors import LedgerDamaged, LedgerError, StoreUnwritable
from ledger.events import STREAM
from ledger.events.archive import LostEvents, Quarantined
from ledger.proof.file import UNREADABLE, Unreadable, every_row, open_damaged
from ledger.proof.findings import Finding, Report
from ledger.proof.receipt import RECEIPT, MovedFile, Receipt, plan_of, read_plan, write_plan
from ledger.proof.verify import verify
from ledger.record import NewEvent, Stamp
from ledger.store.rows import StoredRow
from ledger.store.sqlite.schema import refuse_newer

QUARANTINE = "quarantine"
MOST_FINDINGS = 1000
"""So many findings are kept in a receipt; `ledger verify` on the quarantined file tells all of them."""

_REBUILT = "recovered.sqlite"
_BATCH_EVENTS = 1000
_LOG, _INDEX_OF_LOG = "-wal", "-shm"


class NothingToRecover(LedgerError):
    """The ledger file is whole."""

    code = "nothing-to-recover"
    exit_code = 4


class NothingKept(LedgerError):
    """Not even the first event is proved, so that no ledger can be made of what is left."""

    code = "recovery-impossible"


def recover(ledger_file: Path, stamp: Stamp) -> Receipt:
    """Recover a damaged ledger, or take up a recovery that was cut short; the receipt says what was done.

    Meanwhile nobody else may write to the ledger. Raises NothingToRecover, NewerFormat, NothingKept,
    StoreUnwritable, and what `verify` raises.
    """
    try:
        plan = read_plan(ledger_file)
        if plan is None:
            plan = _plan(ledger_file, stamp)
            write_plan(ledger_file, plan)
        quarantine = ledger_file.parent / plan.place
        kept = _keep(ledger_file, quarantine, plan)
        if ledger_file.samefile(kept):
            rebuilt = _rebuild(kept, plan)
            _side_file(ledger_file, _LOG).unlink(missing_ok=True)
            _side_file(ledger_file, _INDEX_OF_LOG).unlink(missing_ok=True)
            rebuilt.replace(ledger_file)
            sync_directory(ledger_file.parent)
        plan_of(ledger_file).replace(quarantine / RECEIPT)
        sync_directory(quarantine)
        sync_directory(ledger_file.parent)
    except OSError as error:
        raise StoreUnwritable(
            f"the recovery of {ledger_file} was cut short: {error}",
            "check the space and the permissions there, and run `ledger recover` again; nothing is lost",
        ) from error
    return plan


def _plan(ledger_file: Path, stamp: Stamp) -> Receipt:
    """Verify, and decide what can be kept."""
    gathered = _Gathered()
    report = verify(ledger_file, None, gathered)
    if gathered.count == 0:
        raise NothingToRecover(
            f"{ledger_file} is whole: every event up to @{report.events} was verified",
            "evidence that is damaged or missing is measured again: `ledger verify` names it",
        )
    _refuse_newer(ledger_file, report)
    kept = report.events if gathered.doubtful_from is None else gathered.doubtful_from - 1
    if kept < 1:
        raise NothingKept(
            f"not even the first event of {ledger_file} is proved, so that nothing was changed",
            "restore a backup; or move the file away yourself, and the next gate begins a new ledger",
        )
    first = gathered.findings[0]
    files = tuple(_moved(path) for path in (ledger_file, _side_file(ledger_file, _LOG)) if path.exists())
    day, _, time = stamp.time[:19].replace("-", "").replace(":", "").partition("T")
    return Receipt(
        time=stamp.time,
        actor=stamp.actor,
        command=stamp.command,
        reason=f"{first.code}: {first.what}" + (f" (and {gathered.count - 1} more)" if gathered.count > 1 else ""),
        place=f"{QUARANTINE}/{day}-{time}-{files[0].digest[:12]}",
        files=files,
        kept_sequence=kept,
        lost=_lost(ledger_file, kept),
        findings=tuple(gathered.findings),
        more_findings=gathered.count - len(gathered.findings),
    )


def _refuse_newer(ledger_file: Path, report: Report) -> None:
    """What a newer program wrote would be put into a file of this one. Raises NewerFormat."""
    marked = 0
    connection, _ = open_damaged(ledger_file)
    with closing(connection), suppress(*UNREADABLE):
        marked = connection.execute("PRAGMA user_version").fetchone()[0]
    refuse_newer(max(marked, report.format_version), ledger_file)


class _Gathered:
    """Keeps the first findings, counts all, and knows from which sequence on nothing is proved."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.count = 0
        self.doubtful_from: int | None = None

    def __call__(self, finding: Finding) -> None:
        self.count += 1
        if self.count <= MOST_FINDINGS:
            self.findings.append(finding)
        if finding.doubtful_from:
            self.doubtful_from = min(finding.doubtful_from, self.doubtful_from or finding.doubtful_from)


def _lost(ledger_file: Path, kept: int) -> tuple[LostEvents, ...]:
    """What the file still shows of the events that are not kept, per stream."""
    lost: dict[str, LostEvents] = {}
    connection, _ = open_damaged(ledger_file)
    with closing(connection):
        for row in every_row(connection):
            sequence, stream, position, tag = _shown(row)
            if sequence > kept:
                before = lost.get(stream) or LostEvents(stream=stream, first=position, last=position, tags={})
                lost[stream] = structs.replace(
                    before,
                    first=min(before.first, position),
                    last=max(before.last, position),
                    tags={**before.tags, tag: before.tags.get(tag, 0) + 1},
                )
    return tuple(lost[stream] for stream in sorted(lost))


def _shown(row: StoredRow | Unreadable) -> tuple[int, str, int, str]:
    """Sequence, stream, position and tag of a row, as far as the file shows them."""
    shown: Sequence[Any]
    if isinstance(row, Unreadable):
        shown = (row.sequence, row.stream, row.position, "")
    else:
        shown = (row[0], *row[4:7])
    sequence, stream, position, tag = shown
    return sequence, str(stream or ""), position if isinstance(position, int) else 0, str(tag or "")


def _keep(ledger_file: Path, quarantine: Path, plan: Receipt) -> Path:
    """Give the damaged files a second name in the quarantine, and return that of the ledger file."""
    make_directory(quarantine)
    for moved in plan.files:
        second = quarantine / moved.name
        if not second.exists():
            second.hardlink_to(ledger_file.with_name(moved.name))
        if _moved(second) != moved:
            raise LedgerDamaged(f"{second} is not what {plan_of(ledger_file)} says: something wrote to it meanwhile")
    sync_directory(quarantine)
    return quarantine / ledger_file.name


def _rebuild(kept: Path, plan: Receipt) -> Path:
    """A new ledger file of the events that are proved, with the event that says what became of the rest."""
    from ledger.store.writer import Writer

    rebuilt = kept.with_name(_REBUILT)
    for path in (rebuilt, _side_file(rebuilt, _LOG), _side_file(rebuilt, _INDEX_OF_LOG)):
        # What an earlier try has left is begun anew: it holds nothing that the kept file does not.
        path.unlink(missing_ok=True)
    positions: dict[str, int] = {}
    connection, _ = open_damaged(kept)
    with closing(connection), Writer.open(rebuilt, create=True) as writer:
        rows = islice(every_row(connection), plan.kept_sequence)
        while batch := [row for row in islice(rows, _BATCH_EVENTS) if not isinstance(row, Unreadable)]:
            after = {row[4]: positions.get(row[4], 0) for row in batch}
            writer.append_stored([(row[1], row[2]) for row in batch], after)
            positions |= {row[4]: row[5] for row in batch}
        event = NewEvent(STREAM, _quarantined(plan))
        stamp = Stamp(time=plan.time, actor=plan.actor, command=plan.command)
        writer.append([event], {STREAM: positions[STREAM]}, stamp)
    _require_sound(rebuilt, plan.kept_sequence + 1)
    return rebuilt


def _require_sound(rebuilt: Path, events: int) -> None:
    """Look at the new file before it takes the place of the old one."""
    gathered = _Gathered()
    report = verify(rebuilt, None, gathered)
    if not report.sound or report.events != events:
        raise LedgerDamaged(f"the new file {rebuilt} does not verify: {report.counts}, up to @{report.events}")
    for suffix in (_LOG, _INDEX_OF_LOG):
        # Everything is in the file itself; under its new name these would belong to nothing.
        _side_file(rebuilt, suffix).unlink(missing_ok=True)
    with rebuilt.open("rb") as file:
        os.fsync(file.fileno())


def _quarantined(plan: Receipt) -> Quarantined:
    return Quarantined(
        what="ledger",
        place=plan.place,
        digest=plan.files[0].digest,
        size_bytes=plan.files[0].size_bytes,
        reason=plan.reason,
        kept_sequence=plan.kept_sequence,
        lost=plan.lost,
    )


def _moved(path: Path) -> MovedFile:
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return MovedFile(path.name, path.stat().st_size, digest)


def _side_file(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
