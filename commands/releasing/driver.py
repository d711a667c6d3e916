"""Drives a release: does what it has to do next, until it has ended, waits for somebody, or is asked to stop.

Level-triggered, like the driver of a gate: taking it up again is driving it again. Only this appends to the release
while it holds its lock; what people answer meanwhile is recorded by whoever takes the answer, and seen here.
"""

import os
import secrets
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from commands.decide.base import stored
from commands.decide.release.next import Begin, Execute, Finish, Heal, Settle, Wait, next_move
from commands.effects.people.notify import Notice, notify
from commands.loop import Loop
from commands.messages import BeginReleaseStep, EndReleaseStep, FinishRelease, StopRun, TakeRun
from commands.releasing import questions
from commands.releasing.command import carry_command
from commands.releasing.cutting import carry_cut
from commands.releasing.gate_step import carry_gate
from commands.releasing.healing import heal
from commands.releasing.parts import Bench, Carry, Done, archive_on_disk, today
from commands.releasing.preparing import carry_prepare
from commands.releasing.waiting import carry_wait
from ledger.events import STREAM, MuteUsed
from ledger.values import Digest
from projections.people.mutes import has_expired
from projections.registry import RunViews
from projections.release.approval import shown_now
from projections.release.resume import SETTLED
from projections.release.standing import Now

_CARRIES: dict[str, Carry] = {
    "run": carry_command,
    "cut": carry_cut,
    "gate": carry_gate,
    "prepare": carry_prepare,
    "wait-until": carry_wait,
}


def take(bench: Bench) -> None:
    """Become the driver of the release; the caller holds its lock, so the last driver is gone."""
    bench.workshop.loop.handle(
        TakeRun(stream=bench.release, host=socket.gethostname(), pid=os.getpid(), process=secrets.token_hex(16))
    )


def drive(bench: Bench, told: Callable[[str], None]) -> RunViews:
    """Drive it; returns where it then stands. `told` is given a line for each step that begins and ends."""
    while True:
        views = bench.views()
        if views.run.status == "finished":
            return views
        if bench.stopping():
            return _stop(bench, bench.requests.requested() or "interrupted")
        move = next_move(views, bench.graph, now_of(bench, views))
        if isinstance(move, Wait):
            if not questions.is_waited_for(bench, move.step):
                return _stop(bench, "waiting")
            questions.wait(bench)
            continue
        if isinstance(move, Finish):
            bench.workshop.loop.handle(
                FinishRelease(stream=bench.release, date=today(), mutes=mutes_used(bench.workshop.loop, views))
            )
        elif isinstance(move, Heal):
            heal(bench, move.step, told)
        elif isinstance(move, Begin):
            _begin(bench, move, told)
        elif _carry(bench, move, told).report.cause == "step-stopped":
            return _stop(bench, bench.requests.requested() or "interrupted")


def bring_to_rest(bench: Bench, told: Callable[[str], None]) -> None:
    """Record what came of the command that an earlier driver ran, which has ended with it. A gate, a cut and a time to
    wait for are taken up as they are."""
    views = bench.views()
    for name, state in views.release.steps.items():
        running = state.running
        if running is not None and running.term < views.run.term and bench.graph.step(name).uses in SETTLED:
            _carry(bench, Settle(name), told)


def _begin(bench: Bench, move: Begin, told: Callable[[str], None]) -> None:
    step, views = bench.graph.step(move.step), bench.views()
    gate = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}" if step.uses == "gate" else ""
    bench.workshop.loop.handle(
        BeginReleaseStep(
            stream=bench.release,
            step=step.name,
            date=today(),
            mutes=mutes_used(bench.workshop.loop, views),
            gate=gate,
            archive=archive_on_disk(bench) if step.irreversible else "",
        )
    )
    attempt = bench.views().release.steps[step.name].last
    if step.uses == "approve":
        _tell_of_approval(bench, step.name)
    elif attempt is not None:
        again = f", attempt {attempt.number}" if attempt.number > 1 else ""
        told(f"{step.name} began on {attempt.commit[:12]}{again}")


def _tell_of_approval(bench: Bench, step: str) -> None:
    release, version = bench.release, bench.views().run.begun.version
    notice = Notice(
        kind="approval",
        run=release,
        step=step,
        subject=step,
        prompt=f"Release {version} waits for an approval.",
        options=("approve", "reject"),
        command=f"ledger approve {release}",
    )
    home = bench.workshop.home
    notify(home.loaded.settings.notify.hooks, notice, home.git.toplevel, bench.display.note)


def _carry(bench: Bench, move: Execute | Settle, told: Callable[[str], None]) -> Done:
    step = bench.graph.step(move.step)
    attempt = bench.views().release.steps[step.name].running
    assert attempt is not None
    done = _CARRIES[step.uses](bench, step, attempt, isinstance(move, Settle))
    if done.question is not None:
        done = questions.ask(bench, step, attempt, done)
    digest, size_bytes, files, place = done.archive or ("", 0, 0, "")
    bench.workshop.loop.handle(
        EndReleaseStep(
            stream=bench.release,
            step=step.name,
            attempt=attempt.number,
            commit=attempt.commit,
            outcome=done.outcome,
            report=done.report,
            output=done.output,
            errors=done.errors,
            digest=digest,
            size_bytes=size_bytes,
            files=files,
            place=place,
        )
    )
    told(_ended(step.name, done))
    return done


def _ended(step: str, done: Done) -> str:
    report = done.report
    cause = f" ({report.cause})" if report.cause else ""
    said = report.summary or report.detail
    return f"{step} {done.outcome}{cause}{f': {said}' if said else ''}"


def _stop(bench: Bench, reason: Literal["asked", "interrupted", "waiting"]) -> RunViews:
    bench.workshop.loop.handle(StopRun(stream=bench.release, reason=reason))
    return bench.views()


def now_of(bench: Bench, views: RunViews) -> Now:
    """The present, with what would be shown to somebody who had to approve now."""
    return Now(today(), shown_digest(bench, views))


def shown_digest(bench: Bench, views: RunViews) -> Digest:
    """The digest of what would be shown now."""
    return stored(shown_now(views.release, bench.graph, today(), mutes_used(bench.workshop.loop, views)))[0]


def mutes_used(loop: Loop, views: RunViews) -> tuple[str, ...]:
    """The muted tests that kept something from blocking in the gates whose results count."""
    found: set[str] = set()
    for state in views.release.steps.values():
        if state.last is not None and state.last.gate and state.last.outcome is not None:
            verdict = loop.views(state.last.gate).gate.verdict
            found.update(_muted_now(loop, used) for used in verdict.muted if used.cases) if verdict else None
    return tuple(sorted(found))


def _muted_now(loop: Loop, used: MuteUsed) -> str:
    """The muted test; it says so when the muting does not count any more, so that an approval does not hold for it."""
    muting = loop.views(STREAM).mutes.mutings.get(used.mute)
    counts = muting is not None and muting.unmuted is None and not has_expired(muting.muted, today())
    return used.test if counts else f"{used.test} (not muted any more)"
