"""`ledger report` as a real program: each format, where it goes, what there is without a verdict, what is refused."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from commands.render.reports.jsonl import ReportCase, ReportHeader
from ledger.store.api import EVIDENCE
from tests.commands.reports.conftest import kinds, parsed
from tests.support.cli import LEDGER, Answer
from tests.support.gates import Suite
from tests.support.ledgers import SUITE, add_run, begin, make_ledger
from tests.support.sides import File

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
RUN = "20300102-030405-abcd"
CALCULATOR = Suite(
    candidate={
        "tests/test_native.py": File({"test_quick": "passed"}),
        "tests/test_numbers.py": File(
            {"test_add": "passed", "test_divide[1-0]": "failed", "test_round": "failed", "test_send": "rerun"}
        ),
        "tests/test_words.py": File({"test_split": "passed", "test_join": "skipped"}),
    },
    baseline={
        "tests/test_native.py": File({"test_quick": "passed"}),
        "tests/test_numbers.py": File(
            {"test_add": "passed", "test_divide[1-0]": "passed", "test_round": "failed", "test_send": "passed"}
        ),
        "tests/test_words.py": File({"test_split": "failed", "test_join": "passed"}),
    },
    killers={"candidate": frozenset({"tests/test_native.py"})},
)
"""The run of docs/reports.md."""

Ledger = Callable[..., Answer]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger with the run of the page."""
    directory = tmp_path_factory.mktemp("store")
    with begin(directory) as writer:
        add_run(writer, directory, RUN, CALCULATOR)
    return directory


@pytest.fixture
def ledger(tmp_path: Path, store: Path) -> Ledger:
    """Runs `ledger` in an empty directory that is in no repository, on that ledger unless another is named."""

    def run(*arguments: str | Path) -> Answer:
        environment = {"PATH": os.defpath, "HOME": str(tmp_path), "COLUMNS": "120", "LEDGER_STORE": str(store)}
        ended = subprocess.run(
            [LEDGER, *arguments], cwd=tmp_path, env=environment, check=False, capture_output=True, timeout=60
        )
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


@contextmanager
def reader_of(pipe: Path) -> Iterator[list[bytes]]:
    """Somebody who reads a pipe to its end."""
    read: list[bytes] = []
    thread = Thread(target=lambda: read.append(pipe.read_bytes()))
    thread.start()
    yield read
    thread.join(60)
    assert not thread.is_alive()


def commands_of_the_page() -> list[tuple[str, str]]:
    """Each command of the page, with what the page says that it prints."""
    return re.findall(r"```console\n\$ (ledger .*)\n((?s:.*?))```\n", PAGE.read_text("utf-8"))


@pytest.mark.parametrize("number", range(4))
def test_what_the_page_shows_is_what_is_printed(number: int, ledger: Ledger, request: pytest.FixtureRequest) -> None:
    command, shown = commands_of_the_page()[number]
    answer = ledger(*command.split()[1:])
    if request.config.getoption("--update-golden"):
        PAGE.write_text(
            PAGE.read_text("utf-8").replace(f"$ {command}\n{shown}```", f"$ {command}\n{answer.out}{answer.err}```")
        )
        return
    assert answer.code == 0
    assert answer.out + answer.err == shown


def test_the_page_shows_every_format() -> None:
    assert [command.partition(" --format ")[2] for command, _ in commands_of_the_page()] == [
        "", "junit", "github", "jsonl",
    ]  # fmt: skip


def test_every_line_for_programs_is_what_its_schema_says(ledger: Ledger) -> None:
    header, *cases = ledger("report", "--json").out.splitlines()
    told = msgspec.json.decode(header, type=ReportHeader)
    assert (told.verdict, told.run) == ("failed", RUN)
    for line, kind in [(header, ReportHeader), *((line, ReportCase) for line in cases)]:
        assert json.loads(msgspec.json.encode(msgspec.json.decode(line, type=kind))) == json.loads(line)
    assert sum(told.counts.values()) == len(cases) == 7
    assert ledger("report", "--format", "jsonl").out == ledger("report", "--json").out


@pytest.mark.parametrize("form", ["markdown", "junit", "github", "jsonl"])
def test_a_file_holds_what_is_printed_otherwise(form: str, ledger: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "report"
    file.write_text("what was there before")
    (tmp_path / "link").symlink_to(file)
    printed = ledger("report", "--format", form)
    answer = ledger("report", "--format", form, "--output", tmp_path / "link")
    assert (answer.code, answer.out, answer.err) == (0, "", printed.err)
    assert file.read_text("utf-8") == printed.out
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "report"]


def test_a_pipe_is_written_to(ledger: Ledger, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with reader_of(pipe) as read:
        assert ledger("report", "--format", "junit", "-o", pipe).code == 0
    parsed([b"".join(read).decode()])


def test_a_report_that_breaks_off_leaves_the_file_that_was_there(ledger: Ledger, tmp_path: Path) -> None:
    damaged, file = make_ledger(tmp_path / "damaged", RUN), tmp_path / "report"
    file.write_text("what was there before")
    for piece in (damaged / EVIDENCE).glob("*/*.gz"):
        piece.unlink()
    answer = ledger("report", "--store", damaged, "-o", file)
    assert (answer.code, answer.error_code) == (7, "evidence-damaged")
    assert file.read_text() == "what was there before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["damaged", "report"]


@pytest.mark.parametrize("place", ["missing/report", "file/report"])
def test_a_file_that_cannot_be_written_is_an_error(place: str, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = ledger("report", "-o", tmp_path / place)
    assert (answer.code, answer.error_code) == (4, "report-unwritable")


def position_of(ledger: Ledger, tag: str) -> int:
    """Where the first event of this tag is."""
    headers = (json.loads(line)["header"] for line in ledger("log", "--json").out.splitlines())
    return next(int(one["position"]) for one in headers if one["tag"] == tag)


def test_without_a_verdict_what_exists_is_marked(ledger: Ledger) -> None:
    before = f"#{position_of(ledger, 'verdict-decided') - 1}"
    root = parsed([ledger("report", "--format", "junit", "--at", before).out])
    assert kinds(root) == [["error"]] * 7
    header, *cases = ledger("report", "--json", "--at", before).out.splitlines()
    assert json.loads(header)["verdict"] is None
    assert {json.loads(line)["cause"] for line in cases} == {"verdict-missing"}
    assert "**There is no verdict yet.**" in ledger("report", "--at", before).out
    told = ledger("report", "--format", "github", "--at", before).err
    assert "::error file=tests/test_numbers.py,title=verdict-missing::tests/test_numbers.py::test_round: " in told


def test_where_there_is_nothing_yet_that_is_an_error_with_a_code(ledger: Ledger) -> None:
    before = f"#{position_of(ledger, 'planned')}"
    for form in ("markdown", "junit", "github", "jsonl"):
        answer = ledger("report", "--at", before, "--format", form)
        assert (answer.code, answer.error_code, answer.out) == (2, "nothing-to-report", "")
    assert ledger("explain", "nothing-to-report").code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run-7",), "run-unknown"),
        (("--format", "html"), "usage-invalid"),
        (("--at", "#9999"), "moment-unknown"),
        (("-o", "."), "usage-invalid"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], code: str, ledger: Ledger) -> None:
    answer = ledger("report", *arguments)
    assert (answer.code, answer.error_code, answer.out) == (2, code, "")


def test_the_exit_code_is_that_of_looking_whatever_the_verdict(ledger: Ledger, tmp_path: Path) -> None:
    answer = ledger("report", "--store", make_ledger(tmp_path / "other", RUN), "--format", "junit")
    assert answer.code == 0
    assert kinds(parsed([answer.out])) == [[], ["failure"], ["failure"]]
    assert SUITE.candidate.keys() == {one.get("file") for one in parsed([answer.out])} - {None}


def test_each_command_says_how_it_is_used(ledger: Ledger, golden: Callable[[str, str], None]) -> None:
    golden("cli/help-report.txt", ledger("report", "--help").out)
