"""The page about the verdict says what the tables say."""

from pathlib import Path

import pytest

from projections.gate.classes import printed_reruns, printed_table
from projections.gate.ladder import RUNGS

PAGE = (Path(__file__).parents[3] / "docs" / "verdict.md").read_text("utf-8")


@pytest.mark.parametrize("table", [printed_table(), printed_reruns(), RUNGS.strip()])
def test_every_table_is_printed_as_it_is(table: str) -> None:
    assert f"```text\n{table}\n```" in PAGE
