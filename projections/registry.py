"""Every view by name: what it answers, and how it is folded."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from ledger.record import RecordedEvent
from projections.fold import View
from projections.gate.shards import SHARDS, GateView
from projections.people.mutes import MUTES, MutesView
from projections.people.questions import QUESTIONS, QuestionsView
from projections.release.state import RELEASE, ReleaseView
from projections.run.owed import Agenda, Owed
from projections.run.state import RUN, RunView

VIEWS: dict[str, View[Any]] = {view.name: view for view in (RUN, SHARDS, MUTES, QUESTIONS, RELEASE)}


class RunViews(Struct):
    """The views of one run that decisions are taken on, folded together in one pass; of the stream `ledger`, `mutes`.

    `agenda` is made when somebody first asks what may be started, and kept up to date from then on: whoever only reads
    does not pay for it.
    """

    run: RunView = field(default_factory=RunView)
    gate: GateView = field(default_factory=GateView)
    mutes: MutesView = field(default_factory=MutesView)
    questions: QuestionsView = field(default_factory=QuestionsView)
    release: ReleaseView = field(default_factory=ReleaseView)
    agenda: Agenda | None = None

    def apply(self, recorded: RecordedEvent) -> None:
        """Take one event of the run's stream into each view."""
        RUN.apply(self.run, recorded)
        SHARDS.apply(self.gate, recorded)
        MUTES.apply(self.mutes, recorded)
        QUESTIONS.apply(self.questions, recorded)
        RELEASE.apply(self.release, recorded)
        if self.agenda is not None:
            self.agenda.follow(recorded.event, self.gate, self.run.policy)
        self.run.position, self.run.sequence = recorded.header.position, recorded.sequence

    def ready(self) -> Iterator[Owed]:
        """What is owed of the planned shards and may be started now, in the order of the plan."""
        if self.agenda is None:
            self.agenda = Agenda.of(self.gate, self.run.policy)
        return self.agenda.ready(self.gate, self.run.policy)


def view_run(events: Iterable[RecordedEvent]) -> RunViews:
    """The views of a run after these events, which are the first of its stream."""
    views = RunViews()
    for recorded in events:
        views.apply(recorded)
    return views
