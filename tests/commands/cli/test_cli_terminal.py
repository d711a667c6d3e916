"""What a person sees: a gate in a real terminal, wide, narrow and one that can do nothing."""

from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import Histories, let_go_on, waiting_project
from tests.support.cli import LEDGER, Project
from tests.support.terminal import Terminal, draw

pytestmark = pytest.mark.real


def in_terminal(project: Project, *arguments: str, columns: int, term: str = "xterm") -> Terminal:
    """`ledger` in a terminal."""
    return Terminal(
        [LEDGER, *arguments],
        directory=project.path,
        environment=project.environment | {"TERM": term},
        columns=columns,
    )


RUNNING = [
    ["shard-1/candidate", "running"], ["shard-1/baseline", "running"], ["collection/candidate", "done"],
    ["collection/baseline", "done"],
]  # fmt: skip


def rows_below(title: str, screen: list[str]) -> list[list[str]]:
    """The first two cells of each row of the table with this title; none while it is not there."""
    return [line.split()[:2] for line in screen[screen.index(title) + 2 :]] if title in screen else []


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 100])
def test_a_terminal_shows_what_runs_and_in_the_end_only_the_answer(columns: int, tmp_path: Path) -> None:
    project = waiting_project(tmp_path)
    with in_terminal(project, "gate", columns=columns) as terminal:
        # A screen that is looked at while it is drawn again may lack its last rows.
        terminal.wait_for(lambda screen: rows_below("2 of 4 jobs done", screen) == RUNNING)
        terminal.type("\x03")
        assert terminal.end() == ExitCode.INTERRUPTED
        screen = terminal.screen()
    text = " ".join(screen)
    assert ("running" in text, text.count("jobs done")) == (False, 1)
    assert text.count("stopping: what runs is ended") == 1
    assert text.index("stopping:") < text.index("stopped by a signal") < text.index("still owed")
    hidden, shown = (terminal.written.rindex(f"\x1b[?25{letter}") for letter in "lh")
    assert hidden < shown


@pytest.mark.slow
def test_a_dumb_terminal_gets_lines_and_no_control_characters(tmp_path: Path) -> None:
    project = waiting_project(tmp_path)
    let_go_on(project)
    with in_terminal(project, "gate", columns=60, term="dumb") as terminal:
        assert terminal.end() == ExitCode.PASSED
    assert "\x1b" not in terminal.written
    assert "[4/4] shard-1/" in terminal.written


@pytest.mark.parametrize("name", ["passed", "failed", "unmeasured", "empty", "stopped", "interrupted"])
@pytest.mark.parametrize("command", ["status", "resume --from gate --dry-run", "stop"])
def test_in_a_narrow_terminal_only_what_must_stay_whole_is_longer_than_a_line(
    name: str, command: str, history: Histories
) -> None:
    project, _ = history(name)
    with in_terminal(project, *command.split(), columns=40) as terminal:
        assert terminal.end() == ExitCode.PASSED
    assert "\x1b" not in terminal.written
    lines = terminal.written.splitlines()
    longer = [line for line in lines if len(line) > 40 and not line.startswith("next: ledger resume ")]
    assert [line for line in longer if "::" not in line] == []


def test_the_screen_is_drawn_as_a_terminal_would() -> None:
    assert draw("ab\r\ncd\x1b[1mef\x1b[0m", 80) == ["ab", "cdef"]
    assert draw("abcdef", 4) == ["abcd", "ef"]
    assert draw("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2Kthree", 80) == ["three"]
    assert draw("one\rtw\r\n\x1b[?25lx", 80) == ["twe", "x"]
