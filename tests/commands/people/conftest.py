"""A project whose gate failed, to be copied by each test that decides something about it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.cli import Project

CALC = {"calc.py": "def add(left, right):\n    return left + right\n"}
BROKEN = {"calc.py": "def add(left, right):\n    return left - right\n"}
TESTS = {
    "tests/test_calc.py": """
        import pytest
        from calc import add

        def test_zero():
            assert add(0, 0) == 0

        @pytest.mark.parametrize("left, right, total", [(1, 2, 3), (4, 1, 5)])
        def test_sum(left, right, total):
            assert add(left, right) == total
        """
}
# Re-runs are another matter, and take their time.
SETTINGS = {"ledger.toml": '[gate]\nparallel = 2\nshards = 1\nrounds = 1\nrerun = "off"\n'}
TEST = "tests/test_calc.py::test_sum"


@pytest.fixture(scope="session")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a project whose candidate fails both variants of TEST. All worker processes share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = shared / "failed-project"
    with FileLock(shared / "failed-project.lock"):
        if not (root / "done").exists():
            shutil.rmtree(root, ignore_errors=True)
            assert Project.make(root, CALC | TESTS | SETTINGS, BROKEN).ledger("gate").code == 1
            (root / "done").touch()
    return root


@pytest.fixture
def project(failed: Path, tmp_path: Path) -> Project:
    """A copy of that project."""
    return Project(Path(shutil.copytree(failed, tmp_path / "copy", symlinks=True)))


@pytest.fixture
def mute() -> Callable[..., tuple[str, ...]]:
    """The command line that mutes a test."""

    def command(test: str = TEST, *more: str, expires: str = "7") -> tuple[str, ...]:
        return ("mute", test, "--owner", "ann", "--reason", "calc is being rewritten", "--expires", expires, *more)

    return command
