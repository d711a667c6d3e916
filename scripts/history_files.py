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

from msgspec import Struct, structs

from ledger.codec import decode_stored, encode, encode_header
from ledger.events import Event, RunFinished, StepFinished, VerdictDecided, evidence_of
from ledger.evidence import EvidenceStore
from ledger.record import Header, RecordedEvent, event_digest

RAW = ("record", "log", "evidence_key")
"""The fields of attempts that name what no decision reads: what tests printed, and what their results count for."""


class History(Struct, frozen=True):
    """The events of a ledger in the order of their sequence, and evidence by digest."""

    events: tuple[RecordedEvent, ...]
    evidence: Mapping[str, bytes]


def from_ledger(store: Path) -> History:
    """The whole history of the ledger in this directory."""
    with closing(sqlite3.connect(f"file:{store / 'ledger.sqlite'}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT sequence, header, payload, digest FROM events ORDER BY sequence").fetchall()
    events = tuple(
        _event(sequence, bytes(header), bytes(payload), digest) for sequence, header, payload, digest in rows
    )
    stored = EvidenceStore(store / "evidence")
    return History(events, {digest: stored.get(digest) for digest in sorted({*_evidence_read(events)})})


def _evidence_read(events: Iterable[RecordedEvent]) -> Iterator[str]:
    for recorded in events:
        raw = {getattr(recorded.event, name, None) for name in RAW}
        yield from (digest for digest in evidence_of(recorded.event) if digest not in raw)
        yield from filter(None, [recorded.header.message])


def read_history(directory: Path) -> History:
    """Read what `write_history` wrote, and check every digest of it. Raises ValueError for one that does not fit."""
    events = []
    for line in (directory / "events.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        events.append(_event(row["sequence"], row["header"].encode(), row["payload"].encode(), row["digest"]))
    evidence = {}
    for line in (directory / "evidence.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        evidence[row["digest"]] = row["text"].encode()
        if sha256(evidence[row["digest"]]).hexdigest() != row["digest"]:
            raise ValueError(f"the evidence {row['digest']} was changed")
    return History(tuple(events), evidence)


def write_history(history: History, directory: Path) -> None:
    """Write the two files."""
    directory.mkdir(parents=True, exist_ok=True)
    events = (
        {
            "sequence": one.sequence,
            "header": encode_header(one.header).decode(),
            "payload": encode(one.event)[2].decode(),
            "digest": one.digest,
        }
        for one in history.events
    )
    _write_lines(directory / "events.jsonl", events)
    evidence = ({"digest": digest, "text": data.decode()} for digest, data in history.evidence.items())
    _write_lines(directory / "evidence.jsonl", evidence)


def _write_lines(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def changed(history: History, sequence: int, event: Event) -> History:
    """The same history with another event at this sequence, and digests and links that fit again."""
    events: list[RecordedEvent] = []
    last: dict[str, str] = {}
    for one in history.events:
        header = structs.replace(one.header, previous=last.get(one.header.stream, ""))
        events.append(_stored(one.sequence, header, event if one.sequence == sequence else one.event))
        last[header.stream] = events[-1].digest
    return History(tuple(events), history.evidence)


def contradicted(history: History) -> History:
    """The same history with its last verdict, which was not `passed`, made `passed` through all that follows from it."""
    number = max(one.sequence for one in history.events if isinstance(one.event, VerdictDecided))
    for one in history.events:
        event: Event = one.event
        if isinstance(event, VerdictDecided) and one.sequence == number:
            event = structs.replace(event, verdict="passed", reason="no-regression", blocking=(), unmeasured=())
        elif isinstance(event, StepFinished) and one.sequence > number:
            event = structs.replace(event, outcome="passed")
        elif isinstance(event, RunFinished) and one.sequence > number:
            event = structs.replace(event, verdict="passed")
        history = changed(history, one.sequence, event)
    return history


def _event(sequence: int, header: bytes, payload: bytes, digest: str) -> RecordedEvent:
    if event_digest(header, payload) != digest:
        raise ValueError(f"the event @{sequence} was changed")
    return RecordedEvent(sequence, *decode_stored(header, payload), digest)


def _stored(sequence: int, header: Header, event: Event) -> RecordedEvent:
    return RecordedEvent(sequence, header, event, event_digest(encode_header(header), encode(event)[2]))


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
