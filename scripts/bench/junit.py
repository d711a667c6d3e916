"""The strict JUnit reader beside its limits: as fast as junitparser on the same file, in a small and bounded memory.

Where junitparser cannot be imported, a full tree of lxml stands in for it, of which the same is asked.
Usage: python scripts/bench/junit.py. Exit code 1 over a limit.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands.executors.api import JobEnd
from commands.readers.junit import Expectations, Reading, Report, read_reports
from scripts.bench.measuring.lib import Watch, compare, report

CASES = 100_000
TARGETS = 200
FAILING_EVERY = 100
CHUNK_BYTES = 2**16
OUTPUT_BYTES = 2000
MEMORY_BYTES_MAX = 60 * 10**6
CASE_BYTES_MAX = 100


class Chunks:
    """The bytes of a file in pieces."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        with self.file.open("rb") as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk


def write(file: Path, cases: int, output_bytes: int) -> None:
    """A report as pytest writes it, one case in a hundred failing, with so much output for each case."""
    line = "a line of output\n"
    output = f"<system-out>{line * (output_bytes // len(line))}</system-out>" if output_bytes else ""
    failure = '<failure message="assert 1 == 2">Traceback\n  assert 1 == 2\nE assert 1 == 2</failure>'
    failures = -(-cases // FAILING_EVERY)
    with file.open("w", encoding="utf-8") as report_file:
        report_file.write('<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">')
        report_file.write(f'<testsuite name="pytest" tests="{cases}" failures="{failures}" errors="0" skipped="0">')
        for number in range(cases):
            module = number % TARGETS
            report_file.write(
                f'<testcase classname="tests.test_{module:03}" name="test_number_{number}" '
                f'file="tests/test_{module:03}.py" line="{number}" time="0.001">'
                f"{failure if number % FAILING_EVERY == 0 else ''}{output}</testcase>"
            )
        report_file.write("</testsuite></testsuites>")


def read(file: Path) -> Reading:
    """Read a report strictly; it must come out as it was written."""
    end = JobEnd(
        name="bench", end="exited", exit_code=1, signal=None, started_at="", duration_seconds=0.0,
        peak_memory_bytes=None, memory_method="",
    )  # fmt: skip
    planned = tuple(f"tests/test_{module:03}.py" for module in range(TARGETS))
    reading = read_reports([Report(str(file), Chunks(file))], end, Expectations(planned=planned))
    assert (reading.verdict, reading.troubles) == ("failed", ())
    assert all(target.cause is None for target in reading.targets)
    return reading


def read_strictly(file: Path, watch: Watch) -> None:
    """The subject."""
    with watch.timed():
        read(file)


def read_with_junitparser(file: Path, watch: Watch) -> None:
    """What a user of the library does: every case with its names, its time and its result."""
    from junitparser import JUnitXml  # type: ignore[import-not-found, unused-ignore]

    with watch.timed():
        found = [
            (case.name, case.classname, case.time, case.result)
            for suite in JUnitXml.fromfile(str(file))
            for case in suite
        ]
    assert len(found) == CASES


def read_tree(file: Path, watch: Watch) -> None:
    """The same from a full tree of lxml, without any library above it."""
    from lxml import etree  # type: ignore[import-untyped]

    with watch.timed():
        found = [
            (case.get("name"), case.get("classname"), float(case.get("time")), [child.tag for child in case])
            for case in etree.parse(str(file)).iter("testcase")
        ]
    assert len(found) == CASES


def measure_speed(file: Path, repetitions: int) -> bool:
    """The reader beside junitparser; without it the ratio to a bare tree is shown, which has no limit of its own."""
    write(file, CASES, 0)
    try:
        import junitparser  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        unit, reference, limit = "x a bare lxml tree (junitparser is not installed)", read_tree, 2.5
    else:
        unit, reference, limit = f"x junitparser {junitparser.version}, same file", read_with_junitparser, 1.0
    return compare(
        "junit.read",
        lambda watch: read_strictly(file, watch),
        lambda watch: reference(file, watch),
        unit=f"{unit}; {CASES} cases",
        limit=limit,
        repetitions=repetitions,
    )


def peak_memory_bytes(file: Path) -> int:
    """The most memory that a fresh process takes to read a report."""
    code = (
        "import resource, sys; from pathlib import Path; from scripts.bench.junit import read; "
        "read(Path(sys.argv[1])); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True)
    return int(done.stdout) * 1024


def measure_memory(file: Path) -> bool:
    """A report of 200 MB, and what each further case adds."""
    peaks = []
    for cases in (CASES, 2 * CASES):
        write(file, cases, OUTPUT_BYTES)
        peaks.append(peak_memory_bytes(file))
    size = file.stat().st_size // 2 // 10**6
    whole, further = peaks[0] / MEMORY_BYTES_MAX, (peaks[1] - peaks[0]) / CASES / CASE_BYTES_MAX
    within = [
        report("junit.memory", whole, unit=f"x {MEMORY_BYTES_MAX} bytes; {size} MB", limit=1.0, spread=(whole, whole)),
        report(
            "junit.memory-case", further, unit=f"x {CASE_BYTES_MAX} bytes a case", limit=1.0, spread=(further, further)
        ),
    ]
    return all(within)


def main() -> int:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.xml"
        # A process is held to have taken at least what its parent had when it started it, so memory comes first.
        return 0 if all([measure_memory(file), measure_speed(file, arguments.repetitions)]) else 1


if __name__ == "__main__":
    sys.exit(main())
