"""What the reader and the writer of a store share: how a place is named, and the failures of their own."""

from pathlib import Path

from ledger.errors import Conflict, LedgerError
from ledger.values import Digest

LEDGER_FILE = "ledger.sqlite"
"""The file in the directory of a ledger that holds its events."""

EVIDENCE = "evidence"
"""The folder in the directory of a ledger that holds the evidence."""

Place = Path | str
"""Where a ledger is: the path of its file, or `memory:NAME` (a str) for one that lives as long as its writer."""

Links = dict[str, tuple[int, Digest]]
"""Per stream the position and digest of the last event that was read and verified: what the next one must link to."""


class CommandRepeated(Conflict):
    """The command has been appended before; its events are in the ledger and nothing was added."""

    code = "command-repeated"

    def __init__(self, command: str, stream: str, position: int) -> None:
        super().__init__(stream, position, position)
        self.message = f"the command {command} is in the ledger already, in {stream} up to #{position}"
        self.hint = "read what it wrote; there is nothing to do again"
        self.args = (self.message,)
        self.command = command


class StoreUnreadable(LedgerError):
    """There is something, but it cannot be read: no permission, no place for its side files, or too old an SQLite."""

    code = "store-unreadable"
    exit_code = 2
