"""Fingerprints: the same failure in two runs has one, another failure has another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.gate.fingerprint import MOST_CHARACTERS, fingerprint

SAME = {
    "numbers": ("assert 3 == 4", "assert 17 == 4.5"),
    "addresses": ("<Thing object at 0x7f3a2c>", "<Thing object at 0xdeadbeef>"),
    "paths": ("no such file: /tmp/pytest-1/a/b.txt", "no such file: /var/lib/x.txt"),
    "paths of another system": (r"no such file: C:\work\a.txt", r"no such file: D:\b\c.txt"),
    "hexadecimal names": ("commit 4f5e6a7b8c9d is gone", "commit 00112233aabb is gone"),
    "unique ids": ("job 123e4567-e89b-12d3-a456-426614174000", "job 00000000-e89b-12d3-a456-000000000001"),
    "quoted texts": ("KeyError: 'blue'", "KeyError: 'red and green'"),
    "double quotes": ('unknown word "blue"', 'unknown word "it\'s red"'),
    "white space": ("it   went\n wrong", " it went wrong"),
}
DIFFERENT = {
    "another kind of error": ("KeyError: 'a'", "ValueError: 'a'"),
    "another comparison": ("assert 3 == 4", "assert 3 < 4"),
    "another word": ("connection refused", "connection reset"),
    "an apostrophe is no quote": ("can't open it, won't read it", "can't close it, won't read it"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_varies_from_run_to_run_is_not_in_a_fingerprint(name: str) -> None:
    first, second = SAME[name]
    assert fingerprint(first) == fingerprint(second)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_went_wrong_is_in_a_fingerprint(name: str) -> None:
    first, second = DIFFERENT[name]
    assert fingerprint(first) != fingerprint(second)


WORDS = st.sampled_from(["assert", "==", "KeyError:", "no", "left", "!=", "in", "(", "of", "is None"])
NUMBERS = st.integers(0, 10**6).map(str)
ADDRESSES = st.integers(0, 2**32).map(hex)
PATHS = st.lists(st.sampled_from(["tmp", "a.py", "x-1", "home"]), min_size=2, max_size=4).map(
    lambda p: "/" + "/".join(p)
)
QUOTED = st.text(st.sampled_from('ab 1/.x"'), max_size=8).map(lambda text: f"'{text}'")
VARYING = st.one_of(*(st.tuples(kind, kind) for kind in (NUMBERS, ADDRESSES, PATHS, QUOTED)))


@given(st.lists(st.one_of(WORDS.map(lambda word: (word, word)), VARYING), max_size=8))
def test_two_messages_that_differ_in_what_varies_have_one_fingerprint(pieces: list[tuple[str, str]]) -> None:
    first, second = (" ".join(piece[side] for piece in pieces) for side in (0, 1))
    assert fingerprint(first) == fingerprint(second)


@pytest.mark.parametrize("piece", ["'", "\\", "a/", "a", "0", "f0", "'\\", "\"'"])
def test_a_hostile_message_takes_no_time(piece: str) -> None:
    assert len(fingerprint(piece * 10**6)) <= 10 * MOST_CHARACTERS
