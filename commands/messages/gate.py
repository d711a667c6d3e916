"""Messages about a gate."""

from typing import ClassVar, Literal

from msgspec import field

from commands.messages.base import Message
from ledger.events import FailureLine, MissingTarget, Muted
from ledger.values import Commit, Digest, Side


class Collect(Message, frozen=True, kw_only=True, tag="collect"):
    """Start as many of the collections that are owed as there are free slots."""

    member: str
    slots: int = 2


class MakePlan(Message, frozen=True, kw_only=True, tag="make-plan"):
    """Plan the candidate's targets into shards.

    `usage` is the evidence of what earlier runs tell of them, None when they tell nothing; `basis` the ledger sequence
    up to which runs were asked; `machine_bytes` the memory of the machine.
    """

    usage: Digest | None = None
    basis: int = 0
    machine_bytes: int = 0

    def read_at(self) -> int:
        """Where the history stood."""
        return self.basis


class Place(Message, frozen=True, kw_only=True, tag="place"):
    """Say where each shard runs. `members` are the usable members of the pool, in order of preference."""

    members: tuple[str, ...]


class StartAttempts(Message, frozen=True, kw_only=True, tag="start-attempts"):
    """Promise as many of the owed attempts as there are free slots."""

    slots: int


class RecordAttempt(Message, frozen=True, kw_only=True, tag="record-attempt"):
    """What was read of an attempt that ended; the fields are those of `attempt-recorded`.

    For a collection, `inventory` is the evidence that it gave, with its counts. For a shard, `session_seconds` and what
    follows are those of `measured`, `target_seconds` its `seconds`; without them nothing is said of usage.
    """

    observation: ClassVar[bool] = True

    shard: str
    side: Side
    attempt: int
    commit: Commit
    complete: bool
    counted: bool
    cause: str | None
    detail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: str = ""
    duration_seconds: float = 0.0
    peak_memory_bytes: int | None = None
    reader: str = ""
    evidence_key: Digest | None = None
    table: Digest | None = None
    record: Digest | None = None
    log: Digest | None = None
    targets: int = 0
    measured_targets: int = 0
    missing: tuple[MissingTarget, ...] = ()
    attention: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    failures: tuple[FailureLine, ...] = ()
    inventory: Digest | None = None
    cases: int = 0
    errors: tuple[str, ...] = ()
    session_seconds: float | None = None
    session_memory_bytes: int | None = None
    target_seconds: float = 0.0
    memory_basis: Literal["alone", "upper-bound", "none"] = "none"
    memory_method: str = ""
    sampling_seconds: float | None = None
    exceeded: tuple[str, ...] = ()

    def command(self) -> str:
        """One record per attempt and side, whoever reports it."""
        return f"record/{self.stream}/{self.shard}/{self.side}/{self.attempt}"


class PlanReruns(Message, frozen=True, kw_only=True, tag="plan-reruns"):
    """Say which new failures are run again next, when everything is measured or has used up its rounds."""


class Judge(Message, frozen=True, kw_only=True, tag="judge"):
    """Decide the verdict, when everything is measured or has used up its rounds.

    `mutes` are the mutings that stood when the ledger was at the sequence `basis`, `date` is the day in UTC, and
    `environment` tells of what their conditions ask for where the candidate was tested; what is not in it is not known.
    """

    mutes: tuple[Muted, ...] = ()
    date: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    basis: int = 0

    def read_at(self) -> int:
        """Where the ledger stood."""
        return self.basis
