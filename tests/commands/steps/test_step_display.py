"""Following what a step prints: every line once, and back to the present for who cannot follow."""

from pathlib import Path

import pytest

from commands.effects.steps.display import LAG_BYTES, Follower


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that grows."""
    return tmp_path / "stdout.log"


@pytest.fixture
def shown() -> list[str]:
    """The lines that were handed on."""
    return []


@pytest.fixture
def follower(path: Path, shown: list[str]) -> Follower:
    """Hands on to `shown` what comes in the file."""
    return Follower(path, shown.append)


def append(path: Path, data: bytes) -> None:
    """Let the file grow."""
    with path.open("ab") as file:
        file.write(data)


def test_a_line_is_handed_on_once_and_when_it_is_whole(path: Path, follower: Follower, shown: list[str]) -> None:
    follower.follow()
    assert shown == []
    for data in (b"one\ntw", b"", b"o\n\nthr", b"ee"):
        append(path, data)
        follower.follow()
    assert shown == ["one", "two", ""]
    follower.follow(last=True)
    follower.follow(last=True)
    assert shown == ["one", "two", "", "three"]


def test_who_cannot_follow_is_brought_back_to_the_present(path: Path, follower: Follower, shown: list[str]) -> None:
    append(path, b"one\ntw")
    follower.follow()
    append(path, b"x" * 1000 + b"\n" + b"y" * (LAG_BYTES - 1) + b"\n")
    follower.follow()
    assert shown[:2] == ["one", "[1001 bytes are not shown]"]
    assert "".join(shown[2:]) == "y" * (LAG_BYTES - 1)


@pytest.mark.parametrize("size", [0, 5, LAG_BYTES + 7])
def test_a_file_that_has_lost_its_middle_is_followed_at_its_end(
    path: Path, follower: Follower, shown: list[str], size: int
) -> None:
    append(path, b"one\n" * LAG_BYTES)
    follower.follow()
    shown.clear()
    path.write_bytes(b"\n" * max(0, size - 5) + b"last\n"[:size])
    follower.follow()
    assert shown[0] == "[the middle is not shown]"
    assert [line for line in shown[1:] if line] == (["last"] if size else [])
