"""The fold: events in order, handled by type, into a view that the fold owns until it hands it out.

A handler changes the view it is given and nothing else. It decides nothing and refuses nothing; an event that a view
has no handler for does not concern it.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ledger.events import Event
from ledger.record import RecordedEvent

State = TypeVar("State")
Handler = Callable[[State, Any, RecordedEvent], None]


class View(Struct, Generic[State], frozen=True):
    """A named question about events: `initial` makes the empty answer, `handlers` say how each event changes it."""

    name: str
    question: str
    initial: Callable[[], State]
    handlers: dict[type[Event], Handler[State]]

    def apply(self, state: State, recorded: RecordedEvent) -> None:
        """Take one event into the state."""
        handler = self.handlers.get(type(recorded.event))
        if handler is not None:
            handler(state, recorded.event, recorded)


def fold(view: View[State], events: Iterable[RecordedEvent], *, as_of: int | None = None) -> State:
    """The view's answer after these events, or after those whose ledger sequence is at most `as_of`."""
    state = view.initial()
    for recorded in events:
        if as_of is not None and recorded.sequence > as_of:
            break
        view.apply(state, recorded)
    return state
