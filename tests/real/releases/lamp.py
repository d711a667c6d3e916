"""The small project of docs/when-a-release-fails.md: its files, and the branches on which its story goes on."""

import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.cli import Project

LAMP = """
    def dim(level):
        return min(level, 100)
    """
BRIGHT = """
    def dim(level):
        return level
    """
SIMULATOR = """
    import os
    import signal


    def show(level):
        if os.environ.get("LAMP_SIMULATOR") == "shaky":
            os.kill(os.getpid(), signal.SIGKILL)
        return level
    """
TEST_LAMP = """
    from lamp import dim
    from simulator import show


    def test_half():
        assert show(dim(50)) == 50


    def test_too_bright():
        assert show(dim(120)) == 100
    """
TEST_BULB = """
    from lamp import dim


    def test_off():
        assert dim(0) == 0
    """
SCREENS = """
    import json

    print(json.dumps({{"outcome": "{outcome}", "summary": "{summary}"}}))
    raise SystemExit({code})
    """
BUILD = """
    import os
    import shutil

    shutil.copy("lamp.py", os.environ["LEDGER_ARCHIVE"])
    """
PUBLISH = """
    import json
    import os

    with open(os.environ["LEDGER_CONTEXT"]) as file:
        context = json.load(file)
    print(json.dumps({"outcome": "ok", "summary": f"{context['version']} is where customers look for it"}))
    """


def screens(outcome: str, summary: str, code: int) -> str:
    """The program that looks at the screens, with what it finds."""
    return SCREENS.format(outcome=outcome, summary=summary, code=code)


RELEASED = {
    "lamp.py": LAMP,
    "simulator.py": SIMULATOR,
    "test_lamp.py": TEST_LAMP,
    "test_bulb.py": TEST_BULB,
    "screens.py": screens("ok", "one screen, as it should be", 0),
    "build.py": BUILD,
    "publish.py": PUBLISH,
}
CANDIDATE = {
    "lamp.py": BRIGHT,
    "screens.py": screens("fail", "the help screen does not close on escape", 1),
}
BRANCHES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("mend-dimmer", {"lamp.py": LAMP}),
    ("more-tests", {"test_bulb.py": TEST_BULB + "\n\n    def test_full():\n        assert dim(100) == 100\n    "}),
    ("mend-help", {"screens.py": screens("ok", "one screen, as it should be", 0)}),
)
"""Each comes after the one before, and has one commit more."""


class Lamp(Project):
    """The project beside its bare remote, and a shell in it."""

    @classmethod
    def with_settings(cls, root: Path, settings: str) -> "Lamp":
        """The project with this `ledger.toml`, as it was released as 1.1.0, and what came after that."""
        project = cls(root, "lamp")
        project.path.mkdir(parents=True)
        project.git("init", "--quiet", "--initial-branch=main")
        project.git("init", "--quiet", "--bare", "--initial-branch=main", str(root / "remote.git"))
        project.git("remote", "add", "origin", str(root / "remote.git"))
        project.commit({**RELEASED, "ledger.toml": settings})
        project.git("tag", "v1.1.0")
        project.commit(CANDIDATE)
        for name, files in BRANCHES:
            project.git("checkout", "--quiet", "-b", name)
            project.commit(files)
        project.git("checkout", "--quiet", "main")
        project.git("push", "--quiet", "origin", "main", "--tags")
        return project

    @property
    def environment(self) -> dict[str, str]:
        """The user's environment, with a name and a width that may stand on a page."""
        return {**super().environment, "LOGNAME": "ann", "COLUMNS": "100"}

    def shell(self, command: str, code: int) -> tuple[int, str]:
        """Run a command line as a shell does after one that ended with `code`; its exit code and what it prints.

        What stands on standard error is part of that only when nothing else is printed. The places of the project, the
        user and the machine become those of a page.
        """
        ended = subprocess.run(
            ["/bin/sh", "-c", f"(exit {code})\n{command}"], cwd=self.path, env=self.environment, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120.0,
        )  # fmt: skip
        printed = (ended.stdout or ended.stderr).replace(str(self.root), "/srv/ann")
        return ended.returncode, re.sub(rf"\bon {re.escape(socket.gethostname())}\b", "on ann-desk", printed)
