"""The command that reads reports as the gate would, without a run: read."""

import signal
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import Struct

from commands.cli.common import emit_json, emit_lines, json_option, refuse_both, width
from commands.cli.exits import ExitCode
from commands.readers.junit.dialects import DIALECTS
from commands.readers.junit.profiles import PROFILES
from commands.readers.junit.reading import JUnitVerdict, Reading, Report, TargetReading, Trouble
from ledger.errors import LedgerError
from ledger.tables import CaseRow

_CHUNK_BYTES = 2**16
_EXITS = {"accepted": ExitCode.PASSED, "failed": ExitCode.FAILED, "unmeasured": ExitCode.UNMEASURED}


class ReportUnreadable(LedgerError):
    """The file of a report exists, but this machine does not let it be read."""

    code = "report-unreadable"
    exit_code = 2


class ReadDocument(Struct, frozen=True, kw_only=True):
    """What reports prove: in all, per planned target, and case by case. `troubles` and the targets' causes are reason
    codes (`ledger explain`); `suggested` are profiles under which the counts would agree."""

    verdict: JUnitVerdict
    reader: str
    dialect: str
    profile: str
    troubles: tuple[Trouble, ...]
    targets: tuple[TargetReading, ...]
    cases: tuple[CaseRow, ...]
    suggested: tuple[str, ...]


@click.command(short_help="What JUnit reports prove, and why no more.")
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...")
@click.option("--planned", multiple=True, metavar="TARGET", help="A target that was to run; may be given again.")
@click.option("--exit-code", type=int, metavar="N", help="The code with which the runner exited.")
@click.option("--signal", "ended_by", metavar="S", help="The signal that killed it, such as SIGKILL or 9.")
@click.option(
    "--dialect", type=click.Choice(sorted(DIALECTS)), metavar="NAME",
    help=f"How the runner writes (default: recognised): {', '.join(sorted(DIALECTS))}.",
)  # fmt: skip
@click.option(
    "--profile", type=click.Choice(sorted(PROFILES)), metavar="NAME",
    help=f"What the runner's counts mean (default: what they say): {', '.join(sorted(PROFILES))}.",
)  # fmt: skip
@json_option
def read(
    reports: tuple[str, ...],
    planned: tuple[str, ...],
    exit_code: int | None,
    ended_by: str | None,
    dialect: str | None,
    profile: str | None,
    as_json: bool,
) -> ExitCode:
    """Read every REPORT of one attempt as the gate would, without a run, and say what they prove.

    Absolute paths in a report are taken to begin with the current directory. What is left out is not known: without
    --planned nobody can say that nothing is missing, and without --exit-code that the runner ended well.

    \b
    Exit codes:
      0  accepted: every planned target ran, and nothing failed
      1  failed: a failure is proven
      3  unmeasured: anything else
    """
    from commands.render.measures.reading import reading_lines

    refuse_both("--exit-code", exit_code is not None, "--signal", ended_by)
    reading = _read(reports, planned, exit_code, ended_by, dialect, profile)
    if as_json:
        emit_json(
            ReadDocument(
                verdict=reading.verdict,
                reader=reading.reader,
                dialect=reading.dialect,
                profile=reading.profile,
                troubles=reading.troubles,
                targets=reading.targets,
                cases=tuple(reading.cases()),
                suggested=reading.suggested,
            )
        )
    else:
        emit_lines(reading_lines(reading, width()))
    return _EXITS[reading.verdict]


class _Chunks:
    """The bytes of a file in pieces, as often as they are asked for. Raises ReportUnreadable."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
        except OSError as failure:
            raise ReportUnreadable(f"{self.path} cannot be read: {failure.strerror}", "check its permissions") from None


def _read(
    reports: tuple[str, ...],
    planned: tuple[str, ...],
    exit_code: int | None,
    ended_by: str | None,
    dialect: str | None,
    profile: str | None,
) -> Reading:
    from commands.executors.api import JobEnd
    from commands.readers.junit import Expectations, read_reports

    end = JobEnd(
        name="",
        end="exited" if ended_by is None else "signalled",
        exit_code=exit_code,
        signal=None if ended_by is None else _signal_number(ended_by),
        started_at="",
        duration_seconds=0.0,
        peak_memory_bytes=None,
        memory_method="",
    )
    files = [_report(name) for name in reports]
    expectations = Expectations(planned=planned or None, root=str(Path.cwd()))
    return read_reports(files, end, expectations, dialect=dialect, profile=profile)


def _report(name: str) -> Report:
    """The report of this name. Only a file is read: a device may never end, and a pipe cannot be read twice."""
    path = Path(name)
    if path.is_file():
        return Report(name, _Chunks(path))
    kinds = {
        "directory": path.is_dir(), "device": path.is_char_device() or path.is_block_device(), "pipe": path.is_fifo(),
        "socket": path.is_socket(),
    }  # fmt: skip
    kind = next((name for name, found in kinds.items() if found), "")
    return Report(name, None, f"it is a {kind}, not a file") if kind else Report(name, None)


def _signal_number(text: str) -> int:
    """A signal by its number or its name, with or without SIG. Raises a usage error."""
    name = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    if name in signal.Signals.__members__:
        return signal.Signals[name]
    if text.isascii() and text.isdigit() and 0 < int(text) < signal.NSIG:
        return int(text)
    raise click.UsageError(f"--signal is {text[:40]!r}; allowed: a signal's name or number, such as SIGKILL or 9")
