"""The cases of a report in groups, what blocks first: of each kind the first ones, and how many there are."""

import re

from msgspec import Struct, field

from commands.render.reports.report import Report, failed_tries, remarks
from commands.render.summary import CLASS_ORDER
from ledger.tables import ClassRow
from ledger.values import TestId
from projections.queries.tries import UNDECIDED, TriedCase

MOST_ENTRIES = 1000
"""So many entries of each list are kept; of the rest only the number."""


class Entry(Struct):
    """A test, or a target with all of its tests that were not measured (`cases`); what was seen of it, what there is to
    say besides its class (`remarks`), and where in its file it failed, as far as its message tells."""

    test: str
    target: str
    line: str
    remarks: str = ""
    message: str = ""
    file_line: int | None = None
    cases: int = 1


class Group(Struct):
    """Cases of one class and one effect; unmeasured ones also of one reason code. `total` is how many entries there
    are, `entries` the first of them."""

    effect: str
    case_class: str
    cause: str
    total: int = 0
    entries: list[Entry] = field(default_factory=list)
    newest: str | None = None


def groups_of(report: Report) -> list[Group]:
    """Every list that is not empty: what blocks, what could not be measured, then what is worth knowing."""
    groups: dict[tuple[str, str, str], Group] = {}
    empty = True
    for case in report.cases:
        empty = False
        row = case.row
        if row.case_class != "passed" and _worth_telling(row):
            key = (row.effect, row.case_class, row.cause)
            _add(groups.setdefault(key, Group(*key)), case)
    if empty:
        _add_whole_sides(groups, report)
    return sorted(groups.values(), key=_rank)


def _worth_telling(row: ClassRow) -> bool:
    """Without a verdict only what failed so far."""
    return row.cause != UNDECIDED or row.candidate in ("failed", "error")


def _add(wanted: Group, case: TriedCase) -> None:
    row = case.row
    if row.candidate == "unmeasured":
        # A target that was not measured is listed once, however many tests it has.
        if wanted.newest == row.test.target:
            wanted.entries[-1].cases += len(wanted.entries) == wanted.total
            return
        wanted.newest = row.test.target
    wanted.total += 1
    if wanted.total <= MOST_ENTRIES:
        wanted.entries.append(_entry(case))


def _entry(case: TriedCase) -> Entry:
    row = case.row
    if row.candidate == "unmeasured":
        return Entry(TestId(row.test.target).text(), row.test.target, "")
    message = next((one.row.message for one in failed_tries(case) if one.row), "")
    place = failing_line(row.test.target, message)
    return Entry(row.test.text(), row.test.target, row.line, remarks(row), message, place)


def failing_line(target: str, message: str) -> int | None:
    """The line of the file at which a message says that it failed, the last one that it names; None without any."""
    found = re.findall(rf"^{re.escape(target)}:([1-9][0-9]{{0,6}}):", message, re.MULTILINE)
    return int(found[-1]) if found else None


def _add_whole_sides(groups: dict[tuple[str, str, str], Group], report: Report) -> None:
    """What was not measured as a whole, such as the collection of a side, where there is no case at all."""
    for judged in report.summary.unmeasured:
        key = ("unmeasured", "unmeasured", judged.line)
        wanted = groups.setdefault(key, Group(*key))
        wanted.total += 1
        wanted.entries.append(Entry(judged.test, "", ""))


def _rank(one: Group) -> tuple[int, int, str, str]:
    effects, classes = ("failed", "unmeasured", "none"), CLASS_ORDER
    effect = effects.index(one.effect) if one.effect in effects else 1
    place = classes.index(one.case_class) if one.case_class in classes else len(classes)
    return effect, place, one.case_class, one.cause
