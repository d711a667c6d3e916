"""Files with usage: ours and pytest-split's are read, and everything else is refused with what is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.decide.planner.estimate import KnownUsage
from commands.readers.usage_file import UsageFileInvalid, read_usage


def test_targets_with_time_and_memory_are_read_and_what_else_is_said_of_them_is_passed_over() -> None:
    document = {"a.py": {"memory_bytes": 5, "seconds": 1}, "b.py": {"memory_bytes": 1, "seconds": 0.5, "runs": 3}}
    assert read_usage(json.dumps(document).encode()) == {
        "a.py": KnownUsage(seconds=1.0, memory_bytes=5),
        "b.py": KnownUsage(seconds=0.5, memory_bytes=1),
    }


def test_the_times_of_single_tests_are_added_up_for_their_target_without_rounding() -> None:
    document = {f"a.py::test_{number}[x::y]": 0.1 for number in range(10)} | {"b.py::T::test": 2, "c.py": 3}
    assert read_usage(json.dumps(document).encode()) == {
        "a.py": KnownUsage(seconds=1.0),
        "b.py": KnownUsage(seconds=2.0),
        "c.py": KnownUsage(seconds=3.0),
    }


def test_an_empty_object_says_nothing_and_is_no_error() -> None:
    assert read_usage(b"{}") == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not a JSON document"),
        ("[]", "not an object"),
        ("null", "not an object"),
        ('{"a": 1', "not a JSON document"),
        ('{"a": 1, "a": 1}', "'a' is there twice"),
        ('{"a": {"memory_bytes": 1, "seconds": 1, "seconds": 2}}', "'seconds' is there twice"),
        ('{"a": "1"}', "the time of 'a'"),
        ('{"a": null}', "the time of 'a'"),
        ('{"a": true}', "the time of 'a'"),
        ('{"a": -1}', "the time of 'a'"),
        ('{"a": NaN}', "the time of 'a'"),
        ('{"a": Infinity}', "the time of 'a'"),
        ('{"a": 1e999}', "the time of 'a'"),
        ('{"a": [1]}', "the time of 'a'"),
        ('{"a": {}}', "`memory_bytes` of 'a'"),
        ('{"a": {"memory_bytes": 1}}', "the time of 'a'"),
        ('{"a": {"memory_bytes": 0, "seconds": 1}}', "`memory_bytes` of 'a'"),
        ('{"a": {"memory_bytes": 1.0, "seconds": 1}}', "`memory_bytes` of 'a'"),
        ('{"a": {"memory_bytes": true, "seconds": 1}}', "`memory_bytes` of 'a'"),
        ('{"a": {"memory_bytes": 9007199254740993, "seconds": 1}}', "`memory_bytes` of 'a'"),
        ('{"a": {"memory_bytes": 1, "seconds": 1}, "a::test": 1}', "again without"),
        ('{"a": ' + "9" * 5000 + "}", "not a JSON document"),
        ("[" * 100_000, "not a JSON document"),
        ('\ufeff{"a": 1}', "not a JSON document"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: str, what: str) -> None:
    with pytest.raises(UsageFileInvalid) as refused:
        read_usage(text.encode())
    assert what in refused.value.message
    assert "memory_bytes" in refused.value.hint


@given(data=st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    try:
        known = read_usage(data)
    except UsageFileInvalid:
        return
    assert all(one.seconds >= 0 for one in known.values())
