"""What all tests share: recorded answers, and the one switch that records them anew."""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).with_name("golden")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: take what is printed now for right, to be read in the diff before it is committed."""
    parser.addoption("--update-golden", action="store_true", help="Record the golden answers anew.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the one that is recorded under a name such as `cli/gate-help.txt`."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        assert file.exists(), f"{name} was never recorded: run with --update-golden"
        assert text == file.read_text("utf-8"), f"{name} differs: if that is wanted, run with --update-golden"

    return compare
