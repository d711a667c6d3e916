"""Programs that tell people: real processes, what they read, and everything that can go wrong with them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.effects.people.notify import Notice, notify, question_notice
from tests.support.cli import processes_below
from tests.support.makers import question, question_asked, views_of

pytestmark = pytest.mark.real

NOTICE = Notice(kind="approval", run="run-1", step="approve", subject="approval-1", prompt="Release 1.2?")


def program(directory: Path, text: str) -> list[str]:
    """A program of this text."""
    file = directory / "program.py"
    file.write_text(text, "utf-8")
    return [sys.executable, str(file)]


def told(hooks: list[list[str]], directory: Path, limit_seconds: float = 10.0) -> list[str]:
    """What is noted while these programs are run."""
    notes: list[str] = []
    notify(hooks, NOTICE, directory, notes.append, limit_seconds=limit_seconds)
    return notes


def test_a_program_reads_one_document_and_is_given_its_arguments_as_they_are(tmp_path: Path) -> None:
    argv = program(tmp_path, "import sys; open('seen', 'w').write(sys.stdin.read() + sys.argv[1])")
    asked = question(impact="critical", why_now="it cannot be undone", recommended="beta")
    record = views_of(question_asked(asked)).questions.questions["question-1"]
    notify([[*argv, "$HOME; `id`"]], question_notice("run-1", record), tmp_path, pytest.fail)
    document, _, argument = (tmp_path / "seen").read_text("utf-8").partition("\n")
    assert argument == "$HOME; `id`"
    assert json.loads(document) == {
        "kind": "question", "run": "run-1", "step": "publish", "subject": "question-1", "prompt": "Which channel?",
        "why_now": "it cannot be undone", "impact": "critical", "options": ["stable", "beta"], "recommended": "beta",
        "deadline": "2030-01-02T03:34:01Z", "command": "ledger answer question-1 OPTION run-1",
    }  # fmt: skip


def test_one_that_does_not_read_is_as_good(tmp_path: Path) -> None:
    big = Notice(kind="question", run="r", step="s", subject="question-1", prompt="x" * 1_000_000)
    notify([["true"]], big, tmp_path, pytest.fail)


def test_each_failure_is_told_and_keeps_nobody_from_the_next_program(tmp_path: Path) -> None:
    crashed = program(tmp_path, "import sys; print('no network', file=sys.stderr); sys.exit(3)")
    last = tmp_path / "last"
    assert told([["no-program"], crashed, ["false"], ["touch", str(last)]], tmp_path) == [
        "the hook 'no-program' did not tell anybody of approval-1: it cannot be started: No such file or directory",
        f"the hook {sys.executable!r} did not tell anybody of approval-1: exit code 3; no network",
        "the hook 'false' did not tell anybody of approval-1: exit code 1",
    ]
    assert last.exists()


def test_one_that_is_killed_is_told(tmp_path: Path) -> None:
    (note,) = told([program(tmp_path, "import os; os.kill(os.getpid(), 9)")], tmp_path)
    assert note.endswith("signal 9")


def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    text = f"import subprocess\nsubprocess.Popen(['sleep', '60'], env={{'HERE': {str(tmp_path)!r}}}).wait()"
    begun = time.monotonic()
    (note,) = told([program(tmp_path, text)], tmp_path, limit_seconds=1.0)
    assert "did not end within 1 s" in note
    assert time.monotonic() - begun < 20
    deadline = time.monotonic() + 10
    while (left := [one for one in processes_below(tmp_path) if one.startswith("sleep")]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.02)
    assert left == []


def test_one_that_leaves_something_behind_is_not_waited_for(tmp_path: Path) -> None:
    text = "import subprocess; print(subprocess.Popen(['sleep', '30']).pid, file=open('pid', 'w'))"
    begun = time.monotonic()
    assert told([program(tmp_path, text)], tmp_path) == []
    assert time.monotonic() - begun < 9
    subprocess.run(["kill", (tmp_path / "pid").read_text().strip()], check=True)


def test_it_sees_your_environment_and_a_group_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_TOKEN", "secret")
    text = "import os; print(os.environ['CHAT_TOKEN'], os.getpgrp() == os.getpid(), file=open('seen', 'w'))"
    assert told([program(tmp_path, text)], tmp_path) == []
    assert (tmp_path / "seen").read_text() == "secret True\n"


def test_what_a_program_says_cannot_be_long(tmp_path: Path) -> None:
    (note,) = told([program(tmp_path, "import sys; sys.exit('x' * 100_000)")], tmp_path)
    assert len(note) < 400
