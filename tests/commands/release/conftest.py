"""A remote for the tests of releases."""

from pathlib import Path

import pytest

from tests.commands.release.hubs import Hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A bare repository with a branch `main` of two commits, and two clones of it."""
    return Hub(tmp_path)
