"""Reports of a gate that really ran: what pytest said is where a person and a server look for it."""

from pathlib import Path

import pytest

from tests.commands.cli.conftest import BROKEN_CALC, CALC, SETTINGS, TESTS
from tests.commands.reports.conftest import parsed
from tests.support.cli import Project

pytestmark = [pytest.mark.real, pytest.mark.slow]

OLD = {
    "tests/test_old.py": """
        class TestOld:
            def test_never_right(self):
                assert 1 == 2, "::error::<b>not</b> a command"
        """
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A gate with a regression and with a failure that the baseline has too."""
    made = Project.make(tmp_path_factory.mktemp("report"), CALC | TESTS | OLD | SETTINGS, BROKEN_CALC)
    assert made.ledger("gate").code == 1
    return made


def test_an_annotation_stands_at_the_line_that_failed(project: Project) -> None:
    answer = project.ledger("report", "--format", "github")
    errors = [line for line in answer.err.splitlines() if line.startswith("::error ")]
    assert len(errors) == 2
    assert all(line.startswith("::error file=tests/test_calc.py,line=9,title=introduced::") for line in errors)
    assert [line for line in answer.err.splitlines() if line.startswith("::notice ")] != []
    assert "assert add(left, right) == total" in answer.out
    assert not [line for line in answer.out.splitlines() if line.lstrip().startswith("::")]


def test_the_merged_file_is_read_as_the_gate_reads(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "merged.xml"
    assert project.ledger("report", "--format", "junit", "-o", str(file)).code == 0
    root = parsed([file.read_text("utf-8")])
    (skipped,) = root.iter("skipped")
    assert str(skipped.get("message")).startswith("preexisting: ")
    assert "never_right" in str(skipped.text)
    planned = ("--planned", "tests/test_calc.py", "--planned", "tests/test_old.py", "--exit-code", "1")
    answer = project.ledger("read", str(file), "--dialect", "pytest", *planned)
    assert (answer.code, answer.out.splitlines()[0]) == (1, "failed: 2 failed, 1 passed, 1 skipped; read as pytest")
