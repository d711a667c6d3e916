"""What the reader is given and what it gives."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct, field

from commands.readers.junit.dialects import DIALECTS
from commands.readers.junit.rows import Rows
from ledger.tables import CaseRow, CaseTable, TargetRow
from ledger.values import Commit, Side, TestId

READER = "junit/1"

JUnitVerdict = Literal["accepted", "failed", "unmeasured"]


class Report(Struct, frozen=True):
    """One report of an attempt: a name for people, and its bytes in pieces, None without any; `absent` says why.

    The pieces may be asked for twice: for the beginning, and for the whole.
    """

    name: str
    chunks: Iterable[bytes] | None
    absent: str = "there is no such file"


class Expectations(Struct, frozen=True, kw_only=True):
    """What an attempt was to do.

    `planned` are its targets, None when nobody knows them. `cases` are the tests that were collected of a target
    before, as far as that is known. `may_skip` are the targets that need not execute anything. `root` is the directory
    that absolute paths in the report begin with, as the runner itself sees it.
    """

    planned: tuple[str, ...] | None
    cases: Mapping[str, frozenset[TestId]] = field(default_factory=dict)
    may_skip: frozenset[str] = frozenset()
    root: str = ""


class Trouble(Struct, frozen=True):
    """A reason code and its detail. `report` is the name of the report that it is about, "" when it is about none."""

    code: str
    detail: str
    report: str = ""


class TargetReading(Struct, frozen=True, kw_only=True):
    """One planned target. `cause` is the reason code of why the evidence for it is not complete, None when it is.

    A target with a failure is `failed` even when the evidence is not complete: nothing can take a failure back.
    `flags`: `flaky` (a try failed before one that passed), `skipped-only` (only skips are visible, which is permitted).
    """

    target: str
    verdict: Literal["passed", "failed", "unmeasured"]
    cause: str | None
    detail: str = ""
    cases: int = 0
    flags: tuple[str, ...] = ()


class Reading(Struct, frozen=True, kw_only=True):
    """What the reports of an attempt prove.

    `accepted`: every planned target was executed, nothing failed and nothing contradicts that. `failed`: a failure is
    proven, whatever else is wrong. `unmeasured`: anything else. `troubles` are about the attempt as a whole; each of
    them keeps every target without a failure from passing. `suggested` are profiles under which the counts would agree.
    """

    reader: str
    dialect: str
    profile: str
    verdict: JUnitVerdict
    troubles: tuple[Trouble, ...]
    targets: tuple[TargetReading, ...]
    rows: Rows
    suggested: tuple[str, ...]

    def cases(self) -> Iterator[CaseRow]:
        """Every test once, in byte order; those of unplanned targets too, but none of an unreadable report."""
        return self.rows.merged(DIALECTS[self.dialect].repeated)

    def table(self, side: Side, commit: Commit) -> CaseTable:
        """The reading as the document that evidence holds."""
        cases = tuple(self.cases())
        seconds = dict.fromkeys((one.target for one in self.targets), 0.0)
        for row in cases:
            if row.test.target in seconds:
                seconds[row.test.target] += row.duration_seconds
        targets = tuple(
            TargetRow(target=one.target, cause=one.cause, duration_seconds=seconds[one.target])
            for one in sorted(self.targets, key=lambda one: one.target)
        )
        return CaseTable(reader=self.reader, side=side, commit=commit, targets=targets, cases=cases)
