"""Histories as text files: the events of a ledger exactly as they are stored, and the evidence that its decisions read.

A directory holds `events.jsonl`, a line for each event with its sequence, header, payload and digest, and
`evidence.jsonl`, a line for each document with its digest and its text. Run by `scripts/history`.
"""

import argparse
import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from ledger.codec import decode_stored, encode, encode_header
from ledger.events import Event, RunFinished, StepFinished, VerdictDecided, evidence_of
from ledger.evidence import EvidenceStore
from ledger.record import Header, RecordedEvent, event_digest

RAW = ("record", "log", "evidence_key")
"""The fields of attempts that name what no decision reads: what tests printed, and what their results count for."""


class Row(Struct, frozen=True):
    """An event as it is stored."""

    sequence: int
    header: str
    payload: str
    digest: str

    def recorded(self) -> RecordedEvent:
        """The event. Raises ValueError when its digest does not fit."""
        header, payload = self.header.encode(), self.payload.encode()
        if event_digest(header, payload) != self.digest:
            raise ValueError(f"the event @{self.sequence} was changed")
        return RecordedEvent(self.sequence, *decode_stored(header, payload), self.digest)


class Document(Struct, frozen=True):
    """A piece of evidence that is text."""

    digest: str
    text: str


class History(Struct, frozen=True):
    """The events of a ledger in the order of their sequence, and evidence by digest."""

    rows: tuple[Row, ...]
    evidence: Mapping[str, bytes]

    def events(self, stream: str) -> Iterator[RecordedEvent]:
        """The events of a stream."""
        return (one for one in (row.recorded() for row in self.rows) if one.header.stream == stream)


def from_ledger(store: Path) -> History:
    """The whole history of the ledger in this directory."""
    query = "SELECT sequence, header, payload, digest FROM events ORDER BY sequence"
    with closing(sqlite3.connect(f"file:{store / 'ledger.sqlite'}?mode=ro", uri=True)) as connection:
        rows = tuple(Row(*row) for row in connection.execute(query))
    stored = EvidenceStore(store / "evidence")
    return History(rows, {digest: stored.get(digest) for digest in sorted({*_evidence_read(rows)})})


def _evidence_read(rows: Iterable[Row]) -> Iterator[str]:
    for recorded in (row.recorded() for row in rows):
        raw = {getattr(recorded.event, name, None) for name in RAW}
        yield from (digest for digest in evidence_of(recorded.event) if digest not in raw)
        yield recorded.header.message


def read_history(directory: Path) -> History:
    """Read what `write_history` wrote. Raises ValueError for evidence whose digest does not fit."""
    rows = (msgspec.json.decode(line, type=Row) for line in _lines(directory / "events.jsonl"))
    documents = [msgspec.json.decode(line, type=Document) for line in _lines(directory / "evidence.jsonl")]
    evidence = {one.digest: one.text.encode() for one in documents}
    for digest, data in evidence.items():
        if sha256(data).hexdigest() != digest:
            raise ValueError(f"the evidence {digest} was changed")
    return History(tuple(rows), evidence)


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()


def write_history(history: History, directory: Path) -> None:
    """Write the two files."""
    directory.mkdir(parents=True, exist_ok=True)
    documents = (Document(digest, data.decode()) for digest, data in history.evidence.items())
    for name, lines in (("events.jsonl", history.rows), ("evidence.jsonl", documents)):
        text = "".join(json.dumps(structs.asdict(line), ensure_ascii=False) + "\n" for line in lines)
        (directory / name).write_text(text, "utf-8")


def changed(history: History, sequence: int, event: Event) -> History:
    """The same history with another event at this sequence, and digests and links that fit again."""
    rows: list[Row] = []
    last: dict[str, str] = {}
    for row in history.rows:
        one = row.recorded()
        header = structs.replace(one.header, previous=last.get(one.header.stream, ""))
        payload = encode(event)[2].decode() if one.sequence == sequence else row.payload
        rows.append(_row(one.sequence, header, payload))
        last[header.stream] = rows[-1].digest
    return History(tuple(rows), history.evidence)


def _row(sequence: int, header: Header, payload: str) -> Row:
    stored = encode_header(header)
    return Row(sequence, stored.decode(), payload, event_digest(stored, payload.encode()))


def contradicted(history: History) -> History:
    """The same history, but its last verdict and all that follows from it say `passed`, which it must not have been."""
    events = [row.recorded() for row in history.rows]
    last = max(one.sequence for one in events if isinstance(one.event, VerdictDecided))
    for one in events:
        event: Event = one.event
        if isinstance(event, VerdictDecided) and one.sequence == last:
            event = structs.replace(event, verdict="passed", reason="no-regression", blocking=(), unmeasured=())
        elif isinstance(event, StepFinished) and one.sequence > last:
            event = structs.replace(event, outcome="passed")
        elif isinstance(event, RunFinished) and one.sequence > last:
            event = structs.replace(event, verdict="passed")
        else:
            continue
        history = changed(history, one.sequence, event)
    return history


def main() -> int:
    """Write the history of a ledger."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument(
        "--contradict", action="store_true", help="make the last verdict `passed`, with digests that fit"
    )
    arguments = parser.parse_args()
    history = from_ledger(arguments.store)
    write_history(contradicted(history) if arguments.contradict else history, arguments.destination)
    return 0


if __name__ == "__main__":
    sys.exit(main())
