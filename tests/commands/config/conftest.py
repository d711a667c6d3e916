"""A project with files of settings, and how they are loaded."""

import pytest

from commands.config.load import load_settings


@pytest.fixture
def project(tmp_path):
    """The top of a checkout without any configuration."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def load(project, tmp_path):
    """Loads the settings of the project from files, flags by key, and variables."""

    def loaded(flags=None, **variables):
        return load_settings(project, flags or {}, environment=variables, user_directory=tmp_path / "user")

    return loaded


@pytest.fixture
def write(project, tmp_path):
    """Writes the text of a file of the project; `user` stands for the user's own file."""

    def written(text, name="ledger.toml"):
        path = tmp_path / "user" / "config.toml" if name == "user" else project / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    return written
