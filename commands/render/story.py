"""The story of a run as text, on one page: the verdict, what was compared, what happened, every attempt, the proof."""

from collections.abc import Iterable

from commands.render.words import clipped, count, counted, memory, moment, safe, seconds, told_counts, wrapped
from ledger.events import JudgedCase
from ledger.values import Digest
from projections.run.story import RunStory, StoryAttempt, StoryDriver, StoryTurn, StoryVerdict, Told
from projections.run.summary import SummarySide

MOST_ATTEMPTS = 60
MOST_CASES = 20
MOST_SHARDS = 20
_COLUMN = " " * 11
_INDENT = " " * 6


def story_lines(story: RunStory, width: int) -> list[str]:
    """The whole story, in lines of at most `width`; names and digests stay whole, so that they can be copied."""
    lines = [*wrapped(_headline(story), width), ""]
    for line in (*_compared(story), *_rules(story)):
        lines += wrapped(line, width, _COLUMN)
    lines += ["", "what happened", *_happened(story, width)]
    lines += ["", "what was collected and planned", *_planned(story, width)]
    lines += ["", f"attempts ({len(story.attempts)})", *_attempts(story, width)]
    for verdict in story.verdicts:
        lines += ["", *_verdict(verdict, width)]
    lines += ["", f"head       @{story.sequence}:{story.head}"]
    lines += wrapped(f"{_COLUMN}noted elsewhere, this shows later that nothing up to here was changed", width, _COLUMN)
    return lines


def _headline(story: RunStory) -> str:
    standing = next((verdict for verdict in story.verdicts if not verdict.superseded), None)
    if standing is None:
        return f"{story.state}: nothing is decided"
    return f"{standing.verdict}: {counted(told_counts(standing.counts, standing.blocking)) or standing.reason}"


def _compared(story: RunStory) -> Iterable[str]:
    yield f"run        {story.run}"
    yield f"candidate  {_side(story.candidate)}"
    yield f"baseline   {_side(story.baseline)}"
    if story.dirty:
        yield "note       uncommitted changes of the checkout were not tested"
    yield f"asked for  {_by(story.asked)}"


def _side(side: SummarySide) -> str:
    return f"{side.commit}  {side.ref}" + (f" ({side.reason})" if side.reason else "")


def _by(told: Told) -> str:
    actor = told.actor
    return f"{moment(told.time)}, #{told.position} @{told.sequence}, by {actor.who} on {actor.host} with {actor.tool}"


def _rules(story: RunStory) -> Iterable[str]:
    rules = ", ".join(f"{name} {value}" for name, value in story.policy.rules().items())
    yield f"rules      {rules}"
    yield f"settings   {_named(story.settings)}"


def _named(digest: Digest) -> str:
    return f"evidence {digest[:12]}"


def _happened(story: RunStory, width: int) -> Iterable[str]:
    """Drivers, stops, resumptions and verdicts in the order of the ledger."""
    told = [(driver.told, _driver(driver)) for driver in story.drivers]
    told += [(turn.told, _turn(turn)) for turn in story.turns]
    told += [(verdict.told, f"verdict: {verdict.verdict}") for verdict in story.verdicts]
    for where, what in sorted(told, key=lambda one: one[0].sequence):
        line = f"  {moment(where.time)}  #{where.position} @{where.sequence}  {what}, by {where.actor.who}"
        yield from wrapped(line, width, _INDENT)


def _driver(driver: StoryDriver) -> str:
    replaced = f"; the driver of term {driver.term - 1} {driver.replaced}" if driver.replaced else ""
    return f"driven by process {driver.pid} on {driver.host}, term {driver.term}{replaced}"


def _turn(turn: StoryTurn) -> str:
    if turn.kind == "resumed":
        return f"resumed from {turn.detail}, owing {', '.join(turn.owed) or 'nothing'}"
    return "stopped by a signal" if turn.detail == "interrupted" else "stopped on request"


def _planned(story: RunStory, width: int) -> Iterable[str]:
    for one in story.inventories:
        errors = f", {count(len(one.errors), 'target')} with errors" if one.errors else ""
        cases = f"{count(one.cases, 'case')} in {count(one.targets, 'target')}{errors}"
        yield from wrapped(f"  {one.side}: {cases}; {_named(one.inventory)}", width, _INDENT)
    if story.plan is None:
        yield "  nothing was planned"
        return
    shards = story.plan.shards
    yield from wrapped(
        f"  {count(len(shards), 'shard')} by {story.plan.planner}; {_named(story.plan.plan)}", width, _INDENT
    )
    for shard in shards[:MOST_SHARDS]:
        sides = f"{count(shard.candidate_targets, 'target')} of the candidate, {shard.baseline_targets} of the baseline"
        yield from wrapped(f"  {shard.shard}: {sides}, on {shard.member or 'nothing yet'}", width, _INDENT)
    if len(shards) > MOST_SHARDS:
        yield f"  ... and {len(shards) - MOST_SHARDS} more (--json has all)"


def _attempts(story: RunStory, width: int) -> Iterable[str]:
    for attempt in story.attempts[:MOST_ATTEMPTS]:
        yield from _attempt(attempt, width)
    if len(story.attempts) > MOST_ATTEMPTS:
        yield f"  ... and {len(story.attempts) - MOST_ATTEMPTS} more (--json has all)"


def _attempt(attempt: StoryAttempt, width: int) -> Iterable[str]:
    what = "" if attempt.targets is None else f", {count(attempt.targets, 'target')} still owed"
    cause = f" ({attempt.cause})" if attempt.cause else ""
    parts = [f"{attempt.outcome}{cause}", counted(attempt.counts)]
    if attempt.duration_seconds is not None:
        parts.append(seconds(attempt.duration_seconds))
    if attempt.peak_memory_bytes is not None:
        parts.append(memory(attempt.peak_memory_bytes))
    where = f"@{attempt.sequence} {attempt.shard}/{attempt.side} attempt {attempt.attempt} on {attempt.member}"
    yield from wrapped(f"  {where}{what}: {', '.join(part for part in parts if part)}", width, _INDENT)
    if attempt.detail:
        yield from wrapped(f"{_INDENT}{attempt.detail}", width, _INDENT)
    if attempt.evidence:
        named = ", ".join(f"{name.replace('_', ' ')} {digest[:12]}" for name, digest in attempt.evidence.items())
        yield from wrapped(f"{_INDENT}{named}", width, _INDENT)


def _verdict(verdict: StoryVerdict, width: int) -> Iterable[str]:
    superseded = ", set aside by a later resumption" if verdict.superseded else ""
    counts = counted(told_counts(verdict.counts, verdict.blocking))
    rule = f"by {verdict.table} under policy version {verdict.policy}"
    yield from wrapped(f"verdict    {verdict.verdict} ({verdict.reason}) {rule}{superseded}", width, _COLUMN)
    yield from wrapped(f"{_COLUMN}{_by(verdict.told)}", width, _COLUMN)
    yield from wrapped(f"{_COLUMN}{counts or 'no cases'}; {_named(verdict.classes)}", width, _COLUMN)
    yield from _cases("blocks", verdict.blocking, width)
    yield from _cases("unmeasured", verdict.unmeasured, width)


def _cases(title: str, cases: tuple[JudgedCase, ...], width: int) -> Iterable[str]:
    for case in cases[:MOST_CASES]:
        yield f"  {title}: {safe(case.test)}" + (f" ({case.case_class})" if title == "blocks" else "")
        if case.line:
            yield clipped(f"{_INDENT}{safe(case.line)}", width)
    if len(cases) > MOST_CASES:
        yield f"  ... and {len(cases) - MOST_CASES} more (--json has all)"
