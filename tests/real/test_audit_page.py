"""The answers in docs/audit.md are real: each command of the page is asked again, and says the same."""

import re
import shlex
import socket
from pathlib import Path

import pytest

from ledger.events import STREAM
from ledger.store.reader import Reader
from scripts.demo_run import BASELINE, CANDIDATE
from tests.support.cli import Project

pytestmark = [pytest.mark.real, pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
BLOCK = re.compile(r"```console\n\$ (?P<command>ledger .*)\n(?P<answer>(?s:.*?))```\n")
RUN = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b")
COLUMNS = "100"
SETTINGS = {"ledger.toml": "[gate]\nparallel = 1\nshards = 2\nrounds = 1\n"}
MENDED = {
    "calculator.py": BASELINE["calculator.py"],
    "test_native.py": BASELINE["test_native.py"],
}
CHANGES_EACH_TIME = (
    (re.compile(r"\s+"), " "),
    (RUN, "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\b(\d+ min )?\d+(\.\d+)? (ms|s)\b"), "DURATION"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "TIME"),
    (re.compile(r"\b\d+\.\d{3,}(e-\d+)?\b"), "SECONDS"),
    (re.compile(r"\b\d+ MiB\b"), "MEMORY"),
    (re.compile(r"process \d+ on"), "process N on"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HEAD"),
    (re.compile(r"\b(evidence|key|log|record|table) [0-9a-f]{12}\b"), r"\1 DIGEST"),
    (re.compile(r"with ledger \S+"), "with ledger VERSION"),
    (re.compile(r"\d+ pieces of evidence"), "N pieces of evidence"),
)


class Asked(Project):
    """A project whose user has a name that may stand on the page, and has nothing run again, which keeps it short."""

    @property
    def environment(self) -> dict[str, str]:
        """The user's environment, with that name, a fixed width and that setting."""
        return {**super().environment, "LOGNAME": "operator", "COLUMNS": COLUMNS, "LEDGER_GATE_RERUN": "off"}

    def answer(self, command: str) -> str:
        """What a command line of the page prints here."""
        answer = self.ledger(*shlex.split(command)[1:])
        assert answer.err == ""
        return re.sub(rf"\bon {re.escape(socket.gethostname())}\b", "on gate-host", answer.out)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The repository of the page, with both of its runs."""
    made = Asked.make(tmp_path_factory.mktemp("audit"), {**BASELINE, **SETTINGS}, CANDIDATE, name="calculator")
    assert isinstance(made, Asked)
    assert made.ledger("gate").code == 1
    assert made.ledger("resume", "--from", "gate").code == 1
    made.commit(MENDED)
    assert made.ledger("gate").code == 0
    return made


def comparable(text: str) -> str:
    """The text without what is another each time, and without the line breaks that follow from it."""
    for pattern, replacement in CHANGES_EACH_TIME:
        text = pattern.sub(replacement, text)
    return text.strip()


def asked_again(page: str, project: Asked) -> str:
    """The page with the runs and the answers of this project."""
    runs = dict(zip(sorted(set(RUN.findall(page))), runs_of(project), strict=False))
    page = RUN.sub(lambda run: runs[run.group()], page)
    return BLOCK.sub(lambda block: f"```console\n$ {block['command']}\n{project.answer(block['command'])}```\n", page)


def runs_of(project: Asked) -> list[str]:
    """The runs of the project, in the order in which they began."""
    with Reader.open(project.store / "ledger.sqlite") as reader:
        return [head.stream for head in reader.streams() if head.stream != STREAM]


def test_each_command_of_the_page_gives_the_answer_that_the_page_shows(
    project: Asked, request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text("utf-8")
    again = asked_again(page, project)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(again, "utf-8")
        return
    questions, answers = (list(BLOCK.finditer(text)) for text in (page, again))
    assert len(questions) == page.count("```console") >= 10
    for question, answer in zip(questions, answers, strict=True):
        assert comparable(question["answer"]) == comparable(answer["answer"]), question["command"]
