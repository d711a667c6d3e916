"""Small projects for real test sessions."""

from pathlib import Path

import pytest

from tests.commands.runners.sessions import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    return Project(tmp_path)
