"""THE decision table: what a case did on the candidate and on the baseline gives exactly one class and one effect.

Version `classes/1`. The table is `TABLE` below: rows are the candidate, columns the baseline. Cells in capitals block
(`UNM`: leave the case unmeasured), cells in small letters do not.

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
    "unmeasured",
]
Effect = Literal["none", "failed", "unmeasured"]

TABLE_VERSION = "classes/1"
CANDIDATE_STATES: tuple[CandidateState, ...] = (
    "passed", "failed", "skipped", "xfailed", "flaky", "vanished", "removed", "unmeasured",
)  # fmt: skip
BASELINE_STATES: tuple[BaselineState, ...] = (
    "passed", "failed", "skipped", "xfailed", "flaky", "absent", "uncollected", "unmeasured", "not-run",
)  # fmt: skip

_SHORT: dict[str, CaseClass] = {
    "pass": "passed", "INTR": "introduced", "preex": "preexisting", "fixed": "fixed", "NEWF": "new-test-failing",
    "VAN": "vanished", "gone": "vanished", "SKIP": "newly-skipped", "flaky": "flaky", "UNM": "unmeasured",
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

_FAILING = frozenset({"introduced", "new-test-failing", "newly-skipped"})


class Judgement(Struct, frozen=True):
    """The class of a case, its effect on the verdict, and the cell of the table that gave both."""

    case_class: CaseClass
    effect: Effect
    rule: str


def judge(candidate: CandidateState, baseline: BaselineState, *, flaky_blocks: bool = False) -> Judgement:
    """The one judgement for this pair of states; `flaky_blocks` is the policy `flaky = "block"`."""
    short = _CELLS[candidate, baseline]
    case_class = _SHORT[short]
    return Judgement(case_class, _effect(short, case_class, flaky_blocks), f"{candidate} x {baseline}")


def _effect(short: str, case_class: CaseClass, flaky_blocks: bool) -> Effect:
    if case_class == "unmeasured":
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
        marks = {"failed": "!", "unmeasured": "?", "none": ""}
        lines.append(f"{candidate} | " + " | ".join(marks[c.effect] + c.case_class for c in cells))
    return "\n".join(lines)


_CELLS = _parse(TABLE)
