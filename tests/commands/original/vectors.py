"""What the original was recorded to do, as data."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[2] / "vectors"


def vectors(name: str) -> list[dict[str, Any]]:
    """The vectors of a set."""
    found = json.loads((VECTORS / f"{name}.public.json").read_text("utf-8"))["vectors"]
    assert isinstance(found, list)
    return found
