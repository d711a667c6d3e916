"""A gate from start to end, and its resumption: chooses the commits, holds the locks, drives, cleans up, sums up."""

import os
import secrets
import socket
from datetime import UTC, datetime
from typing import Protocol

from commands.decide.base import Documents
from commands.decide.registry import decide
from commands.messages import ResumeRun, StartRun
from commands.render.words import safe, short
from commands.wiring import Home, Workshop, build_driver, open_workshop
from ledger.tables import encode_document
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
                return _summary(views)
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
    with build_driver(workshop, run, display.changed, display.note) as driver:
        driver.take(run, socket.gethostname(), os.getpid(), secrets.token_hex(16))
        if resume_step is not None:
            driver.resume(run, resume_step)
        return _summary(driver.drive(run))


def _summary(views: RunViews) -> RunSummary:
    return summarize_run(views, datetime.now(UTC), alive=None)
