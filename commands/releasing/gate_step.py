"""Carries out the gate of a release: a gate run of its own, taken up again where the commit is the same."""

from commands.effects.locks import OwnedLock, owner_details
from commands.gating import STEP as GATE
from commands.gating import drive_gate
from commands.messages import StartRun
from commands.releasing.parts import Bench, Done, unmeasured
from ledger.errors import LedgerError
from ledger.events import RecheckPlanned, StepReport
from ledger.steps import Step
from ledger.tables import decode_document
from projections.registry import RunViews
from projections.release.resume import ReleasePlan
from projections.release.state import StepAttempt


def carry_gate(bench: Bench, step: Step, attempt: StepAttempt, adopted: bool) -> Done:
    """Drive the gate to its verdict. What was measured on this commit stands; only what is owed is run."""
    loop, gate = bench.workshop.loop, attempt.gate
    owner = owner_details(gate, attempt.started_at)
    try:
        with OwnedLock(bench.workshop.home.run_lock(gate), owner):
            views = loop.views(gate)
            if views.run.started is None:
                loop.handle(_start(bench, attempt))
            bench.display.known(views)
            # Where the driver that came to a verdict could not say so any more, that verdict is what there is to say.
            again = GATE if views.run.status == "stopped" or (views.run.status == "finished" and not adopted) else None
            stop_file = bench.workshop.home.stop_file(bench.release)
            views = drive_gate(bench.workshop, gate, bench.display, resume_step=again, stop_file=stop_file)
    except LedgerError as problem:
        return unmeasured(problem.code, f"{problem.message} {problem.hint}".strip())
    return _read(views)


def _start(bench: Bench, attempt: StepAttempt) -> StartRun:
    begun = bench.views().run.begun
    return StartRun(
        stream=attempt.gate,
        run=attempt.gate,
        candidate=attempt.commit,
        candidate_ref=str(begun.branch or begun.candidate_ref),
        baseline=begun.baseline,
        baseline_ref=begun.baseline_ref,
        baseline_reason=begun.baseline_reason,
        dirty=begun.dirty,
        policy=begun.policy,
        config=begun.config,
        release=bench.release,
        recheck=_recheck(bench, attempt),
    )


def _recheck(bench: Bench, attempt: StepAttempt) -> RecheckPlanned | None:
    """What the last resume planned to measure of this commit; None for all of it."""
    resumes = bench.views().release.resumes
    if not resumes or resumes[-1].commit != attempt.commit or not isinstance(resumes[-1].plan, str):
        return None
    return decode_document(bench.workshop.evidence.get(resumes[-1].plan), ReleasePlan).recheck


def _read(views: RunViews) -> Done:
    """The verdict of the gate is the outcome of the step; a gate that was stopped has none."""
    verdict = views.gate.verdict
    if views.run.status != "finished" or verdict is None:
        return unmeasured("step-stopped", "the gate was stopped before it had a verdict")
    counts = ", ".join(f"{number} {name}" for name, number in verdict.counts.items())
    carried = f" ({views.gate.carried} carried)" if views.gate.carried else ""
    report = StepReport(
        cause="" if verdict.verdict == "passed" else verdict.reason,
        verdict={"passed": "pass", "failed": "fail", "unmeasured": ""}[verdict.verdict],  # type: ignore[arg-type]
        summary=f"gate {views.run.run}: {counts}{carried}",
        keys={"gate": f'"{views.run.run}"'},
    )
    return Done(outcome=verdict.verdict, report=report)
