"""What the tests of the JUnit reader share: ends of processes, reports from bytes, and the data with its truths."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from commands.executors.api import End, JobEnd
from commands.readers.junit import Expectations, Reading, Report, read_reports

TESTS = Path(__file__).parents[2]
REAL = TESTS / "junit" / "real"
CASES = TESTS / "junit" / "cases"
VECTORS = TESTS / "vectors"


def ended(exit_code: int | None = 0, *, end: End = "exited", signal: int | None = None) -> JobEnd:
    """The end of a process."""
    return JobEnd(
        name="job", end=end, exit_code=exit_code, signal=signal, started_at="", duration_seconds=0.0,
        peak_memory_bytes=None, memory_method="",
    )  # fmt: skip


def reading_of(
    *documents: str | bytes | None,
    planned: Iterable[str] | None = ("t.x",),
    exit_code: int | None = 0,
    dialect: str | None = None,
    profile: str | None = None,
    **expected: Any,
) -> Reading:
    """The reading of documents that are given as they are; None stands for a report that was never written."""
    reports = [
        Report(f"report-{number}.xml", None if one is None else (one.encode() if isinstance(one, str) else one,))
        for number, one in enumerate(documents, 1)
    ]
    expectations = Expectations(planned=None if planned is None else tuple(planned), **expected)
    return read_reports(reports, ended(exit_code), expectations, dialect=dialect, profile=profile)


def suite(cases: str, counts: str = "", file: str = "t.x") -> str:
    """A report of one suite with these cases."""
    return f'<testsuites><testsuite name="s" file="{file}" {counts}>{cases}</testsuite></testsuites>'


def codes(reading: Reading) -> set[str]:
    """Every reason code of a reading."""
    return {one.code for one in reading.troubles} | {one.cause for one in reading.targets if one.cause}


def truth(folder: Path, name: str) -> dict[str, Any]:
    """What a person found out about a folder of reports."""
    found = json.loads((folder / name).read_text("utf-8"))
    assert isinstance(found, dict)
    return found
