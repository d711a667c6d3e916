"""Reason codes: why something was not measured or was refused, what that means and what to do next.

The codes are stable and appear in events; the words are for people and may change.
"""

from msgspec import Struct

from commands.decide.release.causes import FULL_GATES, RELEASE_REFUSALS, STEP_ENDS
from commands.decide.release.healing_words import HEALING, REROUTES
from commands.readers.step_causes import STEP_CAUSES


class Cause(Struct, frozen=True):
    """What a reason code means, and what a person can do about it."""

    meaning: str
    next_step: str


_LOG = "Read the end of the attempt's log."

CAUSES: dict[str, Cause] = {
    "signalled": Cause(
        "The test process was killed by a signal.",
        "Look for a crash in native code, or for a kernel that ran out of memory; the detail names the running test.",
    ),
    "time-limit": Cause(
        "The attempt ran longer than its time limit and was ended.",
        "Raise `time_limit_seconds`, or use more shards; the detail names the test that was running.",
    ),
    "idle-limit": Cause(
        "The attempt showed no sign of life for the idle limit and was ended.",
        "Look for a hang in the test that the detail names, or raise `idle_limit_seconds`.",
    ),
    "memory-limit": Cause(
        "The attempt used more memory than its limit and was ended.",
        "Raise `memory_limit_bytes`, or use more shards; the detail names the test that was running.",
    ),
    "stopped": Cause("The attempt was stopped on request.", "Resume the run; what is owed runs again."),
    "driver-died": Cause(
        "The ledger's own process went away, and its tests were ended with it.",
        "Resume the run; what is owed runs again.",
    ),
    "lost": Cause(
        "Nothing is left that could say how the attempt ended.",
        "Resume the run; what is owed runs again. If it happens again, look for what kills processes on this machine.",
    ),
    "not-started": Cause(
        "The command of the attempt could not be executed.",
        "Check that the interpreter in `python`, or the program in `command`, exists and can be executed, and that the "
        "disk is not full. For an argument list that is too long, use more shards.",
    ),
    "no-room": Cause(
        "The attempt was not started, because this machine had no memory or no slot left for it.",
        "End what else uses the machine, lower `machine.reservation_bytes`, or wait longer "
        "(`machine.start_wait_seconds`); the detail says what was needed and what was left.",
    ),
    "session-ended-early": Cause(
        "The test process ended before the session was over, for example through `os._exit` or `pytest.exit`.",
        "Find what ends the process in the test that the detail names. " + _LOG,
    ),
    "interrupted": Cause(
        "pytest was interrupted before the session was over.",
        "Look for a `KeyboardInterrupt` or `pytest.exit`, or a plug-in that stops the session. " + _LOG,
    ),
    "runner-internal-error": Cause(
        "pytest, one of its plug-ins or a conftest failed outside any test.",
        "Repair the hook that the detail names. " + _LOG,
    ),
    "runner-usage-error": Cause(
        "pytest refused its command line or its configuration, or could not import a conftest.",
        "Check `addopts`, the `arguments` in the ledger's settings, and the conftest files. " + _LOG,
    ),
    "collection-aborted": Cause(
        "pytest gave up collecting because of something outside any single file.",
        "Repair what the detail names, often a conftest. " + _LOG,
    ),
    "nothing-collected": Cause(
        "No tests were found where there should be some.",
        "Check `paths` and `arguments`, or `targets` and `list`, in [runner], and the `testpaths` of pytest.",
    ),
    "exit-code-unexpected": Cause(
        "The exit code is not one of the runner's.", "Find the plug-in or the code that sets it. " + _LOG
    ),
    "exit-contradicts-record": Cause(
        "The process did not end as pytest said it would: something changed the exit code afterwards.",
        "Look for `atexit` handlers, `os._exit`, and crashes while the interpreter shuts down. " + _LOG,
    ),
    "exit-contradicts-cases": Cause(
        "The exit code does not fit the results: success with failed tests, or failure without any.",
        "Look for a plug-in that changes the exit code, such as a coverage threshold, and turn that off here.",
    ),
    "record-missing": Cause(
        "The test process left no record of what it did.",
        "Check that pytest 7 or newer can be imported by the interpreter in `python`. " + _LOG,
    ),
    "record-truncated": Cause(
        "The record of the test process breaks off in the middle of a line.",
        "Check the free disk space; what is owed runs again.",
    ),
    "record-damaged": Cause(
        "The record of the test process is not what its plug-in writes, so nothing in it is trusted.",
        "Check the free disk space, and that no test writes into the attempt's directory.",
    ),
    "wrong-tree": Cause(
        "Code of the project was imported from outside the tree under test, so something else was tested.",
        "Set `import_paths` to the directories that hold the packages, or let `prepare` install the tree itself.",
    ),
    "tree-changed": Cause(
        "A file of the commit was changed in the checkout while tests were running, so what was tested is not known to "
        "be the commit. Tests that run at the same time share the checkout, and count as little.",
        "Let the test that writes the file that the detail names write into a temporary directory. If tests have to "
        "write it, as with snapshots, list it in `may_change` of [runner].",
    ),
    "foreign-tests": Cause(
        "The attempt reported tests of files that it was not asked to run.",
        "Look for a plug-in that adds to the collection.",
    ),
    "cases-missing": Cause(
        "The session ended normally, but tests that were collected before did not report an end.",
        "Look for tests that are generated anew each time, and for plug-ins that skip or deselect tests silently.",
    ),
    "worker-crashed": Cause(
        "A worker process died while it ran a test of this target.",
        "Run the test that the detail names alone; a crash is booked on no test.",
    ),
    "not-measured": Cause(
        "No attempt reported this test.", "Look at the attempts of its shard; the test may depend on how it is started."
    ),
    "prepare-failed": Cause(
        "A command of `prepare` failed on this side, so that its tests could not run.",
        "Read the output in the detail; run the command in a checkout of this commit.",
    ),
    "pytest-missing": Cause(
        "The project's interpreter cannot import pytest.",
        "Install pytest there, let `prepare` do it, or name another interpreter with `python` in [runner].",
    ),
    "probe-failed": Cause(
        "The project's interpreter could not be asked what it is.",
        "Check that the interpreter in `python` runs and is Python 3.8 or newer.",
    ),
    "python-missing": Cause(
        "There is no interpreter to run the tests with.", "Name one in `python`, or make one in `prepare`."
    ),
    "list-failed": Cause(
        "The command that lists the targets failed.",
        "Run `list` of [runner] in a checkout of this commit. " + _LOG,
    ),
    "list-invalid": Cause(
        "The list of targets holds what cannot be one, or breaks off.",
        "Let `list` of [runner] print one target a line, in UTF-8, none beginning with a minus.",
    ),
    "version-unknown": Cause(
        "The command that tells the version of the test runner failed.",
        "Correct `version` in [runner], or let `prepare` install what it names.",
    ),
    "link-in-the-way": Cause(
        "A path of the tree that is to lead to what `prepare` installed cannot be made.",
        "Correct `links` in [runner], or take the file that is in its place out of git.",
    ),
    "report-not-fresh": Cause(
        "There is a report in the tree before the tests have run, so nobody could tell it from theirs.",
        "Take it out of git, and see to it that `prepare` leaves none.",
    ),
    "worktree-failed": Cause(
        "The files of this side could not be laid out in a worktree.",
        "Read the detail; check the free disk space and `git worktree list`.",
    ),
    "git-failed": Cause("git could not answer.", "Read the detail; run the command by hand."),
    "report-missing": Cause(
        "There is no report where the runner was to write one; an exit code alone proves nothing.",
        "Look for what ended the runner in its log, such as `process.exit`, and check the path of the report.",
    ),
    "report-empty": Cause(
        "The report has no content.", "Look for what ended the runner while it ran its tests. " + _LOG
    ),
    "report-malformed": Cause(
        "The report is not well-formed XML to its last byte, so nothing in it is trusted.",
        "Where it breaks off, the runner died or the disk is full. Where it holds a forbidden character, a test's name "
        "or output does: escape it there, or use a reporter that does. Give each attempt a report of its own.",
    ),
    "report-doctype": Cause(
        "The report has a DOCTYPE, which could define anything and which no runner writes.",
        "Look for what changes the report after it is written.",
    ),
    "report-encoding": Cause(
        "The bytes of the report are not in the encoding that it declares, or in one that reports are not read in.",
        "Have it written in UTF-8, and not converted by anything afterwards.",
    ),
    "report-too-large": Cause(
        "The report, one of its names or one of its texts is larger than any that is read.",
        "Have the reporter leave out the output of tests, or split the run.",
    ),
    "report-not-junit": Cause(
        "The report is XML, but not a JUnit report.", "Check the path of the report and the runner's reporter."
    ),
    "case-unnamed": Cause(
        "The report holds a case without a name, as a run leaves it that was stopped in the middle.",
        "Look for what stops the run, such as `pytest.exit`. " + _LOG,
    ),
    "case-is-file": Cause(
        "A case is named as its file: the file ended without reporting any test, and was counted as one that passed.",
        "Look for `process.exit` in the file; if it has no tests, take it out of the targets.",
    ),
    "cases-unattributed": Cause(
        "The report holds cases that nothing in it attributes to a target.",
        "Name the runner's `dialect`, and have its reporter write the file of each case.",
    ),
    "status-unclear": Cause(
        "An attribute of a case says something else than its elements, or nobody knows what it says.",
        "Name the runner's `dialect`; if it is named, this runner writes what is not known yet.",
    ),
    "element-unknown": Cause(
        "The report holds an element that may say something about a verdict, but nobody knows what.",
        "Name the runner's `dialect`; if it is named, this runner writes what is not known yet.",
    ),
    "count-invalid": Cause(
        "A count that the report declares is not a whole number.", "Look for what writes or changes the report."
    ),
    "count-unknown": Cause(
        "The report declares a count of an unknown meaning that is not 0.",
        "Name the runner's `profile` if there is one; `ledger read` suggests those that fit.",
    ),
    "counts-disagree": Cause(
        "The report declares another number of tests, failures, errors or skips than it holds.",
        "If the runner counts otherwise, name its `profile`; `ledger read` suggests those that fit.",
    ),
    "target-missing": Cause(
        "The report holds no case of this target, although it was to run.",
        "The file may not load, or hold no tests; many runners leave such files out. " + _LOG,
    ),
    "only-skipped": Cause(
        "Every case of this target was skipped, so nothing was measured.",
        "Look for what is missing, such as an optional package. It may skip when the baseline skips it too.",
    ),
    "exit-unknown": Cause(
        "Nobody knows with what code the runner exited, and an unknown code is not 0.",
        "Give `ledger read` the code with `--exit-code`.",
    ),
    "plan-missing": Cause(
        "Nobody said what was to run, so nobody can say that it is all there.",
        "Name the targets of the run with `--planned`.",
    ),
    "plan-empty": Cause("Nothing was to run, so nothing was measured.", "Leave out attempts without targets."),
    "not-run": Cause("The attempt ended before it came to this target.", "Resume the run; what is owed runs again."),
    "interference": Cause(
        "The test fails among others and passes alone, so another test or its order makes it fail.",
        "Look for state that the tests of its shard share; `ledger why TEST` shows every run.",
    ),
    "rerun-not-read": Cause(
        "The re-run that would tell whether the test fails again gave no result.",
        "Resume the run; what is owed runs again. `ledger why TEST` shows every run.",
    ),
    "rerun-hidden": Cause(
        "The test failed, and was skipped or expected to fail when it was run again, which tells nothing.",
        "Look for what makes it skip; it may depend on other tests or on the time.",
    ),
    "too-many-failures": Cause(
        "More tests newly fail than are run again, so that a gate comes to its end; the others count as new failures.",
        "Repair what was found first.",
    ),
    "same-cause": Cause(
        "The same cause left most parts without any result, so it is the change or the machine; these were not tried "
        "again.",
        "Look at what `ledger status` says of them, repair that, and resume the run: they are tried again then.",
    ),
    "same-failure": Cause(
        "Most tests that were run again fail again in the same way, so it is the change; no more were run again.",
        "Repair what they have in common first. All of these failures count as new.",
    ),
    **{code: Cause(meaning, next_step) for code, (meaning, next_step) in {**STEP_CAUSES, **STEP_ENDS}.items()},
}  # fmt: skip

REFUSALS: dict[str, Cause] = {
    **{code: Cause(meaning, next_step) for code, (meaning, next_step) in RELEASE_REFUSALS.items()},
    "equal-commits": Cause(
        "Candidate and baseline are the same commit, so there is nothing to compare.",
        "Name another baseline with `--baseline REF`, or commit the change first.",
    ),
    "step-unknown": Cause("The run has no step of that name.", "The message lists the steps that it has."),
    "not-collected": Cause("The tests of both sides must be collected before they can be planned.", "Resume the run."),
    "not-planned": Cause("Nothing can be placed or started before there is a plan.", "Resume the run."),
    "pool-empty": Cause("No member of the pool can run a shard.", "Add a member to the pool."),
    "attempt-unknown": Cause("An attempt that was never promised cannot be recorded.", "Resume the run."),
    "not-rerun": Cause(
        "Tests failed that may have to be run again, so there is no verdict yet.", "Resume the run."
    ),
    "not-settled": Cause("Attempts are still owed or running, so there is no verdict yet.", "Resume the run."),
    "budget-invalid": Cause("The memory budget of a shard is not above 0.", "Name one, such as 2GiB."),
    "shard-count-invalid": Cause(
        "The number of shards is below 1, or a number and a time are asked for at once.",
        "Leave one out to have it chosen.",
    ),
    "target-time-invalid": Cause("The time that a plan may take is not above 0.", "Name one, such as 10m."),
    "usage-missing": Cause("Nothing is known of what a target needs.", "Measure it, or have it estimated."),
    "usage-invalid": Cause("What a target is said to need is nothing that a target can need.", "Measure it again."),
    "target-above-budget": Cause(
        "A target alone needs more memory than a shard may use.", "Raise the budget, or split the target."
    ),
    "plan-does-not-fit": Cause(
        "The targets do not fit into the number of shards; the message says whether that is proved.",
        "Allow more shards or a larger budget.",
    ),
    "mute-test-invalid": Cause(
        "What is to be muted is not one test; whole files are never muted.",
        "Name a test such as tests/test_a.py::test_name, or one variant of it.",
    ),
    "mute-test-unknown": Cause(
        "No run of this ledger has ever seen the test that is to be muted.",
        "Write its name as `ledger query inventory` does.",
    ),
    "mute-incomplete": Cause(
        "A muting has an owner and a reason, each one line of text, and so has taking it back.", "Give each of them."
    ),
    "mute-date-invalid": Cause("The last day of a muting is not a date.", "Give a date such as 2030-01-31."),
    "mute-expired": Cause("The last day of the muting is over already.", "Name a later day."),
    "mute-too-long": Cause(
        "A muting lasts at most `mutes.days_max` days, so that nothing stays muted for ever.",
        "Name an earlier day, and repair the test until then.",
    ),
    "already-muted": Cause(
        "A valid muting covers this test already.", "To change it, take it back with `ledger unmute` and mute it anew."
    ),
    "mutes-full": Cause(
        "As many tests are muted as `mutes.count_max` allows.",
        "Repair one of them and take its muting back; `ledger mutes` proposes those that have passed again and again.",
    ),
    "not-muted": Cause("No valid muting has that name or is of that test.", "`ledger mutes` lists what is muted."),
    "mute-ambiguous": Cause("The test is muted more than once, under several conditions.", "Name one of the mutings."),
    "question-invalid": Cause(
        "What a step wants to ask cannot be asked: a question has 2 to 4 options with labels of their own, recommends "
        "exactly one, says everything in printable text, and has a deadline in 1 to 35791 minutes.",
        "Repair what the step asks. Nothing was assumed in its place.",
    ),
    "question-unknown": Cause("The run has no question of that name.", "`ledger questions RUN` lists what it has."),
    "question-closed": Cause(
        "The question is answered, put off or called off, or nobody answered it in time and the step went on, or "
        "nobody was asked.",
        "`ledger questions` says what became of it. To have it asked anew, resume the run from the step that asked it.",
    ),
    "option-unknown": Cause(
        "The answer is not the label of one of the question's options.",
        "Give one of the labels, as it is written, or answer in other words with `--text`.",
    ),
    "archive-missing": Cause(
        "There is no prepared archive, or no manifest in it.",
        "Resume the release from the step that prepares it. A step that writes no `release.json` needs "
        '`manifest = "write"`.',
    ),
    "archive-link": Cause(
        "A link lies on the way to the prepared archive, or in it. Links are never followed there.",
        "Find who made it, and put the file or the directory itself in its place.",
    ),
    "archive-file-special": Cause(
        "Something in the prepared archive, or in its place, is neither a regular file nor a directory.",
        "Let the build leave nothing there but what is released.",
    ),
    "manifest-invalid": Cause(
        "The manifest of the prepared archive, `release.json`, is not one.",
        'Repair what writes it, or let it be written with `manifest = "write"`.',
    ),
    "archive-version": Cause(
        "The prepared archive is of another version, or no directory can be named after the version.",
        "Look who put it there. It was left as it is.",
    ),
    "archive-commit": Cause(
        "The prepared archive was built of another commit.",
        "Resume the release from the step that prepares it. What is not this run's own is left as it is.",
    ),
    "archive-file-missing": Cause(
        "A file that the manifest lists is not in the prepared archive.",
        "Resume the release from the step that prepares it.",
    ),
    "archive-file-changed": Cause(
        "A file in the prepared archive is not what the manifest lists.",
        "Find what changes files there, and resume the release from the step that prepares it.",
    ),
    "archive-file-unlisted": Cause(
        "Something lies in the prepared archive that the manifest does not list; an empty directory cannot be listed.",
        "Let the build leave nothing there but what is released.",
    ),
    "archive-changed": Cause(
        "What stands at the place of the archive is no longer what was looked at. Nothing was moved.",
        "Find who else works there, and try again.",
    ),
    "quarantine-cross-device": Cause(
        "The quarantine is on another file system than the archive, which can only be moved whole.",
        "Keep `releases` and the quarantine on one file system.",
    ),
    "quarantine-busy": Cause("Another program is setting this archive aside right now.", "Wait for its end."),
    "quarantine-unexplained": Cause(
        "A directory of the quarantine holds something, and no receipt says what.",
        "Look at it; it is preserved as it is.",
    ),
    **{code: Cause(meaning, next_step) for code, (meaning, next_step) in REROUTES.items()},
}  # fmt: skip
"""The codes of rules that say no; `nothing-collected` is among the causes."""

NOTES: dict[str, Cause] = {
    "carried": Cause(
        "An earlier gate of the same release judged the case; nothing that it depends on has changed since.",
        "`ledger resume --partial no` measures everything.",
    ),
    "load": Cause(
        "The test passed again, but only after an attempt at it ran out of time: it needs a machine that is not busy.",
        "Raise the time limit of the test, or make it faster.",
    ),
    "fails-differently": Cause(
        "The test fails on both sides, but not with the same message, so the change may hide behind an old failure.",
        "Compare the two messages with `ledger why TEST`.",
    ),
    "unstable-variant": Cause(
        "Only one side has this variant of the test, although the sides share others: its name may change by itself.",
        "Give the parameters fixed ids, without dates, numbers that shift or addresses.",
    ),
}
"""What else there is to say of a case; a note never changes a verdict."""

QUESTIONS: dict[str, Cause] = {
    "fact-resolvable": Cause(
        "Nobody was asked, because the step can find out by itself; it goes on with the option that it recommends.",
        "Look at what it assumed with `ledger questions`.",
    ),
    "low-impact": Cause(
        "Nobody was asked, because little depends on it; the step goes on with the option that it recommends.",
        "Look at what it assumed with `ledger questions`.",
    ),
    "question-pending": Cause(
        "Nobody was asked yet, because another question of the run is open.",
        "Answer that one; the step may ask again then.",
    ),
    "budget-used": Cause(
        "Nobody was asked, because this phase of the run has asked as often as it may.",
        "Raise `questions.intake_max`, `planning_max` or `execution_max` if people want to be asked more often.",
    ),
}
"""Why people are not asked what a step wants to know."""

_NEWER = "Replay it with the version of ledger that wrote it, or a newer one."
_VERIFY = "Look at both answers, and check the ledger against a head that was noted elsewhere."

DOUBTS: dict[str, Cause] = {
    "answer-differs": Cause("Decided again, it comes out otherwise than it is recorded.", _VERIFY),
    "message-foreign": Cause("The events name a message that was for something else.", _VERIFY),
    "plan-not-proved": Cause("The recorded plan loses, doubles or adds targets, or came too early.", _VERIFY),
    "message-missing": Cause("The events name no message that they could be decided from again.", _NEWER),
    "message-unknown": Cause("The message is not one that this build can read.", _NEWER),
    "event-unknown": Cause("There is an event, here or before, that this build does not know.", _NEWER),
    "policy-unknown": Cause("It was decided under a version of the policy that this build does not have.", _NEWER),
    "table-unknown": Cause("It was decided by a version of the table that this build does not have.", _NEWER),
    "planner-unknown": Cause("The plan is a partition, made by a planner that this build does not have.", _NEWER),
    "undecidable": Cause("The history is not one that a run can have, so no answer comes of it.", _VERIFY),
}
"""Why a replay does not agree; `evidence-damaged` is among the errors."""

UNKNOWNS: dict[str, Cause] = {
    "not-planned-yet": Cause("Nothing is planned yet.", "Wait until the tests of both sides are collected."),
    "planned-by-count": Cause(
        "The plan knows no times, because it was made by the number of tests alone.",
        "The next gate is planned by what this one measures; `ledger usage` says what is known.",
    ),
    "longer-than-planned": Cause(
        "What runs takes more than twice as long as expected.",
        "Look at what runs with `ledger status`; its deadline ends it at the latest.",
    ),
    "run-unfinished": Cause("The run is not finished.", "Ask again when it is, or resume it."),
    "duration-unknown": Cause(
        "An attempt left no record of how long it ran.", "`ledger query attempts` lists the attempts."
    ),
}
"""Why a time cannot be told, or not be judged."""

FULL: dict[str, Cause] = {code: Cause(meaning, next_step) for code, (meaning, next_step) in FULL_GATES.items()}
"""Why all of a gate is measured where a part might have been enough."""

HEALED: dict[str, Cause] = {code: Cause(meaning, next_step) for code, (meaning, next_step) in HEALING.items()}
"""What the program itself decides about a gate of a release, and why not something else."""
