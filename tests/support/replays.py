"""Histories that can be replayed: gates in memory whose messages are kept, and runs in which something was changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count

from msgspec import structs

from commands.messages import Message, encode_message
from commands.replay import Finding, Report, replay, summed_up
from ledger.codec import encode, encode_header
from ledger.errors import EvidenceDamaged
from ledger.events import TAGS, Event, GatePolicy, Unknown
from ledger.record import Header, RecordedEvent, event_digest
from ledger.values import Digest
from tests.support.gates import PureGate, Suite
from tests.support.makers import RUN, header


@dataclass(frozen=True)
class Past:
    """The events of one run, and the evidence that there is."""

    events: list[RecordedEvent]
    evidence: Mapping[Digest, bytes] = field(default_factory=dict)

    def load(self, digest: Digest) -> bytes:
        """The evidence of this digest."""
        if digest not in self.evidence:
            raise EvidenceDamaged(f"{digest} is missing")
        return self.evidence[digest]

    def findings(self, until: int | None = None) -> list[Finding]:
        """What a replay finds."""
        return list(replay(self.events, self.load, until))

    def report(self) -> Report:
        """All findings, summed up."""
        return summed_up(RUN, self.findings())

    def events_of(self, kind: type[Event]) -> list[RecordedEvent]:
        """The events of one type."""
        return [one for one in self.events if isinstance(one.event, kind)]

    def first(self, kind: type[Event]) -> RecordedEvent:
        """The first event of a type."""
        return self.events_of(kind)[0]

    def without_evidence(self, digest: Digest) -> "Past":
        """The same past, had this evidence been lost."""
        return replace(self, evidence={key: data for key, data in self.evidence.items() if key != digest})

    def with_event(self, position: int, event: Event) -> "Past":
        """The same past, had this event been recorded at this position, with digests and links that fit."""
        return self._with(position, event=event)

    def with_header(self, position: int, **changes: object) -> "Past":
        """The same past, had the header of this event been another."""
        return self._with(position, header=structs.replace(self.events[position - 1].header, **changes))

    def _with(self, position: int, **changes: object) -> "Past":
        changed = [structs.replace(one, **changes) if one.header.position == position else one for one in self.events]
        return replace(self, events=linked((one.header, one.event) for one in changed))


def linked(events: Iterable[tuple[Header, Event]]) -> list[RecordedEvent]:
    """These events as a stream, each at its place and linked to the one before."""
    found: list[RecordedEvent] = []
    for position, (told, event) in enumerate(events, start=1):
        tag, version = (event.tag, event.version) if isinstance(event, Unknown) else TAGS[type(event)]
        payload = event.payload.encode() if isinstance(event, Unknown) else encode(event)[2]
        previous = found[-1].digest if found else ""
        placed = structs.replace(told, position=position, tag=tag, version=version, previous=previous)
        found.append(RecordedEvent(100 + position, placed, event, event_digest(encode_header(placed), payload)))
    return found


class KeptGate(PureGate):
    """A gate in memory that keeps, for each event, the command that wrote it and its message."""

    def __init__(self, suite: Suite, policy: GatePolicy, seed: int = 0) -> None:
        super().__init__(suite, policy, seed)
        self._headers: list[Header] = []
        self._commands = count(1)

    def handle(self, message: Message) -> None:
        """Handle it, and keep it."""
        before = len(self.events)
        super().handle(message)
        data = encode_message(message)
        self.documents[sha256(data).hexdigest()] = data
        command = message.command() or f"command-{next(self._commands)}"
        for index, event in enumerate(self.events[before:]):
            told = header(event, before + index + 1)
            self._headers.append(structs.replace(told, command=command, index=index, message=sha256(data).hexdigest()))

    def past(self) -> Past:
        """What this gate has recorded so far."""
        return Past(linked(zip(self._headers, self.events, strict=True)), dict(self.documents))


def past_of(suite: Suite, policy: GatePolicy | None = None, seed: int = 0) -> Past:
    """The past of a gate that was driven to its end."""
    gate = KeptGate(suite, policy or GatePolicy(), seed)
    gate.start()
    assert gate.drive()
    return gate.past()
