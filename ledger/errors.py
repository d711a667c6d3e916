"""Expected failures of the ledger. Each carries a stable code, the facts that explain it and what to do next."""


class LedgerError(Exception):
    """Something that a user can cause or must be told; never a bug of this program.

    `code` is stable and documented; `exit_code` is the process exit code that it leads to; `hint` says what to do.
    """

    code = "ledger-error"
    exit_code = 7

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class LedgerMissing(LedgerError):
    """There is no ledger at the place that was named."""

    code = "ledger-missing"
    exit_code = 2


class RunUnknown(LedgerError):
    """No run, or more than one run, matches what was asked for."""

    code = "run-unknown"
    exit_code = 2


class StoreUnwritable(LedgerError):
    """The store cannot be written: no space, no permission, a read-only file system, or it stays busy."""

    code = "store-unwritable"
    exit_code = 4


class ForeignLedger(LedgerError):
    """The ledger belongs to another project."""

    code = "ledger-foreign"
    exit_code = 4


class NewerFormat(LedgerError):
    """The ledger, or one of its events, was written by a newer program: readable, but refused for writing."""

    code = "ledger-newer"
    exit_code = 4


class LedgerDamaged(LedgerError):
    """Stored bytes are not what was written. Names the stream, the position and the sequence."""

    code = "ledger-damaged"

    def __init__(self, message: str, *, stream: str = "", position: int = 0, sequence: int = 0) -> None:
        where = f"{stream} #{position} @{sequence}: " if stream else ""
        super().__init__(where + message, "`ledger verify` names all of the damage; nothing was changed")
        self.stream, self.position, self.sequence = stream, position, sequence


class EvidenceDamaged(LedgerError):
    """An evidence file is missing or its bytes do not have the digest that the event names."""

    code = "evidence-damaged"


class Conflict(LedgerError):
    """The stream has moved on since it was read; the decision must be taken again on what it holds now."""

    code = "conflict"
    exit_code = 4

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(f"{stream} is at #{actual}, not at #{expected}", "try again")
        self.stream, self.expected, self.actual = stream, expected, actual
