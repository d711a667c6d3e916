"""Flakiness: the same commit failed and passed. What fails every time is something else."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.history.flaky import HIDDEN, FlakyRow, Observation, flaky_rows, last_lines, passes_in_a_row


def seen(sequence: int, outcome: str, run: str = "run-1", **changes: Any) -> Observation:
    """What one attempt on the candidate saw of a test."""
    values: dict[str, Any] = {
        "test": "a.py::t", "side": "candidate", "commit": "c1", "host": "here", "reruns": 0,
        "line": "assert 1 == 2" if outcome in ("failed", "error") else "", "time": f"2030-01-01T00:00:{sequence:02}Z",
    }  # fmt: skip
    return Observation(run=run, outcome=outcome, sequence=sequence, **values | changes)  # type: ignore[arg-type]


def only(observations: Sequence[Observation]) -> FlakyRow:
    (row,) = flaky_rows(observations)
    return row


@pytest.mark.parametrize(
    ("observations", "kinds"),
    [
        ([seen(1, "passed", reruns=2)], (2, 0, 0)),
        ([seen(1, "failed"), seen(2, "passed")], (0, 1, 0)),
        ([seen(1, "error"), seen(2, "xpassed")], (0, 1, 0)),
        ([seen(1, "failed"), seen(2, "failed"), seen(3, "passed")], (0, 2, 0)),
        ([seen(1, "passed"), seen(2, "failed")], (0, 0, 1)),
        ([seen(1, "failed"), seen(2, "passed", "run-2")], (0, 0, 1)),
        ([seen(1, "passed"), seen(2, "failed", "run-2")], (0, 0, 1)),
        ([seen(1, "failed"), seen(2, "passed", side="baseline")], (0, 0, 1)),
        ([seen(1, "failed"), seen(2, "passed"), seen(3, "failed", "run-2")], (0, 1, 1)),
        ([seen(1, "failed", commit="c2"), seen(2, "passed"), seen(3, "passed", reruns=1)], (1, 0, 0)),
    ],
)
def test_each_kind_of_flaky_failure_is_counted_once(
    observations: list[Observation], kinds: tuple[int, int, int]
) -> None:
    row = only(observations)
    assert (row.reruns, row.retries, row.other_runs) == kinds
    assert sum(row.hosts.values()) == sum(row.causes.values()) == sum(kinds)


@pytest.mark.parametrize(
    "observations",
    [
        [],
        [seen(1, "passed"), seen(2, "passed", "run-2")],
        [seen(1, "failed"), seen(2, "failed"), seen(3, "error", "run-2")],
        [seen(1, "failed", commit="c1"), seen(2, "passed", commit="c2")],
        [seen(1, "failed"), seen(2, "skipped"), seen(3, "xfailed")],
        [seen(1, "failed", reruns=2)],
    ],
    ids=["nothing", "passes", "fails every time", "fixed by a change", "hidden later", "re-run in vain"],
)
def test_what_a_change_or_nothing_at_all_explains_is_not_flaky(observations: list[Observation]) -> None:
    assert list(flaky_rows(observations)) == []


def test_a_row_says_where_how_how_often_and_when_last() -> None:
    row = only(
        [
            seen(1, "failed", line="timeout after 31 s"), seen(2, "passed"),
            seen(3, "passed", "run-2"), seen(4, "passed", "run-3", reruns=1, host="there"),
            seen(5, "failed", "run-4", line="timeout after 7 s", host="there"), seen(6, "skipped", "run-5"),
        ]
    )  # fmt: skip
    assert (row.test, row.runs, row.flaky_runs, row.rate) == ("a.py::t", 5, 3, 0.6)
    assert row.hosts == {"here": 1, "there": 2}
    assert row.causes == {HIDDEN: 1, "timeout after <number> s": 2}
    assert (row.last_seen, row.last_run, row.last_sequence) == ("2030-01-01T00:00:05Z", "run-4", 5)


def test_each_test_has_a_row_of_its_own() -> None:
    both = [seen(1, "failed"), seen(2, "passed"), seen(1, "failed", test="b"), seen(2, "passed", test="c")]
    assert [row.test for row in flaky_rows(both)] == ["a.py::t"]


outcomes = st.sampled_from(["passed", "xpassed", "failed", "error", "skipped", "xfailed"])
observed = st.lists(st.tuples(outcomes, st.sampled_from("123"), st.sampled_from("ab"), st.integers(0, 2)), max_size=12)


@given(observed)
def test_a_row_agrees_with_a_plain_look_at_every_pair(told: list[tuple[str, str, str, int]]) -> None:
    made = [
        seen(number, outcome, run, commit=commit, reruns=reruns)
        for number, (outcome, run, commit, reruns) in enumerate(told, start=1)
    ]
    passed, failed = ("passed", "xpassed"), ("failed", "error")
    hidden = sum(one.reruns for one in made if one.outcome in passed)
    pairs = {(a.sequence, b.sequence) for a in made for b in made if a.commit == b.commit and a.outcome in failed}
    with_pass = {a for a, b in pairs if made[b - 1].outcome in passed}
    retried = {a for a, b in pairs if b > a and made[b - 1].outcome in passed and made[a - 1].run == made[b - 1].run}
    rows = list(flaky_rows(made))
    if not hidden and not with_pass:
        assert rows == []
        return
    (row,) = rows
    assert (row.reruns, row.retries, row.other_runs) == (hidden, len(retried), len(with_pass - retried))
    assert 0 < row.flaky_runs <= row.runs == len({one.run for one in made})


@pytest.mark.parametrize(
    ("observations", "passes"),
    [
        ([], 0),
        ([seen(2, "passed"), seen(3, "passed", "run-2")], 2),
        ([seen(2, "failed"), seen(3, "passed", "run-2")], 1),
        ([seen(2, "passed"), seen(3, "failed", "run-2")], 0),
        ([seen(2, "failed"), seen(3, "passed"), seen(4, "passed", "run-2")], 1),
        ([seen(2, "passed"), seen(3, "passed", "run-2", reruns=1)], 0),
        ([seen(2, "passed"), seen(3, "skipped", "run-2"), seen(4, "passed", "run-3")], 2),
        ([seen(2, "passed"), seen(3, "passed", "run-2", test="a.py::t[1]"), seen(4, "failed", "run-2")], 0),
        ([seen(1, "failed"), seen(2, "passed", "run-2")], 1),
        ([seen(1, "passed"), seen(2, "passed", "run-2")], 1),
        ([seen(2, "passed", side="baseline"), seen(3, "failed", "run-2", side="baseline")], 0),
    ],
)
def test_passes_in_a_row_are_counted_by_runs_since_the_muting(observations: list[Observation], passes: int) -> None:
    assert passes_in_a_row(observations, since=1) == passes


def test_the_last_lines_are_those_of_the_newest_run_that_failed_each_kind_once() -> None:
    assert last_lines([]) == last_lines([seen(1, "passed"), seen(2, "failed", side="baseline")]) == ()
    assert last_lines(
        [
            seen(1, "failed", line="KeyError"), seen(2, "failed", "run-2", line="assert 1 == 2"),
            seen(3, "failed", "run-2", line="assert 3 == 4"), seen(4, "error", "run-2", line="OSError"),
            seen(5, "passed", "run-3"), seen(6, "failed", "run-2", line=""),
        ]
    ) == ("assert 3 == 4", "OSError")  # fmt: skip
