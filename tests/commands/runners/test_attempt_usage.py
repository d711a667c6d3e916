"""Usage of an attempt: times laid over memory; what is told of a target is never less than what was seen of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commands.executors.api import JobEnd
from commands.readers.attempt_usage import usage_of
from commands.readers.pytest_record import Session, Span
from tests.commands.runners.records import INVENTORY, PASSED, A, B, Record, read
from tests.commands.runners.sessions import ended

MIB = 2**20


def end_with(*samples: tuple[float, float, int], **changes: object) -> JobEnd:
    """The end of an attempt with these samples of its memory."""
    return structs.replace(ended(0), memory_samples=samples, **changes)


def session_of(*spans: Span) -> Session:
    """A session in which targets were at work."""
    return Session(spans=list(spans))


def test_a_lone_targets_memory_is_its_own_beyond_what_the_session_used_before() -> None:
    session = session_of(Span("a.py", 10.0, 11.0, loading=True), Span("a.py", 11.0, 13.0))
    usage = usage_of(session, end_with((9.0, 9.0, 30 * MIB), (10.5, 10.5, 50 * MIB), (12.0, 12.0, 90 * MIB)), ["a.py"])
    need = usage.targets["a.py"]
    assert (need.seconds, need.memory_bytes, need.memory_basis) == (3.0, 60 * MIB, "alone")
    assert (usage.session_seconds, usage.session_memory_bytes) == (7.0, 30 * MIB)


def test_one_target_among_others_has_a_bound_from_above_with_a_look_before_and_one_after() -> None:
    session = session_of(Span("a.py", 10.0, 11.0), Span("b.py", 11.0, 12.0), Span("c.py", 12.0, 13.0))
    samples = [(9.9, 9.9, 1), (10.5, 10.5, 100), (11.5, 11.5, 20), (12.5, 12.5, 7)]
    needs = usage_of(session, end_with(*samples), ["a.py", "b.py", "c.py"]).targets
    assert {target: need.memory_bytes for target, need in needs.items()} == {"a.py": 99, "b.py": 99, "c.py": 19}
    assert {need.memory_basis for need in needs.values()} == {"upper-bound"}


def test_without_a_look_at_the_memory_nothing_is_told_of_it() -> None:
    usage = usage_of(session_of(Span("a.py", 1.0, 2.0)), end_with(), ["a.py", "b.py"])
    assert [usage.targets[name].memory_basis for name in ("a.py", "b.py")] == ["none", "none"]
    assert usage.session_memory_bytes is None


def test_the_time_of_processes_that_work_at_once_is_shared_out() -> None:
    session = session_of(Span("a.py", 0.0, 4.0), Span("b.py", 0.0, 4.0), Span("c.py", 1.0, 3.0))
    usage = usage_of(session, end_with(), ["a.py", "b.py", "c.py"])
    assert usage.session_seconds == 6.0
    assert [usage.targets[name].seconds for name in ("a.py", "b.py", "c.py")] == pytest.approx([1.6, 1.6, 0.8])


def test_what_a_memory_limit_ended_needs_at_least_what_was_used_by_then() -> None:
    record = Record().items(A, B).case(0, PASSED).start(1)
    end = end_with((99.0, 99.0, 10), (101.0, 101.0, 70), end="memory-limit", exit_code=None, signal=9)
    reading = read(record, structs.replace(end, peak_memory_bytes=80))
    assert reading.usage.exceeded == ("b.py",)
    rows = {row.target: (row.cause, row.memory_bytes, row.memory_basis) for row in reading.table.targets}
    assert rows == {"a.py": (None, 60, "upper-bound"), "b.py": ("memory-limit", 70, "at-least")}


def test_another_limit_tells_nothing_of_the_memory_of_what_was_running() -> None:
    reading = read(Record().items(A, B).case(0, PASSED).start(1), end_with((99.0, 99.0, 10), end="time-limit"))
    assert reading.usage.exceeded == ()
    assert [row.memory_basis for row in reading.table.targets] == ["upper-bound", "upper-bound"]


def test_a_file_that_was_loaded_costs_time_even_when_it_has_no_tests() -> None:
    record = Record().add("loaded", "a.py", 97.0, 99.0).items(A, B).case(0, PASSED).case(1, PASSED)
    reading = read(record.add("end", 0, True), structs.replace(ended(0), duration_seconds=100.0), inventory=INVENTORY)
    assert [round(row.duration_seconds, 6) for row in reading.table.targets] == [2.6, 0.6]


TIMES = st.floats(0, 100)
SPANS = st.builds(
    lambda target, began, length, loading, ended: Span(target, began, began + length if ended else None, loading),
    st.sampled_from(["a.py", "b.py", "c.py"]), TIMES, TIMES, st.booleans(), st.booleans(),
)  # fmt: skip


@given(
    spans=st.lists(SPANS, max_size=12),
    looks=st.lists(st.tuples(TIMES, st.integers(1, 1000)), max_size=12),
    duration=st.floats(0, 300),
)
def test_no_look_at_a_target_shows_more_than_its_bound_and_all_times_fit_into_the_attempt(
    spans: list[Span], looks: list[tuple[float, int]], duration: float
) -> None:
    samples = tuple((time, time, used) for time, used in sorted(looks))
    usage = usage_of(session_of(*spans), end_with(*samples, duration_seconds=duration), ["a.py", "b.py", "c.py"])
    base = usage.session_memory_bytes or 0
    for span in spans:
        until = math.inf if span.ended is None else span.ended
        seen = [used for time, used in looks if span.began <= time <= until]
        assert (usage.targets[span.target].memory_bytes or 0) >= max([0, *seen]) - base
    total = sum(need.seconds for need in usage.targets.values())
    assert total <= duration * (1 + 1e-9) + 1e-9
    assert usage.session_seconds == pytest.approx(duration - total, abs=1e-6)
    assert all(need.seconds >= 0 for need in usage.targets.values())
