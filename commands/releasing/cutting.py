"""Carries out the cut: the branch of the release on its remote, at the commit that was chosen."""

from commands.effects.release.remote import Remote
from commands.releasing.parts import Bench, Done, failed, passed, unmeasured
from ledger.errors import LedgerError
from ledger.steps import Step
from projections.release.state import StepAttempt

_NOT_NOW = ("remote-unreachable", "tip-raced", "git-failed")
"""Why a cut could not even be tried; trying again may help."""


def carry_cut(bench: Bench, step: Step, attempt: StepAttempt, adopted: bool) -> Done:
    """Make the branch; a cut by commit has nothing to make. A branch that is there at this commit is the cut."""
    begun = bench.views().run.begun
    if not begun.branch:
        return passed(f"{attempt.commit[:12]}, by commit", commit=attempt.commit)
    try:
        remote = Remote(bench.workshop.home.git, str(begun.remote))
        made = remote.create(str(begun.branch), attempt.commit)
    except LedgerError as problem:
        told = f"{problem.message} {problem.hint}".strip()
        return unmeasured(problem.code, told) if problem.code in _NOT_NOW else failed(problem.code, told)
    words = "made" if made == "created" else "was there already"
    return passed(f"{begun.branch} {words} at {attempt.commit[:12]}", commit=attempt.commit, branch=str(begun.branch))
