"""Replay: every decision of a run is taken again, from its stored message, the events before it, and its rules.

This module is pure and knows no port: it is given events and a way to load evidence, and gives back findings. What one
command wrote is one decision. Its finding is, first match wins:

| found                                                                                    | outcome       |
|---|---|
| an event that this build does not know, in this command or before it                     | not derivable |
| another version of the policy or of the decision table                                   | not derivable |
| the message, or evidence that the decision reads, is missing, altered or unreadable      | not derivable |
| the message is about another stream, or was given under another command                  | disagree      |
| a plan of another planner, which is no partition                                         | disagree      |
| a plan of another planner, which is a partition                                          | not derivable |
| the decision gives exactly the events that are recorded                                  | agree         |
| the decision gives other events or none, or is refused                                   | disagree      |

What cannot be derived again is said to be so; it never counts as agreement. A command that was left out whole may go
unnoticed here: that everything is there is for the digests and links to show, which reading checks.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from commands.decide.base import Decided, Documents
from commands.decide.planning import PLANNERS, plan_fault, planned_shard
from commands.decide.registry import decide, needs
from commands.messages import Message, Refusal, decode_message
from ledger.errors import EvidenceDamaged
from ledger.events import POLICY_VERSION, TAGS, AutohealDecided, Event, Planned, Unknown, VerdictDecided
from ledger.record import RecordedEvent
from ledger.tables import Document, Inventory, Plan, decode_document
from ledger.values import SIDES, Digest
from projections.gate.classes import TABLE_VERSIONS
from projections.registry import RunViews
from projections.release.healing import HEALING_VERSION

Outcome = Literal["agree", "disagree", "not-derivable"]
Load = Callable[[Digest], bytes]

TABLES = (*TABLE_VERSIONS, HEALING_VERSION)
_KNOWN_PLANNERS = " and ".join(map(repr, PLANNERS))
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Step(Struct, frozen=True):
    """What one command wrote, the views before it, and the first event up to here that this build does not know, if
    any."""

    views: RunViews
    events: tuple[RecordedEvent, ...]
    unknown: RecordedEvent | None


class Evidence:
    """Evidence, read once and kept: each verdict of a run reads again what the one before it has read."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._documents: dict[tuple[Digest, type[Struct]], Struct] = {}
        # Messages that say the same have the same digest; those that start attempts come again and again.
        self.message = lru_cache(maxsize=1000)(lambda digest: decode_message(load(digest)))

    def document(self, digest: Digest, kind: type[Document]) -> Document:
        """A document by its digest. Raises EvidenceDamaged."""
        if (digest, kind) not in self._documents:
            self._documents[digest, kind] = decode_document(self._load(digest), kind)
        return cast(Document, self._documents[digest, kind])


class AnsweredEvent(Struct, frozen=True, kw_only=True):
    """An event of an answer, with its tag."""

    tag: str
    event: Any


class Answer(Struct, frozen=True, kw_only=True):
    """What was decided: these events, or a refusal with its code."""

    events: tuple[AnsweredEvent, ...] = ()
    refused: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """One command of the run, decided again.

    `first` and `last` are positions in the run, `sequence` is that of the first event in the ledger. `reason` is a
    stable code, "" for agreement; `detail` is for people. Both answers are there when they are not the same.
    """

    first: int
    last: int
    sequence: int
    command: str
    message: str
    tags: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    recorded: Answer | None = None
    derived: Answer | None = None


class Report(Struct, frozen=True, kw_only=True):
    """All findings of a run. `outcome` is the worst of them: to disagree is worse than not to be derivable."""

    run: str
    outcome: Outcome
    counts: dict[Outcome, int]
    findings: tuple[Finding, ...]


class NotAnswered(Exception):
    """The decision was not taken again, or need not be: why, and what that makes of it."""

    def __init__(self, outcome: Outcome, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.reason, self.detail = outcome, reason, detail


def replay(events: Iterable[RecordedEvent], load: Load, until: int | None = None) -> Iterator[Finding]:
    """A finding for each command of a run that was complete at position `until`, or for all.

    `events` are those of the run from its start; `load` gives evidence by digest and raises EvidenceDamaged.
    """
    evidence = Evidence(load)
    for step in steps(events):
        if until is not None and step.events[-1].header.position > until:
            return
        yield _finding(step, evidence)


def summed_up(run: str, findings: Iterable[Finding]) -> Report:
    """The report of these findings."""
    found = tuple(findings)
    counts: dict[Outcome, int] = {"agree": 0, "disagree": 0, "not-derivable": 0}
    for finding in found:
        counts[finding.outcome] += 1
    worst: Outcome = "disagree" if counts["disagree"] else "not-derivable" if counts["not-derivable"] else "agree"
    return Report(run=run, outcome=worst, counts=counts, findings=found)


def steps(events: Iterable[RecordedEvent]) -> Iterator[Step]:
    """The commands of a run, each with the views before it; the views go on when the next step is asked for."""
    views, unknown = RunViews(), None
    for _, recorded in groupby(events, key=lambda one: one.header.command):
        group = tuple(recorded)
        unknown = unknown or next((one for one in group if isinstance(one.event, Unknown)), None)
        yield Step(views, group, unknown)
        for one in group:
            views.apply(one)


def derive(message: Message, views: RunViews, evidence: Evidence) -> Decided:
    """Take a decision on these views. Raises Refusal as the decision does, and NotAnswered when it cannot be taken."""
    try:
        wanted = needs(message, views)
        return decide(message, views, Documents({one: evidence.document(one, kind) for one, kind in wanted.items()}))
    except EvidenceDamaged as error:
        raise NotAnswered("not-derivable", error.code, error.message) from error
    except Refusal:
        raise
    except Exception as error:
        # A history that no run can have may lead a decision anywhere. Whatever comes of it, it is no agreement.
        raise NotAnswered("not-derivable", "undecidable", f"no answer comes of this history: {error!r}") from error


def refuse_unknown(step: Step) -> None:
    """Raise NotAnswered when there are events that this build cannot take into its views."""
    if step.unknown is not None:
        header = step.unknown.header
        what = f"{header.tag} of version {header.version}, at #{header.position}"
        raise NotAnswered("not-derivable", "event-unknown", f"this build does not know {what}")


def _finding(step: Step, evidence: Evidence) -> Finding:
    message: Message | None = None
    told = tuple(one.event for one in step.events)
    try:
        refuse_unknown(step)
        _refuse_other_rules(step)
        message = asked(step, evidence)
        _refuse_other_planner(step, evidence)
        again, refused = _answer(message, step.views, evidence)
    except NotAnswered as why:
        return _found(step, message, why.outcome, reason=why.reason, detail=why.detail)
    if again == told and not refused:
        return _found(step, message, "agree")
    both = {"recorded": _shown(told), "derived": _shown(again, refused)}
    return _found(step, message, "disagree", reason="answer-differs", **both)


def _found(step: Step, message: Message | None, outcome: Outcome, **more: Any) -> Finding:
    first, last = step.events[0], step.events[-1]
    return Finding(
        first=first.header.position,
        last=last.header.position,
        sequence=first.sequence,
        command=first.header.command,
        message=str(type(message).__struct_config__.tag) if message else "",
        tags=tuple(one.header.tag for one in step.events),
        outcome=outcome,
        **more,
    )


def _shown(events: tuple[Event, ...], refused: str = "") -> Answer:
    return Answer(
        events=tuple(AnsweredEvent(tag=TAGS[type(event)][0], event=event) for event in events), refused=refused
    )


def _refuse_other_rules(step: Step) -> None:
    policy = step.events[0].header.policy
    if policy != POLICY_VERSION:
        detail = f"decided under policy version {policy!r}; this build has {POLICY_VERSION!r}"
        raise NotAnswered("not-derivable", "policy-unknown", detail)
    for one in step.events:
        table = one.event.table if isinstance(one.event, VerdictDecided | AutohealDecided) else TABLES[0]
        if table not in TABLES:
            detail = f"decided by the table {table!r}; this build has {' and '.join(map(repr, TABLES))}"
            raise NotAnswered("not-derivable", "table-unknown", detail)


def asked(step: Step, evidence: Evidence) -> Message:
    """The message that all events of the command name, as long as it is one for this stream and this command."""
    header = step.events[0].header
    if not header.message:
        raise NotAnswered("not-derivable", "message-missing", "the events name no message")
    try:
        message = evidence.message(header.message)
    except EvidenceDamaged as error:
        raise NotAnswered("not-derivable", error.code, error.message) from error
    except _UNREADABLE as error:
        raise NotAnswered("not-derivable", "message-unknown", f"this build cannot read the message: {error}") from error
    expected = message.command() or header.command
    if message.stream != header.stream or expected != header.command:
        raise NotAnswered("disagree", "message-foreign", f"the message is for {message.stream}, command {expected}")
    if any(one.header.message != header.message for one in step.events):
        raise NotAnswered("disagree", "message-foreign", "the events of one command name several messages")
    return message


def _refuse_other_planner(step: Step, evidence: Evidence) -> None:
    """A plan that this build's planner did not make cannot be made again, but it must still be a partition."""
    planned = next((one.event for one in step.events if isinstance(one.event, Planned)), None)
    if planned is None or planned.policy in PLANNERS:
        return
    inventories = step.views.gate.inventories
    if len(inventories) < len(SIDES):
        raise NotAnswered("disagree", "plan-not-proved", "it was planned before both sides were collected")
    try:
        plan = evidence.document(planned.plan, Plan)
        candidate, baseline = (evidence.document(inventories[side].inventory, Inventory) for side in SIDES)
    except EvidenceDamaged as error:
        raise NotAnswered("not-derivable", error.code, error.message) from error
    fault = plan_fault(plan.shards, candidate, baseline)
    if fault or planned.shards != tuple(planned_shard(shard) for shard in plan.shards):
        raise NotAnswered("disagree", "plan-not-proved", fault or "the event does not say what its plan does")
    detail = f"planned by {planned.policy!r}, and a partition; this build has {_KNOWN_PLANNERS}"
    raise NotAnswered("not-derivable", "planner-unknown", detail)


def _answer(message: Message, views: RunViews, evidence: Evidence) -> tuple[tuple[Event, ...], str]:
    try:
        return derive(message, views, evidence).events, ""
    except Refusal as refusal:
        return (), f"{refusal.code}: {refusal.message}"
