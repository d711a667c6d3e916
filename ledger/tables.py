"""The documents that evidence holds: inventories, case tables, plans and class tables, as deterministic JSON.

They are addressed by the digest of their bytes, so the encoding is part of the format.
"""

from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ledger.errors import EvidenceDamaged
from ledger.values import Commit, Outcome, Side, TestId

_encoder = msgspec.json.Encoder(order="deterministic")


class InventoryTarget(Struct, frozen=True, kw_only=True):
    """One target of one side. `blob` identifies the file's bytes in git, None when git does not have the file.

    `cases` are its tests in the order of collection; `error` is the collection error, if any; `skipped` the reason when
    the whole target skips itself at collection, so that its tests exist but cannot be listed. `kept` says of a target
    of the baseline whether the candidate has the file with the same bytes, collected or not. A target without all of
    these comes from a runner that cannot list its tests: only its reports tell them.
    """

    target: str
    blob: str | None
    cases: tuple[TestId, ...]
    error: str | None = None
    skipped: str | None = None
    kept: bool | UnsetType = UNSET

    @property
    def is_listed(self) -> bool:
        """Whether the collection tells which tests the target has, or why not."""
        return bool(self.cases) or self.error is not None or self.skipped is not None


class Inventory(Struct, frozen=True, kw_only=True):
    """What one side collects; targets in byte order."""

    side: Side
    commit: Commit
    targets: tuple[InventoryTarget, ...]


class CaseRow(Struct, frozen=True, kw_only=True):
    """One reported test. `line` is the first line of the message, `message` a bounded part of it; `reruns` counts the
    failed tries that the project's own re-run plug-in hid; `subtests_failed` the failed subtests in it."""

    test: TestId
    outcome: Outcome
    duration_seconds: float
    line: str = ""
    message: str = ""
    reason: str = ""
    worker: str = ""
    reruns: int = 0
    subtests_failed: int = 0


MemoryBasis = Literal["alone", "upper-bound", "at-least", "none"]
"""What a memory is: all that a target needed that ran alone, not less than it needed, not more than it, or unknown."""


class TargetRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One target of an attempt: `cause` is None when it was measured, else the reason code of why not.

    `duration_seconds` is the time of its tests and, where that was seen, of loading its file. `memory_bytes` is what
    its processes used while it ran, beyond what the session used before it loaded any target; `memory_basis` says what
    that tells of the target.
    """

    target: str
    cause: str | None
    duration_seconds: float
    memory_bytes: int | None = None
    memory_basis: MemoryBasis = "none"


class CaseTable(Struct, frozen=True, kw_only=True):
    """The normalised reading of one attempt; targets and cases in byte order."""

    reader: str
    side: Side
    commit: Commit
    targets: tuple[TargetRow, ...]
    cases: tuple[CaseRow, ...]


class PlannedPart(Struct, frozen=True, array_like=True):
    """A part of a target, by its name, with the tests that it runs on each side."""

    part: str
    candidate: tuple[TestId, ...]
    baseline: tuple[TestId, ...]


class ShardTargets(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The targets of a shard, per side, in the order in which they run; `parts` are those that are part of a target.

    A planner by usage says what the candidate's targets are planned to need in one go, and when to give up on them.
    """

    shard: str
    candidate: tuple[str, ...]
    baseline: tuple[str, ...]
    planned_memory_bytes: int | None = None
    planned_seconds: float | None = None
    deadline_seconds: int | None = None
    parts: tuple[PlannedPart, ...] = ()


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which targets run together; made from the two inventories (their digests) by a named policy.

    A planner by usage adds the digest of all that it planned by, the memory of a shard, what each shard needs besides
    its targets (`session_*`, contained in what is planned for a shard), the time of the longest shard, the time that no
    plan with as many shards can go below, how many targets it knew how well, and what there is to be said against it.
    """

    policy: str
    candidate_inventory: str
    baseline_inventory: str
    shards: tuple[ShardTargets, ...]
    usage_plan: str = ""
    budget_bytes: int | None = None
    session_seconds: float | None = None
    session_memory_bytes: int | None = None
    makespan_seconds: float | None = None
    bound_seconds: float | None = None
    origins: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class KnownTarget(Struct, frozen=True, array_like=True):
    """What is known of a target before it is planned: time, peak memory and what that memory is, and whether all that
    is of long ago (`aged`)."""

    target: str
    seconds: float
    memory_bytes: int | None
    memory_basis: MemoryBasis
    aged: bool


class UsageTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What earlier runs tell of the targets, in byte order, and of a session without any: a plan is made from it.

    `case_seconds` are the times of tests, in text form, of targets that may be split.
    """

    session_seconds: float
    session_memory_bytes: int
    targets: tuple[KnownTarget, ...]
    case_seconds: dict[str, float] = field(default_factory=dict)


class ClassRow(Struct, frozen=True, kw_only=True):
    """The judgement of one case: its states on both sides, the class, the effect, and the row of the table that gave
    it. `mute` names the muting that keeps it from blocking; `note` is the code of what else there is to say of it."""

    test: TestId
    candidate: str
    baseline: str
    case_class: str
    effect: str
    rule: str
    line: str = ""
    cause: str = ""
    mute: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class ClassTable(Struct, frozen=True, kw_only=True):
    """Every case of the gate with its class, in byte order."""

    table: str
    rows: tuple[ClassRow, ...]


Document = TypeVar("Document", bound=Struct)


def encode_document(document: Struct) -> bytes:
    """The bytes whose digest names this document."""
    return _encoder.encode(document)


def decode_document(data: bytes, document_type: type[Document]) -> Document:
    """Read a document back. Raises EvidenceDamaged when the bytes are not such a document."""
    try:
        return msgspec.json.decode(data, type=document_type)
    except msgspec.MsgspecError as error:
        raise EvidenceDamaged(f"this evidence is not a readable {document_type.__name__}: {error}") from error
