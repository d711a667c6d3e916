"""Events and headers as stored bytes, and back.

Stored bytes are deterministic JSON of the fields alone: the tag and the version stand beside them, never in them.
Old versions are brought up to date when they are read, step by step, and are never written back.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from ledger.errors import LedgerDamaged
from ledger.events import TAGS, TYPES, Event, Unknown
from ledger.record import Header

Fields = dict[str, Any]

UPCASTERS: dict[tuple[str, int], Callable[[Fields], Fields]] = {}
"""By tag and old version: the function that turns the fields of that version into those of the next."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the JSON decoder raises for bytes that no encoder wrote; too deep nesting ends as a RecursionError."""

_encoder = msgspec.json.Encoder(order="deterministic")
_header_decoder = msgspec.json.Decoder(Header)


def encode(event: Event) -> tuple[str, int, bytes]:
    """The tag, the version and the payload of an event.

    Raises ValueError for an event that could not be read back (a field of a wrong type, a number that JSON does not
    have, a lone surrogate): it would damage the ledger for ever. Raises KeyError for a type without a tag.
    """
    tag, version = TAGS[type(event)]
    try:
        payload = _encoder.encode(event)
        _reader(tag, version)(payload)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{tag} could not be read back: {error}") from error
    return tag, version, payload


def decode(tag: str, version: int, payload: bytes) -> Event:
    """The event of a payload; `Unknown` for a tag or a version that only a newer program knows.

    Raises LedgerDamaged, without a place, for bytes that are no such event.
    """
    try:
        return _reader(tag, version)(payload)
    except _UNREADABLE as error:
        raise LedgerDamaged(f"the payload is not a {tag} of version {version}: {error}") from error


def encode_header(header: Header) -> bytes:
    """The bytes of a header, as they are stored and hashed."""
    return _encoder.encode(header)


def decode_stored(header: bytes, payload: bytes) -> tuple[Header, Event]:
    """The header and the event of one row. Raises LedgerDamaged, without a place, when either is unreadable."""
    try:
        decoded = _header_decoder.decode(header)
    except _UNREADABLE as error:
        raise LedgerDamaged(f"the header is not readable: {error}") from error
    return decoded, decode(decoded.tag, decoded.version, payload)


@lru_cache(maxsize=1000)
def _reader(tag: str, version: int) -> Callable[[bytes], Event]:
    """How payloads of this tag and version become events.

    Decoders are made when first used, because making all of them would slow the start of every command, and kept,
    because looking them up for every event would slow every fold.
    """
    event_type = TYPES.get(tag)
    if event_type is None or version > TAGS[event_type][1]:
        return lambda payload: Unknown(tag=tag, version=version, payload=payload.decode())
    if version == TAGS[event_type][1]:
        return msgspec.json.Decoder(event_type).decode
    return lambda payload: msgspec.convert(_upcast(tag, version, payload), event_type)


def _upcast(tag: str, version: int, payload: bytes) -> Fields:
    fields = msgspec.json.decode(payload, type=Fields)
    for old_version in range(version, TAGS[TYPES[tag]][1]):
        upcaster = UPCASTERS.get((tag, old_version))
        if upcaster is None:
            raise LedgerDamaged(f"no program has written {tag} with version {version}")
        try:
            fields = upcaster(fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LedgerDamaged(f"the payload is not a {tag} of version {version}: {error!r}") from error
    return fields
