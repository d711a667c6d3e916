"""The command `report`: a run for other tools and for people."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import click
from msgspec import structs

from commands.cli.common import at_option, emit_pieces, reading_home, run_argument, say, store_option
from commands.cli.exits import ExitCode
from commands.render.reports.report import Report
from commands.wiring import Home, OpenLedger
from ledger.errors import LedgerError
from projections.queries.rows import RunSource
from projections.queries.tries import tried_cases
from projections.run.moment import Past
from projections.run.summary import summarize_run

FORMATS = ("markdown", "junit", "github", "jsonl", "notes")


class NothingToReport(LedgerError):
    """The run has no verdict, and no test of the candidate has been reported yet."""

    code = "nothing-to-report"
    exit_code = 2


class ReportUnwritable(LedgerError):
    """The report could not be written to the file that was named; what was there before is as it was."""

    code = "report-unwritable"
    exit_code = 4


@click.command(short_help="A run as JUnit, for GitHub, as Markdown, or as JSON lines.")
@run_argument
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", help="How it is written.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where to (default: standard output). A file that is there is replaced.",
)  # fmt: skip
@at_option
@store_option
def report(run: str, form: str, as_json: bool, output: Path | None, at: str | None, store: str | None) -> ExitCode:
    """RUN for other tools and for people.

    \b
    Formats:
      markdown  what blocks, what is unmeasured and what to do, known failures
      junit     one merged file: red where the gate did not pass
      github    a job summary; annotations go to standard error
      jsonl     a header, then every case with every attempt at it
      notes     for the notes of a release: what was waived, known issues, tests that fail as before

    Of a release, the newest gate is reported.

    The exit code is 0 whatever the verdict is. Without a verdict everything that exists is marked as unmeasured.
    """
    place = reading_home(store)
    with place.open_ledger() as opened:
        name, release = _gate_of(opened, opened.find_run(run), at)
        if form == "notes" and not as_json:
            pieces: Iterable[str] = _notes(place, opened, release, name, at)
        else:
            pieces = _pieces(_report(opened, name, opened.past(name, at)), "jsonl" if as_json else form)
        if output is None:
            emit_pieces(pieces)
        else:
            _write(output, pieces)
    return ExitCode.PASSED


def _gate_of(opened: OpenLedger, run: str, at: str | None) -> tuple[str, str]:
    """The gate that is reported, and the release that it is a step of ("" for none). Raises NothingToReport."""
    if not opened.is_release(run):
        return run, opened.release_of(run)
    steps = opened.views(run, opened.past(run, at)).release.steps.values()
    gates = [one for state in steps for one in state.attempts if one.gate and one.outcome is not None]
    if not gates:
        raise NothingToReport(
            f"release {run} has no gate that has ended", f"`ledger status {run}` says where it stands"
        )
    return gates[-1].gate, run


def _notes(place: Home, opened: OpenLedger, release: str, gate: str, at: str | None) -> Iterable[str]:
    from commands.cli.releasing.told import summary_of
    from commands.render.release.notes import notes_pieces

    if not release:
        raise NothingToReport(f"run {gate} is no release, so it has no notes", "`--format markdown` tells of a gate")
    table = opened.class_table(opened.views(gate))
    rows = table.rows if table else ()
    return notes_pieces(summary_of(place, release, at), (r.test.text() for r in rows if r.case_class == "preexisting"))


def _report(opened: OpenLedger, run: str, past: Past | None) -> Report:
    """The report, whose cases are read while they are taken. Raises NothingToReport."""
    alive = None if past else opened.driven(run)
    views = opened.views(run, past)
    summary = summarize_run(
        views, past.time if past else datetime.now(UTC), alive=alive, as_of=past.as_of if past else ""
    )
    cases = tried_cases(RunSource(views, lambda: opened.events(run, 0, past), opened.document))
    decided = views.gate.verdict
    if decided is None:
        first = next(cases, None)
        if first is None:
            raise NothingToReport(
                f"run {run} has no verdict, and nothing of its candidate is measured yet",
                f"`ledger status {run}` says where it stands",
            )
        return Report(summary, "", chain([first], cases))
    # A driver that died between the verdict and the end of the run leaves a verdict all the same.
    return Report(structs.replace(summary, verdict=decided.verdict), decided.table, cases)


def _pieces(told: Report, form: str) -> Iterable[str]:
    match form:
        case "junit":
            from commands.render.reports.junit import junit_pieces

            return junit_pieces(told)
        case "jsonl":
            from commands.render.reports.jsonl import jsonl_pieces

            return jsonl_pieces(told)
        case "github":
            return _for_github(told)
    from commands.render.reports.markdown import markdown_pieces

    return markdown_pieces(told)


def _for_github(told: Report) -> Iterator[str]:
    """The summary; the annotations are said on standard error, which a job reads for commands as well."""
    from commands.render.reports.github import annotations, summary_pieces
    from commands.render.reports.groups import groups_of

    groups = groups_of(told)
    for command in annotations(told, groups):
        say(command)
    return summary_pieces(told, groups)


def _write(file: Path, pieces: Iterable[str]) -> None:
    """Write the file as a whole or not at all; a device or a pipe is written to as it is. Raises ReportUnwritable."""
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as stream:
                stream.writelines(piece.encode() for piece in pieces)
            return
        place = file.resolve()
        temporary = place.with_name(f".{place.name}.{os.urandom(4).hex()}.tmp")
        try:
            with temporary.open("xb") as stream:
                stream.writelines(piece.encode() for piece in pieces)
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ReportUnwritable(
            f"{file} cannot be written: {error.strerror}", "check its directory and the space there"
        ) from error
