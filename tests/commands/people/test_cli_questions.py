"""Questions as people meet them: what is printed, how they answer while a driver works, and what is never a choice."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest

from commands.config.settings import RunnerSettings
from commands.messages import AskQuestion, BeginStep, ExpireQuestion, StartRun
from commands.wiring import Home, Workshop, find_home, open_workshop
from ledger.events import Answered, GatePolicy, Question, QuestionPolicy
from ledger.store.reader import Reader
from ledger.tables import encode_document
from tests.support.cli import Answer, Project
from tests.support.makers import RUN, question

pytestmark = pytest.mark.real

WIDE, NARROW = "120", "50"
LATE = "9999-12-31T00:00:00Z"
CHANNEL = question(
    "stable", "beta", impact="critical", why_now="What is published cannot be taken back.", recommended="beta"
)
NOTES = question("short", "long", key="notes", prompt="How long are the notes?", impact="medium")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A repository with a ledger in which one run has begun."""
    project = Project.make(tmp_path, {"README.txt": "nothing\n"}, {"README.txt": "something\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "LEDGER_STORE"):
        monkeypatch.delenv(name, raising=False)
    home = find_home(project.path, {})
    commits = [project.git("rev-parse", one) for one in ("HEAD", "v1.0")]
    with open_workshop(home, RUN) as workshop:
        config = workshop.evidence.put_bytes(encode_document(RunnerSettings()))
        workshop.loop.handle(
            StartRun(
                stream=RUN, run=RUN, candidate=commits[0], candidate_ref="HEAD", baseline=commits[1],
                baseline_ref="v1.0", baseline_reason="asked", dirty=False, policy=GatePolicy(), config=config,
            )
        )  # fmt: skip
    return home


@pytest.fixture
def project(home: Home, tmp_path: Path) -> Project:
    """The same repository, for the program."""
    assert home.directory.exists()
    return Project(tmp_path)


@pytest.fixture
def workshop(home: Home) -> Iterator[Workshop]:
    """The run, driven by this process."""
    with open_workshop(home, RUN) as opened:
        yield opened


def ask(workshop: Workshop, content: Question, minutes: int | None = None) -> None:
    policy = QuestionPolicy(execution_max=9)
    workshop.loop.handle(AskQuestion(stream=RUN, content=content, policy=policy, deadline_minutes=minutes))


def expire(workshop: Workshop, name: str) -> None:
    workshop.loop.handle(ExpireQuestion(stream=RUN, question=name, now=LATE))


def answers(project: Project) -> list[Answered]:
    """Every answer that is recorded."""
    with Reader.open(project.store / "ledger.sqlite") as reader:
        return [recorded.event for recorded in reader.events(RUN) if isinstance(recorded.event, Answered)]


def transcript(*asked: tuple[str, Answer]) -> str:
    """Command lines and their answers, without what is different each time."""
    parts = [f"$ {command}\n{answer.out}{answer.err}--- exit code {answer.code}\n\n" for command, answer in asked]
    text = re.sub(r"\b\d+ min \d+ s|\b\d+ h \d+ min", "29 min 59 s", "".join(parts))
    text = re.sub(r"(\nby +|answered by )\w+", r"\1somebody", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "2030-01-01T00:00:00.000000Z", text)


def test_questions_and_answers_are_told_as_they_are_recorded(
    project: Project, workshop: Workshop, golden: Callable[[str, str], None]
) -> None:
    asked = [("ledger questions", project.ledger("questions"))]
    ask(workshop, NOTES, minutes=600)
    ask(workshop, question("a", "b", key="colour", prompt="Which colour?", impact="low"))
    ask(workshop, question("now", "later", key="time", prompt="When?"))
    ask(workshop, CHANNEL)
    asked += [
        ("ledger questions    # 120 columns", project.ledger("questions", COLUMNS=WIDE)),
        ("ledger questions    # 50 columns", project.ledger("questions", COLUMNS=NARROW)),
        ("ledger answer question-4 gamma", project.ledger("answer", "question-4", "gamma")),
        ("ledger answer question-4 --text ''", project.ledger("answer", "question-4", "--text", "")),
    ]
    expire(workshop, "question-4")
    expire(workshop, "question-1")
    asked += [
        ("ledger questions", project.ledger("questions", COLUMNS=WIDE)),
        ("ledger answer question-1 long", project.ledger("answer", "question-1", "long")),
        (
            "ledger answer question-4 --text ...",
            project.ledger("answer", "question-4", "--text", "beta, but on Monday"),
        ),
        ("ledger answer question-9 --defer", project.ledger("answer", "question-9", "--defer")),
        ("ledger questions", project.ledger("questions", COLUMNS=NARROW)),
    ]
    golden("cli/questions.txt", transcript(*asked))
    said = [(one.outcome, one.choice, one.text) for one in answers(project)]
    assert said == [("unreadable", "", ""), ("text", "", "beta, but on Monday")]


@pytest.mark.parametrize(
    ("arguments", "outcome", "choice", "text"),
    [
        (["beta"], "choice", "beta", ""),
        (["beta", RUN[:12]], "choice", "beta", ""),
        (["--text", "stable"], "text", "", "stable"),
        (["--text", "two\nlines", "latest"], "text", "", "two\nlines"),
        (["--defer"], "deferred", "", ""),
        (["--cancel", RUN], "cancelled", "", ""),
    ],
)
def test_each_way_to_answer_is_recorded_under_the_name_of_whoever_answers_and_can_be_repeated(
    project: Project, workshop: Workshop, arguments: list[str], outcome: str, choice: str, text: str
) -> None:
    ask(workshop, CHANNEL)
    first = project.ledger("answer", "question-1", *arguments, "--json")
    again = project.ledger("answer", "question-1", *arguments, "--json")
    (recorded,) = answers(project)
    assert (recorded.outcome, recorded.choice, recorded.text) == (outcome, choice, text)
    assert recorded.by == workshop.who
    assert (first.code, again.code) == (0, 0)
    assert first.out == again.out
    assert json.loads(first.out)["outcome"] == outcome
    assert project.ledger("questions").code == 0, "nobody is waited for any more"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        ([], 2, "usage-invalid"),
        (["beta", "latest", "more"], 2, "usage-invalid"),
        (["--text", "x", "latest", "more"], 2, "usage-invalid"),
        (["--text", "x", "--defer"], 2, "usage-invalid"),
        (["--defer", "--cancel"], 2, "usage-invalid"),
        (["beta", "no-such-run"], 2, "run-unknown"),
        (["Beta"], 4, "option-unknown"),
        (["\udcff"], 4, "option-unknown"),
    ],
)
def test_what_is_no_answer_leaves_no_trace(
    project: Project, workshop: Workshop, arguments: list[str], code: int, error: str
) -> None:
    ask(workshop, CHANNEL)
    answer = project.ledger("answer", "question-1", *arguments)
    assert (answer.code, answer.error_code, answer.out) == (code, error, "")
    assert project.ledger("explain", error).code == 0
    assert answers(project) == []
    assert project.ledger("questions").code == 6


@pytest.mark.parametrize("text", ["", "\x1b[31mred", "\udcff", "x" * 4001])
def test_what_nobody_can_read_is_recorded_as_that_and_somebody_is_still_waited_for(
    project: Project, workshop: Workshop, text: str
) -> None:
    ask(workshop, CHANNEL)
    answer = project.ledger("answer", "question-1", "--text", text)
    assert (answer.code, answer.err) == (6, "")
    assert [one.outcome for one in answers(project)] == ["unreadable"]
    assert project.ledger("answer", "question-1", "stable").code == 0


def test_nothing_can_be_answered_once_the_recommended_option_was_taken_but_what_is_critical_can(
    project: Project, workshop: Workshop
) -> None:
    ask(workshop, NOTES)
    ask(workshop, CHANNEL)
    expire(workshop, "question-1")
    expire(workshop, "question-2")
    assert project.ledger("answer", "question-1", "long").error_code == "question-closed"
    assert project.ledger("answer", "question-2", "stable").code == 0


@pytest.mark.slow
def test_an_answer_gets_through_while_the_driver_writes_all_the_time(project: Project, workshop: Workshop) -> None:
    for number in range(3):
        ask(workshop, question(key=f"key-{number}", impact="critical"))
    ended, written = Flag(), 0
    codes: list[int] = []

    def answer_all() -> None:
        try:
            codes.extend(project.ledger("answer", f"question-{number}", "beta").code for number in (1, 2, 3))
        finally:
            ended.set()

    people = Thread(target=answer_all)
    people.start()
    while not ended.is_set():
        ask(workshop, question(key=f"own-{written}", impact="low"))
        written += 1
    people.join()
    assert codes == [0, 0, 0]
    assert [one.question for one in answers(project)] == ["question-1", "question-2", "question-3"]
    views = workshop.loop.views(RUN).questions
    assert len(views.questions) == 3 + written > 10, "nothing that the driver wrote is lost"
    assert list(views.open()) == []
    assert project.ledger("verify").code == 0


def test_looking_changes_nothing_and_knows_the_past(project: Project, workshop: Workshop) -> None:
    ask(workshop, CHANNEL)
    asked = workshop.loop.views(RUN).run.position
    assert project.ledger("answer", "question-1", "stable").code == 0
    before = (project.store / "ledger.sqlite").read_bytes()
    then = project.ledger("questions", "--json", "--at", f"#{asked}")
    assert (then.code, json.loads(then.out)["questions"][0]["left_seconds"]) == (6, 1800.0)
    now = project.ledger("questions", RUN, "--json")
    assert (now.code, json.loads(now.out)["questions"][0]["choice"]) == (0, "stable")
    assert json.loads(project.ledger("questions", "--json", "--at", f"#{asked - 1}").out)["questions"] == []
    assert project.ledger("questions", "--at", "#99").error_code == "moment-unknown"
    assert (project.store / "ledger.sqlite").read_bytes() == before


def test_whatever_a_step_says_cannot_control_the_terminal(project: Project, workshop: Workshop) -> None:
    ask(workshop, question("--force", "it's; rm -rf ~", prompt="one\ntwo", impact="critical"))
    out = project.ledger("questions", COLUMNS=NARROW).out
    assert "one\\ntwo" in out
    (line,) = [one for one in out.splitlines() if one.startswith("answer")]
    assert line == f"answer     ledger answer question-1 -- --force {RUN}"
    assert project.ledger("answer", "question-1", "--", "--force", RUN).code == 0


def test_the_log_and_a_replay_tell_questions_and_answers(project: Project, workshop: Workshop) -> None:
    workshop.loop.handle(BeginStep(stream=RUN, step="gate"))
    ask(workshop, NOTES)
    ask(workshop, question(key="low", impact="low"))
    ask(workshop, question(key="other"))
    ask(workshop, CHANNEL)
    expire(workshop, "question-4")
    expire(workshop, "question-1")
    assert project.ledger("answer", "question-4", "--text", "neither").code == 0
    log = project.ledger("log").out
    for words in (
        "question-1 (medium) of publish, notes: How long are the notes? [short, long]", "(low-impact)",
        "(question-pending)", "the run waits", "'short': nobody answered in time", "question-4 in words, 'neither', by",
    ):  # fmt: skip
        assert words in log, log
    replayed = json.loads(project.ledger("replay", "--json").out)
    assert replayed["outcome"] == "agree"
    messages = [one["message"] for one in replayed["findings"]]
    assert messages.count("ask-question") == 4


def test_a_project_without_a_ledger_has_no_questions(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"README.txt": "nothing\n"})
    for command in (("questions",), ("answer", "question-1", "yes")):
        assert project.ledger(*command).error_code == "ledger-missing"
    assert not project.store.exists()


def test_a_program_of_the_settings_is_found_in_the_file(project: Project) -> None:
    project.write({"ledger.toml": '[notify]\nhooks = [["tell", "me"]]\n[questions]\ndeadline_minutes = 5\n'})
    settings = find_home(project.path, {}).loaded.settings
    assert settings.notify.hooks == (("tell", "me"),)
    assert settings.questions == QuestionPolicy(deadline_minutes=5)
    project.write({"ledger.toml": "[questions]\ndeadline_minutes = 35792\n"})
    assert project.ledger("config").error_code == "config-invalid"
