"""The difference of two runs as text; what is the same on both sides is left out where it says nothing."""

from collections.abc import Iterable, Sequence

from commands.render.words import count, memory, safe, seconds, told_class, wrapped
from projections.run.diff import ClassChange, Fact, RunDiff, Usage, UsageChange

MOST_TESTS = 40
MOST_SHARDS = 20


def diff_lines(diff: RunDiff, width: int) -> list[str]:
    """Both runs side by side."""
    lines = [f"left       {diff.left}", f"right      {diff.right}"]
    sections = (
        ("commits", diff.commits), ("rules", diff.policy), ("verdict", diff.verdict), ("cases", diff.cases),
        ("decisions", diff.decisions),
    )  # fmt: skip
    for title, facts in sections:
        changed = [fact for fact in facts if fact.differs]
        lines += ["", title if changed else f"{title}: the same", *fact_lines(changed, width)]
    return [*lines, "", *_classes(diff.classes, width), "", *_usage(diff.usage, width)]


def fact_lines(facts: Iterable[Fact], width: int) -> list[str]:
    """A line for each fact when it fits, else one for each side below its name."""
    lines: list[str] = []
    for fact in facts:
        left, right = (safe(side) or "-" for side in (fact.left, fact.right))
        line = f"  {fact.name:<20} {left} -> {right}"
        lines += [line] if len(line) <= width else [f"  {fact.name}", f"    {left}", f"    -> {right}"]
    return lines


def class_lines(classes: Sequence[ClassChange]) -> list[str]:
    """The tests that were judged otherwise; a name stays whole, so that it can be copied."""
    lines: list[str] = []
    for change in classes[:MOST_TESTS]:
        lines.append(f"  {safe(change.test)}")
        lines.append(f"      {_class(change.left, change.left_effect)} -> {_class(change.right, change.right_effect)}")
    if len(classes) > MOST_TESTS:
        lines.append(f"  ... and {len(classes) - MOST_TESTS} more (--json has all)")
    return lines


def _class(case_class: str, effect: str) -> str:
    words = {"failed": " (blocks)", "unmeasured": " (leaves it unmeasured)"}
    return (told_class(case_class, effect) + words.get(effect, "")) if case_class else "not judged"


def _classes(classes: tuple[ClassChange, ...] | None, width: int) -> list[str]:
    if classes is None:
        return wrapped("tests: one of the runs has no verdict, so they cannot be compared", width)
    return [f"tests: {count(len(classes), 'test')} judged otherwise", *class_lines(classes)]


def _usage(usage: Sequence[UsageChange], width: int) -> Iterable[str]:
    yield "usage: attempts, time, peak memory"
    for change in usage[:MOST_SHARDS]:
        left, right = _used(change.left), _used(change.right)
        line = f"  {change.what:<22} {left} -> {right}"
        yield from [line] if len(line) <= width else [f"  {change.what}", f"    {left}", f"    -> {right}"]
    if len(usage) > MOST_SHARDS:
        yield f"  ... and {len(usage) - MOST_SHARDS} more (--json has all)"


def _used(usage: Usage | None) -> str:
    if usage is None:
        return "-"
    peak = "" if usage.peak_memory_bytes is None else f", {memory(usage.peak_memory_bytes)}"
    return f"{usage.attempts} x, {seconds(usage.duration_seconds)}{peak}"
