"""`given(*events).when(message).then(*events)`: a decision as a sentence.

Each `when` also proves what holds for every decision: it is taken on the declared evidence only, it leaves the views as
they are, and taken again on the same views it is the same.
"""

import copy

from msgspec import Struct

from commands.decide.base import Decided, Documents
from commands.decide.registry import decide, needs
from commands.messages import Message, Refusal, decode_message, encode_message
from ledger.events import Event
from projections.registry import RunViews
from tests.support.makers import digest_of, views_of


class Decision:
    """What came of a message: events or a refusal, and what comes of the same message afterwards."""

    def __init__(self, given: "Given", message: Message) -> None:
        self._given, self._message = given, message
        self._decided, self._refusal = given.decide(message)

    @property
    def decided(self) -> Decided:
        """The events and documents; fails when the message was refused."""
        assert self._refusal is None, f"refused: {self._refusal}"
        return self._decided

    def then(self, *events: Event) -> "Decision":
        """Exactly these events were decided."""
        assert self.decided.events == events
        return self

    def nothing(self) -> None:
        """It is already so: no event, no document, no refusal."""
        assert self.decided == Decided()

    def refused(self, code: str) -> Refusal:
        """A rule said no, under this code, with words for a person; nothing was decided."""
        assert self._refusal is not None, f"decided: {self._decided}"
        assert self._refusal.code == code
        assert self._refusal.message
        return self._refusal

    def and_again_nothing(self) -> None:
        """The same message after these events changes nothing more."""
        after = Given([*self._given.events, *self.decided.events], self._given.documents)
        Decision(after, self._message).nothing()


class Given:
    """A run's history and the evidence that there is."""

    def __init__(self, events: list[Event], documents: dict[str, Struct]) -> None:
        self.events, self.documents = events, documents

    def holding(self, *documents: Struct) -> "Given":
        """The same history, with this evidence."""
        return Given(self.events, self.documents | {digest_of(document): document for document in documents})

    def when(self, message: Message) -> Decision:
        """Decide this message."""
        return Decision(self, message)

    def decide(self, message: Message) -> tuple[Decided, Refusal | None]:
        """The decision, with the checks that every decision has to stand."""
        views = views_of(*self.events)
        before = copy.deepcopy(views)
        first = self._decide(message, views)
        after, unchanged = ((one.run, one.gate, one.mutes, one.questions, one.release) for one in (views, before))
        assert after == unchanged, "a decision changed the views that it was given"
        assert decode_message(encode_message(message)) == message
        again = self._decide(decode_message(encode_message(message)), views)
        assert (first[0], str(first[1])) == (again[0], str(again[1])), "the same decision came out differently"
        return first

    def _decide(self, message: Message, views: RunViews) -> tuple[Decided, Refusal | None]:
        try:
            wanted = {digest: self.documents[digest] for digest in needs(message, views)}
            return decide(message, views, Documents(wanted)), None
        except Refusal as refusal:
            return Decided(), refusal


def given(*events: Event) -> Given:
    """A run in which this has happened."""
    return Given(list(events), {})
