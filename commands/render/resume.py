"""What a resumption would do, as text."""

from commands.render.summary import owed_lines
from commands.render.words import moment, wrapped
from projections.run.resume import ResumePlan


def resume_lines(plan: ResumePlan, width: int) -> list[str]:
    """What would be settled, what would be run, and what would refuse it."""
    if plan.nothing_to_do:
        then = f" as of {moment(plan.as_of)}" if plan.as_of else ""
        return wrapped(f"run {plan.run}: nothing is owed{then}; the verdict stands", width)
    if plan.driven:
        return wrapped(f"run {plan.run} is driven by a living process, so a resumption would be refused", width)
    would = f"as of {moment(plan.as_of)} would have" if plan.as_of else "would"
    lines = wrapped(f"resuming run {plan.run} from {plan.step} {would}", width)
    if plan.in_flight:
        lines += ["", "settle what the last driver left of"]
        lines += [f"  {label}" for label in plan.in_flight]
    lines += ["", "run" if plan.owed else "measure nothing; only the verdict is owed"]
    for entry in plan.owed:
        lines += owed_lines(entry, width)
    return lines
