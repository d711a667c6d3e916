"""The receipt of a recovery: first its plan, next to the ledger file, and when all is done the proof beside what was
moved.

While the plan is there, a recovery is under way or was cut short, and nobody may write to the ledger.
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from ledger.disk import sync_directory
from ledger.errors import LedgerDamaged, LedgerError
from ledger.events.archive import LostEvents
from ledger.proof.findings import Finding
from ledger.record import Actor
from ledger.values import Digest

PLAN = "recovering.json"
RECEIPT = "receipt.json"


class RecoveryUnfinished(LedgerError):
    """A recovery was cut short; until it is taken up again, the ledger may not be written."""

    code = "recovery-unfinished"
    exit_code = 4


class MovedFile(Struct, frozen=True):
    """A file that was moved aside, as it was."""

    name: str
    size_bytes: int
    digest: Digest


class Receipt(Struct, frozen=True, kw_only=True):
    """What a recovery does, and did: when, who, why, what was moved where, and what could not be kept.

    `place` is relative to the ledger's directory. `kept_sequence` is the last event that was kept. Of the findings that
    led to it, `findings` are the first ones and `more_findings` counts the rest.
    """

    time: str
    actor: Actor
    command: str
    reason: str
    place: str
    files: tuple[MovedFile, ...]
    kept_sequence: int
    lost: tuple[LostEvents, ...]
    findings: tuple[Finding, ...]
    more_findings: int


def plan_of(ledger_file: Path) -> Path:
    """Where the plan of a recovery of this ledger is while it is not finished."""
    return ledger_file.with_name(PLAN)


def read_plan(ledger_file: Path) -> Receipt | None:
    """The plan of a recovery that was cut short, or None. Raises LedgerDamaged when it cannot be read."""
    path = plan_of(ledger_file)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise LedgerDamaged(f"the plan {path} of a recovery that was cut short cannot be read: {error}") from error


def write_plan(ledger_file: Path, plan: Receipt) -> None:
    """Put the plan on the disk. Raises OSError."""
    path = plan_of(ledger_file)
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def refuse_unfinished(ledger_file: Path) -> None:
    """Raise RecoveryUnfinished when a recovery of this ledger was cut short."""
    if plan_of(ledger_file).exists():
        raise RecoveryUnfinished(
            f"a recovery of {ledger_file} was cut short, so that it may not be written",
            "run `ledger recover` again; it takes up where it was cut short",
        )
