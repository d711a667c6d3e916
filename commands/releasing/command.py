"""Carries out a step that is a command: in a checkout of its own of the commit that counts, watched, and read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from commands.effects import worktrees
from commands.effects.steps.environment import step_environment
from commands.effects.steps.process import StepEnd, StepJob, run_step, settle
from commands.readers.step_result import StepReading, read_step
from commands.releasing.context import context_of
from commands.releasing.parts import Bench, Done, archive_on_disk, place_of, unmeasured
from ledger.errors import LedgerError
from ledger.events import StepProbe, StepReport
from ledger.steps import Step
from ledger.values import Digest
from projections.release.state import STEP_ASKS, StepAttempt, archive_of


def carry_command(bench: Bench, step: Step, attempt: StepAttempt, adopted: bool) -> Done:
    """Run the command of a step. One that an earlier driver began is not begun again: what it had said counts."""
    if adopted:
        return settle_command(bench, step, attempt)
    done = run_command(bench, step, attempt, {})
    return _still_the_archive(bench, done) if step.irreversible and done.outcome == "passed" else done


def _still_the_archive(bench: Bench, done: Done) -> Done:
    """What was done with an archive that is another one now may have been done with that."""
    archive = archive_of(bench.views().release)
    if archive is None or archive_on_disk(bench) == archive.digest:
        return done
    detail = f"the archive in {place_of(bench, archive.version).path} was changed while this ran"
    return replace(done, outcome="unmeasured", report=replace(done.report, cause="archive-changed", detail=detail))


def settle_command(bench: Bench, step: Step, attempt: StepAttempt) -> Done:
    """Bring to rest what an earlier driver began, and remove the worktree that it left."""
    place = bench.place(attempt, step)
    done = read_end(bench, step, settle(place))
    worktrees.remove(bench.workshop.home.git, bench.root, tree_of(place))
    return done


def tree_of(place: Path) -> Path:
    """Where the worktree of the attempt is that has this place."""
    return place.with_name(f"{place.name}-tree")


def run_command(
    bench: Bench, step: Step, attempt: StepAttempt, told: Mapping[str, str], archive_directory: str = ""
) -> Done:
    """Run the command in a worktree of the attempt's commit, which is removed afterwards."""
    missing = [name for name in step.secrets if name not in os.environ]
    if missing:
        return unmeasured("secret-missing", f"the variables {', '.join(missing)} are not set here")
    git, place = bench.workshop.home.git, bench.place(attempt, step)
    tree = tree_of(place)
    owner = worktrees.Owner.here(bench.workshop.ledger_id, bench.release)
    try:
        made = worktrees.add(git, bench.root, tree, attempt.commit, owner)
    except LedgerError as problem:
        return unmeasured(problem.code, f"{problem.message} {problem.hint}".strip())
    try:
        end = run_step(
            _job(bench, step, attempt, made.path, place, told, archive_directory),
            place,
            stopping=bench.stopping,
            on_line=lambda stream, line: bench.display.note(f"  {step.name} | {line}"),
        )
        return read_end(bench, step, end)
    finally:
        worktrees.remove(git, bench.root, tree)


def _job(
    bench: Bench,
    step: Step,
    attempt: StepAttempt,
    tree: Path,
    place: Path,
    told: Mapping[str, str],
    archive_directory: str,
) -> StepJob:
    home, temporary = place / "home", place / "tmp"
    for directory in (home, temporary):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = {
        "LEDGER_STORE": str(bench.workshop.home.directory),
        "LEDGER_RUN_ID": bench.release,
        "LEDGER_STEP": step.name,
    }
    return StepJob(
        name=f"{bench.release}/{step.name}/{attempt.number}",
        argv=step.run,
        directory=tree,
        environment=step_environment(
            os.environ,
            step.env,
            tree=tree,
            checkout=bench.workshop.home.git.toplevel,
            home=home,
            temporary=temporary,
            told={**known, **told},
        ),
        idle_timeout_seconds=step.idle_timeout_seconds,
        context=context_of(bench, step, attempt, archive_directory),
        secrets={name: os.environ[name] for name in step.secrets},
    )


def read_end(bench: Bench, step: Step, end: StepEnd) -> Done:
    """What the end of a command comes to; what it printed becomes evidence."""
    reading = read_step(end.printed, end.cause, end.exit_code)
    if step.irreversible and reading.outcome == "passed" and end.left_running:
        # What was ended in the middle may have been the very thing that cannot be taken back.
        reading = replace(reading, outcome="unmeasured", verdict="", cause="step-left-running")
    return Done(
        outcome="unmeasured" if reading.outcome == "asked" else reading.outcome,
        report=_report(reading, end),
        output=_kept(bench, end.output),
        errors=_kept(bench, end.errors),
        question=reading.question if reading.outcome == "asked" else None,
    )


def _report(reading: StepReading, end: StepEnd) -> StepReport:
    return StepReport(
        cause=STEP_ASKS if reading.outcome == "asked" else reading.cause,
        detail=reading.detail or end.detail,
        verdict=reading.verdict,
        summary=reading.summary,
        keys={key: json.dumps(value, ensure_ascii=False) for key, value in reading.keys.items()},
        probes=tuple(
            StepProbe(name=probe.name, outcome=probe.outcome, detail=probe.detail) for probe in reading.probes
        ),
        exit_code=end.exit_code,
        signal=end.signal,
        duration_seconds=end.duration_seconds,
    )


def _kept(bench: Bench, file: Path) -> Digest | None:
    return bench.workshop.evidence.put_file(file) if file.exists() else None
