"""Every view by name: what it answers, and how it is folded."""

from typing import Any

from msgspec import Struct, field

from ledger.record import RecordedEvent
from projections.fold import View
from projections.gate.shards import SHARDS, GateView
from projections.run.state import RUN, RunView

VIEWS: dict[str, View[Any]] = {view.name: view for view in (RUN, SHARDS)}


class RunViews(Struct):
    """The views of one run that decisions are taken on, folded together in one pass."""

    run: RunView = field(default_factory=RunView)
    gate: GateView = field(default_factory=GateView)

    def apply(self, recorded: RecordedEvent) -> None:
        """Take one event of the run's stream into both views."""
        RUN.apply(self.run, recorded)
        SHARDS.apply(self.gate, recorded)
        self.run.position, self.run.sequence = recorded.header.position, recorded.sequence
