"""Moments: positions, sequences and times, and the prefix of a run that each of them stands for."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ledger.errors import LedgerDamaged
from ledger.record import RecordedEvent
from projections.run.moment import MomentUnknown, Past, locate, locate_in_ledger, parse_moment
from tests.support.makers import RUN, begun, recorded

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
FIRST = 101
HEAD = 200
"""The makers begin with sequence 101 and count by two: the events between are those of other runs."""


def run_of(*seconds: float) -> list[RecordedEvent]:
    """A run with an event at each of these times, in seconds after the start, in this order."""
    events = recorded(begun()[1:2] * len(seconds))
    times = ((START + timedelta(seconds=one)).isoformat().replace("+00:00", "Z") for one in seconds)
    return [
        structs.replace(event, header=structs.replace(event.header, time=time))
        for event, time in zip(events, times, strict=True)
    ]


def position(text: str, events: Sequence[RecordedEvent], head: int = HEAD) -> int:
    """The position that a moment stands for."""
    return locate(parse_moment(text), RUN, events, head).position


@pytest.mark.parametrize(("text", "expected"), [("#1", 1), ("#2", 2), ("#3", 3), ("@101", 1), ("@102", 1), ("@105", 3)])
def test_a_number_stands_for_what_had_happened_up_to_it(text: str, expected: int) -> None:
    assert position(text, run_of(0, 1, 2)) == expected


def test_a_sequence_after_the_run_stands_for_all_of_it() -> None:
    assert position("@200", run_of(0, 1, 2)) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-02T03:04:05Z", 1),
        ("2030-01-02 03:04:06", 2),
        ("2030-01-02 03:04:06.999", 2),
        ("2030-01-02 03:05", 3),
        ("2030-01-02T04:04:06+01:00", 2),
        ("2030-01-01T22:04:06-05:00", 2),
        ("2030-01-03", 3),
        ("9999-12-31 23:59", 3),
    ],
)
def test_a_time_stands_for_what_was_not_later(text: str, expected: int) -> None:
    assert position(text, run_of(0, 1, 2)) == expected


def test_when_the_clock_goes_back_the_order_of_the_ledger_counts() -> None:
    events = run_of(0, 10, 5, 11)
    assert [position(f"2030-01-02 03:04:{second:02}", events) for second in (5, 10, 14, 15, 16)] == [1, 1, 1, 3, 4]


@given(st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=12), st.floats(0, 110, allow_nan=False))
def test_a_time_is_the_prefix_by_the_running_maximum(seconds: list[float], asked: float) -> None:
    events = run_of(*seconds)
    moment = START + timedelta(seconds=asked)
    times = [datetime.fromisoformat(event.header.time) for event in events]
    expected = [number for number in range(1, len(times) + 1) if max(times[:number]) <= moment]
    try:
        found = position(moment.isoformat(), events)
    except MomentUnknown:
        found = 0
    assert found == max(expected, default=0)


@given(st.integers(1, 30), st.integers(1, 30))
def test_a_later_moment_never_shows_less(one: int, other: int) -> None:
    events = run_of(*range(15))
    first, second = sorted((one, other))
    assert position(f"@{FIRST + first - 1}", events) <= position(f"@{FIRST + second - 1}", events)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#2", Past(position=2, sequence=103, time=START + timedelta(seconds=1))),
        ("@104", Past(position=2, sequence=103, time=START + timedelta(seconds=1))),
        ("2030-01-02 03:04:06.5", Past(position=2, sequence=103, time=START + timedelta(seconds=1.5))),
    ],
)
def test_the_past_is_seen_at_its_last_event_or_at_the_time_that_was_asked_for(text: str, expected: Past) -> None:
    assert locate(parse_moment(text), RUN, run_of(0, 1, 2), HEAD) == expected


@pytest.mark.parametrize(
    "text",
    ["", "17", "# 17", "#-1", "#1.5", "@", "#x", "@0x1", "yesterday", "13:00", "2030", "2030-13-01", "#1 ",
     "@" + "9" * 19, "2030-01-02T25:00", "\x1b[2J", "#١", "\udcff", "0001-01-01T00:00+23:59"],
)  # fmt: skip
def test_what_is_no_moment_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(MomentUnknown, match="is not a moment") as refused:
        parse_moment(text)
    assert refused.value.code == "moment-unknown"
    assert refused.value.exit_code == 2
    assert "'#17'" in refused.value.hint


@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    try:
        moment = parse_moment(text)
    except MomentUnknown:
        return
    assert [moment.position, moment.sequence, moment.time].count(None) == 2


@pytest.mark.parametrize("text", ["@100", "@1", "#0", "2030-01-02 03:04:04", "1970-01-01"])
def test_a_run_that_did_not_exist_yet_is_told_with_its_beginning(text: str) -> None:
    with pytest.raises(MomentUnknown, match="did not exist yet") as refused:
        position(text, run_of(0, 1, 2))
    assert refused.value.hint == "it began at @101, 2030-01-02 03:04:05 UTC"


@pytest.mark.parametrize(("text", "told"), [("#4", "ends at #3"), ("@201", "ends at @200")])
def test_what_has_not_happened_yet_is_told_with_the_end(text: str, told: str) -> None:
    with pytest.raises(MomentUnknown, match=told):
        position(text, run_of(0, 1, 2))


def test_an_event_without_a_readable_time_is_damage_with_its_place() -> None:
    (event,) = run_of(0)
    broken = structs.replace(event, header=structs.replace(event.header, time="noon"))
    with pytest.raises(LedgerDamaged, match=f"{RUN} #1 @101: 'noon' is not a time"):
        position("2030-01-02", [broken])
    assert locate(parse_moment("2030-01-03"), RUN, [event], HEAD).position == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("@1", 1), ("@110", 110), ("2030-01-02T03:04:06", 103), ("2031-01-01", 107)]
)
def test_a_moment_of_the_whole_ledger_is_its_last_sequence_then(text: str, expected: int) -> None:
    assert locate_in_ledger(parse_moment(text), run_of(0, 1, 5, 2), HEAD) == expected


@pytest.mark.parametrize("text", ["#1", "@0", "@201", "2001-01-01"])
def test_what_is_no_moment_of_the_whole_ledger_is_refused(text: str) -> None:
    with pytest.raises(MomentUnknown):
        locate_in_ledger(parse_moment(text), run_of(0, 1), HEAD)
