"""Writes to a ledger in a process of its own, which others kill, or let fail, or run beside many of its kind.

`python one_write.py DIRECTORY begin|append|evidence` does one thing, between two marks in the list of its system calls.
`python one_write.py DIRECTORY run NAME COMMANDS` appends a run of so many commands of two events, with evidence.
What was acknowledged to it, it prints.
"""

import os
import sys
from hashlib import sha256
from pathlib import Path

from ledger.events import STREAM, StepStarted
from ledger.evidence import EvidenceStore
from ledger.record import NewEvent
from ledger.store.writer import Writer
from tests.ledger.attack.ledgers import RUN, attempt, created, stamp
from tests.support.makers import run_started

CONTENT = b"something new\n" * 1000
CONTENT_DIGEST = sha256(CONTENT).hexdigest()
BEGIN_MARK, END_MARK = "the-one-thing-begins", "the-one-thing-has-ended"


def begin(directory: Path) -> str:
    """Begin a ledger, and let the log be merged into its file."""
    with Writer.open(directory / "ledger.sqlite", create=True) as writer:
        return f"@{writer.append([NewEvent(STREAM, created())], {STREAM: 0}, stamp('begin'))[-1].sequence}"


def append(directory: Path) -> str:
    """Append two events, and let the log be merged into the file."""
    events = [NewEvent(RUN, event) for event in attempt(RUN, "candidate")]
    with Writer.open(directory / "ledger.sqlite") as writer:
        return f"@{writer.append(events, {RUN: 12}, stamp('append'))[-1].sequence}"


def evidence(directory: Path) -> str:
    """Keep a piece of evidence."""
    return EvidenceStore(directory / "evidence").put_bytes(CONTENT)


def append_run(directory: Path, run: str, commands: int) -> None:
    """Append a run, command by command; print sequence and digest of the last event of each as it is acknowledged."""
    store = EvidenceStore(directory / "evidence")
    config = store.put_bytes(b"the configuration")
    with Writer.open(directory / "ledger.sqlite") as writer:
        writer.append([NewEvent(run, run_started(run=run, config=config))], {run: 0}, stamp(f"{run} begin"))
        for number in range(commands):
            message = store.put_bytes(f"{run} {number}".encode())
            events = [NewEvent(run, StepStarted(step=str(number))), NewEvent(run, StepStarted(step="more"))]
            last = writer.append(events, {run: 1 + 2 * number}, stamp(f"{run} {number}", message))[-1]
            print(last.sequence, last.digest, flush=True)


def main() -> None:
    """Do it between the marks, and print what was acknowledged."""
    directory, what, *arguments = Path(sys.argv[1]), *sys.argv[2:]
    if what == "run":
        append_run(directory, arguments[0], int(arguments[1]))
        return
    os.access(BEGIN_MARK, os.F_OK)
    acknowledged = {"begin": begin, "append": append, "evidence": evidence}[what](directory)
    os.write(1, acknowledged.encode())
    os.access(END_MARK, os.F_OK)


if __name__ == "__main__":
    main()
