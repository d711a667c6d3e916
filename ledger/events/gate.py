"""Events of a gate: what was collected, planned, placed, tried and judged. Tags and field names are the file format.

Big inventories never sit in events: an event names the digest of the evidence, counts, and the exceptions.
"""

from typing import Literal

from msgspec import Struct, field

from ledger.events.base import Event, stored_as
from ledger.events.people import MuteUsed
from ledger.values import Commit, EvidenceDigest, Side, Verdict

COLLECTION = "collection"
"""The shard name of the two collection attempts, which come before any plan."""


@stored_as("collected")
class Collected(Event, frozen=True, kw_only=True):
    """The inventory of one side: `targets` files with `cases` tests; `errors` are the targets that could not be
    collected."""

    side: Side
    commit: Commit
    attempt: int
    inventory: EvidenceDigest
    targets: int
    cases: int
    errors: tuple[str, ...]


class PlannedShard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One shard of a plan; the targets themselves are in the plan's evidence.

    `absent` are those of its targets that the baseline does not have, which was proven. A plan by usage says what one
    side of the shard is planned to need, its session included, and when to give up on it; None where nothing is known.
    """

    shard: str
    candidate_targets: int
    absent: tuple[str, ...]
    seconds: float | None = None
    memory_bytes: int | None = None
    deadline_seconds: int | None = None

    @property
    def baseline_targets(self) -> int:
        """How many of the shard's targets the baseline has."""
        return self.candidate_targets - len(self.absent)


@stored_as("planned")
class Planned(Event, frozen=True, kw_only=True, omit_defaults=True):
    """Every target of the candidate is in exactly one shard. `plan` is the evidence; `policy` names the algorithm.

    A plan by usage says the memory that a shard may need, the time of its longest shard, the time that no plan with as
    many shards can go below, how many targets it knew how well (`measured`, `aged`, `estimated`), and what there is to
    be said against it.
    """

    commit: Commit
    plan: EvidenceDigest
    policy: str
    shards: tuple[PlannedShard, ...]
    budget_bytes: int | None = None
    makespan_seconds: float | None = None
    bound_seconds: float | None = None
    origins: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@stored_as("placed")
class Placed(Event, frozen=True, kw_only=True):
    """A shard, with both of its sides, will run on this member of the pool."""

    shard: str
    member: str
    reason: str


@stored_as("attempt-started")
class AttemptStarted(Event, frozen=True, kw_only=True, omit_defaults=True):
    """Intent to run one side of a shard. `targets` is None for all of its targets, else the ones still owed.

    `reserved_bytes` is the memory that is set aside for it, `memory_limit_bytes` and `time_limit_seconds` are what ends
    it; None where the run's policy alone says so, which holds for runs of older programs. `tests` are the only tests of
    the targets that run, in text form; None for all.
    """

    shard: str
    side: Side
    attempt: int
    term: int
    commit: Commit
    member: str
    targets: tuple[str, ...] | None
    reserved_bytes: int | None = None
    memory_limit_bytes: int | None = None
    time_limit_seconds: float | None = None
    tests: tuple[str, ...] | None = None


class MissingTarget(Struct, frozen=True, array_like=True):
    """A target that an attempt did not measure, and the reason code."""

    target: str
    cause: str


class FailureLine(Struct, frozen=True, array_like=True):
    """A test that failed, in text form, and the first line of its message."""

    test: str
    line: str


@stored_as("attempt-recorded")
class AttemptRecorded(Event, frozen=True, kw_only=True):
    """What one attempt gave.

    `complete`: every target asked for was measured. `cause` is the reason code of the whole attempt, None when there is
    none; `missing` lists the targets that were not measured, and is empty where nothing was and the cause holds for
    all. `counted` is False for an attempt that was cut short from outside (the driver died or was stopped): it
    uses up no round. `attention` lists the measured targets that failed, skipped or lost cases. `table`, `record` and
    `log` are evidence.
    Times: `started_at` UTC, `duration_seconds` monotonic, `peak_memory_bytes` of the process tree, None if not known.
    """

    shard: str
    side: Side
    attempt: int
    term: int
    commit: Commit
    complete: bool
    counted: bool
    cause: str | None
    detail: str
    exit_code: int | None
    signal: int | None
    started_at: str
    duration_seconds: float
    peak_memory_bytes: int | None
    reader: str
    evidence_key: EvidenceDigest | None
    table: EvidenceDigest | None
    record: EvidenceDigest | None
    log: EvidenceDigest | None
    targets: int
    measured_targets: int
    missing: tuple[MissingTarget, ...]
    attention: tuple[str, ...]
    counts: dict[str, int]
    failures: tuple[FailureLine, ...]


@stored_as("measured")
class Measured(Event, frozen=True, kw_only=True):
    """What the targets of one attempt needed, whether or not the attempt was complete.

    `table` is the evidence with the time and the memory of each target. `targets` were measured, in `seconds` together;
    what the attempt took beyond that is the session's own: `session_seconds`, and `session_memory_bytes` before the
    first target was loaded. The memory of a target that had the attempt to itself is its own (`alone`); that of one
    among others is not more than what all processes used while it ran (`upper-bound`). `memory_method` says how the
    processes were measured (`pss`: proportional set sizes, `rss`: resident ones) and `sampling_seconds` the longest
    time between two looks. `exceeded` are the targets at which a memory limit ended the attempt: they need at least
    what was used then.
    """

    shard: str
    side: Side
    attempt: int
    commit: Commit
    table: EvidenceDigest
    targets: int
    seconds: float
    session_seconds: float
    session_memory_bytes: int | None
    peak_memory_bytes: int | None
    memory_basis: Literal["alone", "upper-bound", "none"]
    memory_method: str
    sampling_seconds: float | None
    exceeded: tuple[str, ...]


class JudgedCase(Struct, frozen=True, array_like=True):
    """A case that decides: its test in text form, its class and the first line of what was seen."""

    test: str
    case_class: str
    line: str


@stored_as("verdict-decided")
class VerdictDecided(Event, frozen=True, kw_only=True, omit_defaults=True):
    """The gate's answer. `table` names the decision table and its version; `classes` is the evidence with a row per
    case.

    `blocking` are the cases that make it failed, `unmeasured` those that could not be judged, with their reason codes;
    `counts` is cases per class, over all cases. `muted` are the mutings that kept cases from blocking.
    """

    verdict: Verdict
    reason: str
    table: str
    classes: EvidenceDigest
    counts: dict[str, int]
    blocking: tuple[JudgedCase, ...]
    unmeasured: tuple[JudgedCase, ...]
    muted: tuple[MuteUsed, ...] = ()
