"""Gates that find no room on their machine: they wait, go on when there is some, and never take what is not theirs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.config.load import usable_processors
from commands.effects.pool import machine
from commands.effects.pool.machine import Machine
from tests.commands.cli.conftest import CALC, SETTINGS, TESTS
from tests.support.cli import Project, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose gate would pass."""
    return Project.make(tmp_path, CALC | TESTS | SETTINGS, {"README.txt": "Adds.\n"})


@pytest.fixture
def crowd(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Another run on the same machine, which has booked every slot that the project's gate could have."""
    monkeypatch.setattr(machine, "memory_free_bytes", lambda: 2**60)
    monkeypatch.setattr(machine, "memory_total_bytes", lambda: 2**60)
    slots = max(2, usable_processors())
    other = Machine(project.root / ".cache" / "release-ledger", "the-other-run", slots)
    for number in range(slots):
        assert other.book(f"job-{number}", 1) == ""
    yield other
    other.close()


def causes(project: Project) -> list[tuple[str, bool]]:
    """The cause of each recorded attempt, and whether it used up a round."""
    lines = project.ledger("log", "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    return [(e["event"]["cause"], e["event"]["counted"]) for e in events if e["header"]["tag"] == "attempt-recorded"]


def test_a_gate_waits_for_room_and_goes_on_when_another_run_gives_it_back(project: Project, crowd: Machine) -> None:
    with project.started("gate") as gate:
        wait_until(lambda: "waits for room on this machine: " in gate.told(), gate.told)
        assert ("no-room", False) in causes(project)
        assert "unmeasured" not in gate.told()
        crowd.close()
        assert gate.end().code == 0
    recorded = causes(project)
    assert {cause for cause in recorded if cause[0]} == {("no-room", False)}
    # Each collection is refused once at most, not again and again while it waits.
    assert recorded.count(("no-room", False)) <= 2


def test_a_gate_that_needs_more_than_there_will_ever_be_gives_up_in_the_end(project: Project) -> None:
    (project.path / "ledger.toml").write_text(
        SETTINGS["ledger.toml"] + "[machine]\nstart_wait_seconds = 2\nreservation_bytes = '500TiB'\n"
    )
    answer = project.ledger("gate")
    assert answer.code == 3, answer.err
    recorded = causes(project)
    assert recorded.count(("no-room", True)) >= 2
    assert len(recorded) <= 8
    assert "no-room" in answer.out


def test_a_gate_that_has_waited_long_enough_is_unmeasured_and_says_why(project: Project, crowd: Machine) -> None:
    (project.path / "ledger.toml").write_text(SETTINGS["ledger.toml"] + "[machine]\nstart_wait_seconds = 0\n")
    answer = project.ledger("gate")
    assert answer.code == 3, answer.err
    assert set(causes(project)) == {("no-room", True)}
    assert "the-other-run" in answer.out + answer.err
    crowd.close()
    assert project.ledger("resume", "--from", "gate").code == 0
