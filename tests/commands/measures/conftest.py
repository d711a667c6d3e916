"""Ledgers on disk whose runs took a known time and needed known memory."""

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec import structs

from ledger.events import Event, GatePolicy, PlanPolicy, ResumeStarted, RunFinished, RunStarted, RunStopped
from ledger.evidence import EvidenceStore
from ledger.record import NewEvent, Stamp
from ledger.store.api import EVIDENCE
from ledger.store.writer import Writer
from ledger.tables import CaseTable, TargetRow, encode_document
from tests.projections.run.conftest import Timed, at, measured, plan_of
from tests.support.cli import LEDGER, Answer
from tests.support.ledgers import ACTOR, begin
from tests.support.makers import COMMITS, attempt_recorded, attempt_started, collections, driver_started, run_started

RUN = "run-1"
MEBIBYTE = 2**20


def write_run(writer: Writer, run: str, history: Iterable[Timed]) -> None:
    """Append a run, each event at its time."""
    for position, (second, event) in enumerate(history):
        told: Event = structs.replace(event, run=run) if isinstance(event, RunStarted) else event
        stamp = Stamp(time=at(second), actor=ACTOR, command=f"{run} {position}", policy="1")
        writer.append([NewEvent(run, told)], {run: position}, stamp)


def attempt(
    began: int,
    ended: int,
    shard: str,
    side: str,
    number: int = 1,
    *,
    term: int = 1,
    table: str | None = None,
    **changes: object,
) -> list[Timed]:
    """An attempt that ran a second after its promise, with what it took beside its tests."""
    started = attempt_started(shard, side, number, term=term)  # type: ignore[arg-type]
    record = attempt_recorded(
        shard, side, number, term=term, started_at=at(began + 1),  # type: ignore[arg-type]
        duration_seconds=float(ended - began - 1), table=table, **changes,
    )  # fmt: skip
    told: list[Timed] = [(began, started), (ended, record)]
    return [*told, (ended, measured(started, 1.5 * number))] if record.complete else told


def table(**targets: tuple[float, int | None, str]) -> CaseTable:
    """The table of an attempt on these files: seconds, memory in MiB and what that memory is."""
    rows = tuple(
        TargetRow(
            target=f"tests/test_{name}.py", cause=None if basis != "at-least" else "memory-limit",
            duration_seconds=seconds, memory_bytes=None if used is None else used * MEBIBYTE, memory_basis=basis,  # type: ignore[arg-type]
        )
        for name, (seconds, used, basis) in targets.items()
    )  # fmt: skip
    return CaseTable(reader="lines/1", side="candidate", commit=COMMITS["candidate"], targets=rows, cases=())


TABLE = table(
    alone=(61.0, 300, "alone"), shared=(5.5, 120, "upper-bound"), unknown=(5.5, None, "none"),
    too_large=(9.0, 900, "at-least"), a_name_that_is_long_enough_to_fill_a_line=(0.25, 20, "upper-bound"),
)  # fmt: skip


def history(digest: str | None, policy: GatePolicy) -> list[Timed]:
    """Three shards, of which one was cut off by a stop and tried again 100 seconds later."""
    return [
        (0, run_started(policy)), (0, driver_started()), *((0, event) for event in collections()),
        (1, plan_of(60.0, 50.0, 40.0)),
        *attempt(1, 70, "shard-1", "candidate", table=digest), *attempt(70, 122, "shard-1", "baseline"),
        *attempt(122, 173, "shard-2", "candidate"), *attempt(173, 224, "shard-2", "baseline"),
        *attempt(224, 253, "shard-3", "candidate"),
        *attempt(253, 260, "shard-3", "baseline", cause="stopped", measured=0, counted=False),
        (260, RunStopped(reason="asked", term=1)), (360, driver_started(2)),
        (360, ResumeStarted(step="gate", number=1, owed=("shard-3/baseline",))),
        *attempt(361, 402, "shard-3", "baseline", 2, term=2), (402, RunFinished(verdict="passed")),
    ]  # fmt: skip


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger with one run, which was to take 310 seconds."""
    directory = tmp_path_factory.mktemp("measured")
    digest = EvidenceStore(directory / EVIDENCE).put_bytes(encode_document(TABLE))
    with begin(directory) as writer:
        write_run(writer, RUN, history(digest, GatePolicy(parallel=1, plan=PlanPolicy(target_seconds=310.0))))
    return directory


Ask = Callable[..., Answer]


@pytest.fixture
def ledger(tmp_path: Path) -> Ask:
    """Runs `ledger` in an empty directory."""

    def run(*arguments: str | Path, columns: int = 100) -> Answer:
        environment = {"PATH": os.defpath, "HOME": str(tmp_path), "COLUMNS": str(columns)}
        ended = subprocess.run(
            [LEDGER, *arguments], cwd=tmp_path, env=environment, check=False, capture_output=True, timeout=60
        )
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run
