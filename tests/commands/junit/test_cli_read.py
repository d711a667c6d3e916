"""`ledger read` as a real program: why a report is refused, for people and for programs."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from commands.cli.measures.read import ReadDocument
from tests.commands.junit.conftest import CASES, REAL
from tests.support.cli import LEDGER, Answer

pytestmark = pytest.mark.real

Read = Callable[..., Answer]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Runs `ledger read` in an empty directory that is in no repository."""

    def run(*arguments: str | Path, **variables: str) -> Answer:
        environment = {"PATH": os.defpath, "HOME": str(tmp_path), "COLUMNS": "100", **variables}
        ended = subprocess.run(
            [LEDGER, "read", *arguments], cwd=tmp_path, env=environment, check=False, capture_output=True, timeout=60
        )
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


B04 = CASES / "B04"
PYTEST = ("--planned", "basic/test_mix.py", "--planned", "basic/test_other.py")
ORDERS = ("--planned", "tests/orders_test.x")


def test_the_answer_is_the_exit_code(read: Read) -> None:
    whole = CASES / "B00" / "report.xml"
    assert read(whole, *ORDERS, "--exit-code", "0").code == 0
    assert read(REAL / "pytest-xunit1" / "report.xml", *PYTEST, "--exit-code", "1").code == 1
    for missing in ((*ORDERS, "--exit-code", "1"), ORDERS, ("--exit-code", "0"), (*ORDERS, "--signal", "KILL")):
        assert read(whole, *missing).code == 3


def test_people_read_verdict_reasons_and_failures(
    read: Read, golden: Callable[[str, str], None], tmp_path: Path
) -> None:
    for name, report in (("mix", REAL / "pytest-xunit1"), ("subtests", REAL / "pytest-subtests-pass"), ("cut", B04)):
        shutil.copy(report / "report.xml", tmp_path / f"{name}.xml")
    command_lines = [
        ("mix.xml", *PYTEST, "--exit-code", "1"),
        ("subtests.xml", "--planned", "subok/test_subok.py", "--exit-code", "0"),
        ("cut.xml", "missing.xml", *ORDERS, "--signal", "9"),
        ("mix.xml",),
    ]
    told = "".join(f"$ ledger read {' '.join(line)}\n{read(*line).out}\n" for line in command_lines)
    golden("cli/read.txt", told)
    assert "\x1b" not in told


def test_what_is_no_file_is_called_what_it_is(read: Read, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "reports").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "empty.xml").touch()
    names = {
        "/dev/null": "it is a device, not a file", "pipe": "it is a pipe, not a file",
        "reports": "it is a directory, not a file", "broken": "there is no such file",
    }  # fmt: skip
    for name, told in names.items():
        answer = read(name, *ORDERS, "--exit-code", "0")
        assert answer.code == 3
        assert f"report-missing         {name}: {told}" in answer.out.splitlines()
    empty = read("empty.xml", *ORDERS, "--exit-code", "0")
    assert "report-empty           empty.xml: it is empty" in empty.out.splitlines()


def test_programs_read_one_document(read: Read) -> None:
    answer = read(REAL / "bun-mix" / "report.xml", "--planned", "mix.test.ts", "--exit-code", "1", "--json")
    document = msgspec.json.decode(answer.out, type=ReadDocument)
    assert (document.verdict, document.dialect, document.profile) == ("failed", "bun", "")
    assert [one.code for one in document.troubles] == ["foreign-tests"]
    assert [(one.target, one.verdict, one.cause) for one in document.targets] == [
        ("mix.test.ts", "failed", "foreign-tests"),
    ]  # fmt: skip
    assert len(document.cases) == 16
    assert answer.out.isascii()


def test_a_profile_is_suggested_and_only_used_when_it_is_asked_for(read: Read) -> None:
    run = (
        REAL / "jest-pass-with-todo" / "report.xml", "--planned", "t-jest-todo/todo.test.js", "--exit-code", "0",
    )  # fmt: skip
    strict = read(*run)
    assert strict.code == 3
    assert "--profile jest-todo/1" in strict.out
    assert read(*run, "--profile", "jest-todo/1").code == 0
    assert read(*run, "--profile", "jest-todo/1", "--dialect", "jest-junit").code == 0


def test_several_reports_are_one_attempt(read: Read) -> None:
    folder = REAL / "surefire-pass"
    planned = ("--planned", "t.PassTest", "--planned", "t.PassTest$In", "--exit-code", "0")
    assert read(*sorted(folder.glob("*.xml")), *planned).code == 0
    assert read(folder / "TEST-t.PassTest.xml", *planned).code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("r.xml", "--dialect", "klingon"),
        ("r.xml", "--profile", "pytest-subtests"),
        ("r.xml", "--exit-code", "one"),
        ("r.xml", "--signal", "SIGNONE"),
        ("r.xml", "--signal", "0"),
        ("r.xml", "--signal", "9", "--exit-code", "0"),
    ],
)
def test_what_cannot_be_meant_is_refused(read: Read, arguments: tuple[str, ...]) -> None:
    answer = read(*arguments)
    assert (answer.code, answer.error_code, answer.out) == (2, "usage-invalid", "")


def test_a_directory_is_no_report_and_reading_leaves_nothing_behind(read: Read, tmp_path: Path) -> None:
    answer = read(tmp_path, *ORDERS, "--exit-code", "0", "--json")
    assert [one["code"] for one in json.loads(answer.out)["troubles"]] == ["report-missing"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_report_that_may_not_be_read_is_an_error(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    file.write_text("<testsuites/>")
    file.chmod(0)
    assert read(file, *ORDERS).error_code == "report-unreadable"


def test_absolute_paths_begin_with_the_current_directory(read: Read, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    for root, code in ((tmp_path, 0), (tmp_path.parent, 3)):
        report.write_text(f'<testsuite file="{root}/a.js"><testcase name="a"/></testsuite>')
        assert read(report, "--planned", "a.js", "--exit-code", "0").code == code
    report.unlink()
    assert not json.loads(read("report.xml", "--json").out)["cases"]
