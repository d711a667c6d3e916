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
from ledger.events.people import Muted, MuteUsed, Unmuted
from ledger.events.policy import POLICY_VERSION, GatePolicy, MachinePolicy, PlanPolicy
from ledger.events.reruns import RERUN, PlannedRerun, RerunKind, RerunsPlanned
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
    "COLLECTION", "FORMAT_VERSION", "POLICY_VERSION", "RERUN", "STREAM", "TAGS", "TYPES",
    "AttemptRecorded", "AttemptStarted", "Collected", "DriverReplaced", "DriverStarted", "Event", "FailureLine",
    "GatePolicy", "JudgedCase", "LedgerCreated", "LostEvents", "MachinePolicy", "Measured", "MissingTarget", "MuteUsed",
    "Muted", "Placed", "PlanPolicy", "Planned", "PlannedRerun", "PlannedShard", "Quarantined", "RerunKind",
    "RerunsPlanned", "ResumeStarted", "RunFinished", "RunStarted", "RunStopped", "StepFinished", "StepStarted",
    "Unknown", "Unmuted", "VerdictDecided", "evidence_of",
]  # fmt: skip
