"""A program outside of the product, as a team may write one: how each run went, and what was slow in it.

Usage: python slowest.py LEDGER-DIRECTORY. It uses nothing but what `docs/api.md` promises.
"""

import sys
from collections.abc import Iterator

from ledger import Ledger, open_ledger
from projections import QUERIES, RunSource, RunViews, view_run


def slowest(ledger: Ledger, run: str, views: RunViews, count: int) -> list[tuple[float, str]]:
    """The slowest cases of the candidate, with their seconds."""
    source = RunSource(views, lambda: ledger.events(run), ledger.document)
    make_rows = QUERIES["cases"].rows
    assert make_rows is not None
    seconds = [(row.duration_seconds, row.test) for row in make_rows(source) if row.side == "candidate"]
    return sorted(seconds, key=lambda pair: (-pair[0], pair[1]))[:count]


def report(ledger: Ledger) -> Iterator[str]:
    """A line for the ledger, one for each run, and below it its slowest cases."""
    yield f"{ledger.project}: {len(ledger.runs())} runs, head @{ledger.head().sequence}"
    for run in ledger.runs():
        views = view_run(ledger.events(run))
        yield f"{run} {views.run.verdict or views.run.status}"
        for duration_seconds, test in slowest(ledger, run, views, 2):
            yield f"  {duration_seconds:.2f} s {test}"


if __name__ == "__main__":
    with open_ledger(sys.argv[1]) as opened:
        print("\n".join(report(opened)))
