"""Exit codes: a promise, documented and tested."""

from enum import IntEnum

from projections.run.summary import RunSummary


class ExitCode(IntEnum):
    """What the process says to the shell."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    UNMEASURED = 3
    REFUSED = 4
    OUTSTANDING = 5
    WAITING = 6
    INTEGRITY = 7
    INTERRUPTED = 8
    BUG = 70


MEANING: dict[ExitCode, str] = {
    ExitCode.PASSED: "passed, or done",
    ExitCode.FAILED: "failed: the candidate introduced a regression, or a target was missed",
    ExitCode.USAGE: "the command line, the configuration or the repository does not allow it",
    ExitCode.UNMEASURED: "unmeasured: something could not be measured, so nothing is promised",
    ExitCode.REFUSED: "refused by a rule (the message carries a stable code)",
    ExitCode.OUTSTANDING: "nothing failed so far, and work is outstanding",
    ExitCode.WAITING: "waiting for a human",
    ExitCode.INTEGRITY: "the ledger or its evidence is damaged",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.BUG: "a bug in this program; a crash report was written",
}


def of_run(summary: RunSummary) -> ExitCode:
    """The exit code for a run that is not being driven any more.

    | state                                   | code        |
    |---|---|
    | finished: passed / failed / unmeasured  | 0 / 1 / 3   |
    | stopped by a signal                     | 8           |
    | stopped on request, nothing failed yet  | 5           |
    | stopped on request, failures seen       | 3           |
    """
    if summary.state == "finished":
        verdicts = {"passed": ExitCode.PASSED, "failed": ExitCode.FAILED, "unmeasured": ExitCode.UNMEASURED}
        return verdicts[summary.verdict or "unmeasured"]
    if summary.reason == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.UNMEASURED if summary.failing_so_far else ExitCode.OUTSTANDING
