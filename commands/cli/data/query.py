"""The command `query`: any view as rows."""

from collections.abc import Iterable

import click

from commands.cli.common import at_option, emit_lines, emit_pieces, reading_home, store_option, terminal_width
from commands.cli.exits import ExitCode
from commands.querying import Answer, ask
from commands.render.rows import csv_pieces, json_lines, json_pieces, table_lines
from projections.queries.registry import QUERIES, find_query

FORMATS = ("table", "json", "jsonl", "csv")

_VIEWS = "\b\nViews:\n" + "\n".join(f"  {query.name:<10} {query.question}" for query in QUERIES.values())


@click.command(epilog=_VIEWS, short_help="A view as rows, for people and for programs.")
@click.argument("view")
@click.argument("run", required=False, metavar="[RUN]")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only rows with COLUMN=VALUE, COLUMN!=VALUE, or COLUMN~TEXT (contains it). Several must all hold.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="How rows are written.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@at_option
@store_option
def query(
    view: str,
    run: str | None,
    conditions: tuple[str, ...],
    form: str,
    as_json: bool,
    at: str | None,
    store: str | None,
) -> ExitCode:
    """The rows of VIEW: of one run, the latest unless RUN says otherwise; runs, targets, outcomes and flaky are of all
    runs unless RUN names one.

    A table may shorten what it shows, and one that is wider than the terminal is shown row by row; the other formats
    are exact. `ledger schema VIEW` describes the columns.
    """
    wanted = find_query(view)
    with reading_home(store).open_ledger() as opened, ask(opened, wanted, run, conditions, at) as answer:
        if form == "table" and not as_json:
            for line in table_lines(wanted.row_type.__struct_fields__, answer.rows, terminal_width()):
                emit_lines([line])
        else:
            emit_pieces(_pieces(answer, "json" if as_json else form))
    return ExitCode.PASSED


def _pieces(answer: Answer, form: str) -> Iterable[str]:
    if form == "csv":
        return csv_pieces(answer.query.row_type.__struct_fields__, answer.rows)
    if form == "jsonl":
        return json_lines(answer.rows)
    return json_pieces(answer.query.name, answer.run, answer.sequence, answer.rows)
