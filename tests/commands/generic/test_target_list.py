"""Lists of targets: what is one, and what is refused as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.readers.attempt import CollectionReading
from commands.readers.target_list import LIST_BYTES, read_targets
from tests.commands.generic.ends import ended


def read(printed: bytes, *, code: int = 0, terminated: bool = False) -> CollectionReading:
    """Read a list in the tree `/tree`."""
    return read_targets(printed, ended(code), terminated=terminated, tree="/tree")


def names(reading: CollectionReading) -> list[str]:
    """The targets by name."""
    return [target.target for target in reading.targets]


def test_lines_are_targets_in_byte_order_each_once() -> None:
    reading = read("b.js\n\nä b.js\r\na.js\nb.js\n".encode())
    assert (reading.complete, names(reading)) == (True, ["a.js", "b.js", "ä b.js"])
    assert reading.places["a.js"] == "a.js"


def test_a_line_may_name_the_place_of_a_target_anywhere_in_the_tree() -> None:
    reading = read(b"x/a\t/tree/a\nx/b\tb/\nx/c\t./c/c.go\nx\t/tree\n")
    assert reading.places == {"x/a": "a", "x/b": "b", "x/c": "c/c.go", "x": ""}


def test_names_that_git_terminates_may_hold_what_lines_cannot_mean() -> None:
    assert names(read("a b.js\0ä.js\0".encode(), terminated=True)) == ["a b.js", "ä.js"]


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (b"a.js", "breaks off"),
        (b"a.js\n\xff\n", "not UTF-8 at byte 5"),
        (b"a.js\n--all\n", "--all"),
        (b"a.js\n \n", "' '"),
        (b"a.js\nb.js \n", "'b.js '"),
        (b"a.js\n\x1b[31m\n", "x1b"),
        ("a.js\nb\u202ec\n".encode(), "u202e"),
        (b"a.js\n\tplace\n", "cannot be a target"),
        (b"a.js\nb\tc\td\n", "cannot be a target"),
        (b"a.js\nb\tc\nb\td\n", "twice"),
        (b"a\n" * (LIST_BYTES // 2 + 1), "longer than"),
    ],
)
def test_a_list_that_holds_anything_doubtful_is_refused_as_a_whole(printed: bytes, told: str) -> None:
    reading = read(printed)
    assert (reading.complete, reading.cause, reading.targets) == (False, "list-invalid", ())
    assert told in reading.detail
    assert reading.detail.isprintable()


@pytest.mark.parametrize("printed", [b"", b"\n\n"])
def test_an_empty_list_is_none(printed: bytes) -> None:
    assert read(printed).cause == "nothing-collected"


def test_a_name_that_git_leaves_empty_is_refused() -> None:
    assert read(b"a\0\0", terminated=True).cause == "list-invalid"


def test_the_end_of_the_command_comes_first() -> None:
    assert read(b"a.js\n", code=2).cause == "list-failed"
    assert read(b"a.js\n", code=-9).cause == "signalled"


@given(st.binary(max_size=60), st.booleans())
def test_whatever_is_printed_every_target_of_a_list_can_stand_on_a_command_line(data: bytes, terminated: bool) -> None:
    reading = read(data, terminated=terminated)
    assert reading.complete == bool(reading.targets) == (reading.cause is None)
    for name in names(reading):
        assert name.isprintable()
        assert name.strip() == name != ""
        assert not name.startswith("-")
