"""What reports prove, as text."""

from collections.abc import Iterable

from commands.causes import CAUSES
from commands.readers.junit.reading import Reading, TargetReading
from commands.render.words import count, counted, safe, wrapped
from ledger.tables import CaseRow

MOST_FAILURES = 20


def reading_lines(reading: Reading, width: int) -> list[str]:
    """The verdict first; then why it is no better, target by target; then the failures, and what to do next."""
    cases = list(reading.cases())
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.outcome] = counts.get(case.outcome, 0) + 1
    read_as = f"read as {reading.dialect}" + (f" with {reading.profile}" if reading.profile else "")
    lines = [f"{reading.verdict}: {counted(counts) or 'no cases'}; {read_as}"]
    codes: dict[str, None] = {}
    for trouble in reading.troubles:
        codes[trouble.code] = None
        where = f"{trouble.report}: " if trouble.report else ""
        lines += wrapped(f"{trouble.code:<22} {where}{trouble.detail}", width, " " * 23)
    if reading.targets:
        lines += ["", *(line for target in reading.targets for line in _target(target, width))]
        codes |= {target.cause: None for target in reading.targets if target.cause}
    lines += _failures([case for case in cases if case.outcome in ("failed", "error")], width)
    if codes:
        lines.append("")
        for code in codes:
            cause = CAUSES[code]
            lines += wrapped(f"{code}: {cause.meaning} {cause.next_step}", width, "  ")
    if reading.suggested:
        lines += ["", "the counts would agree with: " + ", ".join(f"--profile {name}" for name in reading.suggested)]
    return lines


def _target(target: TargetReading, width: int) -> list[str]:
    notes = [count(target.cases, "case"), *target.flags]
    if target.cause is not None:
        notes.append(f"{target.cause}: {target.detail}")
    return wrapped(f"{target.verdict:<11}{target.target}  {'; '.join(notes)}", width, " " * 11)


def _failures(failed: list[CaseRow], width: int) -> Iterable[str]:
    if failed:
        yield ""
    for case in failed[:MOST_FAILURES]:
        yield from wrapped(f"{case.outcome:<11}{case.test.text()}  {safe(case.line)}", width, " " * 11)
    if len(failed) > MOST_FAILURES:
        yield f"{count(len(failed) - MOST_FAILURES, 'more failure')} (--json has all)"
