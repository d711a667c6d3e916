"""What a partial gate measures again beside what the original plans: where they differ a listed rule says why, and it
is counted.

Here it is stricter in what no vector shows: a changed test file that another file names may be used from there, so all
is measured. And it knows its test files as what the last gate collected, as far as their names say so, where the
original knows them by a pattern.
"""

import re
from collections import Counter
from typing import Any

from ledger.events import RecheckPlanned
from ledger.tables import ClassRow, ClassTable
from ledger.values import TestId
from projections.reuse.partial import Full, Prior, carried_rows, plan_partial
from tests.commands.original.vectors import vectors

WHY = {
    "commits are what git says": "The original looks whether a commit has forty digits; here none comes from a text.",
    "no path is read from a name": "The original refuses a failure whose name begins with no path that it likes.",
}

PLANNED = {"agree": 62, "commits are what git says": 7, "no path is read from a name": 2}
MERGED = {"agree": 20, "no path is read from a name": 2}
NO_COUNTERPART = 12
"""Vectors about reading the file out of a test's name: a test is known by its target and its path here."""

_TEST_FILE = re.compile(r"[\w./-]+\.test\.(tsx?|jsx?|mts|cts)", re.ASCII)
_REASONS = {
    "same-commit": "no new commit since the prior gate",
    "source-changed": "non-test change \u2192 full gate: ",
    "nothing-to-recheck": "nothing to re-run",
}

Vector = dict[str, Any]


def of(function: str) -> list[Vector]:
    return [vector for vector in vectors("gate-partial") if vector["input"]["fn"] == function]


def identity(name: str) -> TestId:
    target, _, path = name.partition(" > ")
    return TestId(target, (path,))


def rows_of(names: list[str], case_class: str, effect: str) -> list[ClassRow]:
    return [
        ClassRow(
            test=identity(name),
            candidate="failed",
            baseline="passed",
            case_class=case_class,
            effect=effect,
            rule="a row",
        )
        for name in names
    ]


def planned(vector: Vector) -> RecheckPlanned | Full:
    given = vector["input"]["input"]
    rows = [
        *rows_of(given["priorFailures"], "introduced", "failed"),
        *rows_of(given["priorErrors"], "unmeasured", "unmeasured"),
    ]
    changed = given["changedFiles"]
    targets = {row.test.target for row in rows}
    collected = targets | {file for file in changed if _TEST_FILE.fullmatch(file)}
    prior = Prior(gate="gate", commit=given["priorCommit"], classes="0" * 64, targets=frozenset(collected))
    table = ClassTable(table="classes/2", rows=tuple(rows))
    return plan_partial(prior, table, given["forCommit"], changed, targets | set(changed), {})


def plan_difference(vector: Vector) -> str:
    """The name of what is different, "agree" when nothing is."""
    ours, theirs = planned(vector), vector["output"]
    if theirs["ok"]:
        same = isinstance(ours, RecheckPlanned) and list(ours.targets) == theirs["plan"]["files"]
        return "agree" if same else "something else"
    if theirs["reason"] == "commit is not a full sha":
        return "commits are what git says"
    if theirs["reason"].startswith("unsafe test path"):
        return "no path is read from a name"
    if isinstance(ours, RecheckPlanned) or not theirs["reason"].startswith(_REASONS[ours.reason]):
        return "something else"
    named = theirs["reason"].removeprefix(_REASONS[ours.reason])
    return "agree" if not ours.files or sorted(named.split(", ")) == list(ours.files) else "something else"


def merge_difference(vector: Vector) -> str:
    """The name of what is different in what is then known, "agree" when nothing is."""
    plan, measured = vector["input"]["plan"], vector["input"]["measured"]
    if "error" in vector:
        return "no path is read from a name"
    for kind, names in (("failures", plan["priorFailures"]), ("errors", plan["priorErrors"])):
        table = ClassTable(table="classes/2", rows=tuple(rows_of(names, "introduced", "failed")))
        kept = [row.test for row in carried_rows(table, plan["files"])]
        if [*kept, *map(identity, measured[kind])] != [*map(identity, vector["output"][kind])]:
            return "something else"
    return "agree"


def test_every_difference_to_the_original_is_a_known_one() -> None:
    plans, merges = Counter(map(plan_difference, of("plan"))), Counter(map(merge_difference, of("merge")))
    assert plans == PLANNED
    assert merges == MERGED
    assert (set(plans) | set(merges)) - {"agree"} == set(WHY)
    assert len(of("testFileOfId")) == NO_COUNTERPART


def test_where_the_original_measures_all_so_is_it_here_but_for_names_and_commits_that_it_cannot_read() -> None:
    for vector in of("plan"):
        if not vector["output"]["ok"] and plan_difference(vector) == "agree":
            assert isinstance(planned(vector), Full), vector["id"]


def test_a_test_file_that_is_named_elsewhere_is_measured_in_full_where_the_original_measures_a_part() -> None:
    stricter = 0
    for vector in of("plan"):
        part = planned(vector)
        if isinstance(part, RecheckPlanned) and part.changed:
            given = vector["input"]["input"]
            prior = Prior(gate="gate", commit=part.commit, classes=part.classes, targets=frozenset(part.targets))
            table = ClassTable(table="classes/2", rows=())
            named = {part.changed[0]: "conftest.ts"}
            found = plan_partial(prior, table, given["forCommit"], part.changed, set(part.targets), named)
            assert found == Full("test-named-elsewhere", (part.changed[0],))
            stricter += 1
    assert stricter > 0
