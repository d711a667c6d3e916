"""The demonstration: a repository with a regression in it, a gate that is killed half way, and its resumption.

Run by `scripts/demo`. Everything happens in a temporary folder; nothing outside of it is touched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

LEDGER = Path(sys.executable).with_name("ledger")
DEADLINE_SECONDS = 60.0
FAILED = 1

BASELINE = {
    "calculator.py": """
        def add(left, right):
            return left + right


        def divide(left, right):
            return left / right
        """,
    "test_add.py": """
        import time

        import pytest

        from calculator import add


        @pytest.mark.parametrize("number", range(6))
        def test_add(number):
            time.sleep(0.2)
            assert add(number, 1) == number + 1
        """,
    "test_divide.py": """
        import time

        from calculator import divide


        def test_exact():
            time.sleep(0.3)
            assert divide(6, 3) == 2


        def test_fraction():
            assert divide(1, 2) == 0.5
        """,
    "test_old_bug.py": """
        from calculator import add


        def test_known_to_fail_for_years():
            assert add("1", 1) == 2
        """,
    "test_platform.py": """
        import pytest


        @pytest.mark.skip(reason="needs another operating system")
        def test_registry():
            raise AssertionError
        """,
    "test_native.py": """
        import time


        def test_before_the_crash():
            time.sleep(0.5)
        """,
}

CANDIDATE = {
    "calculator.py": """
        def add(left, right):
            return left + right


        def divide(left, right):
            return left // right
        """,
    "test_new.py": """
        from calculator import add


        def test_negative_numbers():
            assert add(-1, -1) == -2
        """,
    "test_native.py": """
        import os
        import signal
        import time


        def test_before_the_crash():
            time.sleep(0.5)


        def test_that_kills_its_process():
            os.kill(os.getpid(), signal.SIGKILL)
        """,
}


def main() -> int:
    """Run the demonstration; 0 when it ended as it must."""
    repository = Path(tempfile.mkdtemp(prefix="ledger-demo-")) / "calculator"
    environment = demo_environment(repository.parent)
    make_repository(repository, environment)
    say(f"A repository with a release, v1.0, and a candidate after it: {repository}")
    ledger(["init"], repository, environment)
    commit(repository, environment, "configure the gate")
    say("The gate runs, and is killed with SIGKILL half way.")
    kill_half_way(repository, environment)
    ledger(["status"], repository, environment)
    say("What is owed is known; nothing that was measured runs again.")
    ledger(["resume", "--from", "gate", "--dry-run"], repository, environment)
    say("The same gate, resumed.")
    code = ledger(["resume", "--from", "gate"], repository, environment)
    say("Why it blocks:")
    ledger(["why", "test_fraction"], repository, environment)
    say(f"Look around: cd {repository}  (`ledger` is {LEDGER})")
    say("ledger status    ledger log    ledger why TEST    ledger gate --help")
    return 0 if code == FAILED else 1


def demo_environment(home: Path) -> dict[str, str]:
    """A home and a work directory of its own; pytest comes from this environment."""
    path = os.pathsep.join([str(LEDGER.parent), os.environ.get("PATH", os.defpath)])
    names = {"GIT_AUTHOR_NAME": "demo", "GIT_COMMITTER_NAME": "demo"}
    names |= {"GIT_AUTHOR_EMAIL": "demo@localhost", "GIT_COMMITTER_EMAIL": "demo@localhost"}
    places = {"HOME": str(home), "LEDGER_WORK": str(home / "work"), "VIRTUAL_ENV": str(LEDGER.parent.parent)}
    return {**os.environ, **names, **places, "PATH": path}


def make_repository(repository: Path, environment: dict[str, str]) -> None:
    """Two commits: the release, with its tag, and the candidate."""
    git = ["git", "-C", str(repository), "-c", "init.defaultBranch=main"]
    repository.mkdir(parents=True)
    subprocess.run([*git, "init", "--quiet"], check=True, env=environment)
    for message, files in (("release 1.0", BASELINE), ("the candidate", CANDIDATE)):
        for name, text in files.items():
            (repository / name).write_text(textwrap.dedent(text).lstrip(), "utf-8")
        commit(repository, environment, message)
        if message == "release 1.0":
            subprocess.run([*git, "tag", "v1.0"], check=True, env=environment)


def commit(repository: Path, environment: dict[str, str], message: str) -> None:
    """Commit everything."""
    git = ["git", "-C", str(repository)]
    subprocess.run([*git, "add", "."], check=True, env=environment)
    subprocess.run([*git, "commit", "--quiet", "-m", message], check=True, env=environment)


def kill_half_way(repository: Path, environment: dict[str, str]) -> None:
    """Start a gate and kill it when it has measured something and is still at work."""
    show_command(["gate"])
    process = subprocess.Popen([LEDGER, "gate"], cwd=repository, env=environment)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not half_way(repository, environment):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the demonstration failed: the gate ended before it could be killed")
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()


def half_way(repository: Path, environment: dict[str, str]) -> bool:
    """Whether something is measured and something is owed."""
    answer = subprocess.run(
        [LEDGER, "status", "--json"], cwd=repository, env=environment, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        return False
    progress = json.loads(answer.stdout)["progress"]
    return bool(3 <= progress["completed"] < progress["total"])


def ledger(arguments: list[str], repository: Path, environment: dict[str, str]) -> int:
    """Run one command as a user would type it."""
    show_command(arguments)
    return subprocess.run([LEDGER, *arguments], cwd=repository, env=environment, check=False).returncode


def show_command(arguments: list[str]) -> None:
    """The command line, as in a session."""
    print(f"\n$ ledger {' '.join(arguments)}", flush=True)


def say(text: str) -> None:
    """One line about what comes."""
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
