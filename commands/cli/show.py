"""The reading commands: status, log, why. They change nothing and take no lock."""

import time

import click

from commands.cli.common import emit_json, emit_lines, home, json_option, run_argument, store_option, width
from commands.cli.exits import ExitCode
from commands.render.events import event_line
from commands.render.summary import summary_lines
from commands.render.why import why_lines
from commands.render.words import count
from commands.wiring import OpenLedger
from ledger.errors import LedgerError
from ledger.events import Unknown
from ledger.record import RecordedEvent
from projections.gate.why import Why, explain, matching
from projections.run.summary import RunSummary

FOLLOW_SECONDS = 0.5


class TestUnknown(LedgerError):
    """No test, or more than one, matches what was asked for."""

    __test__ = False
    code = "test-unknown"
    exit_code = 2


@click.command()
@run_argument
@click.option("--watch", is_flag=True, help="Show it again whenever it changes, until the run has ended.")
@json_option
@store_option
def status(run: str, watch: bool, as_json: bool, store: str | None) -> ExitCode:
    """Where a run stands: its verdict, what decided it, what is owed and what to type next."""
    place = home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        while True:
            summary = opened.summary(name)
            _show(summary, as_json, again=watch)
            if not watch or summary.state != "running":
                return ExitCode.PASSED
            version = opened.version()
            while opened.version() == version and opened.summary(name).state == "running":
                time.sleep(FOLLOW_SECONDS)


def _show(summary: RunSummary, as_json: bool, *, again: bool) -> None:
    if as_json:
        emit_json(summary)
        return
    if again:
        click.clear()
    emit_lines(summary_lines(summary, width()))


@click.command()
@run_argument
@click.option("--follow", is_flag=True, help="Go on with new events until the run has ended.")
@json_option
@store_option
def log(run: str, follow: bool, as_json: bool, store: str | None) -> ExitCode:
    """The events of a run, oldest first; with --json one JSON document a line."""
    place = home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        after = _print_events(opened.events(name, 0), as_json)
        while follow and opened.summary(name).state == "running":
            time.sleep(FOLLOW_SECONDS)
            after = _print_events(opened.events(name, after), as_json) or after
    return ExitCode.PASSED


def _print_events(events: list[RecordedEvent], as_json: bool) -> int:
    position = 0
    for recorded in events:
        position = recorded.header.position
        if as_json:
            emit_json(_event_document(recorded))
        else:
            click.echo(event_line(recorded))
    return position


def _event_document(recorded: RecordedEvent) -> dict[str, object]:
    event = recorded.event
    payload: object = event.payload if isinstance(event, Unknown) else event
    return {
        "sequence": recorded.sequence,
        "header": recorded.header,
        "digest": recorded.digest,
        "event": payload,
    }


@click.command()
@click.argument("test")
@run_argument
@json_option
@store_option
def why(test: str, run: str, as_json: bool, store: str | None) -> ExitCode:
    """Why TEST has its class: the rule, and what every attempt said.

    TEST is the whole name of a test as `ledger status` prints it, or a part that only one test has.
    """
    place = home(store)
    with place.open_ledger() as opened:
        explained = _explained(opened, opened.find_run(run), test)
    if as_json:
        emit_json(explained)
    else:
        emit_lines(why_lines(explained, width()))
    return ExitCode.PASSED


def _explained(opened: OpenLedger, run: str, test: str) -> Why:
    table, tables = opened.class_tables(run)
    rows = matching(table, test)
    if not rows:
        raise TestUnknown(
            f"run {run} has no test that contains {test!r}", "`ledger status --json` lists what it judged"
        )
    if len(rows) > 1:
        names = ", ".join(row.test.text() for row in rows[:5])
        raise TestUnknown(f"{test!r} could be any of {count(len(rows), 'test')}: {names}", "give more of its name")
    return explain(rows[0], table.table, opened.views(run).gate, tables)
