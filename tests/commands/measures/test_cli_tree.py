"""Tests that change the checkout that they run in: what was tested then is not the commit, and never passes for it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.commands.measures.test_cli_learning import events
from tests.support.cli import Project

pytestmark = pytest.mark.slow

ONE = "[gate]\nparallel = 1\nshards = 2\nrounds = 2\n"
REGRESSION = {"calc.py": "def f():\n    return 2\n"}
CALC = {"calc.py": "def f():\n    return 1\n"}
USES = {"test_b.py": "import calc\n\ndef test_f():\n    assert calc.f() == 1\n"}


def writes(value: int) -> dict[str, str]:
    """A test that writes the product anew."""
    body = f"pathlib.Path(__file__).with_name('calc.py').write_text('def f():\\n    return {value}\\n')"
    return {"test_a.py": f"import pathlib\n\ndef test_gen():\n    {body}\n"}


def gated(root: Path, base: Mapping[str, str], change: Mapping[str, str]) -> tuple[Project, int]:
    project = Project.make(root, {**base, "ledger.toml": ONE, ".gitignore": "__pycache__/\n"}, change)
    return project, project.ledger("gate").code


@pytest.mark.parametrize("value", [1, 99], ids=["the candidate is mended", "the baseline is spoilt"])
def test_what_runs_after_a_test_that_changed_the_product_does_not_count_for_the_commit(
    tmp_path: Path, value: int
) -> None:
    project, code = gated(tmp_path, {**CALC, **USES, **writes(value)}, REGRESSION)
    assert code in (1, 3)
    recorded = [one for one in events(project, "attempt-recorded") if one["cause"] == "tree-changed"]
    assert recorded
    assert all("calc.py" in one["detail"] for one in recorded)
    classes = json.loads(project.ledger("query", "classes", "--format", "json").out)["rows"]
    assert {row["test"]: row["case_class"] for row in classes}["test_b.py::test_f"] == "introduced"
    assert project.ledger("replay").code == 0


@pytest.mark.parametrize("tracked", [True, False])
def test_a_snapshot_that_a_failing_test_writes_does_not_let_its_re_run_pass(tmp_path: Path, tracked: bool) -> None:
    snapshot = """
        import pathlib
        from calc import f

        def test_snapshot():
            file = pathlib.Path(__file__).with_name("snapshot.txt")
            known = file.read_text() if file.exists() else ""
            file.write_text(str(f()))
            assert known == str(f())
        """
    base, change = {**CALC, "test_s.py": snapshot, "snapshot.txt": "1"}, REGRESSION
    if not tracked:
        base, change = CALC, {"test_s.py": snapshot}
    project, code = gated(tmp_path, base, change)
    assert code in (1, 3)
    classes = json.loads(project.ledger("query", "classes", "--format", "json").out)["rows"]
    assert not {row["case_class"] for row in classes} & {"flaky", "passed"}


def test_files_that_tests_leave_behind_are_gone_for_the_next_attempt_and_harm_nobody(tmp_path: Path) -> None:
    leaves = """
        import pathlib

        def test_first():
            place = pathlib.Path(__file__).with_name("out")
            assert not place.exists()
            (place / "deep").mkdir(parents=True)
            (place / "deep" / "file.txt").write_text("left")
            assert False
        """
    project, code = gated(tmp_path, {"test_l.py": leaves}, {"README.txt": "The same.\n"})
    assert code == 0
    classes = json.loads(project.ledger("query", "classes", "--format", "json").out)["rows"]
    assert [row["case_class"] for row in classes] == ["preexisting"]


SNAPSHOT = """
    import pathlib
    from calc import f

    def test_snapshot():
        file = pathlib.Path(__file__).with_name("snapshot.txt")
        known = file.read_text()
        file.write_text(str(f()))
        assert known == str(f())
    """
MAY_CHANGE = '[runner]\nmay_change = ["snap*.txt"]\n'


def judged(project: Project) -> dict[str, str]:
    """The class of each test of the newest run."""
    rows = json.loads(project.ledger("query", "classes", "--format", "json").out)["rows"]
    return {row["test"]: row["case_class"] for row in rows}


def test_files_that_may_be_changed_leave_everything_measured_and_let_no_re_run_pass(tmp_path: Path) -> None:
    files = {**CALC, "test_s.py": SNAPSHOT, "snapshot.txt": "1", "ledger.toml": ONE + MAY_CHANGE}
    project = Project.make(tmp_path, files, {"README.txt": "The same.\n"}, REGRESSION)
    same = project.ledger("gate", "HEAD^", "--baseline", "HEAD^^")
    assert (same.code, judged(project)) == (0, {"test_s.py::test_snapshot": "passed"}), same.err
    assert project.ledger("gate", "--baseline", "HEAD^").code == 1
    assert judged(project) == {"test_s.py::test_snapshot": "introduced"}
    assert "tree-changed" not in project.ledger("log", "--json").out


def test_every_other_file_stays_guarded(tmp_path: Path) -> None:
    files = {**CALC, **writes(1), "test_s.py": SNAPSHOT, "snapshot.txt": "1", "ledger.toml": ONE + MAY_CHANGE}
    project = Project.make(tmp_path, files, {"README.txt": "The same.\n"})
    # The test writes what is there already, which is no change, so another value is asked for.
    project.commit(writes(3))
    assert project.ledger("gate", "--baseline", "HEAD^").code == 3
    assert judged(project)["test_s.py::test_snapshot"] == "passed"
    assert judged(project)["test_a.py::test_gen"] == "unmeasured"
    assert "changed in the checkout while tests were running: calc.py" in project.ledger("status").out


def test_a_version_that_a_test_tags_is_told_and_does_not_change_its_own_run(tmp_path: Path) -> None:
    tags = """
        import subprocess

        def test_tag():
            for tag in ("v9.9", "not-a-version"):
                subprocess.run(["git", "tag", "--force", tag, "HEAD~0"], check=True)
        """
    project = Project.make(tmp_path, {**CALC, **USES, "ledger.toml": ONE}, {"test_t.py": tags})
    first = project.ledger("gate")
    assert (first.code, "v1.0 (highest version tag)" in first.out) == (0, True)
    told = [line for line in first.err.splitlines() if "was made while tests ran" in line]
    hint = "if a test made it: git tag --delete v9.9"
    assert told == [f"the tag v9.9 was made while tests ran, and may be the next baseline; {hint}"]
    assert "v9.9" not in project.ledger("status").out
    assert "was made while tests ran" not in project.ledger("gate").err
