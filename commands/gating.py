"""A gate from start to end, and its resumption: chooses the commits, holds the locks, drives, cleans up, sums up."""

import os
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Protocol

from commands.decide.base import Documents
from commands.decide.known_usage import spawn_warnings
from commands.decide.registry import decide
from commands.messages import ResumeRun, StartRun
from commands.render.words import safe, short
from commands.wiring import Home, Workshop, build_driver, open_workshop
from ledger.errors import LedgerError
from ledger.parts import whole_target
from ledger.tables import ClassTable, Plan, decode_document, encode_document
from ledger.values import Digest
from projections.registry import RunViews
from projections.run.resume import ResumePlan, plan_resume
from projections.run.summary import RunSummary, summarize_run

STEP = "gate"


class Display(Protocol):
    """What a gate tells while it runs."""

    def note(self, line: str) -> None:
        """Say something once."""

    def known(self, views: RunViews) -> None:
        """Take what is so already as told."""

    def changed(self, views: RunViews) -> None:
        """Show the run as it is now."""


def run_gate(home: Home, ref: str, baseline: str | None, display: Display) -> RunSummary:
    """Gate the commit that `ref` names, and return where the run then stands."""
    start = _start_message(home, ref, baseline)
    decide(start, RunViews(), Documents({}))
    display.note(f"candidate {short(start.candidate)} ({start.candidate_ref})")
    display.note(f"baseline  {short(start.baseline)} ({start.baseline_ref}: {start.baseline_reason})")
    if start.dirty:
        display.note("the checkout has uncommitted changes; they are not tested")
    with open_workshop(home, start.run) as workshop:
        workshop.evidence.put_bytes(encode_document(home.loaded.settings.runner))
        workshop.loop.handle(start)
        display.note(f"run {start.run}, recorded in {home.directory}")
        return _drive(workshop, start.run, display, resume_step=None)


def resume_gate(home: Home, run: str, step: str, display: Display) -> RunSummary:
    """Take a run up again from a step, and return where it then stands."""
    with open_workshop(home, run) as workshop:
        views = workshop.loop.views(run)
        decide(ResumeRun(stream=run, step=step), views, Documents({}))
        if plan_resume(views, step, driven=False).nothing_to_do:
            display.note("nothing is owed; the verdict stands")
            with build_driver(workshop, run, display.changed, display.note):
                # The driver that decided may have died before it tidied up; closing this one does.
                return _summary(workshop, views)
        display.note(f"run {run}, taken up again from {step}")
        display.known(views)
        return _drive(workshop, run, display, resume_step=step)


def dry_run(home: Home, run: str, step: str, at: str | None) -> ResumePlan:
    """What `resume_gate` would do, or would have done at a moment; it takes no lock and writes nothing.

    Raises the refusals that `resume_gate` would. Nobody can tell any more whether the run was driven in the past.
    """
    with home.open_ledger() as opened:
        past = opened.past(run, at)
        driven, views = past is None and opened.driven(run), opened.views(run, past)
    decide(ResumeRun(stream=run, step=step), views, Documents({}))
    return plan_resume(views, step, driven=driven, as_of=past.as_of if past else "")


def _start_message(home: Home, ref: str, baseline: str | None) -> StartRun:
    git, settings = home.git, home.loaded.settings
    candidate = git.resolve(ref)
    if baseline is None:
        chosen = git.choose_baseline(candidate, None)
        base_commit, base_ref, base_reason = chosen.commit, chosen.ref, chosen.reason
    else:
        base_commit, base_ref, base_reason = git.resolve(baseline), baseline, "as asked for"
    now = datetime.now(UTC)
    run = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    return StartRun(
        stream=run,
        run=run,
        candidate=candidate,
        candidate_ref=safe(ref),
        baseline=base_commit,
        baseline_ref=safe(base_ref),
        baseline_reason=base_reason,
        dirty=bool(git.dirty_paths(1).paths),
        policy=settings.policy,
        config=_digest(home),
    )


def _digest(home: Home) -> str:
    from hashlib import sha256

    return sha256(encode_document(home.loaded.settings.runner)).hexdigest()


def _drive(workshop: Workshop, run: str, display: Display, *, resume_step: str | None) -> RunSummary:
    return _summary(workshop, drive_gate(workshop, run, display, resume_step=resume_step))


def drive_gate(
    workshop: Workshop, run: str, display: Display, *, resume_step: str | None, stop_file: Path | None = None
) -> RunViews:
    """Drive a gate to its end, or to where it is stopped; returns where it then stands. The caller holds its lock.

    `stop_file` is whose presence asks it to stop, for a gate that is a step of a release.
    """
    watched, tags = _Watched(workshop, display), _version_tags(workshop.home)
    with build_driver(workshop, run, watched.changed, display.note, stop_file) as driver:
        driver.take(run, socket.gethostname(), os.getpid(), secrets.token_hex(16))
        if resume_step is not None:
            driver.resume(run, resume_step)
        views = driver.drive(run)
    # The commits of this run were chosen before it began; the next one is free to choose what tests have made.
    for tag in sorted(_version_tags(workshop.home) - tags):
        display.note(
            f"the tag {tag} was made while tests ran, and may be the next baseline; "
            f"if a test made it: git tag --delete {quote(tag)}"
        )
    return views


def _version_tags(home: Home) -> frozenset[str]:
    """The tags that a baseline may be chosen from; none where git cannot tell, for nothing depends on it."""
    try:
        return home.git.all_version_tags()
    except LedgerError:
        return frozenset()


class _Watched:
    """The display, told besides of settings that turn out to do nothing when the plan is made."""

    def __init__(self, workshop: Workshop, display: Display) -> None:
        self._workshop, self._display = workshop, display
        self._is_planned: bool | None = None

    def changed(self, views: RunViews) -> None:
        """Show the run as it is now."""
        planned = views.gate.plan
        # Of a plan that was there before, it was told then.
        if planned and self._is_planned is False:
            plan = decode_document(self._workshop.evidence.get(planned.plan), Plan)
            targets = {whole_target(name) for shard in plan.shards for name in shard.candidate}
            for warning in spawn_warnings(views.run.policy.planning, targets):
                self._display.note(warning)
        self._is_planned = planned is not None
        self._display.changed(views)


def _summary(workshop: Workshop, views: RunViews) -> RunSummary:
    def load(digest: Digest, kind: type[ClassTable]) -> ClassTable:
        return decode_document(workshop.evidence.get(digest), kind)

    return summarize_run(views, datetime.now(UTC), alive=None, load=load)
