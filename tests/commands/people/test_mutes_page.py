"""The page about muted tests says what the program does."""

import re
from pathlib import Path

from commands.causes import REFUSALS
from commands.config.keys import RULES
from commands.config.load import Loaded
from commands.config.settings import Settings
from projections.history.flaky import FlakyRow

PAGE = (Path(__file__).parents[3] / "docs" / "mutes.md").read_text("utf-8")


def first_cells(heading: str) -> list[str]:
    """The first cell of each row of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w.-]+)` \|", section, re.MULTILINE)


def test_every_code_about_mutings_is_listed_and_no_other() -> None:
    known = {code for code in REFUSALS if "mute" in code}
    assert set(first_cells("What is refused")) == known


def test_every_limit_is_listed_with_its_default() -> None:
    defaults = Loaded(Settings(), {})
    keys = [key for key in RULES if key.startswith("mutes.")]
    assert first_cells("Limits") == keys
    for key in keys:
        assert f"| `{key}` | {defaults.value(key)} |" in PAGE


def test_the_columns_of_flakiness_are_those_of_its_rows() -> None:
    assert set(first_cells("Flaky tests")) <= set(FlakyRow.__struct_fields__)
    assert len(first_cells("Flaky tests")) == 3
