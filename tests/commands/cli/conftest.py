"""Ready ledgers for the tests of the command line: each is made once by a real gate, and only read afterwards."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.cli import Answer, Project

CALC = {"calc.py": "def add(left, right):\n    return left + right\n"}
BROKEN_CALC = {"calc.py": "def add(left, right):\n    return left - right\n"}
TESTS = {
    "tests/test_calc.py": """
        import pytest
        from calc import add

        def test_zero():
            assert add(0, 0) == 0

        @pytest.mark.parametrize("left, right, total", [(1, 2, 3), (10, -10, 0)])
        def test_a_name_that_is_long_enough_to_fill_a_line_of_a_terminal(left, right, total):
            assert add(left, right) == total
        """
}
KILLER = {
    "tests/test_killer.py": """
        import os, signal

        def test_before():
            pass

        def test_that_ends_its_process():
            os.kill(os.getpid(), signal.SIGKILL)
        """
}
HARMLESS = {"tests/test_killer.py": "def test_before():\n    pass\n"}
SLOW = {
    "tests/test_slow.py": """
        import time

        def test_quick():
            pass

        def test_slow():
            for _ in range(600):
                time.sleep(0.1)
        """
}
SETTINGS = {"ledger.toml": "[gate]\nparallel = 2\nshards = 1\nrounds = 1\n"}


def make_passed(root: Path) -> tuple[Project, Answer]:
    """A gate that passed."""
    project = Project.make(root, CALC | TESTS | SETTINGS, {"README.txt": "Adds.\n"})
    return project, project.ledger("gate")


def make_failed(root: Path) -> tuple[Project, Answer]:
    """A gate that failed, with a file that ends its process besides."""
    project = Project.make(root, CALC | TESTS | SETTINGS | HARMLESS, BROKEN_CALC | KILLER)
    return project, project.ledger("gate")


def make_unmeasured(root: Path) -> tuple[Project, Answer]:
    """A gate whose candidate cannot be collected."""
    project = Project.make(root, CALC | TESTS | SETTINGS, {"conftest.py": "import missing\n"})
    return project, project.ledger("gate")


def make_empty(root: Path) -> tuple[Project, Answer]:
    """A gate of a project without tests."""
    project = Project.make(root, CALC | SETTINGS, {"README.txt": "Adds.\n"})
    return project, project.ledger("gate")


def make_stopped(root: Path) -> tuple[Project, Answer]:
    """A gate that was stopped while tests were running."""
    project = Project.make(root, SLOW | SETTINGS, {"README.txt": "Slow.\n"})
    with project.started("gate") as gate:
        gate.until_told("shard-1/baseline: started")
        gate.signal(signal.SIGINT)
        return project, gate.end()


def make_interrupted(root: Path) -> tuple[Project, Answer]:
    """A gate whose driver was killed while tests were running."""
    project = Project.make(root, SLOW | SETTINGS, {"README.txt": "Slow.\n"})
    with project.started("gate") as gate:
        gate.until_told("shard-1/baseline: started")
        gate.kill()
        return project, gate.end()


MAKERS = {
    "passed": make_passed, "failed": make_failed, "unmeasured": make_unmeasured, "empty": make_empty,
    "stopped": make_stopped, "interrupted": make_interrupted,
}  # fmt: skip

Histories = Callable[[str], tuple[Project, Answer]]


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    """The project of a history by its name, and what its gate answered. All worker processes share them."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str) -> tuple[Project, Answer]:
        root = shared / "histories" / name
        with FileLock(shared / f"{name}.lock"):
            if not (root / "answer.json").exists():
                _, answer = MAKERS[name](root)
                (root / "answer.json").write_text(json.dumps([answer.code, answer.out, answer.err]))
        return Project(root), Answer(*json.loads((root / "answer.json").read_text()))

    return made


REDACTED = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}"), "20300101-000000-0000"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "2030-01-01 00:00:00 UTC"),
    (re.compile(r"\b[0-9]+(\.[0-9])? (ms|s)\b"), "0.0 s"),
    (re.compile(r"process \d+ on \S+?(?=,|$)", re.MULTILINE), "process 0000 on host"),
    (re.compile(r"#\d+ +@\d+ +"), "#0    @0     "),
    (re.compile(r"@\d+"), "@0"),
    (re.compile(r"\[\d/\d\] "), "[0/0] "),
    (re.compile(r"ledger [0-9a-f]{32}"), "ledger " + "0" * 32),
    (re.compile(r"platform linux.*"), "platform ..."),
    (re.compile(r"plugins: .*"), "plugins: ..."),
)


def redacted(text: str, root: Path) -> str:
    """The text without what is different each time; what stands for it is as wide, so that columns stay columns."""
    text = re.sub(rf"{re.escape(str(root))}[^\s',]*?/(?=\w+\b)", "", text) if False else text.replace(str(root), "ROOT")
    text = re.sub(r"ROOT/work/[0-9a-f]{32}/", "ROOT/work/LEDGER/", text)
    for pattern, replacement in REDACTED:
        text = pattern.sub(replacement, text)
    return text
