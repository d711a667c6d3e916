"""Flakiness: tests of which the same commit failed and passed, over all runs, by host and by how they failed.

A failure is *flaky* when the same test of the same commit passed as well, because nothing of the project's own explains
the difference. How that came to light, first match wins:

| the same commit passed                                                 | kind     |
|---|---|
| within the same attempt, after the project's own re-run plug-in        | `rerun`  |
| in a later attempt of the same side of the same run                    | `retry`  |
| only earlier in that run, or in another run                            | `runs`   |

What failed every time is no flakiness: it is a failure, however often it is seen.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct

from ledger.values import Commit, Outcome, Side
from projections.gate.fingerprint import fingerprint

Kind = Literal["rerun", "retry", "runs"]
FAILED = ("failed", "error")
PASSED = ("passed", "xpassed")
LINES_MAX = 20
HIDDEN = "not told: a re-run plug-in of the project hid it"
"""How a test failed whose failure the project itself hid."""


class Observation(Struct, frozen=True):
    """What one attempt saw of a test: where, of which commit, and the first line of how it failed.

    `time` and `sequence` are those of the attempt's record.
    """

    test: str
    run: str
    side: Side
    commit: Commit
    host: str
    outcome: Outcome
    reruns: int
    line: str
    time: str
    sequence: int


class FlakyRow(Struct, frozen=True, kw_only=True):
    """One test that is flaky. `runs` is in how many runs it was seen, `flaky_runs` in how many of them a flaky failure
    was, `rate` the one by the other. `reruns`, `retries` and `other_runs` count flaky failures by how they came to
    light; `hosts` and `causes` count the same failures by where they were and by how it failed, without what is
    different each time. `last_seen` (UTC), `last_run` and `last_sequence` are those of the last one."""

    test: str
    runs: int
    flaky_runs: int
    rate: float
    reruns: int
    retries: int
    other_runs: int
    hosts: dict[str, int]
    causes: dict[str, int]
    last_seen: str
    last_run: str
    last_sequence: int


class _Failure(Struct, frozen=True):
    kind: Kind
    seen: Observation
    count: int


def flaky_rows(observations: Iterable[Observation]) -> Iterator[FlakyRow]:
    """The tests that are flaky; the observations of each test follow one another, oldest first."""
    for test, seen in groupby(observations, key=lambda one: one.test):
        observed = list(seen)
        failures = list(_failures(observed))
        if failures:
            yield _row(test, observed, failures)


def _failures(observed: list[Observation]) -> Iterator[_Failure]:
    passes = [one for one in observed if one.outcome in PASSED]
    passed_commits = {one.commit for one in passes}
    last_pass = {(one.run, one.side, one.commit): one.sequence for one in passes}
    for one in observed:
        if one.outcome in PASSED and one.reruns:
            yield _Failure("rerun", one, one.reruns)
        elif one.outcome in FAILED and one.commit in passed_commits:
            later = last_pass.get((one.run, one.side, one.commit), 0) > one.sequence
            yield _Failure("retry" if later else "runs", one, 1)


def _row(test: str, observed: list[Observation], failures: list[_Failure]) -> FlakyRow:
    kinds: Counter[Kind] = Counter()
    hosts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for failure in failures:
        kinds[failure.kind] += failure.count
        hosts[failure.seen.host] += failure.count
        causes[HIDDEN if failure.kind == "rerun" else fingerprint(failure.seen.line)] += failure.count
    runs, flaky_runs = {one.run for one in observed}, {failure.seen.run for failure in failures}
    last = failures[-1].seen
    return FlakyRow(
        test=test,
        runs=len(runs),
        flaky_runs=len(flaky_runs),
        rate=round(len(flaky_runs) / len(runs), 4),
        reruns=kinds["rerun"],
        retries=kinds["retry"],
        other_runs=kinds["runs"],
        hosts=dict(sorted(hosts.items())),
        causes=dict(sorted(causes.items())),
        last_seen=last.time,
        last_run=last.run,
        last_sequence=last.sequence,
    )


def passes_in_a_row(observations: Iterable[Observation], since: int) -> int:
    """In how many runs up to the newest one the candidate's tests passed at once, looking only at what was recorded
    after a sequence.

    A run in which one of them failed, were it only at first, ends that; one in which none was run is not counted.
    """
    good: dict[str, bool] = {}
    newest: dict[str, int] = {}
    for one in observations:
        if one.side != "candidate" or one.sequence <= since or one.outcome not in (*PASSED, *FAILED):
            continue
        good[one.run] = good.get(one.run, True) and one.outcome in PASSED and not one.reruns
        newest[one.run] = max(newest.get(one.run, 0), one.sequence)
    number = 0
    for run in sorted(newest, key=lambda run: -newest[run]):
        if not good[run]:
            break
        number += 1
    return number


def last_lines(observations: Iterable[Observation]) -> tuple[str, ...]:
    """The first lines of how the candidate's tests failed in the newest run in which one did, each kind of failure
    once, and of very many kinds the first ones."""
    failed = [one for one in observations if one.side == "candidate" and one.outcome in FAILED]
    newest = max(failed, key=lambda one: one.sequence, default=None)
    if newest is None:
        return ()
    by_kind = {fingerprint(one.line): one.line for one in failed if one.run == newest.run and one.line}
    return tuple(by_kind.values())[:LINES_MAX]
