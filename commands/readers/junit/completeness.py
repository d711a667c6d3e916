"""From what was gathered to what is proven: the rules by which an attempt is complete, in their order.

1. An attempt that ended by anything but its own exit, a report that cannot be read, or contents that were not asked for
   are troubles of the whole: nothing passes.
2. A failure is a failure whatever else is wrong.
3. A target passes when nothing of the above is the matter, all its counts agree, none of its cases is missing or
   unclear, and at least one of them was executed or the plan lets it skip.
4. The attempt is accepted when every planned target passes.
"""

from collections.abc import Iterator, Mapping

from commands.executors.api import JobEnd
from commands.readers.junit.dialects import Dialect
from commands.readers.junit.gather import Record
from commands.readers.junit.reading import Expectations, JUnitVerdict, TargetReading, Trouble
from commands.render.words import count
from ledger.values import TestId


def plan_troubles(expectations: Expectations) -> list[Trouble]:
    """Without targets that were asked for there is nothing that a report could be complete for."""
    if expectations.planned is None:
        return [Trouble("plan-missing", "no target was named, so nobody can tell whether one is missing")]
    return [] if expectations.planned else [Trouble("plan-empty", "the plan names no target")]


def end_troubles(end: JobEnd, dialect: Dialect) -> list[Trouble]:
    """What the end of the process says against the attempt, whatever its reports say."""
    meaning = _meaning(end, dialect)
    return [] if meaning in ("passed", "failed") else [Trouble(meaning, _told(end, dialect))]


def exit_contradictions(end: JobEnd, dialect: Dialect, failing: int) -> list[Trouble]:
    """What an ordinary exit code says against the `failing` cases."""
    meaning = _meaning(end, dialect)
    if meaning == "passed" and failing:
        return [Trouble("exit-contradicts-cases", f"{_told(end, dialect)}, but {count(failing, 'failure')} reported")]
    if meaning == "failed" and not failing:
        return [Trouble("exit-contradicts-cases", f"{_told(end, dialect)}, but no failure is reported")]
    return []


def _meaning(end: JobEnd, dialect: Dialect) -> str:
    """What the end of the process means by itself: `passed`, `failed`, or the reason code of why neither."""
    if end.end != "exited":
        return end.end
    return "exit-unknown" if end.exit_code is None else dialect.exits.get(end.exit_code, "exit-code-unexpected")


def _told(end: JobEnd, dialect: Dialect) -> str:
    if end.end != "exited":
        return f"killed by signal {end.signal}" if end.end == "signalled" else end.detail
    code = "a code that is not known" if end.exit_code is None else end.exit_code
    return f"the runner ({dialect.name}) exited with {code}"


def target_readings(
    expectations: Expectations,
    records: Mapping[str, Record],
    missing: Mapping[str, frozenset[TestId]],
    troubles: list[Trouble],
) -> tuple[TargetReading, ...]:
    """Every planned target, in the order of the plan."""
    return tuple(
        _target_reading(
            target,
            records.get(target) or Record(),
            missing.get(target, frozenset()),
            troubles[:1],
            may_skip=target in expectations.may_skip,
        )
        for target in dict.fromkeys(expectations.planned or ())
    )


def verdict_of(failing: int, targets: tuple[TargetReading, ...], troubles: list[Trouble]) -> JUnitVerdict:
    """The verdict on the attempt."""
    if failing:
        return "failed"
    return "accepted" if not troubles and all(one.verdict == "passed" for one in targets) else "unmeasured"


def _target_reading(
    target: str, record: Record, missing: frozenset[TestId], whole: list[Trouble], *, may_skip: bool
) -> TargetReading:
    idle = record.cases > 0 and record.executed <= record.doubtful and not record.failing
    # A skip may stand for a test that ran and skipped a part, as far as the counts leave room for such parts.
    lets_skip = may_skip or 0 < record.skipped <= record.spare
    trouble = next(iter([*_own_troubles(record, idle=idle and not lets_skip), *whole, *_gaps(record, missing)]), None)
    flags = (*(("flaky",) if record.reran else ()), *(("skipped-only",) if idle and lets_skip else ()))
    return TargetReading(
        target=target,
        verdict="failed" if record.failing else ("passed" if trouble is None else "unmeasured"),
        cause=None if trouble is None else trouble.code,
        detail="" if trouble is None else trouble.detail,
        cases=record.cases,
        flags=flags,
    )


def _own_troubles(record: Record, *, idle: bool) -> Iterator[Trouble]:
    """What is wrong with the cases of a target, which tells more than what is wrong with the whole."""
    if record.cause:
        yield Trouble(record.cause, record.detail)
    if idle:
        yield Trouble("only-skipped", f"{count(record.cases, 'case')}, none of which was executed")


def _gaps(record: Record, missing: frozenset[TestId]) -> Iterator[Trouble]:
    """What a target lacks, which what is wrong with the whole may explain."""
    if not record.cases and not record.failing:
        yield Trouble("target-missing", "no case of it is in the report")
    if missing:
        example = min(missing, key=TestId.sort_key).text()
        yield Trouble("cases-missing", f"{len(missing)} collected before, such as {example[:160]}")
