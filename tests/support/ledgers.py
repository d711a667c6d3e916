"""Real ledgers on disk, with the runs of made-up gates: events through the writer, evidence in its store."""

from itertools import groupby
from pathlib import Path

from msgspec import structs

from commands.config.settings import RunnerSettings
from commands.messages import StartRun, decode_message, encode_message
from ledger.events import FORMAT_VERSION, STREAM, GatePolicy, LedgerCreated
from ledger.evidence import EvidenceStore
from ledger.record import Actor, NewEvent, Stamp
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.writer import Writer
from ledger.tables import encode_document
from tests.support.gates import Suite
from tests.support.replays import past_of
from tests.support.sides import File

LEDGER_ID = "1" * 32
ACTOR = Actor("someone", "here", "ledger 0")

SUITE = Suite(
    candidate={
        "a.py": File({"test_a": "passed", "test_b[=SUM(1),2]": "failed"}),
        "b.py": File({"test_c": "skipped"}),
    },
    baseline={
        "a.py": File({"test_a": "passed", "test_b[=SUM(1),2]": "passed"}),
        "b.py": File({"test_c": "passed"}),
    },
)
"""One regression, one newly skipped test, and a name that a spreadsheet would like to run."""


def begin(directory: Path, ledger_id: str = LEDGER_ID) -> Writer:
    """Begin a ledger, and give its writer."""
    writer = Writer.open(directory / LEDGER_FILE, create=True)
    created = LedgerCreated(ledger_id=ledger_id, project="demo", root_commit="a" * 40, format_version=FORMAT_VERSION)
    message = EvidenceStore(directory / EVIDENCE).put_bytes(b"the request for a ledger")
    writer.append([NewEvent(STREAM, created)], {STREAM: 0}, _stamp("begin", message, 0))
    return writer


def add_run(writer: Writer, directory: Path, run: str, suite: Suite = SUITE, policy: GatePolicy | None = None) -> None:
    """Append the whole run of a gate, command by command, each with its message."""
    past = past_of(suite, policy)
    evidence = EvidenceStore(directory / EVIDENCE)
    messages = {one.header.message for one in past.events}
    for digest, document in past.evidence.items():
        if digest not in messages:
            evidence.put_bytes(document)
    settings = evidence.put_bytes(encode_document(RunnerSettings()))
    position = 0
    for (_, digest), together in groupby(past.events, key=lambda one: (one.header.command, one.header.message)):
        message = structs.replace(decode_message(past.load(digest)), stream=run)
        events = [one.event for one in together]
        if isinstance(message, StartRun):
            message = structs.replace(message, run=run, config=settings)
            events = [structs.replace(event, run=run, config=settings) for event in events]
        stamp = _stamp(message.command() or f"{run} {position}", evidence.put_bytes(encode_message(message)), position)
        writer.append([NewEvent(run, event) for event in events], {run: position}, stamp)
        position += len(events)


def make_ledger(directory: Path, *runs: str, ledger_id: str = LEDGER_ID) -> Path:
    """A ledger with these runs, in its directory."""
    with begin(directory, ledger_id) as writer:
        for run in runs:
            add_run(writer, directory, run)
    return directory


def _stamp(command: str, message: str, number: int) -> Stamp:
    time = f"2030-01-02T03:{number // 60:02}:{number % 60:02}.000000Z"
    return Stamp(time=time, actor=ACTOR, command=command, message=message, policy="1")
