"""The decision on an approval: it binds to what was shown, and to nothing else.

Rules: it was asked for and is not answered yet, or was approved and is taken back before anything irreversible was
begun and before the release has ended; what was shown is still so; who approves may do so, and, where duties are
separate, has waived nothing of this release; a rejection has a reason.
"""

from msgspec import UNSET

from commands.decide.base import Decided, Documents, stored
from commands.decide.release.steps import graph_of, known_step
from commands.messages import DecideApproval, Refusal
from ledger.events import ApprovalDecided, StepFinished, StepReport
from projections.registry import RunViews
from projections.release.approval import shown_now
from projections.release.standing import pinned_by
from projections.release.state import Approval


def decide_approval(message: DecideApproval, views: RunViews, documents: Documents) -> Decided:
    """The answer, and with it the end of the step."""
    graph, view = graph_of(views, documents), views.release
    step = known_step(message.step, graph)
    back = message.decision == "rejected" and views.run.status != "finished" and not pinned_by(view, graph)
    approval = _open_approval(step.name, view.approvals.get(step.name, []), back=back)
    shown, _ = stored(shown_now(view, graph, message.date, message.mutes))
    asked = approval.requested
    if asked.shown != shown:
        raise Refusal(
            "approval-stale",
            f"what {step.name} was asked for has changed since it was shown",
            f"`ledger resume --from {step.name}` shows it anew",
        )
    if message.decision == "approved" and graph.may_approve and message.by not in graph.may_approve:
        raise Refusal("approval-not-yours", f"{message.by} may not approve; these may: {', '.join(graph.may_approve)}")
    if message.decision == "approved" and graph.separate_duties and message.by in {w.by for w in view.waivers.values()}:
        raise Refusal(
            "approval-not-yours", f"{message.by} has waived something of this release, so somebody else approves"
        )
    if message.decision == "rejected" and not message.reason.strip():
        raise Refusal("reason-missing", "a rejection needs a reason: --reason TEXT")
    decided = ApprovalDecided(
        step=step.name,
        attempt=asked.attempt,
        commit=asked.commit,
        shown=asked.shown,
        decision=message.decision,
        by=message.by,
        reason=message.reason.strip(),
    )
    approved = message.decision == "approved"
    report = StepReport() if approved else StepReport(cause="rejected", detail=message.reason.strip())
    ended = StepFinished(
        step=step.name,
        outcome="passed" if approved else "failed",
        attempt=asked.attempt,
        commit=asked.commit,
        report=report,
        output=UNSET,
    )
    return Decided((decided, ended))


def _open_approval(step: str, approvals: list[Approval], *, back: bool) -> Approval:
    """The request that is to be answered; one that was approved, too, where that can still be taken `back`."""
    if not approvals:
        raise Refusal(
            "approval-not-asked", f"nobody was asked for {step} yet", "`ledger release show` says where the release is"
        )
    done = approvals[-1].decided
    if done is not None and not (back and done.decision == "approved"):
        raise Refusal(
            "approval-decided",
            f"{step} was {done.decision} by {done.by} already",
            "`ledger reject` takes an approval back while nothing was done on it that cannot be taken back",
        )
    return approvals[-1]
