"""A move that ends at any instant, as by a kill: the archive is untouched, or preserved with what completes it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from commands.effects.release import held, quarantine
from commands.effects.release.archive import Place, check_archive, examine
from commands.effects.release.quarantine import STEPS, Leftover, complete, leftovers
from tests.commands.release.archives import COMMIT, aside, build, everything, in_child

KILLED = 9
OURS = {module.__file__ for module in (held, quarantine)}


def killed_after(step: str) -> Callable[[str], None]:
    """Ends the process once this step is done, without any of what Python does at its end."""

    def end(name: str) -> None:
        if name == step:
            os._exit(KILLED)

    return end


def killed_at_line(number: int, work: Callable[[], object]) -> Callable[[], object]:
    """The same work, ended before the line of this number of all that it runs in the modules under test."""
    left = number

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os._exit(KILLED)
        return trace

    def traced() -> object:
        sys.settrace(trace)
        try:
            return work()
        finally:
            sys.settrace(None)

    return traced


def settled(place: Place, before: dict[str, str | bytes]) -> list[Leftover]:
    """What a killed move left, after it was made sure that the archive is whole in exactly one place."""
    home = place.root / "quarantine"
    found = list(leftovers(home))
    moved = [one.directory / "prepared" for one in found if one.state in ("moved", "complete")]
    copies = [path for path in (place.path, *home.rglob("prepared")) if path.exists()]
    assert len(copies) == 1
    assert everything(copies[0]) == before
    # What lies in the quarantine is always found there, and what is found lies there.
    assert moved == [path for path in copies if path != place.path]
    assert {one.state for one in found} <= {"intended", "moved", "complete"}
    return found


def brought_to_its_end(place: Place, before: dict[str, str | bytes]) -> None:
    """Complete what a killed move left, move anew what was not moved, and find one archive with one true receipt."""
    home = place.root / "quarantine"
    for one in settled(place, before):
        receipt = complete(one.directory)
        assert receipt.status == ("not-moved" if one.state == "intended" else "complete")
        assert complete(one.directory) == receipt
    if place.path.exists():
        aside(place)
    (kept,) = settled(place, before)
    assert (kept.state, not place.path.exists()) == ("complete", True)
    assert kept.receipt is not None
    assert kept.receipt.size_bytes == sum(len(what) for what in before.values() if isinstance(what, bytes))
    assert [path for path in home.rglob("receipt.json") if path.parent == kept.directory] != []


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_between_any_two_steps_loses_nothing(step: str, tmp_path: Path) -> None:
    place = build(tmp_path)
    before = everything(place.path)
    assert in_child(lambda: aside(place, step=killed_after(step)))[0] == KILLED
    expected = {"intended": "intended", "verified": "intended", "completed": "complete"}
    states = [one.state for one in settled(place, before)]
    if step in ("opened", "private"):
        assert states == []
    else:
        assert states == [expected.get(step, "moved")]
    assert place.path.exists() == (STEPS.index(step) < STEPS.index("moved"))
    brought_to_its_end(place, before)


@pytest.mark.parametrize("first", ["moved", "checked", "measured"])
@pytest.mark.parametrize("second", ["checked", "measured", "completed"])
def test_a_kill_of_what_completes_loses_nothing_either(first: str, second: str, tmp_path: Path) -> None:
    place = build(tmp_path)
    before = everything(place.path)
    assert in_child(lambda: aside(place, step=killed_after(first)))[0] == KILLED
    (found,) = leftovers(place.root / "quarantine")
    assert in_child(lambda: complete(found.directory, step=killed_after(second)))[0] == KILLED
    brought_to_its_end(place, before)


@pytest.mark.slow
def test_a_kill_at_any_line_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kill, unlike a power cut, takes nothing from the disk that was not synced.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    untouched: list[bool] = []
    ended = False
    while not ended:
        place = build(tmp_path / str(len(untouched)), {"a": b"1"})
        before, expected = everything(place.path), examine(place)
        line = len(untouched) + 1
        code, told = in_child(
            killed_at_line(line, lambda place=place, expected=expected: aside(place, expected=expected))
        )
        ended = code != KILLED
        assert ended == told.startswith("Receipt("), told
        untouched.append(place.path.exists())
        brought_to_its_end(place, before)
    # Once it is moved it stays moved, and there were lines enough on either side of that.
    assert untouched == sorted(untouched, reverse=True)
    assert min(untouched.count(True), untouched.count(False)) > 40


def test_an_archive_that_was_swapped_before_the_kill_is_found_out_by_what_completes(tmp_path: Path) -> None:
    place, twin = build(tmp_path / "ledger"), build(tmp_path / "twin")

    def swap_and_end(name: str) -> None:
        if name == "verified":
            place.path.rename(tmp_path / "original")
            twin.path.rename(place.path)
        killed_after("moved")(name)

    assert in_child(lambda: aside(place, step=swap_and_end))[0] == KILLED
    (found,) = leftovers(place.root / "quarantine")
    assert found.state == "moved"
    receipt = complete(found.directory)
    assert (receipt.status, receipt.size_status) == ("swapped", "unmeasured")
    assert (found.directory / "prepared" / "release.json").exists()


def test_what_was_not_moved_is_not_moved_later_and_stands_where_it_was(tmp_path: Path) -> None:
    place = build(tmp_path)
    assert in_child(lambda: aside(place, step=killed_after("verified")))[0] == KILLED
    (found,) = leftovers(place.root / "quarantine")
    assert complete(found.directory).status == "not-moved"
    assert check_archive(place, commit=COMMIT)
    assert leftovers(place.root / "quarantine") == ()


def test_a_receipt_that_was_cut_off_says_that_nothing_was_moved(tmp_path: Path) -> None:
    place = build(tmp_path)
    assert in_child(lambda: aside(place, step=killed_after("intended")))[0] == KILLED
    (found,) = leftovers(place.root / "quarantine")
    receipt = found.directory / "receipt.json"
    receipt.write_bytes(receipt.read_bytes()[:40])
    assert leftovers(place.root / "quarantine") == ()
    assert check_archive(place, commit=COMMIT)
