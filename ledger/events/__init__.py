"""Every event type, by topic. Importing this package fills the registry of tags."""

from ledger.events.archive import LostEvents, Quarantined
from ledger.events.base import TAGS, TYPES, Event, Unknown, evidence_of
from ledger.events.gate import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    Collected,
    FailureLine,
    JudgedCase,
    Measured,
    MissingTarget,
    Placed,
    Planned,
    PlannedShard,
    VerdictDecided,
)
from ledger.events.ledger import FORMAT_VERSION, STREAM, LedgerCreated
from ledger.events.policy import POLICY_VERSION, GatePolicy, MachinePolicy, PlanPolicy
from ledger.events.run import (
    DriverReplaced,
    DriverStarted,
    ResumeStarted,
    RunFinished,
    RunStarted,
    RunStopped,
    StepFinished,
    StepStarted,
)

__all__ = [
    "COLLECTION", "FORMAT_VERSION", "POLICY_VERSION", "STREAM", "TAGS", "TYPES",
    "AttemptRecorded", "AttemptStarted", "Collected", "DriverReplaced", "DriverStarted", "Event", "FailureLine",
    "GatePolicy", "JudgedCase", "LedgerCreated", "LostEvents", "MachinePolicy", "Measured", "MissingTarget", "Placed",
    "PlanPolicy", "Planned", "PlannedShard", "Quarantined", "ResumeStarted", "RunFinished", "RunStarted", "RunStopped",
    "StepFinished", "StepStarted", "Unknown", "VerdictDecided", "evidence_of",
]  # fmt: skip
