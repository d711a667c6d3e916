"""The registry of event types: every stored tag with the type that this build writes and reads for it."""

from functools import cache
from typing import TypeVar, get_args, get_type_hints

from msgspec import UNSET, Struct

from ledger.values import Digest, EvidenceDigest


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


@cache
def evidence_fields(event_type: type[Event]) -> tuple[str, ...]:
    """The fields of an event type that name evidence; their value is a digest, or None."""
    hints = get_type_hints(event_type, include_extras=True)
    return tuple(
        name for name in event_type.__struct_fields__ if EvidenceDigest in (hints[name], *get_args(hints[name]))
    )


def evidence_of(event: Event) -> tuple[Digest, ...]:
    """The evidence that an event names."""
    values = (getattr(event, name) for name in evidence_fields(type(event)))
    return tuple(value for value in values if value is not None and value is not UNSET)
