"""One stored row and what makes it trustworthy: the reader checks every event so, the writer every head."""

from collections.abc import Sequence
from typing import Any

from ledger.codec import decode_stored
from ledger.errors import LedgerDamaged
from ledger.events import Event, LedgerCreated
from ledger.record import Header, RecordedEvent, event_digest
from ledger.store.api import Links
from ledger.values import Digest

SELECT_ROW = (
    "SELECT sequence, CAST(header AS BLOB), CAST(payload AS BLOB), digest,"
    " stream, position, tag, version, command, command_index FROM events "
)

FIRST_ROW = SELECT_ROW + "ORDER BY sequence LIMIT 1"

StoredRow = Sequence[Any]
"""What SELECT_ROW gives: sequence, header bytes, payload bytes, digest, and the columns that repeat the header."""


def verified(row: StoredRow) -> RecordedEvent:
    """The event of a row. Raises LedgerDamaged unless it is readable and digest and columns are those of its bytes."""
    stored, payload, digest = row[1], row[2], row[3]
    if stored is None or payload is None or event_digest(stored, payload) != digest:
        raise damaged(row, "the stored bytes do not have the stored digest")
    try:
        header, event = decode_stored(stored, payload)
    except LedgerDamaged as error:
        raise damaged(row, error.message) from error
    told = (header.stream, header.position, header.tag, header.version, header.command, header.index)
    if row[4:] != told:
        raise damaged(row, "the columns do not say what the header says")
    return RecordedEvent(row[0], header, event, digest)


def verified_identity(first: StoredRow) -> LedgerCreated:
    """The event that a ledger begins with, from its first row. Raises LedgerDamaged when this is not such an event."""
    event = verified(first).event
    if first[0] != 1 or not isinstance(event, LedgerCreated):
        raise damaged(first, "the ledger does not begin with ledger-created")
    return event


def linked(header: bytes, payload: bytes, links: Links, ledger_id: str) -> tuple[Header, Event, Digest]:
    """What these stored bytes say, with their digest, after checking that they come next; `links` then holds them.

    For events without the row of a ledger around them; a `ledger_id` of "" is any. Raises LedgerDamaged, without a
    place, when they are unreadable, belong to another ledger, or do not link to the event before them in their stream.
    """
    told, event = decode_stored(header, payload)
    position, previous = links.get(told.stream, (0, ""))
    if ledger_id and told.ledger != ledger_id:
        raise LedgerDamaged("the event belongs to another ledger")
    if told.position != position + 1:
        raise LedgerDamaged(f"#{told.position} of {told.stream} does not follow #{position}")
    if told.previous != previous:
        raise LedgerDamaged(f"#{told.position} of {told.stream} does not link to the event before it")
    digest = event_digest(header, payload)
    links[told.stream] = (told.position, digest)
    return told, event, digest


def damaged(row: StoredRow, message: str) -> LedgerDamaged:
    """The failure of this row, with its place."""
    return LedgerDamaged(message, stream=str(row[4]), position=row[5], sequence=row[0])
