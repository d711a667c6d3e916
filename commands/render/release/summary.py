"""A release as text: what was let pass first, then where each step stands, and what to type next."""

from collections.abc import Sequence

from commands.render.words import count, moment, safe, short, size, wrapped
from projections.release.summary import ApprovalRow, AttemptRow, ReleaseSummary, StepRow

_MARK = {
    "passed": "ok", "failed": "FAILED", "unmeasured": "UNMEASURED", "waived": "waived", "awaiting": "waiting",
    "running": "running", "stale": "stale", "pending": "-",
}  # fmt: skip


def release_lines(summary: ReleaseSummary, width: int) -> list[str]:
    """The whole release, for a terminal of this width."""
    lines = wrapped(_headline(summary), width)
    lines += [*_let_pass(summary, width), "", *_facts(summary)]
    lines += ["", *(line for step in summary.steps for line in _step(step, summary, width))]
    lines += [*_archives(summary, width), *_approvals(summary, width)]
    if summary.next_command:
        lines += ["", f"next: {safe(summary.next_command)}"]
    return lines


def _headline(summary: ReleaseSummary) -> str:
    waived = " (with waivers)" if summary.state == "finished" and any(one.holds for one in summary.waivers) else ""
    return f"release {summary.version}: {_stands(summary)}{waived}"


def _stands(summary: ReleaseSummary) -> str:
    if summary.state == "finished":
        return (summary.verdict or "unmeasured") + (f" at {summary.ended_for}" if summary.ended_for else "")
    if summary.state == "waiting":
        return f"waiting for an answer to {summary.waiting_for}"
    if summary.state == "rejected":
        steps = (one.step for one in summary.steps if one.uses == "approve" and one.state == "failed")
        return f"rejected at {next(steps, 'an approval')}"
    return "ready to go on" if summary.state == "ready" else summary.state


def _let_pass(summary: ReleaseSummary, width: int) -> list[str]:
    lines: list[str] = []
    for one in summary.waivers:
        holds = "waived" if one.holds else "waived before, which does not count any more"
        lines += wrapped(
            f"{holds}: {one.step} ({one.outcome}{f', {one.cause}' if one.cause else ''}) on {short(one.commit)} by "
            f"{one.by}, {moment(one.time)}: {one.reason}",
            width,
            "    ",
        )
    for issue in summary.issues:
        lines += wrapped(f"known issue {issue.issue}, accepted by {issue.by}: {issue.note}", width, "    ")
    for what, reason in summary.overrides:
        lines += wrapped(f"override of {what}: {reason}", width, "    ")
    return ["", *lines] if lines else []


def _facts(summary: ReleaseSummary) -> list[str]:
    branch = f" on {summary.branch}" if summary.branch else ""
    lines = [f"run        {summary.release}", f"commit     {short(summary.commit)}{safe(branch)}"]
    lines += [f"  moved    {short(old)} -> {short(new)}, {moment(time)}" for old, new, time in summary.moves]
    lines.append(f"baseline   {short(summary.baseline)} ({safe(summary.baseline_ref)})")
    lines.append(f"started    {moment(summary.started_at)}")
    if summary.ended_at:
        lines.append(f"ended      {moment(summary.ended_at)}")
    if summary.attempt:
        lines.append(f"resumed    {summary.attempt} of at most {summary.attempts_max} times")
    if summary.as_of:
        lines.append(f"as of      {moment(summary.as_of)}")
    return lines


def _step(step: StepRow, summary: ReleaseSummary, width: int) -> list[str]:
    column = max(len(one.step) for one in summary.steps) + 2
    last = step.attempts[-1] if step.attempts else None
    said = step.why or (last.summary if last else "")
    mark = _MARK[step.state]
    if last is not None and last.verdict == "flaky" and step.state == "passed":
        mark, said = "flaky", "it passed when it was tried again"
    flags = f"[{', '.join(step.flags)}]" if step.flags else ""
    told = f"{mark:<11}{' '.join(filter(None, (said, flags)))}"
    lines = wrapped(f"{step.step:<{column}}{safe(told)}".rstrip(), width, " " * (column + 11))
    for one in step.attempts:
        if one is not last or one.cause or one.probes:
            lines += _attempt(one, width, step)
    if step.uses == "gate" and step.state in ("failed", "unmeasured") and last is not None:
        lines += [f"    look: ledger status {last.gate}"]
    if step.uses in ("run", "prepare") and step.state in ("failed", "unmeasured"):
        lines += [f"    look: ledger release output {step.step}"]
    return lines


def _attempt(one: AttemptRow, width: int, step: StepRow) -> list[str]:
    """An attempt in a few lines. Of one that was followed by another on its commit it need not be said that it does
    not count any more."""
    last, unended = step.attempts[-1], "not answered" if step.uses == "approve" else "running"
    followed = one is not last and one.commit == last.commit
    cause = f" ({one.cause})" if one.cause else ""
    gone = "" if one.counts or followed else ", does not count any more"
    said = f": {one.detail or one.summary}" if one.detail or one.summary else ""
    gate = f", gate {one.gate}" if one.gate and one.gate not in said else ""
    told = f"attempt {one.number} on {short(one.commit)}{gate}: {one.outcome or unended}{cause}{gone}{said}"
    lines = [f"    {line}" for line in wrapped(told, width - 4, "    ")]
    for seen in one.probes:
        if seen.outcome != "ok":
            probe = f"probe {seen.name}: {seen.outcome} {seen.detail}".rstrip()
            lines += [f"      {line}" for line in wrapped(probe, width - 6, "  ")]
    return lines


def _archives(summary: ReleaseSummary, width: int) -> list[str]:
    return ["", "archives", *(f"  {line}" for line in archive_lines(summary, width - 2))] if summary.archives else []


def archive_lines(summary: ReleaseSummary, width: int) -> list[str]:
    """A few lines for each archive: which state it is in, what it is of, where it is, and why it was set aside."""
    lines: list[str] = []
    for one in summary.archives:
        commit = f" of {short(one.commit)}" if one.commit else ""
        why = f": {one.reason}" if one.reason else ""
        digest = one.digest[:12] or "unfinished"
        lines += wrapped(f"{one.state} {digest}{commit}, {size(one.size_bytes)}, in {one.place}{why}", width, "    ")
    return lines


def _approvals(summary: ReleaseSummary, width: int) -> list[str]:
    if not summary.approvals:
        return []
    lines = ["", "approvals"]
    newest = {one.step: one for one in summary.approvals}
    for one in summary.approvals:
        told = _approval(one, asked_again=one is not newest[one.step])
        lines += [f"  {line}" for line in wrapped(told, width - 2, "    ")]
    return lines


def _approval(one: ApprovalRow, *, asked_again: bool) -> str:
    if one.decision:
        said = f": {one.reason}" if one.reason else ""
        return f"{one.step} {one.decision} by {one.by} for {short(one.commit)}, {moment(one.decided_at)}{said}"
    answer = "not answered before it was asked for again" if asked_again else "not answered"
    return f"{one.step} asked for {short(one.commit)}, {moment(one.requested_at)}; {answer}"


def list_lines(summaries: Sequence[ReleaseSummary], width: int) -> list[str]:
    """Two lines for each release, or more in a narrow terminal: how it went, and which run and commit that was."""
    lines: list[str] = []
    for one in summaries:
        held = sum(waiver.holds for waiver in one.waivers)
        waived = f", with {count(held, 'waiver')}" if held else ""
        resumed = f", resumed {count(one.attempt, 'time')}" if one.attempt else ""
        lines += wrapped(f"{one.version}  {_stands(one)}{waived}{resumed}", width, "    ")
        facts = f"run {one.release}, commit {short(one.commit)}, started {moment(one.started_at)}"
        lines += [f"  {line}" for line in wrapped(facts, width - 2, "  ")]
    return lines
