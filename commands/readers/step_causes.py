"""What the reason codes of `step_result.py` mean and what to do next; `commands/causes.py` tells them with others."""

STEP_CAUSES: dict[str, tuple[str, str]] = {
    "step-failed": ("The step itself says that it failed.", "Read its summary, and its output."),
    "step-exit": (
        "The command of the step exited with another code than 0, and printed no result that would say more.",
        "Read the end of its output.",
    ),
    "step-error": (
        "The step says that it could not do its work, which is no answer to what it was to find out.",
        "Read its summary, repair what was in its way, and resume from it.",
    ),
    "step-contradicts-exit": (
        "The result that the step printed does not go with its exit code: 0 for ok and ask, 1 for fail, 2 for error.",
        "Look for what changes the exit code, or for a result that is printed too early; resume from the step.",
    ),
    "step-contradicts-itself": (
        "The step printed an outcome and a verdict that do not go together.",
        "With ok goes pass or flaky, with fail and error goes fail, with ask none; print that, and resume.",
    ),
    "step-result-invalid": (
        "The last line that the step printed is meant as a result, but not one that can be read; the detail says why.",
        "Print one JSON object, alone on the last line. If the line was not meant as a result, print another after it.",
    ),
    "step-signalled": (
        "The command of the step was killed by a signal before it printed a result.",
        "Look for a crash, or for a kernel that ran out of memory, and resume from the step.",
    ),
    "step-idle": (
        "The step printed nothing for its `idle_timeout` and was ended before it printed a result.",
        "Look for a hang or a prompt that waits for an answer, or raise `idle_timeout`; resume from the step.",
    ),
    "step-stopped": ("The step was ended on request before it printed a result.", "Resume from the step."),
    "step-driver-died": (
        "The ledger's own process went away, and the step was ended with it before it printed a result.",
        "Look at what it may have done half, and resume from the step.",
    ),
    "step-lost": (
        "Nothing is left that could say how the step ended.",
        "Check the free disk space; look at what the step may have done half, and resume from it.",
    ),
    "step-not-started": (
        "The command of the step could not be executed.",
        "Check that the program in `run` exists in the worktree or on PATH, and can be executed.",
    ),
}
