"""Usage over runs: what a target is known to need, from its latest attempts, whatever became of them."""

from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ledger.tables import KnownTarget
from projections.history.results import TargetRow
from projections.history.usage import (
    LATEST_ATTEMPTS,
    RAISE_FACTOR,
    SessionUsage,
    latest_usage,
    session_usage,
    usage_table,
    with_wholes,
)


def row(sequence: int, **changes: Any) -> TargetRow:
    """What one attempt says of a.py."""
    values: dict[str, Any] = {
        "run": "r", "target": "a.py", "side": "candidate", "shard": "s", "attempt": 1, "commit": f"{sequence:040}",
        "cause": None, "duration_seconds": float(sequence), "peak_memory_bytes": None, "memory_basis": "none",
        "sequence": sequence,
    }  # fmt: skip
    return TargetRow(**values | changes)


def alone(sequence: int, used: int) -> TargetRow:
    return row(sequence, peak_memory_bytes=used, memory_basis="alone")


def bound(sequence: int, used: int) -> TargetRow:
    return row(sequence, peak_memory_bytes=used, memory_basis="upper-bound")


def out_of_memory(sequence: int, used: int) -> TargetRow:
    return row(sequence, cause="memory-limit", peak_memory_bytes=used, memory_basis="at-least")


@pytest.mark.parametrize(
    ("rows", "memory"),
    [
        ([alone(1, 5), alone(2, 9), alone(3, 7)], (9, "alone")),
        ([bound(1, 5), bound(2, 9)], (5, "upper-bound")),
        ([bound(1, 500), alone(2, 9), bound(3, 4)], (9, "alone")),
        ([row(1), row(2)], (None, "none")),
        ([alone(1, 5), out_of_memory(2, 9)], (9 * RAISE_FACTOR, "at-least")),
        ([bound(1, 100), out_of_memory(2, 9)], (100, "at-least")),
        ([out_of_memory(1, 9), alone(2, 5)], (5, "alone")),
        ([out_of_memory(1, 9)], (9 * RAISE_FACTOR, "at-least")),
        ([out_of_memory(1, 9), out_of_memory(2, 20)], (20 * RAISE_FACTOR, "at-least")),
        ([alone(1, 5), row(2, cause="time-limit", peak_memory_bytes=99, memory_basis="upper-bound")], (5, "alone")),
    ],
)
def test_the_memory_of_a_target_is_what_is_known_best(rows: list[TargetRow], memory: tuple[int | None, str]) -> None:
    usage = latest_usage(rows)["a.py"]
    assert (usage.peak_memory_bytes, usage.memory_basis) == memory


def test_an_attempt_that_did_not_measure_a_target_says_nothing_about_it() -> None:
    rows = [row(1), row(2), row(3, cause="idle-limit"), row(4, target="b.py", cause="lost")]
    usage = latest_usage(rows)
    assert sorted(usage) == ["a.py"]
    assert (usage["a.py"].duration_seconds, usage["a.py"].measurements, usage["a.py"].sequence) == (1.5, 2, 2)


def test_the_side_that_needs_more_counts_and_a_measurement_of_the_other_side_takes_nothing_back() -> None:
    def other(known: TargetRow) -> TargetRow:
        return structs.replace(known, side="baseline")

    usage = latest_usage([bound(1, 311), other(alone(2, 30))])["a.py"]
    assert (usage.peak_memory_bytes, usage.memory_basis) == (311, "upper-bound")
    usage = latest_usage([alone(1, 30), out_of_memory(2, 95), other(alone(3, 30))])["a.py"]
    assert (usage.peak_memory_bytes, usage.memory_basis) == (190, "at-least")
    usage = latest_usage([out_of_memory(2, 95), other(alone(3, 30)), alone(4, 120)])["a.py"]
    assert (usage.peak_memory_bytes, usage.memory_basis) == (120, "alone")


def test_what_only_ever_ran_out_of_time_takes_at_least_that_long() -> None:
    usage = latest_usage([row(3, cause="time-limit"), row(2, cause="time-limit")])["a.py"]
    assert (usage.duration_seconds, usage.measurements, usage.peak_memory_bytes) == (6.0, 0, None)
    assert latest_usage([row(3, cause="time-limit"), row(4)])["a.py"].duration_seconds == 4.0


def test_what_none_of_the_newest_runs_measured_is_aged() -> None:
    assert not latest_usage([row(7)], fresh_from=7)["a.py"].aged
    assert latest_usage([row(6), row(9, cause="lost")], fresh_from=7)["a.py"].aged


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6)), min_size=1, max_size=3 * LATEST_ATTEMPTS))
def test_the_time_of_a_target_is_the_median_of_its_latest_measurements(told: list[tuple[bool, float]]) -> None:
    rows = [
        row(number, duration_seconds=seconds, cause=None if measured else "lost")
        for number, (measured, seconds) in enumerate(told, start=1)
    ]
    known = [seconds for measured, seconds in told[-LATEST_ATTEMPTS:] if measured]
    usage = latest_usage(rows)
    assert (usage["a.py"].duration_seconds if usage else None) == (median(known) if known else None)


def test_a_session_is_the_median_of_the_newest_attempts() -> None:
    assert session_usage([]) == SessionUsage()
    assert session_usage([(1.0, None), (9.0, 10), (2.0, 30)]) == SessionUsage(duration_seconds=2.0, memory_bytes=20)


def test_the_document_lists_the_targets_in_byte_order() -> None:
    usage = latest_usage([row(1, target="b.py"), row(2, target="a.py")])
    table = usage_table(usage, SessionUsage(duration_seconds=1.0, memory_bytes=2), {"b.py::t": 1.5})
    assert [(row.target, row.seconds) for row in table.targets] == [("a.py", 2.0), ("b.py", 1.0)]
    assert table.targets[0] == KnownTarget("a.py", 2.0, None, "none", False)
    assert (table.session_seconds, table.session_memory_bytes) == (1.0, 2)
    assert table.case_seconds == {"b.py::t": 1.5}


def test_a_target_is_known_by_its_parts_when_all_were_measured_since_it_was() -> None:
    one, two = "a.py::part-1-of-2", "a.py::part-2-of-2"
    told = latest_usage([alone(1, 50), row(2, target=one), bound(3, 7), row(4, target=two)])
    assert with_wholes(told) == told
    told = latest_usage(
        [
            alone(1, 50),
            structs.replace(bound(2, 9), target=one),
            structs.replace(bound(3, 7), target=two),
        ]
    )
    whole = with_wholes(told)["a.py"]
    assert (whole.duration_seconds, whole.peak_memory_bytes, whole.memory_basis) == (5.0, 9, "upper-bound")
    assert with_wholes({one: told[one]}) == {one: told[one]}
