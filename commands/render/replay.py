"""What a replay found, as text: the answer first, then the decisions by kind, then whatever does not agree."""

import json
from collections import Counter
from collections.abc import Iterable

import msgspec

from commands.reconsider import Reconsideration, Reconsidered
from commands.render.diff import class_lines, fact_lines
from commands.render.events import describe
from commands.render.words import clipped, count, safe, wrapped
from commands.replay import Answer, AnsweredEvent, Finding, Outcome, Report

OUTCOMES: dict[Outcome, str] = {"agree": "agree", "disagree": "disagree", "not-derivable": "not derivable"}
MOST_FINDINGS = 50


def replay_lines(report: Report, width: int) -> list[str]:
    """The findings of a run."""
    lines = [
        *wrapped(_headline(report), width),
        "",
        f"run        {report.run}",
        "",
        "decisions",
        *_table(report.findings),
    ]
    doubtful = [finding for finding in report.findings if finding.outcome != "agree"]
    for finding in doubtful[:MOST_FINDINGS]:
        lines += ["", *_finding(finding, width)]
    if len(doubtful) > MOST_FINDINGS:
        lines += ["", f"... and {len(doubtful) - MOST_FINDINGS} more (--json has all)"]
    return lines


def _headline(report: Report) -> str:
    outcomes, decisions = report.counts, count(len(report.findings), "decision")
    if report.outcome == "agree":
        return f"agree: {decisions} decided again, each with the same answer"
    undecided = f"{outcomes['not-derivable']} cannot be derived in this build"
    if report.outcome == "not-derivable":
        return f"not derivable: of {decisions} {undecided}, and {outcomes['agree']} agree"
    also = f", and {undecided}" if outcomes["not-derivable"] else ""
    return f"disagree: of {decisions} {outcomes['disagree']} come out otherwise{also}"


def _table(findings: Iterable[Finding]) -> Iterable[str]:
    kinds: dict[str, Counter[Outcome]] = {}
    for finding in findings:
        kinds.setdefault(finding.message or "?", Counter())[finding.outcome] += 1
    for kind, outcomes in kinds.items():
        told = (f"{outcomes[outcome]} {words}" for outcome, words in OUTCOMES.items() if outcomes[outcome])
        yield f"  {safe(kind):<16} {', '.join(told)}"


def _finding(finding: Finding, width: int) -> Iterable[str]:
    where = f"#{finding.first}" if finding.first == finding.last else f"#{finding.first} to #{finding.last}"
    words = {"agree": "agrees", "disagree": "disagrees", "not-derivable": "cannot be derived"}
    tags = ", ".join(finding.tags)
    yield from wrapped(f"{where} @{finding.sequence} {words[finding.outcome]}: {tags} ({finding.reason})", width)
    if finding.detail:
        yield from wrapped(f"  {finding.detail}", width, "  ")
    if finding.recorded is not None and finding.derived is not None:
        yield from _both(finding.recorded, finding.derived, width)


def _both(recorded: Answer, derived: Answer, width: int) -> Iterable[str]:
    for name, answer in (("recorded", recorded), ("derived", derived)):
        told = [f"{one.tag}: {describe(one.event)}" for one in answer.events]
        for line in told or [f"refused, {answer.refused}" if answer.refused else "nothing"]:
            yield from wrapped(f"  {name:<9} {line}", width, " " * 12)
    for ours, theirs in zip(recorded.events, derived.events, strict=False):
        if ours.tag == theirs.tag:
            yield from _fields(ours, theirs, width)


def _fields(recorded: AnsweredEvent, derived: AnsweredEvent, width: int) -> Iterable[str]:
    """The fields of an event that are not the same."""
    left, right = msgspec.to_builtins(recorded.event), msgspec.to_builtins(derived.event)
    for name in left:
        if left[name] != right[name]:
            yield f"  {recorded.tag}, {name}"
            for label, value in (("recorded", left[name]), ("derived", right[name])):
                yield clipped(f"    {label:<9} {safe(json.dumps(value, ensure_ascii=False))}", width)


def reconsidered_lines(found: Reconsideration, width: int) -> list[str]:
    """What today's rules would say of a run's verdicts."""
    if not found.verdicts:
        return wrapped(f"run {found.run} has no verdict that could be decided again", width)
    lines = [f"run        {found.run}"]
    for verdict in found.verdicts:
        lines += ["", *_reconsidered(verdict, width)]
    return lines


def _reconsidered(verdict: Reconsidered, width: int) -> Iterable[str]:
    where = f"#{verdict.position} @{verdict.sequence}"
    recorded = f"{verdict.recorded_verdict} ({verdict.recorded_reason}) by {verdict.recorded_table}"
    yield from wrapped(f"{where} was {recorded}", width)
    if verdict.verdict is None:
        would = "could not be decided again" if not verdict.derivable else "would not be decided"
        yield from wrapped(f"  {would}: {verdict.why_not}", width, "  ")
    elif (verdict.verdict, verdict.reason) == (verdict.recorded_verdict, verdict.recorded_reason):
        yield f"  would be {verdict.verdict} again, by {verdict.table}"
    else:
        yield f"  would be {verdict.verdict} ({verdict.reason}) by {verdict.table}"
    changed = [fact for fact in verdict.policy if fact.differs]
    yield from ("", "rules that changed") if changed else ()
    yield from fact_lines(changed, width)
    yield from ("", "tests that would be judged otherwise") if verdict.classes else ()
    yield from class_lines(verdict.classes)
