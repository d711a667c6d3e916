"""A stored event: the header (who, when, where in the stream), the digest rule, and what a writer passes in."""

from hashlib import sha256

from msgspec import Struct

from ledger.events.base import Event
from ledger.values import Digest


class Actor(Struct, frozen=True, gc=False):
    """Who wrote: a person or service, the host, and this tool with its version."""

    who: str
    host: str
    tool: str


class Header(Struct, frozen=True, gc=False):
    """What the ledger knows about an event besides the event.

    `position` counts 1, 2, ... in the stream; `time` is UTC in ISO 8601; `command` and `index` make a repeated command
    harmless; `message` is the evidence digest of the stored message; `basis` is the ledger sequence at which views over
    other runs were read; `previous` is the digest of the event before it in the stream, "" for the first.
    """

    ledger: str
    stream: str
    position: int
    tag: str
    version: int
    time: str
    actor: Actor
    command: str
    index: int
    correlation: str
    message: str
    policy: str
    basis: int
    previous: str


class RecordedEvent(Struct, frozen=True, gc=False):
    """An event with its place in the ledger: `sequence` in the whole ledger, the header, and its own digest."""

    sequence: int
    header: Header
    event: Event
    digest: Digest


class Stamp(Struct, frozen=True):
    """What the loop knows when it appends: everything of a header that does not depend on the event's place."""

    time: str
    actor: Actor
    command: str
    correlation: str = ""
    message: str = ""
    policy: str = ""
    basis: int = 0


class NewEvent(Struct, frozen=True):
    """An event and the stream that it is to be appended to."""

    stream: str
    event: Event


def event_digest(header: bytes, payload: bytes) -> Digest:
    """SHA-256(0x00 || header || SHA-256(payload)) over the stored bytes; the link of the chain and the leaf of the
    tree."""
    return sha256(b"\x00" + header + sha256(payload).digest()).hexdigest()
