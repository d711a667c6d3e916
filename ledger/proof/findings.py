"""What a verification says: findings with their places, notes that are no damage, and the report over both."""

import re

from msgspec import Struct

from ledger.errors import LedgerError
from ledger.store.reader import Head
from ledger.values import Digest

MEANING: dict[str, str] = {
    "file-damaged": "SQLite cannot make sense of a part of the file",
    "schema-differs": "a table, an index or a trigger is not the one that this program makes",
    "format-differs": "the marks in the head of the file are not those of this ledger",
    "tail-damaged": "the write-ahead log holds commits that can no longer be reached",
    "recovery-begun": "a recovery was begun and cut short",
    "ledger-start": "the ledger does not begin with ledger-created, or it is created again later",
    "run-start": "the stream of a run does not begin with run-started, or that names another run",
    "event-unreadable": "the file holds an event that cannot be read any more",
    "event-changed": "the stored bytes do not have the stored digest",
    "event-undecodable": "the bytes are those that were stored, but they are no event",
    "columns-differ": "the columns do not say what the header says",
    "event-foreign": "the event belongs to another ledger",
    "events-missing": "sequences of the ledger are missing",
    "positions-missing": "positions of a stream are missing",
    "event-duplicated": "the event is in the ledger twice",
    "event-reordered": "the event does not stand where it was written",
    "link-broken": "the event does not link to the one before it: one of the two was replaced or put in",
    "command-broken": "the events of a command do not stand together",
    "head-missing": "the ledger ends before the head that was noted",
    "head-differs": "another event stands where the head was noted",
    "evidence-missing": "evidence that an event names is not there",
    "evidence-altered": "evidence that an event names holds other bytes",
    "evidence-unreadable": "evidence that an event names cannot be opened",
}
"""Every code of a finding, and what it means. The codes are stable."""

NOTES: dict[str, str] = {
    "event-unknown": "events of a newer program; their evidence is not known and was not looked at",
    "format-newer": "the ledger was begun by a newer program; what this one does not know it could not check",
    "clock-back": "events that were stamped earlier than the one before; the order is that of the sequence",
    "tail-unfinished": "frames at the end of the write-ahead log, of a commit that was cut short",
    "evidence-unreferenced": "pieces of evidence that no event names, as interrupted commands leave them",
    "evidence-leftover": "other files among the evidence: set aside, or never finished",
}
"""Every code of a note, and what it means: nothing here speaks against the ledger."""

_HEAD = re.compile(r"@(\d{1,18}):([0-9a-f]{64})")


class HeadMalformed(LedgerError):
    """A head was given that is not of the form `@N:DIGEST`."""

    code = "head-malformed"
    exit_code = 2


class Finding(Struct, frozen=True, kw_only=True):
    """One difference between what is stored and what was written.

    `sequence`, `position` and `stream` say where, as far as it is known (0 and "" where it is not); `evidence` is the
    digest of the evidence concerned. `doubtful_from` is the first sequence that can no longer be proved because of it,
    0 when it is about no event.
    """

    code: str
    what: str
    stream: str = ""
    position: int = 0
    sequence: int = 0
    evidence: Digest = ""
    doubtful_from: int = 0


class Note(Struct, frozen=True, kw_only=True):
    """Something that is worth knowing and no damage: how often it was seen, and at which sequence first (0: none)."""

    code: str
    count: int
    sequence: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """What was verified, and what came of it; the findings themselves are told one by one while it is made.

    `counts` are findings per code. `head` is the last event as `@N:DIGEST`, "" for an empty ledger; `evidence` is how
    many pieces were read and compared, None when that was not asked for.
    """

    sound: bool
    ledger: str
    project: str
    format_version: int
    events: int
    streams: int
    evidence: int | None
    head: str
    counts: dict[str, int]
    notes: tuple[Note, ...]


def parse_head(text: str) -> Head:
    """The head that somebody noted. Raises HeadMalformed."""
    match = _HEAD.fullmatch(text)
    if match is None:
        raise HeadMalformed(f"{text!r} is not a head", "a head is @N:DIGEST, as `ledger verify` prints it at its end")
    return Head(int(match[1]), match[2])


def format_head(head: Head) -> str:
    """The head as people note it; "" for an empty ledger."""
    return f"@{head.sequence}:{head.digest}" if head.sequence else ""
