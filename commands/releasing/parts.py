"""What everything that carries out a step works with, and what a step comes to."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from commands.effects.release.archive import Place, check_archive
from commands.effects.signals import StopRequests
from commands.gating import Display
from commands.wiring import Workshop
from ledger.errors import LedgerError
from ledger.events import StepReport
from ledger.steps import Step, StepGraph
from ledger.values import Commit, Digest, Verdict
from projections.registry import RunViews
from projections.release.state import StepAttempt, archive_of


class Bench(Struct, frozen=True):
    """The release that is driven: where it is recorded, its steps, where its files go, and whom to tell."""

    workshop: Workshop
    release: str
    graph: StepGraph
    root: Path
    display: Display
    requests: StopRequests

    def views(self) -> RunViews:
        """The release as it is recorded now."""
        return self.workshop.loop.views(self.release)

    def stopping(self) -> bool:
        """Whether somebody wants it to stop."""
        return self.requests.requested() is not None

    def place(self, attempt: StepAttempt, step: Step) -> Path:
        """The directory that is allotted to one attempt at a step."""
        return self.root / self.release / f"{step.name}-{attempt.number}"


class Done(Struct, frozen=True, kw_only=True):
    """What an attempt at a step came to; `archive` are the digest, size, files and place of one that was prepared.

    `question` is the question of a step that asks instead of answering.
    """

    outcome: Verdict
    report: StepReport = StepReport()
    output: Digest | None = None
    errors: Digest | None = None
    archive: tuple[Digest, int, int, str] | None = None
    question: dict[str, object] | None = None


Carry = Callable[[Bench, Step, StepAttempt, bool], Done]
"""Carries out an attempt; the flag says that an earlier driver began it, so that it may have been done already."""


def place_of(bench: Bench, version: str) -> Place:
    """Where the archive of a version is."""
    return Place(bench.workshop.home.directory, version)


def archive_on_disk(bench: Bench) -> Digest:
    """The digest of the archive that counts, as it is in its place now, all of it read; "" when it is none any more."""
    archive = archive_of(bench.views().release)
    if archive is None:
        return ""
    try:
        return check_archive(place_of(bench, archive.version), commit=archive.commit).digest
    except (LedgerError, OSError):
        return ""


def unmeasured(cause: str, detail: str = "") -> Done:
    """An attempt that came to nothing that counts."""
    return Done(outcome="unmeasured", report=StepReport(cause=cause, detail=detail))


def failed(cause: str, detail: str = "") -> Done:
    """An attempt that showed that something is wrong."""
    return Done(outcome="failed", report=StepReport(cause=cause, detail=detail))


def passed(summary: str, **keys: str) -> Done:
    """An attempt that went well; `keys` are texts that later steps may read."""
    import json

    said = {name: json.dumps(value) for name, value in keys.items()}
    return Done(outcome="passed", report=StepReport(verdict="pass", summary=summary, keys=said))


def baseline_of(views: RunViews) -> Commit:
    """The commit that the release is compared with."""
    return views.run.begun.baseline


def today() -> str:
    """The day in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"
