"""THE decision table: what a case did on the candidate, on the baseline and when it was run again gives exactly one
class and one effect.

Version `classes/1` is `TABLE` below: rows are the candidate, columns the baseline. Cells in capitals block (`UNM`:
leave the case unmeasured), cells in small letters do not. Version `classes/2`, for runs that run new failures again, is
the same table with a third dimension, `RERUNS`: what the cells of a new failure become by what its re-runs showed.

How to read it:
- *failed* is a failure or an error anywhere in the case; *flaky* failed and then passed, within one attempt, or after
  an attempt that saw it fail and did not measure its target.
- *vanished*: the case is not collected any more although its file is byte-identical on both sides and no variant of the
  test is left. *removed*: it is gone and its file changed; shown as vanished, without effect.
- *absent*: the baseline has no such case, which was proven. *uncollected*: its file, or the class in it, could not be
  collected there.
- *not-run*: the policy did not run the baseline, because the candidate gave no reason to compare.
- A skip (or an expected failure) of a case that passed before blocks, because it would hide a breakage.
- A failure is exonerated only by a complete measurement of the baseline.
- *failed-again*: what failed fails again, alone; or, where it fails alone on the baseline too, among the same others.
- *failed-among-others*: it passes alone, and fails again among the same others. *passed-again*: not even there.
- *unresolved*: a re-run that would tell was not read, or ran out of time. It is never taken for a pass.
- Without a re-run (*none*) a new failure is what it looks like.
"""

from typing import Literal

from msgspec import Struct

CandidateState = Literal["passed", "failed", "skipped", "xfailed", "flaky", "vanished", "removed", "unmeasured"]
BaselineState = Literal[
    "passed", "failed", "skipped", "xfailed", "flaky", "absent", "uncollected", "unmeasured", "not-run"
]
CaseClass = Literal[
    "passed",
    "introduced",
    "preexisting",
    "fixed",
    "new-test-failing",
    "vanished",
    "newly-skipped",
    "flaky",
    "interference",
    "unresolved",
    "unmeasured",
]
RerunState = Literal["none", "failed-again", "failed-among-others", "passed-again", "unresolved"]
Effect = Literal["none", "failed", "unmeasured"]

WITHOUT_RERUNS, WITH_RERUNS = "classes/1", "classes/2"
TABLE_VERSIONS = (WITHOUT_RERUNS, WITH_RERUNS)
"""Every version of the table that this build decides by; the policy of a run says by which."""

CANDIDATE_STATES: tuple[CandidateState, ...] = (
    "passed", "failed", "skipped", "xfailed", "flaky", "vanished", "removed", "unmeasured",
)  # fmt: skip
BASELINE_STATES: tuple[BaselineState, ...] = (
    "passed", "failed", "skipped", "xfailed", "flaky", "absent", "uncollected", "unmeasured", "not-run",
)  # fmt: skip
RERUN_STATES: tuple[RerunState, ...] = ("none", "failed-again", "failed-among-others", "passed-again", "unresolved")
NEW_FAILURES: tuple[CaseClass, ...] = ("introduced", "new-test-failing")
"""The classes of failures that a run looks at again."""

_SHORT: dict[str, CaseClass] = {
    "pass": "passed", "INTR": "introduced", "preex": "preexisting", "fixed": "fixed", "NEWF": "new-test-failing",
    "VAN": "vanished", "gone": "vanished", "SKIP": "newly-skipped", "flaky": "flaky", "UNM": "unmeasured",
    "INTERF": "interference", "UNRES": "unresolved",
}  # fmt: skip

TABLE = """
candidate   passed  failed  skipped xfailed flaky   absent  uncollected unmeasured not-run
passed      pass    fixed   pass    fixed   pass    pass    fixed       pass       pass
failed      INTR    preex   NEWF    INTR    INTR    NEWF    preex       UNM        UNM
skipped     SKIP    preex   pass    pass    SKIP    pass    pass        UNM        UNM
xfailed     SKIP    preex   pass    pass    SKIP    pass    pass        UNM        UNM
flaky       flaky   flaky   flaky   flaky   flaky   flaky   flaky       flaky      flaky
vanished    VAN     VAN     VAN     VAN     VAN     UNM     UNM         VAN        VAN
removed     gone    gone    gone    gone    gone    UNM     UNM         gone       gone
unmeasured  UNM     UNM     UNM     UNM     UNM     UNM     UNM         UNM        UNM
"""

RERUNS = """
rerun                INTR    NEWF
none                 INTR    NEWF
failed-again         INTR    NEWF
failed-among-others  INTERF  INTERF
passed-again         flaky   flaky
unresolved           UNRES   UNRES
"""

_FAILING = frozenset({"introduced", "new-test-failing", "newly-skipped"})
_UNMEASURED = frozenset({"unmeasured", "unresolved", "interference"})


class Judgement(Struct, frozen=True):
    """The class of a case, its effect on the verdict, and the cell of the table that gave both."""

    case_class: CaseClass
    effect: Effect
    rule: str


def judge(
    candidate: CandidateState, baseline: BaselineState, rerun: RerunState = "none", *, flaky_blocks: bool = False
) -> Judgement:
    """The one judgement for these states; `flaky_blocks` is the policy `flaky = "block"`.

    Re-runs say nothing of a case that is no new failure.
    """
    short, rule = _CELLS[candidate, baseline], f"{candidate} x {baseline}"
    if _SHORT[short] in NEW_FAILURES and rerun != "none":
        short, rule = _RERUN_CELLS[rerun, short], f"{rule} x {rerun}"
    case_class = _SHORT[short]
    return Judgement(case_class, _effect(short, case_class, flaky_blocks), rule)


def _effect(short: str, case_class: CaseClass, flaky_blocks: bool) -> Effect:
    if case_class in _UNMEASURED:
        return "unmeasured"
    if case_class in _FAILING or short == "VAN" or (case_class == "flaky" and flaky_blocks):
        return "failed"
    return "none"


def _parse(table: str) -> dict[tuple[str, str], str]:
    header, *rows = (line.split() for line in table.strip().splitlines())
    return {(row[0], column): cell for row in rows for column, cell in zip(header[1:], row[1:], strict=True)}


def printed_table() -> str:
    """The table for documentation and `ledger why`: `!` marks what blocks, `?` what leaves a case unmeasured."""
    lines = ["candidate \\ baseline | " + " | ".join(BASELINE_STATES)]
    for candidate in CANDIDATE_STATES:
        cells = (judge(candidate, baseline) for baseline in BASELINE_STATES)
        lines.append(f"{candidate} | " + " | ".join(map(_printed, cells)))
    return "\n".join(lines)


def printed_reruns() -> str:
    """What re-runs make of each class of a new failure, printed as the table is."""
    examples: tuple[BaselineState, ...] = ("passed", "absent")
    lines = ["re-run \\ class | " + " | ".join(NEW_FAILURES)]
    for rerun in RERUN_STATES:
        cells = (judge("failed", baseline, rerun) for baseline in examples)
        lines.append(f"{rerun} | " + " | ".join(map(_printed, cells)))
    return "\n".join(lines)


def _printed(judgement: Judgement) -> str:
    return {"failed": "!", "unmeasured": "?", "none": ""}[judgement.effect] + judgement.case_class


_CELLS = _parse(TABLE)
_RERUN_CELLS = _parse(RERUNS)
