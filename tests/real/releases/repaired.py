"""A project with a remote, whose releases are cut as branches, fail, are repaired there, and are taken up again."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ledger.events import (
    COLLECTION,
    RERUN,
    AttemptRecorded,
    AttemptStarted,
    Carried,
    Event,
    RecheckPlanned,
    ResumeStarted,
    RunStarted,
    VerdictDecided,
)
from ledger.evidence import EvidenceStore
from ledger.record import RecordedEvent
from ledger.store.reader import Reader
from ledger.tables import CaseTable, ClassRow, ClassTable, decode_document
from projections.release.resume import ReleasePlan
from tests.support.cli import Answer, Project

STEPS = """
[gate]
shards = 1
[[step]]
name = "cut"
uses = "cut"
[[step]]
name = "gate"
uses = "gate"
[[step]]
name = "tell"
run = ["echo", "told"]
"""
FAILED, PASSED = 1, 0

One = TypeVar("One", bound=Event)


@dataclass(frozen=True)
class Run:
    """The history of one run, with its evidence. Reading it verifies it."""

    events: tuple[RecordedEvent, ...]
    evidence: EvidenceStore

    @property
    def name(self) -> str:
        """Its stream."""
        return self.events[0].header.stream

    def of(self, kind: type[One]) -> list[One]:
        """The events of a kind, in order."""
        return [one.event for one in self.events if isinstance(one.event, kind)]

    @property
    def verdict(self) -> VerdictDecided:
        """The verdict of a gate."""
        return self.of(VerdictDecided)[-1]

    @cached_property
    def rows(self) -> tuple[ClassRow, ...]:
        """The class table of a gate's verdict."""
        return decode_document(self.evidence.get(self.verdict.classes), ClassTable).rows

    def carried(self) -> set[str]:
        """The targets of a gate whose judgements were taken over."""
        return {row.test.target for row in self.rows if row.note == "carried"}

    def measured(self, side: str = "candidate") -> list[str]:
        """The targets that attempts measured on a side, in order, as often as they did."""
        found: list[str] = []
        for one in self.of(AttemptRecorded):
            if _of_the_plan(one.shard) and one.side == side and one.table is not None:
                table = decode_document(self.evidence.get(one.table), CaseTable)
                found += [row.target for row in table.targets if row.cause is None]
        return found

    def attempts(self) -> list[str]:
        """The attempts on shards of the plan, in order."""
        return [f"{one.shard}/{one.side}" for one in self.of(AttemptStarted) if _of_the_plan(one.shard)]

    @property
    def recheck(self) -> RecheckPlanned | None:
        """The part that the gate was to measure, None for all."""
        return next(iter(self.of(RecheckPlanned)), None)

    @property
    def told_carried(self) -> Carried | None:
        """What the gate says that it took over."""
        return next(iter(self.of(Carried)), None)

    def plan(self) -> ReleasePlan:
        """What the last resume of a release planned."""
        digest = self.of(ResumeStarted)[-1].plan
        assert isinstance(digest, str)
        return decode_document(self.evidence.get(digest), ReleasePlan)


def _of_the_plan(shard: str) -> bool:
    return shard != COLLECTION and not shard.startswith(RERUN)


def runs_of(store: Path, kind: str) -> list[Run]:
    """The runs of a kind in a ledger's directory, in the order in which they began."""
    with Reader.open(store / "ledger.sqlite") as reader:
        everything = list(reader.events())
    evidence = EvidenceStore(store / "evidence")
    names = [one.header.stream for one in everything if isinstance(one.event, RunStarted) and one.event.kind == kind]
    return [Run(tuple(one for one in everything if one.header.stream == name), evidence) for name in names]


class Hub:
    """A project beside the bare repository that its releases live in; `version` is the release that is at work."""

    def __init__(self, root: Path, *commits: Mapping[str, str], version: str = "1.1.0") -> None:
        self.version = version
        self.project = Project.make(root, *commits)
        remote = root / "remote.git"
        subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True, env=self.project.environment)
        self.project.git("remote", "add", "origin", str(remote))
        self.project.git("push", "--quiet", "origin", "main", "--tags")

    def start(self) -> Answer:
        """Cut the release as a branch and take it as far as it goes."""
        return self.project.ledger("release", "start", self.version, "--branch", "--baseline", "v1.0")

    def repair(self, files: Mapping[str, str], *, delete: tuple[str, ...] = ()) -> str:
        """Land a repair on the main branch and pick it onto the release; the new tip."""
        if delete:
            self.project.git("rm", "--quiet", *delete)
        return self.pick(self.land(files))

    def land(self, files: Mapping[str, str]) -> str:
        """Commit these files, and whatever else has changed, to the main branch; the commit."""
        landed = self.project.commit(files)
        self.project.git("push", "--quiet", "origin", "main")
        return landed

    def pick(self, commit: str) -> str:
        """Pick a commit of the main branch onto the release; the new tip."""
        picked = self.project.ledger("release", "repair", self.version, "--pick", commit, "--json")
        assert picked.code == PASSED, picked.err
        return str(json.loads(picked.out)["commit"])

    def planned(self, *options: str, step: str = "gate") -> dict[str, Any]:
        """What resuming would do; asking leaves no trace."""
        before = self.heads()
        answer = self.project.ledger("resume", self.version, "--from", step, "--dry-run", "--json", *options)
        assert answer.code == PASSED, answer.err
        assert self.heads() == before
        found = json.loads(answer.out)
        assert isinstance(found, dict)
        return found

    def resume(self, *options: str, step: str = "gate") -> Answer:
        """Take the release up again."""
        return self.project.ledger("resume", self.version, "--from", step, *options)

    def heads(self) -> dict[str, int]:
        """How many events each stream has."""
        with Reader.open(self.project.store / "ledger.sqlite") as reader:
            return {head.stream: head.position for head in reader.streams()}

    def runs(self, kind: str) -> list[Run]:
        """The runs of a kind, in the order in which they began."""
        return runs_of(self.project.store, kind)

    def gates(self) -> list[Run]:
        """The gates of the release, in order."""
        return self.runs("gate")

    def release(self) -> Run:
        """The release itself."""
        return self.runs("release")[-1]

    def check_proof(self) -> None:
        """The ledger verifies, and every run is decided again as it was decided."""
        verified = self.project.ledger("verify")
        assert verified.code == PASSED, verified.out + verified.err
        for run in (*self.gates(), *self.runs("release")):
            replayed = self.project.ledger("replay", run.name, "--json")
            assert replayed.code == PASSED, replayed.out + replayed.err
            assert json.loads(replayed.out)["outcome"] == "agree", replayed.out
