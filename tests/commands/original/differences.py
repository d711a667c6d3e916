"""Every kind of difference between the default policy and the policy `original`, found by rules.

A rule looks at the scenario and at what the original did, never at which vector it is.
"""

from collections.abc import Iterable, Iterator

from ledger.values import SIDES, Side
from tests.commands.original.greedy import is_count
from tests.commands.original.policy import Attempt, Ending
from tests.commands.original.replies import Scenario
from tests.commands.original.reports import Case, proven_cases
from tests.commands.original.scripted_gate import Answer, FileSet

NO_COUNT = "a number of shards that is none throws; by default the configuration is refused, and 0 has one chosen"
NO_FILES = "without files nothing is measured; by default a gate without tests is refused"
UNKNOWN = (
    "a file that tells nothing when it is run alone ends the run; by default it is planned with an estimate and run"
)
TOO_HEAVY = "a file above the memory budget ends the run; by default it is run alone, as far as its limit lets it"
TOO_MANY = "files that have no room in so many shards end the run; by default there are more shards"
NO_BASELINE = "without a tree of the baseline all shards are left; by default nothing is planned without its collection"
OTHER_SHARDS = "the files are shared out in another way"
HALVES = "a shard counts when both sides are complete in one round; by default each side counts for itself"
UNCOMPARED = "a shard without a baseline is unmeasured; by default what passes needs no comparison, and is only owed"
PROVEN = "nothing is said while a shard is incomplete; by default a regression that is proven blocks"
SKIPPED = (
    "a skipped test makes a shard unmeasured; by default it is a result, which blocks where the test passed before"
)
AGAIN = "a side that was complete is run again, and the last result counts; by default it is not, and the first stands"

REASONS = {
    "measurement unavailable": UNKNOWN,
    "Error: missing or invalid": UNKNOWN,
    "Error: test file exceeds": TOO_HEAVY,
    "Error: test files exceed": TOO_MANY,
}
"""The kinds that the original's own reason tells."""


def differs(theirs: Ending | None, ours: Answer) -> bool:
    """Whether status, retry set or rounds differ; None is an original that throws."""
    if theirs is None:
        return True
    retry = {files for shard, files in _shards(theirs).items() if shard in theirs.retry}
    return not (theirs.status == ours.status and retry == ours.owed and theirs.rounds == ours.rounds)


def kinds(scenario: Scenario, theirs: Ending | None, ours: Answer) -> set[str]:
    """The kinds of difference that there are; none where nothing differs or where no rule explains it."""
    if not differs(theirs, ours):
        return set()
    before = _before_the_rounds(scenario, theirs, ours)
    if theirs is None or before:
        return {before} if before else set()
    return {kind for attempts in by_shard(theirs).values() for kind in _of_shard(attempts)} | (
        {PROVEN} if theirs.status == "unmeasured" and any(map(_regressed, by_shard(theirs).values())) else set()
    )


def _before_the_rounds(scenario: Scenario, theirs: Ending | None, ours: Answer) -> str | None:
    if theirs is None:
        return None if is_count(scenario.count) else NO_COUNT
    if not scenario.files:
        return NO_FILES
    for reason, kind in REASONS.items():
        if (theirs.reason or "").startswith(reason):
            return kind
    if not scenario.worktree:
        return NO_BASELINE
    return OTHER_SHARDS if set(_shards(theirs).values()) != ours.shards else None


def _shards(ending: Ending) -> dict[str, FileSet]:
    return {shard.shard: frozenset(shard.files) for shard in ending.shards}


def by_shard(ending: Ending) -> dict[str, list[Attempt]]:
    """The attempts of each shard, in order."""
    return {shard.shard: [attempt for attempt in ending.attempts if attempt.shard is shard] for shard in ending.shards}


def _of_shard(attempts: list[Attempt]) -> Iterator[str]:
    sides = {side: list(_proven(attempts, side)) for side in SIDES}
    if any(set(cases) != set(proven[0]) for proven in sides.values() for cases in proven):
        yield AGAIN
    if any(case.skipped for proven in sides.values() for cases in proven for case in cases):
        yield SKIPPED
    elif not attempts[-1].complete and sides["candidate"]:
        if sides["baseline"]:
            yield HALVES
        elif all(case.failure is None for case in sides["candidate"][0]):
            yield UNCOMPARED


def unexplained(attempts: list[Attempt]) -> bool:
    """Whether a shard has to be unmeasured for everybody: of the candidate nothing is complete, or what failed there
    has no complete baseline."""
    candidate, baseline = (list(_proven(attempts, side)) for side in SIDES)
    return not candidate or (not baseline and any(case.failure is not None or case.skipped for case in candidate[0]))


def _regressed(attempts: list[Attempt]) -> bool:
    """Whether a test of the candidate failed that did not fail on the baseline, by the first complete run of each."""
    candidate, baseline = (list(_proven(attempts, side)) for side in SIDES)
    if not candidate or not baseline:
        return False
    return bool(_failing(candidate[0]) - _failing(baseline[0]))


def _failing(cases: Iterable[Case]) -> set[tuple[str, str]]:
    return {(case.file, case.name) for case in cases if case.failure is not None}


def _proven(attempts: list[Attempt], side: Side) -> Iterator[tuple[Case, ...]]:
    for attempt in attempts:
        cases = proven_cases(attempt.candidate if side == "candidate" else attempt.baseline, attempt.shard.files)
        if cases is not None:
            yield cases
