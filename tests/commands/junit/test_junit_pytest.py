"""Reports that pytest writes here and now, in every form that it has, read strictly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.readers.junit import Reading
from tests.commands.junit.conftest import codes, reading_of

pytestmark = pytest.mark.real

FILES = {
    "test_mix.py": """
        import pytest

        def test_ok(): pass
        def test_bad(): assert 1 == 2
        @pytest.mark.skip(reason="later")
        def test_skip(): pass
        @pytest.mark.xfail(reason="known")
        def test_known(): assert False
        @pytest.mark.parametrize("value", [1, "a/b", "x[y]"])
        def test_many(value): pass
        class TestBox:
            class TestInner:
                def test_deep(self): pass
    """,
    "deep/test_ok.py": "def test_ünï(): pass\n",
    "test_broken.py": "import nothing_of_this_name\n",
    "test_subs.py": "def test_subs(subtests):\n    for n in range(3):\n        with subtests.test(n=n): pass\n",
    "test_flaky.py": """
        import pathlib

        def test_flaky():
            tries = pathlib.Path(__file__).with_suffix(".tries")
            tries.write_text((tries.read_text() if tries.exists() else "") + "x")
            assert len(tries.read_text()) > 1
        def test_ok(): pass
    """,
    "test_exit.py": "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('enough', returncode=0)\n",
    "test_gone.py": "import os\ndef test_a(): os._exit(0)\n",
}

XUNIT1, XUNIT2 = ("-o", "junit_family=xunit1"), ("-o", "junit_family=xunit2")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files, in a directory of their own."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        lines = text.split("\n")
        indent = len(lines[1]) - len(lines[1].lstrip()) if not lines[0] else 0
        file.write_text("\n".join(line[indent:] for line in lines), "utf-8")
    return tmp_path


def run(project: Path, targets: tuple[str, ...], *arguments: str, profile: str | None = None) -> Reading:
    """The reading of a run of pytest at some of the files."""
    report = project / "report.xml"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *targets, f"--junitxml={report}"]
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = None
    for last in (False, True):
        # Once in some hundred thousand sessions the workers of xdist stand still for ever; that says nothing of what
        # is read here, and a second session in a row that does is no accident.
        try:
            ended = subprocess.run([*argv, *arguments], cwd=project, env=environment, capture_output=True, timeout=60)
            break
        except subprocess.TimeoutExpired:
            if last:
                raise
    assert ended is not None
    document = report.read_bytes() if report.exists() else None
    return reading_of(document, planned=targets, exit_code=ended.returncode, dialect="pytest", profile=profile)


@pytest.mark.parametrize("form", [XUNIT1, XUNIT2, (*XUNIT1, "-n2"), (*XUNIT2, "-n2")], ids=" ".join)
def test_every_form_of_the_report_says_the_same(project: Path, form: tuple[str, ...]) -> None:
    reading = run(project, ("test_mix.py", "deep/test_ok.py"), *form)
    assert (reading.verdict, codes(reading)) == ("failed", set())
    assert [(one.target, one.verdict) for one in reading.targets] == [
        ("test_mix.py", "failed"), ("deep/test_ok.py", "passed"),
    ]  # fmt: skip
    assert {row.test.text(): row.outcome for row in reading.cases()} == {
        "deep/test_ok.py::test_ünï": "passed",
        "test_mix.py::TestBox::TestInner::test_deep": "passed",
        "test_mix.py::test_bad": "failed",
        "test_mix.py::test_known": "xfailed",
        "test_mix.py::test_many[1]": "passed",
        "test_mix.py::test_many[a/b]": "passed",
        "test_mix.py::test_many[x\\[y\\]]": "passed",
        "test_mix.py::test_ok": "passed",
        "test_mix.py::test_skip": "skipped",
    }


@pytest.mark.parametrize("form", [XUNIT1, XUNIT2], ids=" ".join)
def test_a_file_that_cannot_be_collected_fails_and_takes_the_others_with_it(
    project: Path, form: tuple[str, ...]
) -> None:
    reading = run(project, ("test_broken.py", "deep/test_ok.py"), *form)
    assert (reading.verdict, codes(reading)) == ("failed", {"interrupted"})
    assert [one.verdict for one in reading.targets] == ["failed", "unmeasured"]
    assert [(row.test.text(), row.outcome) for row in reading.cases()] == [("test_broken.py", "error")]
    went_on = run(project, ("test_broken.py", "deep/test_ok.py"), *form, "--continue-on-collection-errors")
    assert [(one.verdict, one.cause) for one in went_on.targets] == [("failed", None), ("passed", None)]


def test_subtests_and_tries_need_their_profile(project: Path) -> None:
    strict = run(project, ("test_subs.py",))
    assert (strict.verdict, strict.suggested) == ("unmeasured", ("pytest-subtests/1",))
    assert run(project, ("test_subs.py",), profile="pytest-subtests/1").verdict == "accepted"
    flaky = run(project, ("test_flaky.py",), "--reruns", "2", profile="pytest-reruns/1")
    assert [(row.test.path, row.outcome, row.reruns) for row in flaky.cases()] == [
        (("test_flaky",), "passed", 1), (("test_ok",), "passed", 0),
    ]  # fmt: skip
    assert flaky.verdict == "accepted"


@pytest.mark.parametrize(("target", "reason"), [("test_exit.py", "case-unnamed"), ("test_gone.py", "report-missing")])
def test_an_exit_in_the_middle_is_never_accepted(project: Path, target: str, reason: str) -> None:
    reading = run(project, ("deep/test_ok.py", target))
    assert reading.verdict == "unmeasured"
    assert reason in codes(reading)


def test_a_file_that_is_not_there_leaves_all_unmeasured(project: Path) -> None:
    reading = run(project, ("deep/test_ok.py", "nowhere.py"))
    assert (reading.verdict, codes(reading)) == ("unmeasured", {"runner-usage-error"})
