"""Events about artefacts that were set aside; they live in the stream `ledger`. Nothing is ever deleted."""

from typing import Literal

from msgspec import Struct

from ledger.events.base import Event, stored_as
from ledger.values import Digest


class LostEvents(Struct, frozen=True, kw_only=True):
    """Events of one stream that could not be kept: their positions from first to last, and how many there are per tag.

    What could not be read is under the tag "", and under the stream "" (positions 0) when that is not known either.
    """

    stream: str
    first: int
    last: int
    tags: dict[str, int]


@stored_as("quarantined")
class Quarantined(Event, frozen=True, kw_only=True):
    """Something was moved aside, whole: what, to which place in the ledger's directory, and why.

    An archive of a release is told of in the stream of the release; nothing of it was lost.

    `digest` and `size_bytes` are those of the file that was moved. For a ledger file, `kept_sequence` is the last event
    that was kept, and `lost` are the events after it.
    """

    what: Literal["ledger", "archive"]
    place: str
    digest: Digest
    size_bytes: int
    reason: str
    kept_sequence: int
    lost: tuple[LostEvents, ...]
