"""The commands that prove the ledger and repair it: verify, recover."""

import sys

import click

from commands.cli.common import (
    emit_json,
    emit_lines,
    emit_pieces,
    home,
    json_option,
    json_text,
    reading_home,
    store_option,
    width,
)
from commands.cli.exits import ExitCode
from commands.render.findings import finding_lines, receipt_lines, report_lines
from commands.render.words import count
from ledger.proof.findings import Finding, Report, parse_head
from ledger.store.api import EVIDENCE


@click.command()
@click.option("--head", metavar="@N:DIGEST", help="A head that was noted; the ledger must still hold it.")
@click.option("--no-evidence", is_flag=True, help="Leave out the evidence: only the events are verified.")
@json_option
@store_option
def verify(head: str | None, no_evidence: bool, as_json: bool, store: str | None) -> ExitCode:
    """Whether the ledger and its evidence are what was written.

    Every difference is named with its place. Nothing is changed and no lock is taken.

    \b
    Exit codes:
      0  everything is as it was written
      7  there are findings

    A ledger whose last events were dropped cannot be told from an older one, and whoever can write the file can make
    its end anew. Note the head, which is printed at the end, somewhere else, and give it with --head later.
    """
    from ledger.proof.verify import verify as verified

    place = reading_home(store)
    noted = None if head is None else parse_head(head)
    evidence = None if no_evidence else place.directory / EVIDENCE
    out = _JsonOutput() if as_json else _TextOutput()
    report = verified(place.require_ledger(), evidence, out.found, out.progress, noted)
    out.end(report)
    return ExitCode.PASSED if report.sound else ExitCode.INTEGRITY


@click.command()
@json_option
@store_option
def recover(as_json: bool, store: str | None) -> ExitCode:
    """Move a damaged ledger file aside, and go on with the events that are proved.

    Everything before the first doubtful event is kept, byte for byte; the damaged file stays whole in the ledger's
    `quarantine` directory, with a receipt. Nothing is deleted. A recovery that was cut short is taken up again.
    """
    from commands.wiring import standstill
    from ledger.proof.recover import recover as recovered

    place = home(store)
    ledger_file = place.require_ledger()
    with standstill(place) as stamp:
        receipt = recovered(ledger_file, stamp)
    if as_json:
        emit_json(receipt)
    else:
        emit_lines(receipt_lines(receipt, width()))
    return ExitCode.PASSED


class _TextOutput:
    """Lines as they come; on a terminal, a line below them says how far the verification is."""

    def __init__(self) -> None:
        self._counting = sys.stderr.isatty()

    def found(self, finding: Finding) -> None:
        """Tell one finding."""
        self._clear()
        emit_lines(finding_lines(finding, width()))

    def progress(self, events: int) -> None:
        """Tell how many events were verified."""
        if self._counting:
            click.echo(f"\rverified {count(events, 'event')}", nl=False, err=True)

    def end(self, report: Report) -> None:
        """Tell what came of it."""
        self._clear()
        emit_lines(report_lines(report, width()))

    def _clear(self) -> None:
        if self._counting:
            click.echo("\r\x1b[K", nl=False, err=True)


class _JsonOutput:
    """One document that is written piece by piece: however many findings there are, none is kept."""

    def __init__(self) -> None:
        self._before = '{"findings":['

    def found(self, finding: Finding) -> None:
        """Write one finding."""
        emit_pieces([self._before, json_text(finding)])
        self._before = ","

    def progress(self, events: int) -> None:
        """A program does not ask how far it is."""

    def end(self, report: Report) -> None:
        """Write the rest of the document."""
        start = "" if self._before == "," else self._before
        emit_pieces([start, "],", json_text(report)[1:], "\n"])
