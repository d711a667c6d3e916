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
from ledger.events.policy import POLICY_VERSION, GatePolicy, MachinePolicy, PlanPolicy, QuestionPolicy
from ledger.events.questions import (
    Answered,
    AnswerOutcome,
    Assumed,
    AssumeReason,
    AutoRecommended,
    DeferReason,
    Impact,
    Parked,
    Phase,
    Question,
    QuestionAsked,
    QuestionDeferred,
    QuestionOption,
)
from ledger.events.release import (
    ApprovalDecided,
    ApprovalRequested,
    AutohealDecided,
    OverrideUsed,
    Prepared,
    RegressionAccepted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.events.reruns import RERUN, PlannedRerun, RerunKind, RerunsPlanned
from ledger.events.reuse import Carried, RecheckPlanned
from ledger.events.run import (
    DriverReplaced,
    DriverStarted,
    ResumeStarted,
    RunFinished,
    RunStarted,
    RunStopped,
    StepFinished,
    StepProbe,
    StepReport,
    StepStarted,
)

__all__ = [
    "COLLECTION", "FORMAT_VERSION", "POLICY_VERSION", "RERUN", "STREAM", "TAGS", "TYPES", "AnswerOutcome", "Answered",
    "ApprovalDecided", "ApprovalRequested", "AssumeReason", "Assumed", "AttemptRecorded", "AttemptStarted",
    "AutoRecommended", "AutohealDecided", "Carried", "Collected", "DeferReason", "DriverReplaced", "DriverStarted",
    "Event", "FailureLine", "GatePolicy", "Impact", "JudgedCase", "LedgerCreated", "LostEvents", "MachinePolicy",
    "Measured", "MissingTarget", "MuteUsed", "Muted", "OverrideUsed", "Parked", "Phase", "Placed", "PlanPolicy",
    "Planned", "PlannedRerun", "PlannedShard", "Prepared", "Quarantined", "Question", "QuestionAsked",
    "QuestionDeferred", "QuestionOption", "QuestionPolicy", "RecheckPlanned", "RegressionAccepted", "RerunKind",
    "RerunsPlanned", "ResumeStarted", "RunFinished", "RunStarted", "RunStopped", "StepFinished", "StepProbe",
    "StepReport", "StepStarted", "TipMoved", "Unknown", "Unmuted", "VerdictDecided", "Waived", "WaiverRetired",
    "evidence_of",
]  # fmt: skip
