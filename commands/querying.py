"""A query: the rows of a view, of one run or of all, now or at a moment, as far as they meet the conditions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from commands.wiring import OpenLedger
from projections.queries.conditions import matching, parse_conditions
from projections.queries.registry import Query
from projections.queries.rows import RunSource


class Answer(Struct, frozen=True):
    """The rows that are asked for, to be taken once. `run` is None for all runs; `sequence` is that of the last event
    that was taken into account."""

    query: Query
    run: str | None
    sequence: int
    rows: Iterator[Struct]


@contextmanager
def ask(
    opened: OpenLedger, query: Query, run: str | None, conditions: Sequence[str], at: str | None
) -> Iterator[Answer]:
    """Answer a query. A view of one run is about the latest without `run`; the others then about all runs.

    Raises RunUnknown, MomentUnknown, ColumnUnknown and ConditionMalformed; and, while the rows are taken, LedgerDamaged
    and EvidenceDamaged.
    """
    wanted = parse_conditions(conditions, query.row_type)
    if query.rows is not None:
        name = opened.find_run(run or "latest")
        past = opened.past(name, at)
        views = opened.views(name, past)
        source = RunSource(views, lambda: opened.events(name, 0, past), opened.document)
        yield Answer(query, name, views.run.sequence, matching(query.rows(source), wanted))
        return
    only = opened.find_run(run) if run else None
    then = opened.past(only, at) if only else None
    with opened.history(then.sequence if then else opened.sequence_at(at)) as history:
        histories = {
            "runs": history.runs,
            "targets": history.targets,
            "outcomes": history.outcomes,
            "flaky": history.flaky,
        }
        rows: Iterator[Struct] = histories[query.name](only)
        yield Answer(query, only, history.taken().sequence, matching(rows, wanted))
