"""The release of a real project, from its cut to its publication, with everything that goes wrong on the way."""

import json
import subprocess
from pathlib import Path

import pytest

from ledger.events import Quarantined, TipMoved
from scripts.real.project import Project, interpreter_of, make_project
from tests.real.conftest import SETTINGS
from tests.real.releases.repaired import Run, runs_of

pytestmark = [pytest.mark.slow, pytest.mark.real]

PASSED, FAILED, WAITING = 0, 1, 6
VERSION, BASELINE = "8.3.0", "8.2.1"
HEALTHY, BROKEN = "    return strip_ansi(text)\n", "    return text\n"
CHECK = "import ast, pathlib; [ast.parse(file.read_bytes()) for file in pathlib.Path('src').rglob('*.py')]"
BUILD = "import os, shutil; shutil.copytree('src/click', os.environ['LEDGER_ARCHIVE'] + '/click')"
PUBLISH = (
    "import json, os, shutil, sys; told = json.load(open(os.environ['LEDGER_CONTEXT']));"
    " shutil.copytree(told['archive']['path'], sys.argv[1] + '/' + told['version'])"
)


def steps(shelf: Path) -> str:
    """The steps of the release; to be published is to be put on a shelf."""

    def step(name: str, *settings: str) -> str:
        return "\n".join(["[[step]]", f'name = "{name}"', *settings, ""])

    return "".join([
        step("cut", 'uses = "cut"'),
        step("parse", f"run = {json.dumps(['python3', '-c', CHECK])}"),
        step("gate", 'uses = "gate"'),
        step("prepare", 'uses = "prepare"', f"run = {json.dumps(['python3', '-c', BUILD])}", 'manifest = "write"'),
        step("approve", 'uses = "approve"'),
        step("publish", f"run = {json.dumps(['python3', '-c', PUBLISH, str(shelf)])}", "irreversible = true"),
    ])  # fmt: skip


class Click:
    """The project with a remote, on its way to a release in which `unstyle` does nothing."""

    def __init__(self, home: Path) -> None:
        self.project: Project = make_project(home, interpreter_of("pytest-8"), SETTINGS)
        self.path, self.shelf = self.project.checkout, home / "shelf"
        self.store = self.path / ".git" / "ledger"
        self.git("init", "--quiet", "--bare", str(home / "remote.git"))
        self.git("remote", "add", "origin", str(home / "remote.git"))
        self.git("reset", "--quiet", "--hard", VERSION)
        # The tag is what comes of the release.
        self.git("tag", "--delete", VERSION, f"{VERSION}-with-old-tests")
        settings = self.path / "ledger.toml"
        settings.write_text(settings.read_text("utf-8") + steps(self.shelf), "utf-8")
        self.replace("src/click/termui.py", HEALTHY, BROKEN)
        self.land("the release as somebody left it")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        return subprocess.run(
            ["git", *arguments], cwd=self.path, env=self.project.variables, check=True, capture_output=True, text=True
        ).stdout.strip()

    def replace(self, file: str, old: str, new: str) -> None:
        """Change the one place of a file that reads like this."""
        text = (self.path / file).read_text("utf-8")
        assert text.count(old) == 1
        (self.path / file).write_text(text.replace(old, new), "utf-8")

    def land(self, message: str) -> str:
        """Commit everything to the main branch; the commit."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")

    def ledger(self, *arguments: str, code: int = PASSED) -> str:
        """What a command prints that has to end with this code."""
        ended = self.project.ledger(*arguments)
        assert ended.returncode == code, self.project.told(ended)
        return ended.stdout

    def pick(self, commit: str) -> str:
        """Pick a commit of the main branch onto the release; the new tip."""
        return str(json.loads(self.ledger("release", "repair", VERSION, "--pick", commit, "--json"))["commit"])

    def add_a_test(self, file: str) -> str:
        """Land one more test in a file, and pick it; the new tip."""
        path = self.path / file
        path.write_text(path.read_text("utf-8") + "\n\ndef test_one_more():\n    assert click.__name__\n", "utf-8")
        return self.pick(self.land(f"one more test in {file}"))

    def planned(self, step: str) -> dict[str, object]:
        """What resuming from a step would do."""
        found = json.loads(self.ledger("resume", VERSION, "--from", step, "--dry-run", "--json"))
        assert isinstance(found, dict)
        return found

    def gates(self) -> list[Run]:
        """The gates, in order."""
        return runs_of(self.store, "gate")

    def release(self) -> Run:
        """The release."""
        (release,) = runs_of(self.store, "release")
        return release


def test_a_release_that_fails_is_repaired_moves_on_and_is_published(tmp_path: Path) -> None:
    click = Click(tmp_path)
    click.ledger("release", "start", VERSION, "--branch", "--baseline", BASELINE, code=FAILED)
    (broken,) = click.gates()
    assert broken.verdict.verdict == "failed"
    assert {one.test.partition("::")[0] for one in broken.verdict.blocking} == {"tests/test_utils.py"}
    assert click.git("ls-remote", "origin", f"refs/heads/release/{VERSION}").split()[0] == click.git(
        "rev-parse", "HEAD"
    )

    click.replace("src/click/termui.py", BROKEN, HEALTHY)
    mended = click.pick(click.land("unstyle does something again"))
    planned = click.planned("parse")
    assert (planned["gate"], planned["boundary"], planned["to"]) == ("full", "parse", mended)
    assert str(planned["gate_reason"]).endswith("source-changed (src/click/termui.py)")
    click.ledger("resume", VERSION, "--from", "parse", code=WAITING)
    whole = click.gates()[-1]
    assert (whole.verdict.verdict, whole.carried()) == ("passed", set())
    assert len(whole.measured()) == 20

    in_chain = check_a_part(click, "tests/test_chain.py", whole)
    in_parser = check_a_part(click, "tests/test_parser.py", in_chain)
    assert in_parser.verdict.counts["passed"] == whole.verdict.counts["passed"] + 2
    check_archives(click)

    click.ledger("approve", VERSION)
    click.ledger("resume", VERSION, "--from", "publish")
    published = click.shelf / VERSION / "click"
    tip = click.release().of(TipMoved)[-1].commit
    for name in click.git("ls-tree", "-r", "--name-only", tip, "src/click").splitlines():
        assert (published / Path(name).relative_to("src/click")).read_text("utf-8") == blob(click, tip, name)
    assert len(click.release().of(TipMoved)) == 3
    check_proof(click)


def check_a_part(click: Click, file: str, before: Run) -> Run:
    """The tip moves by a test: that file is measured, every other judgement is that of the gate before."""
    tip = click.add_a_test(file)
    assert click.planned("parse")["gate"] == "partial"
    click.ledger("resume", VERSION, "--from", "parse", code=WAITING)
    gate = click.gates()[-1]
    assert gate.measured() == [file]
    assert {row.test.target for row in before.rows} - gate.carried() == {file}
    assert gate.verdict.verdict == "passed"
    assert told(gate) - told(before) == {(f"{file}::test_one_more", "passed")}
    assert told(before) <= told(gate)
    assert click.release().of(TipMoved)[-1].commit == tip
    return gate


def told(gate: Run) -> set[tuple[str, str]]:
    """Each test with its class."""
    return {(row.test.text(), row.case_class) for row in gate.rows}


def check_archives(click: Click) -> None:
    """Two archives were set aside, whole, and the third one counts."""
    listed = json.loads(click.ledger("archives", VERSION, "--json"))["archives"]
    assert [one["state"] for one in listed] == ["set-aside", "set-aside", "current"]
    assert len(click.release().of(Quarantined)) == 2
    for one in listed:
        assert (Path(one["place"]) / "click" / "termui.py").read_text("utf-8").count(HEALTHY) == 1


def blob(click: Click, commit: str, name: str) -> str:
    """A file of a commit as it is."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:{name}"],
        cwd=click.path,
        env=click.project.variables,
        check=True,
        capture_output=True,
    )
    return shown.stdout.decode()


def check_proof(click: Click) -> None:
    """The ledger verifies, every decision of every run comes out as it is recorded, and nothing is left behind."""
    click.ledger("verify")
    for run in (*click.gates(), click.release()):
        assert json.loads(click.ledger("replay", run.name, "--json"))["outcome"] == "agree"
    listed = click.git("worktree", "list", "--porcelain")
    assert [line for line in listed.splitlines() if line.startswith("worktree ")] == [
        f"worktree {click.path.resolve()}"
    ]
