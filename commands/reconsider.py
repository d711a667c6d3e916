"""What today's rules would say of the past: the verdicts of a run, decided again under another policy.

The evidence is what was measured then, and the mutings are those of then. Where today's rules ask for more than was
measured they give `unmeasured`, or would not decide yet.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from commands.decide.base import Decided
from commands.messages import Refusal
from commands.replay import Evidence, Load, NotAnswered, Step, asked, derive, refuse_unknown, steps
from ledger.errors import EvidenceDamaged
from ledger.events import GatePolicy, VerdictDecided
from ledger.record import RecordedEvent
from ledger.tables import ClassTable, decode_document
from ledger.values import Verdict
from projections.registry import RunViews
from projections.run.diff import ClassChange, Fact, changed_classes, policy_facts


class Reconsidered(Struct, frozen=True, kw_only=True):
    """One verdict, with its place, and what it would be now.

    `policy` are the rules, as they were and as they are. `verdict` is None when there would be none: `why_not` then
    begins with the stable code of the reason. `classes` are the tests that would be judged otherwise.
    """

    position: int
    sequence: int
    policy: tuple[Fact, ...]
    recorded_verdict: Verdict
    recorded_reason: str
    recorded_table: str
    verdict: Verdict | None = None
    reason: str = ""
    table: str = ""
    classes: tuple[ClassChange, ...] = ()
    why_not: str = ""
    derivable: bool = True


class Reconsideration(Struct, frozen=True, kw_only=True):
    """All verdicts of a run, decided again."""

    run: str
    verdicts: tuple[Reconsidered, ...]


def reconsider(
    events: Iterable[RecordedEvent], load: Load, policy: GatePolicy, until: int | None = None
) -> Iterator[Reconsidered]:
    """Each verdict of a run up to position `until`, decided again under `policy` and this build's table."""
    evidence = Evidence(load)
    for step in steps(events):
        for one in step.events:
            if until is not None and one.header.position > until:
                return
            if isinstance(one.event, VerdictDecided):
                yield _reconsidered(step, one, one.event, evidence, policy)


def _reconsidered(
    step: Step, place: RecordedEvent, recorded: VerdictDecided, evidence: Evidence, policy: GatePolicy
) -> Reconsidered:
    then = step.views.run.policy
    found = Reconsidered(
        position=place.header.position,
        sequence=place.sequence,
        policy=policy_facts(then, policy),
        recorded_verdict=recorded.verdict,
        recorded_reason=recorded.reason,
        recorded_table=recorded.table,
    )
    try:
        refuse_unknown(step)
        decided = derive(asked(step, evidence), _under(step.views, policy), evidence)
        now, table = _verdict_of(decided)
        classes = changed_classes(_recorded_table(recorded, evidence), table)
    except Refusal as refusal:
        return structs.replace(found, why_not=f"{refusal.code}: {refusal.message}")
    except NotAnswered as why:
        return structs.replace(found, why_not=f"{why.reason}: {why.detail}", derivable=False)
    return structs.replace(found, verdict=now.verdict, reason=now.reason, table=now.table, classes=classes)


def _under(views: RunViews, policy: GatePolicy) -> RunViews:
    """The same views, had the run been started under this policy; what was run again then, no rule of today changes."""
    then = views.run.policy
    started = structs.replace(views.run.begun, policy=structs.replace(policy, rerun=then.rerun, retry=then.retry))
    return structs.replace(views, run=structs.replace(views.run, started=started))


def _verdict_of(decided: Decided) -> tuple[VerdictDecided, ClassTable]:
    verdict = next((event for event in decided.events if isinstance(event, VerdictDecided)), None)
    if verdict is None:
        raise NotAnswered("not-derivable", "undecidable", "there is a verdict already before this one")
    return verdict, decode_document(decided.documents[0], ClassTable)


def _recorded_table(recorded: VerdictDecided, evidence: Evidence) -> ClassTable:
    try:
        return evidence.document(recorded.classes, ClassTable)
    except EvidenceDamaged as error:
        raise NotAnswered("not-derivable", error.code, error.message) from error
