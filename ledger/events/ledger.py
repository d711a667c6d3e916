"""Events about the ledger as a whole; they live in the stream `ledger`."""

from ledger.events.base import Event, stored_as

STREAM = "ledger"
FORMAT_VERSION = 1


@stored_as("ledger-created")
class LedgerCreated(Event, frozen=True, kw_only=True):
    """The first event. `root_commit` is the oldest commit of the project, None where it cannot be known (shallow
    clone)."""

    ledger_id: str
    project: str
    root_commit: str | None
    format_version: int
