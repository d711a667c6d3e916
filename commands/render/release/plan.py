"""What resuming a release would do, as text."""

from collections.abc import Sequence

from commands.render.words import safe, short, wrapped
from projections.release.graph import Contradiction
from projections.release.resume import ReleasePlan

_ACTIONS = {"again": "run again", "run": "run", "kept": "kept", "waived": "waived", "awaiting": "waits"}


def plan_lines(plan: ReleasePlan, width: int) -> list[str]:
    """Tip, boundary, what becomes of each step and why, how much of the gate, and which attempt it is."""
    lines = wrapped(f"resuming release {plan.version}, run {plan.release}, from {plan.step} would", width)
    branch = plan.branch or "by commit"
    if plan.moved:
        lines.append(f"  tip        {safe(branch)}: {short(plan.previous)} -> {short(plan.to)}")
    else:
        lines.append(f"  tip        {safe(branch)}: {short(plan.to)}, as it was")
    if plan.pinned:
        told = (
            f"pinned     the branch is not followed any more, because {plan.pinned} was begun and cannot be taken back"
        )
        lines += [f"  {line}" for line in wrapped(told, width - 2, " " * 11)]
    lines.append(f"  boundary   {plan.boundary or 'none: every result counts'}")
    lines += [f"  {line}" for line in wrapped(f"gate       {plan.gate}: {plan.gate_reason}", width - 2, " " * 11)]
    if plan.attempt:
        lines.append(f"  attempt    {plan.attempt} of at most {plan.attempts_max}")
    else:
        lines.append("  attempt    none is used: the release merely goes on")
    if plan.retired:
        lines.append(f"  retire     {', '.join(plan.retired)}")
    if plan.healing:
        lines += [f"  {line}" for line in wrapped(f"healing    {safe(plan.healing)}", width - 2, " " * 11)]
    if plan.reroute:
        lines.append(f"  reroute    {safe(plan.reroute)}")
    column = max(len(one.step) for one in plan.steps) + 2
    lines.append("")
    for one in plan.steps:
        told = f"{one.step:<{column}}{_ACTIONS[one.action]:<11}{one.why}"
        lines += [f"  {line}" for line in wrapped(told, width - 2, " " * (column + 11))]
    return lines


def contradiction_lines(found: Sequence[Contradiction], width: int) -> list[str]:
    """What is wrong with the steps, one after another."""
    lines: list[str] = []
    for one in found:
        lines += wrapped(f"{one.step or 'steps'}: {one.message} ({one.code})", width, "    ")
    return lines
