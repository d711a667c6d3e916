"""The reading commands: status, log, why. They change nothing and take no lock."""

import time

import click

from commands.cli.common import (
    at_option,
    emit_json,
    emit_lines,
    json_option,
    reading_home,
    refuse_both,
    run_argument,
    store_option,
    width,
)
from commands.cli.exits import ExitCode
from commands.cli.failures import TestUnknown
from commands.render.events import event_line
from commands.render.summary import summary_lines
from commands.render.why import why_lines
from commands.render.words import count
from commands.wiring import Home, OpenLedger
from ledger.events import Unknown
from ledger.record import RecordedEvent
from ledger.tables import ClassRow
from projections.gate.why import Why, explain, explain_side, matching
from projections.run.moment import Past
from projections.run.summary import RunSummary

FOLLOW_SECONDS = 0.5
REFRESH_SECONDS = 5.0
"""So often a run that is watched is shown again although nothing was recorded: times go on."""


@click.command(short_help="Where a run stands and what to do next.")
@run_argument
@click.option("--watch", is_flag=True, help="Show it again whenever it changes, until the run has ended.")
@at_option
@json_option
@store_option
def status(run: str, watch: bool, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Where a run stands: its verdict, what decided it, what is owed and what to type next."""
    refuse_both("--at", at, "--watch", watch)
    place = reading_home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        release = opened.release_of(name) if run == "latest" else ""
        if release or opened.is_release(name):
            return show_release(place, release or name, at, as_json)
        past = opened.past(name, at)
        while True:
            version, summary = opened.version(), opened.summary(name, past)
            _show(summary, as_json, again=watch)
            if not watch or summary.state != "running":
                return ExitCode.PASSED
            _wait_for_change(opened, name, version, as_json=as_json)


def show_release(place: Home, release: str, at: str | None, as_json: bool) -> ExitCode:
    """The summary of a release, which tells both where it stands and its story."""
    from commands.cli.releasing.told import emit_summary, summary_of

    emit_summary(summary_of(place, release, at), as_json)
    return ExitCode.PASSED


def _wait_for_change(opened: OpenLedger, run: str, version: int, *, as_json: bool) -> None:
    """Return when something was recorded or the driver has gone; for people also when times have gone on a little."""
    shown_at = time.monotonic()
    while opened.version() == version and opened.summary(run).state == "running":
        if not as_json and time.monotonic() - shown_at >= REFRESH_SECONDS:
            return
        time.sleep(FOLLOW_SECONDS)


def _show(summary: RunSummary, as_json: bool, *, again: bool) -> None:
    if as_json:
        emit_json(summary)
        return
    if again:
        click.clear()
    emit_lines(summary_lines(summary, width()))


@click.command(short_help="The events of a run, oldest first.")
@run_argument
@click.option("--follow", is_flag=True, help="Go on with new events until the run has ended.")
@at_option
@json_option
@store_option
def log(run: str, follow: bool, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """The events of a run, oldest first.

    With --json one JSON document a line.
    """
    refuse_both("--at", at, "--follow", follow)
    place = reading_home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        past = opened.past(name, at)
        after, goes_on = 0, True
        while goes_on:
            # Asked before the events are read, so that the last ones are not missed.
            goes_on = follow and opened.summary(name).state == "running"
            for recorded in opened.events(name, after, past):
                after = recorded.header.position
                if as_json:
                    emit_json(_event_document(recorded))
                else:
                    emit_lines([event_line(recorded)])
            if goes_on:
                time.sleep(FOLLOW_SECONDS)
    return ExitCode.PASSED


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
@at_option
@json_option
@store_option
def why(test: str, run: str, at: str | None, as_json: bool, store: str | None) -> ExitCode:
    """Why TEST has its class: the rule, and what every attempt said.

    TEST is a name as `ledger status` prints it, or a part of one that only one test has.
    """
    place = reading_home(store)
    with place.open_ledger() as opened:
        name = opened.gate_of(opened.find_run(run))
        explained = _explained(opened, name, test, opened.past(name, at))
        unmeasured = [attempt for attempt in explained.attempts if attempt.cause and attempt.log]
        logs = {attempt.log: opened.log_end(attempt.log) for attempt in unmeasured if attempt.log}
    if as_json:
        emit_json(explained)
    else:
        emit_lines(why_lines(explained, logs, width()))
    return ExitCode.PASSED


def _explained(opened: OpenLedger, run: str, test: str, past: Past | None) -> Why:
    table, tables = opened.class_tables(run, past)
    gate = opened.views(run, past).gate
    as_whole = explain_side(test, table.table, gate)
    return as_whole or explain(_row(matching(table, test), run, test), table.table, gate, tables)


def _row(rows: list[ClassRow], run: str, test: str) -> ClassRow:
    """The one row that is meant. Raises TestUnknown."""
    if not rows:
        raise TestUnknown(f"run {run} has no test whose name contains {test!r}", "upper and lower case matter")
    whole_target = all(row.test.target == test and row.case_class == "unmeasured" for row in rows)
    if len(rows) == 1 or whole_target:
        return rows[0]
    names = ", ".join(row.test.text() for row in rows[:5])
    raise TestUnknown(f"{test!r} could be any of {count(len(rows), 'test')}: {names}", "give more of its name")
