"""What a report is made of, and how each class of a case is told in it."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from commands.causes import CAUSES
from ledger.tables import ClassRow
from projections.gate.cases import UNTRUSTED
from projections.queries.tries import UNDECIDED, TriedCase, Try
from projections.run.summary import RunSummary

Shown = Literal["passed", "failure", "error", "skipped"]
"""How a case is shown to tools that know nothing but these four."""

MEANING: dict[str, str] = {
    "introduced": "it fails, and passed on the baseline",
    "new-test-failing": "it fails, and no run on the baseline can excuse that",
    "vanished": "it is gone, although its file did not change",
    "newly-skipped": "it is skipped, and ran on the baseline",
    "flaky": "it failed and passed without a change",
    "interference": "it fails only together with other tests",
    "unresolved": "running it again gave no answer",
    "preexisting": "it fails, and failed on the baseline too",
    "muted": "it fails, and is muted",
    "fixed": "it passes, and failed on the baseline",
}


class Report(Struct, frozen=True):
    """A run, the name and version of the table that its verdict was taken by ("" without a verdict), and its cases,
    which can be taken once."""

    summary: RunSummary
    table: str
    cases: Iterable[TriedCase]

    @property
    def decided(self) -> bool:
        """Whether the run has a verdict."""
        return self.summary.verdict is not None


def shown(row: ClassRow) -> Shown | None:
    """How a case is shown; None when the candidate does not have it and that has no effect. First match wins:

    | effect     | class, or state of the candidate | shown as |
    |---|---|---|
    | failed     | any                              | failure  |
    | not "none" | any                              | error    |
    | none       | vanished, removed                | -        |
    | none       | class flaky; passed, flaky       | passed   |
    | none       | any other                        | skipped  |

    A failure that does not block (preexisting, muted) is therefore a skip: as a failure it would make the build red
    that the gate lets pass, and as a pass it would be forgotten.
    """
    if row.effect == "failed":
        return "failure"
    if row.effect != "none":
        return "error"
    if row.candidate in ("vanished", "removed"):
        return None
    return "passed" if row.case_class == "flaky" or row.candidate in ("passed", "flaky") else "skipped"


def failed_tries(case: TriedCase) -> Iterator[Try]:
    """The tries in which the candidate failed the case, without those that leave doubt what they ran."""
    for one in case.tries:
        if (
            one.side == "candidate"
            and one.row
            and one.row.outcome in ("failed", "error")
            and one.cause not in UNTRUSTED
        ):
            yield one


def remarks(row: ClassRow) -> str:
    """What there is to say of a case besides its class: the muting that was used, and the note; "" for nothing."""
    return ", ".join(remark for remark in (row.mute, row.note) if remark)


def class_words(row: ClassRow) -> str:
    """The class of a case with the remarks on it."""
    return f"{row.case_class} ({remarks(row)})" if remarks(row) else row.case_class


def what_to_do(cause: str) -> str:
    """What a reason code means and what to do about it, "" for an unknown one."""
    if cause == UNDECIDED:
        return "The run has no verdict yet, so nobody knows what this means."
    known = CAUSES.get(cause)
    return f"{known.meaning} {known.next_step}" if known else ""
