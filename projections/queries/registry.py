"""Every view that can be queried, by name: what it answers, and what its rows are."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from ledger.errors import LedgerError
from projections.history.flaky import FlakyRow
from projections.history.results import OutcomeRow, TargetRow
from projections.history.runs import RunRow
from projections.queries import rows
from projections.queries.rows import RunSource

HistoryName = Literal["runs", "targets", "outcomes", "flaky"]


class ViewUnknown(LedgerError):
    """There is no view of this name."""

    code = "view-unknown"
    exit_code = 2


class Query(Struct, frozen=True):
    """A view that can be queried. `rows` makes the rows of one run; None for a view over all runs, which the history
    gives."""

    name: str
    question: str
    row_type: type[Struct]
    rows: Callable[[RunSource], Iterable[Any]] | None


QUERIES: dict[str, Query] = {
    query.name: query
    for query in (
        Query("runs", "how did each run go, and what did it take?", RunRow, None),
        Query("targets", "what did each target use, in every attempt of every run?", TargetRow, None),
        Query("outcomes", "what did each case do, in every attempt of every run?", OutcomeRow, None),
        Query("flaky", "which tests failed and passed without a change, how often, where?", FlakyRow, None),
        Query("events", "what happened in the run?", rows.EventRow, rows.event_rows),
        Query("shards", "what was planned, where does it run, what is missing?", rows.ShardRow, rows.shard_rows),
        Query("attempts", "what was tried, and how did it end?", rows.AttemptRow, rows.attempt_rows),
        Query("cases", "what did the reports of the attempts say?", rows.CaseRow, rows.case_rows),
        Query("classes", "how was each case judged?", rows.ClassRow, rows.class_rows),
        Query("blocking", "which cases keep the verdict from being passed?", rows.BlockingRow, rows.blocking_rows),
        Query("owed", "what is still to be measured?", rows.OwedRow, rows.owed_rows),
        Query("inventory", "which tests do both sides have?", rows.InventoryRow, rows.inventory_rows),
    )
}


def find_query(name: str) -> Query:
    """The view of this name. Raises ViewUnknown."""
    query = QUERIES.get(name)
    if query is None:
        raise ViewUnknown(f"there is no view {name!r}", f"there are {', '.join(sorted(QUERIES))}")
    return query
