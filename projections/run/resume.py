"""The resume plan: what resuming a run from a step would do, computed from events alone."""

from msgspec import Struct

from projections.registry import RunViews
from projections.run.owed import owed
from projections.run.summary import SummaryOwed, owed_entries


class ResumePlan(Struct, frozen=True, kw_only=True):
    """What `resume` would do. `driven` says that a living process drives the run, so that it would be refused;
    `in_flight` are attempts without a record, which would be settled first. `as_of` is "" for now, else the moment in
    the past for which the plan is made, in UTC."""

    run: str
    step: str
    driven: bool
    number: int
    in_flight: tuple[str, ...]
    owed: tuple[SummaryOwed, ...]
    nothing_to_do: bool
    as_of: str


def plan_resume(views: RunViews, step: str, *, driven: bool, as_of: str = "") -> ResumePlan:
    """The plan for a run that has this step."""
    return ResumePlan(
        run=views.run.run,
        step=step,
        driven=driven,
        number=views.run.resumes + 1,
        in_flight=tuple(f"{a.started.shard}/{a.started.side}" for a in views.gate.in_flight()),
        owed=owed_entries(views),
        nothing_to_do=views.run.status == "finished" and not owed(views.gate, views.run.policy),
        as_of=as_of,
    )
