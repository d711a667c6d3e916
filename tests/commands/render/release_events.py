"""One event of each type that only releases have."""

from ledger.events import (
    ApprovalDecided,
    ApprovalRequested,
    AutohealDecided,
    Carried,
    Event,
    OverrideUsed,
    Prepared,
    RecheckPlanned,
    RegressionAccepted,
    TipMoved,
    Waived,
    WaiverRetired,
)

COMMIT, DIGEST = "c" * 40, "d" * 64

RELEASE_EVENTS: list[Event] = [
    TipMoved(previous="b" * 40, commit=COMMIT, branch="release/1.2.3"),
    Waived(
        waiver="waiver-1", step="screens", attempt=1, commit=COMMIT, outcome="failed", cause="step-exit",
        reason="It does not close",
    ),
    WaiverRetired(waiver="waiver-1", why="run-again"),
    RegressionAccepted(issue="KI-1", note="It is slow", commit=COMMIT),
    Prepared(
        step="prepare", version="1.2.3", commit=COMMIT, digest=DIGEST, size_bytes=2**21, files=2, place="/prepared"
    ),
    ApprovalRequested(step="approve", attempt=1, commit=COMMIT, shown=DIGEST),
    ApprovalDecided(
        step="approve", attempt=1, commit=COMMIT, shown=DIGEST, decision="rejected", by="someone", reason="not now"
    ),
    OverrideUsed(what="attempts", reason="the disk was full"),
    AutohealDecided(
        step="gate", attempt=1, commit=COMMIT, gate="20300101-000000-0000", table="autoheal/1", cause="timeout",
        codes=("time-limit",), signature=DIGEST, history={}, taken=0, caps={}, facts=(), row="C1",
        action="retry-shard", passed_over={},
    ),
    RecheckPlanned(
        gate="20300101-000000-0000", commit=COMMIT, classes=DIGEST, targets=("a.py",), changed=("a.py",), unsettled=()
    ),
    Carried(gate="20300101-000000-0000", commit=COMMIT, classes=DIGEST, targets=1, cases=2),
]  # fmt: skip
