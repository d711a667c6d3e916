"""What somebody sees who has to approve: all that the release rests on, and all that was let pass."""

from collections.abc import Iterable, Iterator

from ledger.steps import Shown, Step, StepGraph
from projections.release.standing import Now, standings, valid_waivers
from projections.release.state import ReleaseView, archive_of


def shown_now(view: ReleaseView, graph: StepGraph, date: str, mutes: Iterable[str] = ()) -> Shown:
    """What would be shown to somebody who had to approve now; `mutes` are the tests that are muted.

    An archive is shown when it was built from the commit that counts. Approvals themselves are not part of it, nor
    what comes after them, so that an approval does not change what it is about.
    """
    archive = archive_of(view)
    waivers, standing = valid_waivers(view, graph, date), standings(view, graph, Now(date))
    return Shown(
        release=view.begun.run,
        version=str(view.begun.version),
        commit=view.commit,
        archive=archive.digest if archive else "",
        waivers=tuple((waiver.waived.step, waiver.waived.reason) for waiver in waivers.values()),
        issues=tuple((issue.accepted.issue, issue.accepted.note) for issue in view.issues.values()),
        mutes=tuple(sorted(mutes)),
        verdicts=tuple((step.name, standing[step.name].state) for step in _before_the_first_approval(graph)),
    )


def _before_the_first_approval(graph: StepGraph) -> Iterator[Step]:
    for step in graph.steps:
        if step.uses == "approve":
            return
        if not step.observer:
            yield step
