"""The policy `original`, for tests only: how the system whose work this one takes over ran the tests of a change.

Every file is measured alone; the greedy plan is made of that; then there are up to two rounds, shard after shard,
always the candidate and then the baseline, where the shards that are not complete on both sides are run again on both.
Nothing is run again because it failed. It is written from the description of that system's behaviour; texts on a
console, time limits and known preconditions, which it also looks at, are left out.
"""

from dataclasses import dataclass

from ledger.values import Side, Verdict
from tests.commands.original.greedy import Bundle, OriginalError, greedy_plan, is_count, is_number
from tests.commands.original.replies import Reply, Scenario, Script
from tests.commands.original.reports import Case, proven_cases

ROUNDS = 2

Attribution = dict[str, str]
"""What is said of each failing test, as `file > name`."""


@dataclass(frozen=True)
class Attempt:
    """One round of one shard."""

    shard: Bundle
    number: int
    candidate: Reply
    baseline: Reply

    def cases(self, side: Side) -> tuple[Case, ...] | None:
        """The cases of a side that is complete; a skipped test makes it incomplete."""
        cases = proven_cases(self.candidate if side == "candidate" else self.baseline, self.shard.files)
        return None if cases is None or any(case.skipped for case in cases) else cases

    @property
    def complete(self) -> bool:
        """Whether both sides are."""
        return self.cases("candidate") is not None and self.cases("baseline") is not None


@dataclass(frozen=True)
class Ending:
    """How a run ends. `retry` are the shards that would have to be run again; `reason` is None unless it says why."""

    status: Verdict
    calls: tuple[tuple[Side, tuple[str, ...]], ...]
    retry: tuple[str, ...] = ()
    reason: str | None = None
    shards: tuple[Bundle, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    failures: Attribution | None = None

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return max((attempt.number for attempt in self.attempts), default=0)


def run_original(scenario: Scenario) -> Ending:
    """Run the scenario. Raises OriginalError for a number of shards that is none."""
    if not is_count(scenario.count):
        raise OriginalError("invalid --shards count")
    script = scenario.script()
    measured: dict[str, Reply] = {}
    for file in dict.fromkeys(scenario.files):
        measured[file] = script.answer("candidate", (file,))
        if not is_measurement(measured[file]):
            return Ending("unmeasured", tuple(script.calls), reason=f"measurement unavailable: {file}")
    try:
        shards = greedy_plan(
            measured,
            {file: reply.memory_mb for file, reply in measured.items()},
            {file: reply.seconds for file, reply in measured.items()},
            scenario.budget_gib,
            scenario.count,
        )
    except OriginalError as error:
        return Ending("unmeasured", tuple(script.calls), reason=f"Error: {error}")
    if not scenario.worktree:
        everything = tuple(shard.shard for shard in shards)
        reason = "baseline setup failed: scripted"
        return Ending("unmeasured", tuple(script.calls), everything, reason, tuple(shards))
    return _run_rounds(script, shards)


def is_measurement(reply: Reply) -> bool:
    """Whether a file's run alone counts as its measurement; nobody looks into the report."""
    ended = reply.exit_code in (0, 1) and reply.signal is None
    return ended and bool(reply.junit) and is_number(reply.memory_mb) and is_number(reply.seconds)


def _run_rounds(script: Script, shards: list[Bundle]) -> Ending:
    attempts: list[Attempt] = []
    pending = list(shards)
    for number in range(1, ROUNDS + 1):
        latest = [
            Attempt(
                shard,
                number,
                candidate=script.answer("candidate", shard.files),
                baseline=script.answer("baseline", shard.files),
            )
            for shard in pending
        ]
        attempts += latest
        pending = [attempt.shard for attempt in latest if not attempt.complete]
    calls, retry = tuple(script.calls), tuple(shard.shard for shard in pending)
    if retry or not shards:
        return Ending("unmeasured", calls, retry, shards=tuple(shards), attempts=tuple(attempts))
    failures = _failures({attempt.shard.shard: attempt for attempt in attempts}, shards)
    status: Verdict = "failed" if "introduced" in failures.values() else "passed"
    return Ending(status, calls, shards=tuple(shards), attempts=tuple(attempts), failures=failures)


def _failures(newest: dict[str, Attempt], shards: list[Bundle]) -> Attribution:
    """Whose fault each failing test of the candidate is; that of a test which fails on the baseline is nobody's."""
    attributions: Attribution = {}
    for shard in shards:
        attempt = newest[shard.shard]
        before = {case[:2] for case in attempt.cases("baseline") or () if case.failure is not None}
        for case in attempt.cases("candidate") or ():
            if case.failure is not None:
                attribution = "preexisting" if case[:2] in before else "introduced"
                attributions[f"{case.file} > {case.name}"] = attribution
    return attributions
