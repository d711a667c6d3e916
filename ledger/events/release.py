"""Events of a release: where its commit goes, what people let pass, what was built, and who approved of it.

They live in the stream of the release. Every event about code names its commit.
"""

from typing import Literal

from ledger.events.base import Event, stored_as
from ledger.values import Commit, Digest, EvidenceDigest, Verdict


@stored_as("tip-moved")
class TipMoved(Event, frozen=True, kw_only=True):
    """The branch of the release went forward; from now on `commit` is the commit that counts."""

    previous: Commit
    commit: Commit
    branch: str


@stored_as("waived")
class Waived(Event, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody lets a step stand as it is, on this commit alone. A waived step has not passed.

    `waiver` names this waiver among all of the release. `outcome` and `cause` are those of the attempt that is waived.
    The `reason` is fit for the public. `expires` is a day in UTC after which it does not count any more; "" for none.
    """

    waiver: str
    step: str
    attempt: int
    commit: Commit
    outcome: Verdict
    cause: str
    reason: str
    expires: str = ""


@stored_as("waiver-retired")
class WaiverRetired(Event, frozen=True, kw_only=True):
    """A waiver does not count any more: its step runs again."""

    waiver: str
    why: Literal["run-again"]


@stored_as("regression-accepted")
class RegressionAccepted(Event, frozen=True, kw_only=True):
    """A known issue that the release ships with; it waives nothing. `note` is fit for the public."""

    issue: str
    note: str
    commit: Commit


@stored_as("prepared")
class Prepared(Event, frozen=True, kw_only=True):
    """The archive of a version was built from a commit and checked. `digest` stands for all of its files."""

    step: str
    version: str
    commit: Commit
    digest: Digest
    size_bytes: int
    files: int
    place: str


@stored_as("approval-requested")
class ApprovalRequested(Event, frozen=True, kw_only=True):
    """Somebody has to approve before the release goes on; `shown` is the evidence of what."""

    step: str
    attempt: int
    commit: Commit
    shown: EvidenceDigest


@stored_as("approval-decided")
class ApprovalDecided(Event, frozen=True, kw_only=True):
    """Somebody approved of what was shown, or rejected it. `by` is who says so."""

    step: str
    attempt: int
    commit: Commit
    shown: EvidenceDigest
    decision: Literal["approved", "rejected"]
    by: str
    reason: str


@stored_as("override-used")
class OverrideUsed(Event, frozen=True, kw_only=True):
    """Somebody went beyond a limit on purpose: `what` names the rule."""

    what: Literal["attempts"]
    reason: str


@stored_as("autoheal-decided")
class AutohealDecided(Event, frozen=True, kw_only=True, omit_defaults=True):
    """What the program itself does about an attempt at a gate of a release that did not pass; once for each attempt.

    `cause` and `signature` follow from what `gate` showed, with the reason `codes` of that. `history` says how often
    each action was taken before for this signature, `taken` how often any was in this release, `caps` the most of both,
    and `facts` what else was so that rows of the table need. `row` is the row of `table` that held, `action` what it
    says, `passed_over` are the rows before that might have healed, with what kept them from it. `subject` is the shard
    or the member that it is about, "" for several. Times: the longest of the newest attempts at what is owed, and the
    attempt at the step.
    """

    step: str
    attempt: int
    commit: Commit
    gate: str
    table: str
    cause: str
    codes: tuple[str, ...]
    signature: str
    history: dict[str, int]
    taken: int
    caps: dict[str, int]
    facts: tuple[str, ...]
    row: str
    action: str
    passed_over: dict[str, str]
    subject: str = ""
    shard_seconds: float = 0.0
    elapsed_seconds: float = 0.0
