"""docs/when-a-release-fails.md is real: its commands are run again, one after another, and print the same."""

import re
from itertools import count
from pathlib import Path

import pytest

from tests.real.releases.lamp import Lamp

pytestmark = [pytest.mark.real, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "when-a-release-fails.md"
BLOCK = re.compile(r"```console\n(?P<session>.*?)```\n", re.DOTALL)
SETTINGS = re.compile(r"```toml\n(.*?)```\n", re.DOTALL)
CHOICES = ("rerun", "reroute", "repair", "waive", "accept", "stop")

CHANGES_EACH_TIME = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"process \d+ on \S+"), "process N on HOST"),
    (re.compile(r"\.quarantine-[0-9a-f]+"), "QUARANTINE"),
    (re.compile(r"\d+ pieces of evidence"), "N pieces of evidence"),
)
NAMES = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b|\b[0-9a-f]{12}(?:[0-9a-f]{28})?\b")
"""Runs, commits and digests, which are others each time, but stand for the same ones in the same places."""


def told_again(page: str, lamp: Lamp) -> str:
    """The page with what its commands print here. Each is run after those before it, as a reader would."""
    code = 0

    def session(block: re.Match[str]) -> str:
        nonlocal code
        lines = []
        for command in re.findall(r"^\$ (.*)$", block["session"], re.MULTILINE):
            code, printed = lamp.shell(command, code)
            lines += [f"$ {command}\n", printed]
        return f"```console\n{''.join(lines)}```\n"

    return BLOCK.sub(session, page)


def comparable(page: str) -> list[str]:
    """The sessions of the page without what is another each time; names are numbered as they come."""
    numbers, known = count(1), dict[str, str]()

    def numbered(name: re.Match[str]) -> str:
        # A commit is the same whether it is shortened or not.
        return known.setdefault(name[0] if "-" in name[0] else name[0][:12], f"NAME-{next(numbers)}")

    page = NAMES.sub(numbered, page)
    for pattern, replacement in CHANGES_EACH_TIME:
        page = pattern.sub(replacement, page)
    return re.findall(r"```console (.*?) ?```", page)


def test_each_command_of_the_page_prints_what_the_page_shows(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text("utf-8")
    (settings,) = SETTINGS.findall(page)
    again = told_again(page, Lamp.with_settings(tmp_path, settings))
    if request.config.getoption("--update-golden"):
        PAGE.write_text(again, "utf-8")
        return
    sessions, others = comparable(page), comparable(again)
    assert len(sessions) == page.count("```console") >= 20
    for session, other in zip(sessions, others, strict=True):
        assert session == other


def test_every_choice_has_its_chapter_and_its_commands() -> None:
    page = PAGE.read_text("utf-8")
    assert re.findall(r"^\| \[(\w+)\]\(#", page, re.MULTILINE) == list(CHOICES)
    # What commands print has headings, too.
    page = BLOCK.sub(lambda block: block[0].replace("\n#", "\n "), page)
    chapters = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))
    for choice in CHOICES:
        chapter = chapters[choice.capitalize()]
        assert all(part in chapter for part in ("**When:**", "**What to type:**", "**What is recorded:**")), choice
        assert "```console\n$ " in chapter, choice
