"""The loop: read, fold, gather, decide, append, and return what the events promise. Short, and it never waits.

1. *Read* what is new in the stream, verified.
2. *Fold* it into the views.
3. *Gather* the evidence that the decision names (outside answers are on the message already).
4. *Decide*, purely: events, nothing, or a refusal.
5. *Append*, if the stream is still where it was read; otherwise look whether this very command is there already, and
   decide again on what the stream holds now.
"""

from collections.abc import Mapping

from commands.decide.base import Documents
from commands.decide.registry import decide, needs
from commands.effects.ports import Clock
from commands.messages import Message, encode_message
from ledger.errors import Conflict, NewerFormat
from ledger.events import POLICY_VERSION, Unknown
from ledger.evidence import EvidenceStore
from ledger.record import Actor, NewEvent, RecordedEvent, Stamp
from ledger.store.api import Links
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.tables import decode_document
from ledger.values import Digest
from projections.registry import RunViews

DECISION_TRIES = 3
"""A decision that keeps losing the race is given up; an observation never is."""


class Loop:
    """Handles messages about streams of one ledger, for one actor."""

    def __init__(self, reader: Reader, writer: Writer, evidence: EvidenceStore, clock: Clock, actor: Actor) -> None:
        self._reader, self._writer, self._evidence = reader, writer, evidence
        self._clock, self._actor = clock, actor
        self._views: dict[str, RunViews] = {}
        self._links: Links = {}

    def views(self, stream: str) -> RunViews:
        """The views of a stream, caught up with everything that is stored."""
        views = self._views.setdefault(stream, RunViews())
        for recorded in self._reader.events(stream, after=views.run.position, links=self._links):
            if isinstance(recorded.event, Unknown):
                raise NewerFormat(
                    f"{stream} #{recorded.header.position} is a {recorded.event.tag!r} event, which this version does "
                    "not know",
                    "use the version of ledger that wrote it, or a newer one",
                )
            views.apply(recorded)
        return views

    def handle(self, message: Message) -> list[RecordedEvent]:
        """Carry out one message. Raises Refusal when a rule says no; an empty list means that it is already so."""
        tries = 0
        command = message.command() or self._clock.unique_id()
        while True:
            views = self.views(message.stream)
            decided = decide(message, views, self._gather(needs(message, views)))
            if not decided.events:
                return []
            for document in decided.documents:
                self._evidence.put_bytes(document)
            stamp = Stamp(
                time=self._clock.utc_now(),
                actor=self._actor,
                command=command,
                message=self._evidence.put_bytes(encode_message(message)),
                policy=POLICY_VERSION,
                basis=message.read_at(),
            )
            events = [NewEvent(message.stream, event) for event in decided.events]
            try:
                recorded = self._writer.append(events, {message.stream: views.run.position}, stamp)
            except Conflict:
                tries += 1
                if self._reader.by_command(command):
                    return self._reader.by_command(command)
                if tries >= DECISION_TRIES and not message.observation:
                    raise
                continue
            for event in recorded:
                views.apply(event)
            self._links[message.stream] = (recorded[-1].header.position, recorded[-1].digest)
            return recorded

    def _gather(self, wanted: Mapping[Digest, type]) -> Documents:
        return Documents({digest: decode_document(self._evidence.get(digest), kind) for digest, kind in wanted.items()})
