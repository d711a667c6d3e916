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

A *test file* is a target of the last gate whose name has the word test, tests, spec or specs in it. Of a project that
declares its targets by itself, it is any target. `__init__.py` and `conftest.py` never are test files: they are used
without being named.

*Inert* is Markdown that was no target, that lies at the top or in a directory with nothing but Markdown in it, outside
of directories of tests, fixtures, snapshots and data, and that no other file names unless that is Markdown, too.

What is measured again: the changed test files, and every target of which a case blocked, was not measured, was muted
or was flaky.
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
_NEVER_TESTS = ("__init__.py", "conftest.py")
_TEST_WORDS = frozenset({"test", "tests", "spec", "specs"})
_BETWEEN_WORDS = re.compile(r"[_.-]|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MARKDOWN = re.compile(r".+\.md")
_NEAR_TESTS = {"test", "tests", "fixtures", "__fixtures__", "__snapshots__", "__mocks__"}
_NOT_INERT_IN = _NEAR_TESTS | {"testdata", "data", "templates", "resources", "assets"}


class Prior(Struct, frozen=True, kw_only=True):
    """The last gate: its run, its commit, the evidence of its classes and of under what it was collected, the targets
    that it collected, and whether the project itself declares what is one."""

    gate: str
    commit: Commit
    classes: Digest
    targets: frozenset[str]
    key: Digest | None = None
    declared: bool = False


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
    `present` the files of the commit; `named_elsewhere` maps a changed test file to a file that names it, and changed
    Markdown to one that is none."""
    files = sorted(set(changed))
    if commit == prior.commit:
        return Full("same-commit")
    mixed = _mixed(present)
    tests = tuple(file for file in files if is_test_file(file, prior))
    used = prior.targets | named_elsewhere.keys()
    others = tuple(file for file in files if file not in tests and (file in used or not _is_inert(file, mixed)))
    if others:
        return Full("source-changed", others)
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


def is_test_file(file: str, prior: Prior) -> bool:
    """Whether no other test depends on a file unless it is named there. What was collected need not be one: a module
    with examples in its docstrings is collected as well."""
    name = file.rpartition("/")[2]
    if file not in prior.targets or name in _NEVER_TESTS:
        return False
    return prior.declared or not _TEST_WORDS.isdisjoint(word.lower() for word in _BETWEEN_WORDS.split(name))


def is_markdown(file: str) -> bool:
    """Whether a file is text for people, by its name."""
    return _MARKDOWN.fullmatch(file.rpartition("/")[2]) is not None and "\n" not in file


def _is_inert(file: str, mixed: Collection[str]) -> bool:
    """Whether no test depends on a file, as far as its place tells."""
    directory = file.rpartition("/")[0]
    return is_markdown(file) and directory not in mixed and _NOT_INERT_IN.isdisjoint(directory.split("/"))


def _mixed(present: Iterable[str]) -> frozenset[str]:
    """The directories below the top with something else than Markdown in them, however deep."""
    found: set[str] = set()
    for file in present:
        directory = "" if is_markdown(file) else file.rpartition("/")[0]
        while directory and directory not in found:
            found.add(directory)
            directory = directory.rpartition("/")[0]
    return frozenset(found)


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
