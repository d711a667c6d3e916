"""Real git repositories for the tests of this room."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest


class Repository:
    """A real repository with a checkout, driven by the real git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "A Tester")
        self.git("config", "user.email", "tester@example.org")

    def git(self, *arguments: str, directory: Path | None = None) -> str:
        """What a git command prints, without the newline at its end. Fails the test if the command fails."""
        completed = subprocess.run(
            ["git", *arguments], cwd=directory or self.path, check=False, capture_output=True, timeout=60
        )
        assert completed.returncode == 0, completed.stderr.decode()
        return os.fsdecode(completed.stdout).removesuffix("\n")

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the checkout, without committing it."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, files: dict[str, str | bytes] | None = None, *, tag: str = "") -> str:
        """Commit the files with everything else that changed, and return the id; an empty commit without changes."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def plain_git(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the configuration of whoever runs the tests out of them."""
    empty = tmp_path_factory.getbasetemp() / "no-gitconfig"
    empty.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(empty))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds, and fails the test when it does not within ten seconds."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.01)

    return wait


@pytest.fixture
def make_repository(tmp_path: Path) -> Callable[[str], Repository]:
    """Makes an empty repository in a directory of the given name."""
    return lambda name: Repository(tmp_path / name)


@pytest.fixture
def repository(make_repository: Callable[[str], Repository]) -> Repository:
    """A repository with two commits."""
    made = make_repository("project")
    made.commit({"app.py": "VALUE = 1\n", "tests/test_app.py": "def test_value():\n    assert True\n"})
    made.commit({"app.py": "VALUE = 2\n"})
    return made
