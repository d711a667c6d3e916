"""Projects with a remote whose releases run through the program itself: real git, real processes, a real ledger."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

from tests.commands.generic.suites import RUNNER
from tests.support.cli import Answer, Project

GATE = """
[gate]
shards = 1
rounds = 1
rerun = "off"
[runner]
runner = "command"
command = ["python3", "runner.py", "{report}", "{targets}"]
targets = ["suite/*.py"]
dialect = "generic"
"""

STEPS = """
[[step]]
name = "cut"
uses = "cut"
[[step]]
name = "gate"
uses = "gate"
waivable = true
on_failed = "triage"
[[step]]
name = "triage"
run = ["echo", "somebody has to look at it"]
observer = true
[[step]]
name = "screens"
run = ["python3", "screens.py"]
waivable = true
[[step]]
name = "prepare"
uses = "prepare"
run = ["python3", "build.py"]
manifest = "write"
[[step]]
name = "approve"
uses = "approve"
[[step]]
name = "publish"
run = ["python3", "publish.py"]
irreversible = true
"""

BUILD = """
    import os, pathlib
    place = pathlib.Path(os.environ["LEDGER_ARCHIVE"])
    (place / "thing.txt").write_text(open("thing.txt").read())
"""

PUBLISH = """
    import json, os, pathlib, shutil
    context = json.load(open(os.environ["LEDGER_CONTEXT"]))
    home = pathlib.Path(context["archive"]["path"]).parents[5] / "published"
    shutil.copytree(context["archive"]["path"], home / context["version"])
    print(json.dumps({"outcome": "ok", "summary": "published", "waivers": context["waivers"]}))
"""


BASE = {
    "thing.txt": "one\n",
    "suite/a.py": "import pathlib\ndef test_one(): assert pathlib.Path('thing.txt').read_text() != 'broken\\n'\n",
    "suite/b.py": "def test_two(): pass\n",
    "screens.py": "print('looking at the screens')\n",
    "build.py": BUILD,
    "publish.py": PUBLISH,
    "runner.py": RUNNER,
}
FAILING_SCREENS = {"screens.py": "print('the help screen does not close')\nraise SystemExit(1)\n"}
BROKEN = {"thing.txt": "broken\n"}
REASON = "The help screen does not close on escape"


class ReleaseProject(Project):
    """A project with a bare remote, called origin, in which `main` is pushed."""

    @classmethod
    def with_steps(cls, root: Path, *changes: dict[str, str], steps: str = STEPS) -> "ReleaseProject":
        """The base as version 1.0.0, then these changes, each a commit of its own; all of it is pushed."""
        project = cls(root)
        project.path.mkdir(parents=True)
        project.git("init", "--quiet", "--initial-branch=main")
        project.git("init", "--quiet", "--bare", "--initial-branch=main", str(root / "remote.git"))
        project.git("remote", "add", "origin", str(root / "remote.git"))
        project.commit({**BASE, "ledger.toml": GATE + steps})
        project.git("tag", "v1.0.0")
        for change in changes or ({"thing.txt": "two\n"},):
            project.land(change)
        project.push()
        return project

    def push(self) -> None:
        """Push the main branch."""
        self.git("push", "--quiet", "origin", "HEAD:main")

    def land(self, files: dict[str, str]) -> str:
        """A commit on main, pushed; returns it."""
        commit = self.commit(files)
        self.push()
        return commit

    def start(self, version: str = "1.1.0", *more: str) -> Answer:
        """Start a release, cut as a branch."""
        return self.ledger("release", "start", version, "--branch", *more)

    def repair(self, files: dict[str, str], version: str = "1.1.0") -> str:
        """Land a repair and pick it onto the branch of the release; returns the new tip."""
        landed = self.land(files)
        answer = self.ledger("release", "repair", version, "--pick", landed, "--json")
        assert answer.code == 0, answer.err
        return str(json.loads(answer.out)["commit"])

    def resume(self, step: str, *more: str, version: str = "1.1.0") -> Answer:
        """Take the release up again."""
        return self.ledger("resume", version, "--from", step, *more)

    def show(self, version: str = "1.1.0") -> dict[str, Any]:
        """The summary of a release."""
        answer = self.ledger("release", "show", version, "--json")
        assert answer.code == 0, answer.err
        found: dict[str, Any] = json.loads(answer.out)
        return found

    def states(self, version: str = "1.1.0") -> dict[str, str]:
        """Where each step stands."""
        return {step["step"]: step["state"] for step in self.show(version)["steps"]}

    def attempts(self, step: str, version: str = "1.1.0") -> list[dict[str, Any]]:
        """Every attempt at a step."""
        (found,) = (one for one in self.show(version)["steps"] if one["step"] == step)
        return list(found["attempts"])

    def tip(self, version: str = "1.1.0") -> str:
        """Where the branch of the release is."""
        return self.git("ls-remote", "origin", f"refs/heads/release/{version}").split()[0]

    def rows(self) -> list[tuple[Any, ...]]:
        """Every stored event, byte for byte."""
        with sqlite3.connect(f"file:{self.store / 'ledger.sqlite'}?mode=ro", uri=True) as database:
            return database.execute("SELECT * FROM events ORDER BY sequence").fetchall()

    def events(self, tag: str, version: str = "1.1.0") -> list[dict[str, Any]]:
        """The events of the release with this tag."""
        answer = self.ledger("log", version, "--json")
        assert answer.code == 0, answer.err
        lines = [json.loads(line) for line in answer.out.splitlines()]
        return [line["event"] for line in lines if line["header"]["tag"] == tag]

    def whole(self, version: str = "1.1.0") -> None:
        """The ledger verifies, and every decision on the release is the same again."""
        assert self.ledger("verify").code == 0
        replayed = self.ledger("replay", version)
        assert replayed.code == 0, replayed.out


def settled(answer: Answer) -> str:
    """What was told, without what is different each time."""
    return re.sub(r"[0-9a-f]{12,40}", "COMMIT", answer.out)
