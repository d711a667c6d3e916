"""What other programs may use of this room; its stability is told in `docs/api.md`."""

from projections.queries.registry import QUERIES, Query
from projections.queries.rows import RunSource
from projections.registry import RunViews, view_run
from projections.run.owed import owed
from projections.run.summary import RunSummary, summarize_run

__all__ = ["QUERIES", "Query", "RunSource", "RunSummary", "RunViews", "owed", "summarize_run", "view_run"]
