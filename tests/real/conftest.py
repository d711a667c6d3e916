"""The real project in both environments, what plain runs say about it, and one gate that nobody disturbs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from scripts.real.project import Project, interpreter_of, make_project
from tests.real.gates import Gate
from tests.real.oracle import PlainRun, plain_run

SETTINGS = {"shards": 4, "parallel": 2, "time_limit_seconds": 300}
BROKEN_PROMISES = ("8.3.0-with-old-tests", "--baseline", "8.2.1")
"""The gate that finds regressions, as arguments."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seeds N`: how many gates are killed. Known only when this folder is named on the command line."""
    parser.addoption("--seeds", type=int, default=None, help="How many real gates are killed.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a seed runs once for each."""
    if "seed" in metafunc.fixturenames:
        seeds = metafunc.config.getoption("--seeds", None) or 5
        metafunc.parametrize("seed", range(1, seeds + 1), ids=lambda seed: f"seed-{seed}")


@pytest.fixture(scope="session")
def project_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Project]:
    """The project whose tests run in an environment (`pytest-8` or `pytest-9`); made once."""

    @cache
    def make(pins: str) -> Project:
        return make_project(tmp_path_factory.mktemp(pins), interpreter_of(pins), SETTINGS)

    return make


@pytest.fixture(scope="session")
def plain_run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], PlainRun]:
    """What a plain run of a release says in an environment; run once."""

    @cache
    def make(pins: str, tag: str) -> PlainRun:
        home: Path = tmp_path_factory.mktemp("plain")
        return plain_run(home, interpreter_of(pins), tag)

    return make


@pytest.fixture(scope="session")
def undisturbed(project_of: Callable[[str], Project]) -> Gate:
    """A gate that finds regressions and is left alone."""
    project = project_of("pytest-8")
    ended = project.ledger("gate", *BROKEN_PROMISES)
    assert ended.returncode == 1, project.told(ended)
    return Gate.newest(project)
