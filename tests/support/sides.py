"""One side of a gate in short: files, what their tests do, and what was measured of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ledger.tables import CaseRow, CaseTable, InventoryTarget
from ledger.values import Side, TestId
from projections.gate.cases import JoinedCase, SideEvidence, index, join
from tests.support.makers import case, case_row, case_table, inventory, inventory_target


@dataclass(frozen=True)
class File:
    """A target of one side.

    `tests` maps the name of each collected test (`name` or `name[variant]`) to what it reports: an outcome, `rerun` for
    a pass after a failed try, or None for a test that does not report. `extra` are tests that only the run knows of.
    `error`: the whole file could not be collected. `broken`: the class in it that could not.
    """

    tests: Mapping[str, str | None] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    blob: str | None = "blob-1"
    error: str | None = None
    broken: str = ""
    skipped: str | None = None


Files = Mapping[str, File]


def inventory_targets(files: Files) -> list[InventoryTarget]:
    """The files as a collection finds them, in byte order."""
    return [
        inventory_target(
            target, *file.tests, blob=file.blob, error=file.error or file.broken or None, skipped=file.skipped
        )
        for target, file in sorted(files.items())
    ]


def rows_of(target: str, file: File) -> list[CaseRow]:
    """What the tests of a file report, and its collection, when that is all that there is to report."""
    rows = [row(case(f"{target}::{name}"), told) for name, told in {**file.tests, **file.extra}.items() if told]
    if file.error is not None:
        rows.append(case_row(TestId(target), "error"))
    if file.broken:
        rows.append(case_row(TestId(target, (file.broken,)), "error"))
    return rows


def row(test: TestId, told: str) -> CaseRow:
    """A reported test; `rerun` is a pass after a failed try."""
    return case_row(test, "passed", reruns=1) if told == "rerun" else case_row(test, told)


def table_of(side: Side, files: Files, unmeasured: Mapping[str, str] | None = None) -> CaseTable:
    """The table of one attempt on all of the files; `unmeasured` are those that it did not come past."""
    causes = {target: (unmeasured or {}).get(target) for target in files}
    return case_table(side, causes, [one for target, file in files.items() for one in rows_of(target, file)])


def evidence(
    side: Side,
    files: Files,
    *,
    missing: Mapping[str, str] | None = None,
    not_run: Iterable[str] = (),
    tables: tuple[CaseTable, ...] | None = None,
) -> SideEvidence:
    """A side, measured by one attempt but for what is missing or was not run; or by the attempts with these tables."""
    left_out = set(not_run)
    ran = {target: file for target, file in files.items() if target not in left_out}
    return SideEvidence(
        inventory=inventory(side, *inventory_targets(files)),
        tables=(table_of(side, ran, missing),) if tables is None else tables,
        missing=missing or {},
        not_run=frozenset(left_out),
    )


def joined(candidate: SideEvidence | Files, baseline: SideEvidence | Files) -> list[JoinedCase]:
    """The cases of both sides."""
    ours = candidate if isinstance(candidate, SideEvidence) else evidence("candidate", candidate)
    theirs = baseline if isinstance(baseline, SideEvidence) else evidence("baseline", baseline)
    return join(index(ours), index(theirs))


def states(candidate: SideEvidence | Files, baseline: SideEvidence | Files) -> dict[str, tuple[str, str]]:
    """The states of each case on both sides, by its name."""
    return {one.test.text(): (one.candidate, one.baseline) for one in joined(candidate, baseline)}
