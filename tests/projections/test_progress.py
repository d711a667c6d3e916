"""Progress agrees with the recorded vectors, whatever nonsense the times and hosts are."""

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from projections.gate.progress import Group, summarize

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "progress.public.json").read_text("utf-8"))["vectors"]

# The original orders hosts by UTF-16 code unit; this product orders by code point everywhere. One vector differs.
ORDERED_BY_UTF16 = {"progress-0050"}


def number(value: Any) -> float | None:
    """A number as the vectors write it; a value of another type stands for a time that is not known."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    return None if value is None else special.get(value, math.nan)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_progress_agrees_with_the_recorded_summary(vector: dict[str, Any]) -> None:
    given = vector["input"]
    groups = [
        Group(
            id=group["id"],
            state=group["state"],
            host=group.get("host"),
            started_ms=number(group.get("startedAtMs")),
            ended_ms=number(group.get("endedAtMs")),
        )
        for group in given["groups"]
    ]
    summary = summarize(given["executor"], number(given["nowMs"]) or 0.0, groups)
    expected = dict(vector["output"])
    if vector["id"] in ORDERED_BY_UTF16:
        expected["host"] = ",".join(sorted(expected["host"].split(",")))
    assert json.loads(msgspec.json.encode(summary)) == expected
