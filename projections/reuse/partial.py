"""Which part of a gate is measured again when only tests have changed since the last one; the rest is carried.

A gate is measured in part only when every changed file is a test file or inert. First match wins:

| found                                                        | answer                         |
|---|---|
| the two commits are the same                                 | full: `same-commit`            |
| a changed file is neither a test file nor inert              | full: `source-changed`         |
| a changed test file is named in another file                 | full: `test-named-elsewhere`   |
| nothing changed that is a test, and nothing was left unsettled | full: `nothing-to-recheck`   |
| none of the targets is there any more                        | full: `nothing-to-recheck`     |
| otherwise                                                    | partial                        |

A *test file* is one that the last gate collected as a target. *Inert* is Markdown outside of directories of tests,
fixtures and snapshots. What is measured again: the changed test files, and every target of which a case blocked, was
not measured, was muted or was flaky.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ledger.events import RecheckPlanned
from ledger.tables import ClassRow, ClassTable, Inventory
from ledger.values import Commit, Digest, TestId

CARRIED = "carried"
"""The note on a case that was judged by an earlier gate."""

_NOT_THERE = ("removed", "vanished")
_INERT = re.compile(r".+\.md")
_NOT_INERT_IN = frozenset({"test", "tests", "fixtures", "__fixtures__", "__snapshots__", "__mocks__"})


class Prior(Struct, frozen=True, kw_only=True):
    """The last gate: its run, its commit, the evidence of its classes and of under what it was collected, and the
    targets that it collected."""

    gate: str
    commit: Commit
    classes: Digest
    targets: frozenset[str]
    key: Digest | None = None


class Full(Struct, frozen=True):
    """Everything is measured; the stable code of why, and the files that it is about."""

    reason: str
    files: tuple[str, ...] = ()

    def words(self) -> str:
        """The reason with the first of its files."""
        more = f" and {len(self.files) - 3} more" if len(self.files) > 3 else ""
        return f"{self.reason} ({', '.join(self.files[:3])}{more})" if self.files else self.reason


def plan_partial(
    prior: Prior,
    table: ClassTable,
    commit: Commit,
    changed: Iterable[str],
    present: Collection[str],
    named_elsewhere: Mapping[str, str],
) -> RecheckPlanned | Full:
    """What is measured again on this commit. `changed` are the files that differ, renames as both of their names;
    `present` the files of the commit; `named_elsewhere` maps a changed test file to a file that names it."""
    files = sorted(set(changed))
    if commit == prior.commit:
        return Full("same-commit")
    others = tuple(file for file in files if file not in prior.targets and not is_inert(file))
    if others:
        return Full("source-changed", others)
    tests = tuple(file for file in files if file in prior.targets)
    named = tuple(file for file in tests if file in named_elsewhere)
    if named:
        return Full("test-named-elsewhere", named)
    left = unsettled(table)
    targets = tuple(sorted({*tests, *left}))
    if not any(target in present for target in targets):
        return Full("nothing-to-recheck")
    return RecheckPlanned(
        gate=prior.gate,
        commit=prior.commit,
        classes=prior.classes,
        targets=targets,
        changed=tests,
        unsettled=left,
        key=prior.key,
    )


def is_inert(file: str) -> bool:
    """Whether no test can depend on a file: Markdown that no test is kept near to."""
    *directories, name = file.split("/")
    return _INERT.fullmatch(name) is not None and "\n" not in file and not _NOT_INERT_IN & set(directories)


def unsettled(table: ClassTable) -> tuple[str, ...]:
    """The targets with a case that did not simply settle, in byte order."""
    return tuple(sorted({row.test.target for row in table.rows if not _settled(row)}))


def _settled(row: ClassRow) -> bool:
    return row.effect == "none" and row.mute is UNSET and row.case_class not in ("flaky", "unmeasured", "unresolved")


def measured_again(
    recheck: RecheckPlanned, table: ClassTable, candidate: Inventory, baseline: Inventory, *, alike: bool = True
) -> frozenset[str]:
    """The targets that are measured again, now that both sides were collected: those of the plan, and those of which
    the last gate tells something else than the collections. All of them when nothing of the plan is there any more, and
    when they are not collected under `alike` circumstances."""
    judged = {row.test for row in table.rows}
    known = {test.target for test in judged}
    there = {target.target for target in candidate.targets}
    again = {*recheck.targets, *((there | {target.target for target in baseline.targets}) - known)}
    again.update(
        row.test.target for row in table.rows if row.candidate not in _NOT_THERE and row.test.target not in there
    )
    for target in candidate.targets:
        collected = (*target.cases, *([TestId(target.target)] if target.error is not None else []))
        if not judged.issuperset(collected):
            again.add(target.target)
    return frozenset(again if alike and again & there else known | again | there)


def narrowed(inventory: Inventory, again: Collection[str]) -> Inventory:
    """The part of an inventory that is measured."""
    targets = tuple(one for one in inventory.targets if one.target in again)
    return Inventory(side=inventory.side, commit=inventory.commit, targets=targets)


def carried_rows(table: ClassTable, again: Collection[str]) -> tuple[ClassRow, ...]:
    """The judgements that still count: those of targets that are not measured again, with a note that says so."""
    return tuple(replace(row, note=CARRIED) for row in table.rows if row.test.target not in again)
