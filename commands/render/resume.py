"""What a resumption would do, as text."""

from commands.render.words import clipped, count
from projections.run.resume import ResumePlan


def resume_lines(plan: ResumePlan, width: int) -> list[str]:
    """What would be settled, what would be run, and what would refuse it."""
    if plan.nothing_to_do:
        return [f"run {plan.run}: nothing is owed; the verdict stands"]
    lines = [f"run {plan.run} would be resumed from {plan.step}, for time number {plan.number}"]
    if plan.driven:
        lines.append("but a living process drives it now, so that it would be refused")
    for label in plan.in_flight:
        lines.append(clipped(f"  {label:<26} settle what the last driver left of it", width))
    for entry in plan.owed:
        what = "all of its targets" if entry.targets is None else count(entry.targets, "target")
        cause = f" ({entry.cause})" if entry.cause else ""
        lines.append(clipped(f"  {entry.what:<26} run {what}{cause}", width))
    if not plan.owed:
        lines.append("  nothing is to be measured; only the verdict is owed")
    return lines
