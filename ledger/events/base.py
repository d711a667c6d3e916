"""The registry of event types: every stored tag with the type that this build writes and reads for it."""

from typing import TypeVar

from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened. Immutable and bare: no clock, no actor; those are in the header."""


class Unknown(Event, frozen=True, kw_only=True):
    """An event whose tag or version this build does not know: shown, but refused for deciding."""

    tag: str
    version: int
    payload: str


TYPES: dict[str, type[Event]] = {}
TAGS: dict[type[Event], tuple[str, int]] = {}

EventType = TypeVar("EventType", bound=type[Event])


def stored_as(tag: str, version: int = 1):  # type: ignore[no-untyped-def]
    """Register the decorated Struct under its tag. The tag and the field names are the file format."""

    def register(event_type: EventType) -> EventType:
        if tag in TYPES:
            raise ValueError(f"the tag {tag!r} is taken")
        TYPES[tag] = event_type
        TAGS[event_type] = (tag, version)
        return event_type

    return register
