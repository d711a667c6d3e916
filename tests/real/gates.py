"""What a finished gate left in its ledger, and what it must not have left on the machine."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from ledger.events import COLLECTION, RERUN, AttemptRecorded, AttemptStarted, Planned, RunStarted, VerdictDecided
from ledger.evidence import EvidenceStore
from ledger.record import RecordedEvent
from ledger.store.reader import Reader
from ledger.tables import CaseTable, ClassRow, ClassTable, Plan, decode_document
from ledger.values import Side
from scripts.real.project import Project


@dataclass(frozen=True)
class Gate:
    """The history of the newest run of a project, with its evidence. Reading it verifies it."""

    project: Project
    run: str
    events: list[RecordedEvent]

    @classmethod
    def newest(cls, project: Project) -> "Gate":
        """The run that was started last."""
        with Reader.open(ledger_file(project)) as reader:
            everything = list(reader.events())
        run = [one.header.stream for one in everything if isinstance(one.event, RunStarted)][-1]
        return cls(project, run, [one for one in everything if one.header.stream == run])

    @property
    def evidence(self) -> EvidenceStore:
        """The evidence of the ledger."""
        return EvidenceStore(ledger_file(self.project).parent / "evidence")

    @property
    def verdict(self) -> VerdictDecided:
        """The one verdict."""
        (verdict,) = (one.event for one in self.events if isinstance(one.event, VerdictDecided))
        return verdict

    def plan(self) -> Plan:
        """The one plan."""
        (planned,) = (one.event for one in self.events if isinstance(one.event, Planned))
        return decode_document(self.evidence.get(planned.plan), Plan)

    def class_rows(self) -> tuple[ClassRow, ...]:
        """The class table of the verdict."""
        return decode_document(self.evidence.get(self.verdict.classes), ClassTable).rows

    def judgements(self) -> set[tuple[str, str, str, str, str]]:
        """What the class table says of every test, without the messages, which may hold addresses and times."""
        return {(row.test.text(), row.candidate, row.baseline, row.case_class, row.effect) for row in self.class_rows()}

    def started(self) -> list[AttemptStarted]:
        """Every attempt that was begun, in order."""
        return [one.event for one in self.events if isinstance(one.event, AttemptStarted)]

    def run_again_without_need(self) -> list[str]:
        """The targets, and the collections, that were measured and nevertheless asked for again.

        A re-run is always as it was planned, so that one that was cut off asks for all of its targets again.
        """
        measured: dict[tuple[str, Side], set[str]] = {}
        again: list[str] = []
        for one in self.events:
            if isinstance(one.event, AttemptStarted | AttemptRecorded) and one.event.shard.startswith(RERUN):
                continue
            if isinstance(one.event, AttemptStarted):
                key = (one.event.shard, one.event.side)
                asked = self._asked(one.event) & measured.get(key, set())
                again += [f"{one.event.shard}/{one.event.side}: {target}" for target in sorted(asked)]
            elif isinstance(one.event, AttemptRecorded):
                measured.setdefault((one.event.shard, one.event.side), set()).update(self._measured(one.event))
        return again

    def _asked(self, started: AttemptStarted) -> set[str]:
        if started.shard == COLLECTION:
            return {COLLECTION}
        if started.targets is not None:
            return set(started.targets)
        (shard,) = (shard for shard in self.plan().shards if shard.shard == started.shard)
        return set(shard.candidate if started.side == "candidate" else shard.baseline)

    def _measured(self, recorded: AttemptRecorded) -> set[str]:
        if recorded.shard == COLLECTION:
            return {COLLECTION} if recorded.complete else set()
        if recorded.table is None:
            return set()
        table = decode_document(self.evidence.get(recorded.table), CaseTable)
        return {row.target for row in table.targets if row.cause is None}

    def read_all_evidence(self) -> int:
        """Read back everything that the run's events name, which verifies it, and count it."""
        digests = {one.header.message for one in self.events if one.header.message}
        for one in self.events:
            fields = (getattr(one.event, name) for name in one.event.__struct_fields__)
            digests |= {value for value in fields if isinstance(value, str) and len(value) == 64}
        for digest in digests:
            self.evidence.get(digest)
        return len(digests)

    def leftovers(self) -> list[str]:
        """Processes, worktrees and directories of this run that outlived it."""
        listed = subprocess.run(
            ["git", "-C", self.project.checkout, "worktree", "list", "--porcelain"],
            check=True, capture_output=True, text=True, env=self.project.variables,
        ).stdout  # fmt: skip
        worktrees = [line for line in listed.splitlines() if line.startswith("worktree ")]
        found = [line for line in worktrees if line != f"worktree {self.project.checkout.resolve()}"]
        work = Path(self.project.variables["LEDGER_WORK"])
        found += [str(path) for path in work.glob(f"*/{self.run}*")]
        return found + [f"process {process.pid}: {process.cmdline()}" for process in marked_processes(self.run)]


def ledger_file(project: Project) -> Path:
    """Where the events of the project are."""
    return project.checkout / ".git" / "ledger" / "ledger.sqlite"


def marked_processes(run: str) -> list[psutil.Process]:
    """The living processes that carry the mark of an attempt of this run."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get("LEDGER_ATTEMPT", "").startswith(f"{run}.")
        except psutil.Error:
            continue
        if marked and process.pid != os.getpid():
            found.append(process)
    return found
