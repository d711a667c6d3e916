"""Ready ledgers for the tests of the command line: each is made once by a real gate, and only read afterwards."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from commands.cli.app import run
from tests.support.cli import Answer, Program, Project, wait_until

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
WAITS = """
    import os, pathlib, signal, time

    MARKS = pathlib.Path(os.environ["MARKS"])

    def test_quick():
        pass

    def test_that_waits():
        (MARKS / str(os.getpid())).touch()
        for _ in range(600):
            if (MARKS / "go").exists():
                return
            time.sleep(0.1)
    """
"""Two tests, of which the second leaves a mark when it begins and waits to be let go on."""

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


def waiting_project(root: Path, tests: str = WAITS) -> Project:
    """A project whose tests wait to be let go on."""
    project = Project.make(root, {"tests/test_waits.py": tests} | SETTINGS, {"README.txt": "Waits.\n"})
    (root / "marks").mkdir()
    settings = root / ".config" / "release-ledger" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[runner.set_environment]\nMARKS = {json.dumps(str(root / 'marks'))}\n", "utf-8")
    return project


def both_sides_run(project: Project, program: Program) -> None:
    """Wait until the tests wait on both sides."""

    def both() -> bool:
        assert program.process.poll() is None, f"it has ended: {program.told()}"
        return len(list((project.root / "marks").iterdir())) == 2

    wait_until(both, program.told)


def let_go_on(project: Project) -> None:
    """Let the tests that wait go on, now and whenever they are run again."""
    (project.root / "marks" / "go").touch()


def make_stopped(root: Path) -> tuple[Project, Answer]:
    """A gate that was stopped by a signal while tests were running."""
    project = waiting_project(root)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        gate.signal(signal.SIGINT)
        return project, gate.end()


def make_interrupted(root: Path) -> tuple[Project, Answer]:
    """A gate whose driver was killed while tests were running."""
    project = waiting_project(root)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
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
                # What a maker that failed has left would hide from the next test why it did.
                shutil.rmtree(root, ignore_errors=True)
                _, answer = MAKERS[name](root)
                (root / "answer.json").write_text(json.dumps([answer.code, answer.out, answer.err]))
        return Project(root), Answer(*json.loads((root / "answer.json").read_text()))

    return made


Ask = Callable[..., Answer]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Ask]:
    """Runs one command line in this process, in a project's directory and environment."""

    def answer(project: Project, *arguments: str, directory: Path | None = None, columns: int = 0) -> Answer:
        for name in [name for name in os.environ if name.startswith(("LEDGER_", "XDG_"))]:
            monkeypatch.delenv(name)
        for name, value in project.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("COLUMNS", str(columns or ""))
        monkeypatch.chdir(directory or project.path)
        capsys.readouterr()
        code = run(arguments)
        return Answer(code, *capsys.readouterr())

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield answer
    for number, handler in handlers.items():
        signal.signal(number, handler)
