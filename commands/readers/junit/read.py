"""Reads the reports of one attempt: what they, and the end of its process, prove."""

from collections.abc import Iterable, Iterator, Sequence

from commands.executors.api import JobEnd
from commands.readers.junit.completeness import (
    end_troubles,
    exit_contradictions,
    plan_troubles,
    target_readings,
    verdict_of,
)
from commands.readers.junit.dialects import DIALECTS, GENERIC, Dialect, recognised
from commands.readers.junit.document.encoding import Unreadable, recoded
from commands.readers.junit.document.parser import first_values, parse
from commands.readers.junit.gather import Gatherer, Record
from commands.readers.junit.locate import Locator
from commands.readers.junit.profiles import PROFILES, STRICT
from commands.readers.junit.reading import READER, Expectations, Reading, Report, Trouble
from commands.readers.junit.rows import Rows, numbered
from ledger.values import TestId


def read_reports(
    reports: Sequence[Report],
    end: JobEnd,
    expectations: Expectations,
    *,
    dialect: str | None = None,
    profile: str | None = None,
) -> Reading:
    """Read all reports of one attempt, whose process came to `end`.

    `dialect` and `profile` are names of DIALECTS and PROFILES. Without a dialect the first report is looked at for
    one, which decides where targets and names are found and what exit codes mean; a profile is never chosen.
    """
    spoken = DIALECTS[dialect] if dialect else _recognised(reports)
    meaning = PROFILES[profile] if profile else STRICT
    rows = Rows()
    locator = Locator(spoken, expectations.planned or (), expectations.root)
    troubles, gathered = [], []
    for report in reports:
        result = _read(report, Gatherer(spoken, meaning, locator, rows), rows)
        if isinstance(result, Trouble):
            troubles.append(result)
        else:
            gathered.append(result)
            troubles += [
                Trouble(code, detail, report.name)
                for code, detail in result.troubles.items()
                # Where nobody knows what was to run, nothing can be foreign to it.
                if expectations.planned is not None or code not in ("foreign-tests", "cases-unattributed")
            ]
    if not reports:
        troubles.append(Trouble("report-missing", "there is no report"))
    failing = sum(one.failing for one in gathered)
    # A process that came to no ordinary end explains what is wrong with its reports; a contradiction between its
    # exit code and its cases may be explained by them.
    troubles = [*end_troubles(end, spoken), *troubles, *exit_contradictions(end, spoken, failing)]
    troubles += plan_troubles(expectations)
    missing = _missing(rows, expectations, spoken) if expectations.cases else {}
    targets = target_readings(expectations, _together(gathered), missing, troubles)
    return Reading(
        reader=READER,
        dialect=spoken.name,
        profile=meaning.name,
        verdict=verdict_of(failing, targets, troubles),
        troubles=tuple(troubles),
        targets=targets,
        rows=rows,
        suggested=_suggested(gathered),
    )


def _recognised(reports: Sequence[Report]) -> Dialect:
    for report in reports:
        if report.chunks is not None:
            return recognised(first_values(recoded(report.chunks)))
    return GENERIC


def _read(report: Report, gatherer: Gatherer, rows: Rows) -> Gatherer | Trouble:
    """What one report says, or why it cannot be read; in that case it has left nothing behind."""
    if report.chunks is None:
        return Trouble("report-missing", report.absent, report.name)
    mark = rows.mark()
    try:
        parse(recoded(report.chunks), gatherer)
    except Unreadable as error:
        rows.back_to(mark)
        return Trouble(error.code, error.detail, report.name)
    return gatherer


def _together(gathered: Iterable[Gatherer]) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for one in gathered:
        for target, record in one.records.items():
            records.setdefault(target, Record()).add(record)
    return records


def _missing(rows: Rows, expectations: Expectations, dialect: Dialect) -> dict[str, frozenset[TestId]]:
    """The cases that were collected before and are in no report, per target."""
    missing = {target: set(cases) for target, cases in expectations.cases.items()}
    for test in _tests(rows, dialect):
        if test.target in missing:
            missing[test.target].discard(test)
    return {target: frozenset(tests) for target, tests in missing.items() if tests}


def _tests(rows: Rows, dialect: Dialect) -> Iterator[TestId]:
    seen: dict[TestId, int] = {}
    for row in rows.all():
        number = seen[row.test] = seen.get(row.test, 0) + 1
        yield numbered(row.test, number) if dialect.repeated == "numbered" else row.test


def _suggested(gathered: Iterable[Gatherer]) -> tuple[str, ...]:
    """The profiles of this dialect under which the counts of every report would agree, if any do not."""
    fitting = [one.suggested for one in gathered if one.suggested is not None]
    return tuple(sorted(set.intersection(*fitting))) if fitting else ()
