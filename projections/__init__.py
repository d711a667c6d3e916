"""What it means now: pure folds of events into views, and the policies that say what is so.

The names of `projections.public` can be taken from here; see `docs/api.md`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projections.public import QUERIES, Query, RunSource, RunSummary, RunViews, owed, summarize_run, view_run

__all__ = ["QUERIES", "Query", "RunSource", "RunSummary", "RunViews", "owed", "summarize_run", "view_run"]


def __getattr__(name: str) -> object:
    """Load a name when it is asked for: every command imports this package, and none needs all of it."""
    if name in __all__:
        from projections import public

        return getattr(public, name)
    raise AttributeError(f"module 'projections' has no attribute {name!r}")
