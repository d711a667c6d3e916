"""Bad input and hard places get an answer that says what, where and what to do, and never a traceback."""

import contextlib
import json
import os
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import CALC, SETTINGS, TESTS, Ask, Histories
from tests.support.cli import LEDGER, Project, processes_below, wait_until

pytestmark = pytest.mark.real

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a release and a candidate, and no ledger yet."""
    return Project.make(tmp_path, CALC | TESTS | SETTINGS, {"README.txt": "Adds.\n"})


@pytest.mark.parametrize("command", ["status", "log", "gate", "config", "init", "stop", "why x", "resume --from gate"])
def test_outside_of_a_repository_every_command_says_so(command: str, tmp_path: Path, ask: Ask) -> None:
    nowhere = Project(tmp_path)
    nowhere.path.mkdir()
    answer = ask(nowhere, *command.split())
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "no-repository")
    assert str(nowhere.path) in answer.err
    assert "git init" in answer.err


@pytest.mark.parametrize("command", ["status", "log", "stop", "why x", "resume --from gate"])
def test_without_a_ledger_the_reading_commands_make_none(command: str, project: Project, ask: Ask) -> None:
    answer = ask(project, *command.split())
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "ledger-missing")
    assert "`ledger gate`" in answer.err
    assert not project.store.exists()


def test_a_repository_without_commits_is_told_that_there_is_nothing_to_gate(tmp_path: Path, ask: Ask) -> None:
    answer = ask(Project.make(tmp_path), "gate")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "ref-unknown")
    assert "'HEAD'" in answer.err


def test_a_shallow_clone_without_the_baseline_is_told_how_to_get_it(project: Project, ask: Ask) -> None:
    clone = Project(project.root, "clone")
    project.git("clone", "--quiet", "--depth=1", "--no-tags", f"file://{project.path}", str(clone.path))
    for arguments in (["gate"], ["gate", "--baseline", "v1.0"]):
        answer = ask(clone, *arguments)
        assert (answer.code, answer.error_code) == (ExitCode.USAGE, "shallow")
        assert "git fetch --unshallow --tags" in answer.err
    assert not clone.store.exists()


def test_an_interpreter_without_pytest_leaves_the_gate_unmeasured_and_is_named(project: Project, ask: Ask) -> None:
    bare = project.root / "bare"
    venv.create(bare, with_pip=False)
    (project.path / "ledger.toml").write_text(f'[runner]\npython = "{bare}/bin/python"\n', "utf-8")
    assert ask(project, "gate").code == ExitCode.UNMEASURED
    told = ask(project, "status", "--json")
    owed = json.loads(told.out)["owed"]
    assert {entry["cause"] for entry in owed} == {"pytest-missing"}
    assert all(f"{bare}/bin/python" in entry["detail"] for entry in owed)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gate\n", ["ledger.toml:1", "broken TOML"]),
        ("[gate]\nrouns = 3\n", ["ledger.toml:2", "`gate.rouns`", "`gate.rounds`"]),
        ("projet = 'x'\n", ["ledger.toml:1", "`projet`", "`project`"]),
        ("[gate]\n\nrounds = 'many'\n", ["ledger.toml:3", "`gate.rounds` is 'many'", "a whole number from 1 to 100"]),
        ("[gate]\nrounds = 0\n", ["ledger.toml:2", "`gate.rounds` is 0", "a whole number from 1 to 100"]),
        ("gate = 3\n", ["ledger.toml:1", "`gate` is 3", "a table"]),
        ("store = 'postgresql://host/ledger'\n", ["PostgreSQL"]),
    ],
)
def test_a_broken_configuration_names_the_file_the_line_and_the_key(
    text: str, told: list[str], project: Project, ask: Ask
) -> None:
    project.write({"ledger.toml": text})
    for command in ("status", "gate", "config"):
        answer = ask(project, command)
        assert answer.code == ExitCode.USAGE
        assert [part for part in told if part not in answer.err] == []


def test_a_broken_variable_is_named(project: Project) -> None:
    answer = project.ledger("config", LEDGER_GATE_ROUNDS="x")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "config-invalid")
    assert "LEDGER_GATE_ROUNDS" in answer.err


@pytest.mark.parametrize("where", ["ledger.toml", "pyproject.toml"])
def test_a_configuration_that_exists_is_never_overwritten(where: str, project: Project, ask: Ask) -> None:
    (project.path / "ledger.toml").unlink()
    text = "[gate]\nrounds = 3\n" if where == "ledger.toml" else "[tool.ledger.gate]\nrounds = 3\n"
    project.write({where: text})
    answer = ask(project, "init")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "already-initialized")
    assert where in answer.err
    assert (project.path / where).read_text() == text
    assert where == "ledger.toml" or not (project.path / "ledger.toml").exists()


def test_a_project_that_nothing_recognises_is_not_set_up(tmp_path: Path, ask: Ask) -> None:
    project = Project.make(tmp_path, {"main.c": "int main(void) { return 0; }\n"})
    answer = ask(project, "init")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "runner-unknown")
    assert "pytest" in answer.err
    assert not (project.path / "ledger.toml").exists()


def test_a_directory_that_is_gone_is_named(project: Project) -> None:
    script = f'mkdir gone; cd gone; rmdir ../gone; exec "{LEDGER}" status'
    ended = subprocess.run(
        ["sh", "-c", script], cwd=project.root, env=project.environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == ExitCode.USAGE
    assert ended.stderr.startswith("error[directory-gone]")


def test_the_same_ledger_is_seen_from_a_folder_and_from_a_linked_worktree(
    history: Histories, tmp_path: Path, ask: Ask
) -> None:
    original, _ = history("passed")
    project = Project(tmp_path)
    shutil.copytree(original.path, project.path)
    project.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    answers = [ask(project, "status", directory=place) for place in (project.path, project.path / "tests")]
    answers.append(ask(project, "status", directory=tmp_path / "linked"))
    assert [answer.code for answer in answers] == [ExitCode.PASSED] * 3
    assert len({answer.out for answer in answers}) == 1


@pytest.mark.slow
def test_names_with_spaces_letters_and_bytes_that_are_no_text_work(tmp_path: Path) -> None:
    name = os.fsdecode("a pröject ".encode() + b"\xff")
    project = Project.make(tmp_path, CALC | TESTS | SETTINGS, {"README.txt": "Adds.\n"}, name=name)
    branch = os.fsdecode(b"br\xff")
    project.git("branch", branch)
    gate = project.ledger("gate", branch, directory=project.path / "tests")
    assert gate.code == ExitCode.PASSED, gate.err
    assert project.ledger("status").out.startswith("passed")
    assert json.loads(project.ledger("config", "--json").out)["store"] == str(project.store)
    assert project.ledger("config", PYTHONIOENCODING="ascii").code == ExitCode.PASSED


def test_uncommitted_changes_are_allowed_and_told(project: Project) -> None:
    project.write({"calc.py": "not even Python\n"})
    gate = project.ledger("gate", "--json")
    assert gate.code == ExitCode.PASSED, gate.err
    assert json.loads(gate.out)["dirty"] is True
    assert "uncommitted changes; they are not tested" in gate.err
    assert "uncommitted changes" in project.ledger("status").out


@pytest.mark.parametrize("command", ["status", "log", "--help", "explain"])
def test_a_reader_that_has_gone_is_no_failure(command: str, history: Histories) -> None:
    project, _ = history("failed")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        ended = subprocess.run(
            [LEDGER, command], cwd=project.path, env=project.environment, check=False, stdout=closed,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (ExitCode.PASSED, b"")


def test_a_closed_output_is_no_failure(history: Histories) -> None:
    project, _ = history("failed")
    script = f'exec "{LEDGER}" status >&-'
    ended = subprocess.run(
        ["sh", "-c", script], cwd=project.path, env=project.environment, check=False, stderr=subprocess.PIPE
    )
    assert (ended.returncode, ended.stderr) == (ExitCode.PASSED, b"")


def test_a_gate_that_nobody_listens_to_still_answers(project: Project) -> None:
    project.commit({"calc.py": "def add(left, right):\n    return 0\n"})
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        ended = subprocess.run(
            [LEDGER, "gate"], cwd=project.path, env=project.environment, check=False, stdout=closed, stderr=closed
        )
    assert ended.returncode == ExitCode.FAILED
    assert project.ledger("status").out.startswith("failed")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_answer_that_cannot_be_written_is_an_error(history: Histories) -> None:
    project, _ = history("passed")
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [LEDGER, "status"], cwd=project.path, env=project.environment, check=False, stdout=full,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert ended.returncode == ExitCode.REFUSED
    assert ended.stderr.startswith("error[output-failed]")


@pytest.fixture
def read_only(history: Histories, tmp_path: Path) -> Iterator[Project]:
    """A project whose ledger may only be read: by its permissions, and for root, whom they do not bind, by a mount."""
    original, _ = history("failed")
    project = Project(tmp_path)
    shutil.copytree(original.path, project.path)
    if AS_ROOT:
        mount("--bind", str(project.store), str(project.store))
        mount("-o", "remount,bind,ro", str(project.store))
    else:
        subprocess.run(["chmod", "-R", "a-w", str(project.store)], check=True)
    try:
        yield project
    finally:
        undo = ["umount", "--lazy"] if AS_ROOT else ["chmod", "-R", "u+w"]
        subprocess.run([*undo, str(project.store)], check=True)


def mount(*arguments: str) -> None:
    """Mount something, or skip the test where that is not possible."""
    if subprocess.run(["mount", *arguments], check=False).returncode:
        pytest.skip("nothing can be mounted here")


def test_a_ledger_that_may_only_be_read_is_read_and_not_written(read_only: Project, ask: Ask) -> None:
    for command in (["status"], ["log"], ["why", "test_zero"], ["resume", "--from", "gate", "--dry-run"], ["stop"]):
        answer = ask(read_only, *command)
        assert (answer.code, answer.err) == (ExitCode.PASSED, ""), command
    for command in (["gate"], ["resume", "--from", "gate"]):
        answer = ask(read_only, *command)
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "store-unwritable"), command
        assert str(read_only.store) in answer.err


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "none", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave no space in a small file system."""
    filler = place / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    return filler


@pytest.mark.slow
@pytest.mark.skipif(not AS_ROOT, reason="only root can mount a small file system")
def test_a_disk_that_fills_up_loses_nothing_and_the_run_is_resumed(tmp_path: Path) -> None:
    slow = {"tests/test_slow.py": "import time\n\ndef test_slow():\n    time.sleep(2)\n"}
    project = Project.make(tmp_path, slow | SETTINGS, {"README.txt": "Slow.\n"})
    with small_disk(tmp_path / "disk") as disk:
        store = ["--store", str(disk / "ledger")]
        with project.started("gate", *store) as gate:
            wait_until(lambda: "shard-1/candidate: started" in gate.told(), gate.told)
            filler = fill(disk)
            answer = gate.end()
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "store-unwritable")
        assert "No space left" in answer.err
        assert processes_below(tmp_path) == []
        assert project.ledger("status", *store).out.startswith("interrupted")
        refused = project.ledger("gate", *store)
        assert (refused.code, refused.error_code) == (ExitCode.REFUSED, "store-unwritable")
        filler.unlink()
        resumed = project.ledger("resume", "--from", "gate", *store)
        assert resumed.code == ExitCode.PASSED, resumed.err
