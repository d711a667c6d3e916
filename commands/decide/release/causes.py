"""What the codes about releases mean, and what to do next; `commands/causes.py` tells them with all others."""

_LOOK = "`ledger release show` says where each step stands, and `ledger resume --dry-run` what resuming would do."
_WAIVE = "`ledger resume --from STEP --waive STEP --reason TEXT` waives the step that the release ended for."
_PUBLIC = "Say what a user would notice, in one or two plain sentences."

STEP_ENDS: dict[str, tuple[str, str]] = {
    "archive-unreadable": (
        "The archive, or the place where it belongs, could not be read.",
        "Look at the file that is named, then resume from the step that prepares.",
    ),
    "question-repeated": (
        "The step asks again what it has an answer to.",
        "The answer is in `answers` of its context, by the name of the decision; let the step read it.",
    ),
    "secret-missing": (
        "A variable that the step names as a secret is not set where the release is driven.",
        "Set it, and resume from the step.",
    ),
    "step-left-running": (
        "A step that cannot be taken back left processes at work. They were ended, so what it did may be half done.",
        "Look at what it did; let its command wait for what it starts, or end it, and resume from the step.",
    ),
    "until-invalid": (
        "What `wait-until` is to wait for is no time.",
        "Write a date and time with an offset from UTC, or a time of day with one, such as 18:00Z.",
    ),
    "rejected": ("Somebody rejected what was shown.", "Read the reason; resuming from the approval asks again."),
}
"""Why an attempt at a step did not pass, besides what its command says."""

RELEASE_REFUSALS: dict[str, tuple[str, str]] = {
    "not-a-release": ("The run is a gate and no release.", "`ledger release list` lists the releases."),
    "version-taken": (
        "A release of this version is under way, has passed or has done something for good, or there is a tag of it.",
        "Take that one up again, or start the release of the next version.",
    ),
    "repair-too-late": (
        "The release has passed, or something that cannot be taken back was begun, so its commit stays what it is.",
        "Start the release of the next version.",
    ),
    "version-invalid": (
        "The text is no version of a release.",
        "Use x.y.z, or x.y.z-rc.N (alpha, beta) for a prerelease, without a `v` and without leading zeros.",
    ),
    "prerelease-by-commit": (
        "A prerelease takes the next free number among the branches and tags of the remote, so it is cut as a branch.",
        "Add `--branch`.",
    ),
    "cut-not-on-main": (
        "The commit to release is not on the main branch of the remote.",
        "Land it there first, or name the main branch with `release.main`.",
    ),
    "steps-contradict": ("The steps in the settings contradict each other.", "`ledger release check` lists how."),
    "step-not-run": ("The step, or this attempt at it, was not run, or has not ended.", _LOOK),
    "step-aside": (
        "The step runs only when another one went wrong, so a release cannot be taken up at it.",
        "Resume from the step that leads to it.",
    ),
    "restart-at-cut": (
        "The release has its cut, and a version is cut once.",
        "Resume from a later step; `ledger release repair` appends to the branch.",
    ),
    "needs-unsettled": ("A step that this one needs has not settled.", _LOOK),
    "predecessor-unsettled": (
        "A step before the one to resume from has neither passed nor been waived, and is not tolerated.",
        "Resume from that one.",
    ),
    "after-consumer": (
        "A step before the one to resume from has a result that does not count for the commit that the release is at.",
        "Resume from that one; what does not count any more is run again.",
    ),
    "approval-open": ("An approval before the step is not answered.", "`ledger approve` or `ledger reject` answers."),
    "approval-not-asked": ("Nobody was asked to approve yet.", _LOOK),
    "approval-decided": ("The approval was answered already.", "Resuming from its step asks anew when it has to."),
    "approval-stale": (
        "The commit, the archive, the waivers, the known issues or the muted tests are not what was shown.",
        "Resume from the approval, which shows them as they are now.",
    ),
    "approval-not-yours": (
        "The settings of the release do not let this person approve.",
        "Somebody whom `release.may_approve` names has to; with `release.separate_duties`, nobody who waived anything.",
    ),
    "reason-missing": ("A rejection needs a reason.", "Give one with `--reason`."),
    "irreversible-done": (
        "A step that cannot be taken back was done, and would be done again.",
        "Resume from a step after it, or start the release of the next version.",
    ),
    "release-passed": ("The release has passed; nothing is left to take up.", "Start the next one."),
    "release-unfinished": ("There is still something to do.", _LOOK),
    "attempts-exhausted": (
        "The release was taken up again as often as it may be.",
        "`--allow-attempt --reason TEXT` allows one more, and is recorded; or start the release of the next version.",
    ),
    "not-own-branch": (
        "The release was cut by commit, so it has no branch that could move or be repaired.",
        "Start the release of the next version, cut with `--branch`.",
    ),
    "archive-unknown": (
        "Something stands in the place of the archive that this release has not recorded. It was left as it is.",
        "Look at it, and move it away yourself.",
    ),
    "issues-invalid": ("A known issue has no name, no note, or a note that is not fit for the public.", _PUBLIC),
    "issues-duplicate": ("Two known issues have the same name.", "Give each a name of its own."),
    "waiver-pair": ("A waiver has a step and a reason.", _WAIVE),
    "waiver-blank": ("The waiver names no step.", _WAIVE),
    "waiver-from": ("A release is resumed from the step that is waived.", _WAIVE),
    "waiver-reason-unsafe": ("The reason would be published with the release, and is not fit for that.", _PUBLIC),
    "waiver-moved-tip": (
        "The branch has moved, so the result to be waived does not count any more.",
        "Resume without the waiver first.",
    ),
    "waiver-expired": (
        "The last day of the waiver is over already, or is no day.",
        "Give a date (2030-01-31), or how many days it is to count.",
    ),
    "waiver-protected": (
        "The step may not be waived: it is not `waivable`, it builds, approves or is final, or it is a measured gate.",
        "Repair the release, or mute single tests.",
    ),
    "waiver-not-failed": ("The step did not fail on the commit that counts, so there is nothing to waive.", _LOOK),
    "waiver-not-yours": (
        "The settings of the release do not let this person waive.",
        "Somebody whom `release.may_waive` names has to.",
    ),
}
"""Why a request about a release is refused; nothing was written."""

FULL_GATES: dict[str, tuple[str, str]] = {
    "same-commit": ("The gate is of the same commit, so what was measured stands.", "Nothing has to be done."),
    "source-changed": (
        "A file changed that is neither a test file nor Markdown that nothing uses, so any test may be affected.",
        "Nothing has to be done.",
    ),
    "test-named-elsewhere": (
        "A test file changed that another file names, so that one may depend on it.",
        "Nothing has to be done; move what tests share out of test files to have less run again.",
    ),
    "nothing-to-recheck": ("No target is left to be measured again.", "Nothing has to be done."),
    "partial-unwanted": ("It was asked for with `--partial no`.", "Leave that out to let less be run again."),
    "no-prior-verdict": ("No gate of the release has come to a verdict yet.", "Nothing has to be done."),
    "prior-unreadable": (
        "The evidence of the last gate cannot be read.",
        "`ledger verify` says what is damaged; the gate does not depend on it.",
    ),
    "change-unreadable": ("Git could not tell what has changed.", "Look whether both commits are there."),
}
"""Why all of a gate is measured after the tip has moved."""
