"""`ledger` as a real program, in real repositories whose commits are always the same."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LEDGER = Path(sys.executable).with_name("ledger")
DEADLINE_SECONDS = 60.0

_FIXED = {
    "GIT_AUTHOR_NAME": "A Tester", "GIT_AUTHOR_EMAIL": "tester@example.org", "GIT_AUTHOR_DATE": "2030-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A Tester", "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_COMMITTER_DATE": "2030-01-01T00:00:00Z", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What one command line gave."""

    code: int
    out: str
    err: str

    @property
    def error_code(self) -> str:
        """The stable code of the error that was told, "" without one."""
        first = next((line for line in self.err.splitlines() if line.startswith("error[")), "")
        return first.removeprefix("error[").partition("]")[0]


class Project:
    """A repository with a checkout, and what `ledger` needs around it, all below one directory."""

    def __init__(self, root: Path, name: str = "project") -> None:
        self.root, self.path = root, root / name
        self.store = self.path / ".git" / "ledger"

    @classmethod
    def make(cls, root: Path, *commits: Mapping[str, str], name: str = "project") -> "Project":
        """A repository with these commits, of which the first is tagged as the release v1.0."""
        project = cls(root, name)
        project.path.mkdir(parents=True)
        project.git("init", "--quiet", "--initial-branch=main")
        for number, files in enumerate(commits):
            project.commit(files)
            if number == 0:
                project.git("tag", "v1.0")
        return project

    @property
    def environment(self) -> dict[str, str]:
        """The user's environment: nothing of the machine's but the interpreter."""
        places = {"HOME": str(self.root), "LEDGER_WORK": str(self.root / "work"), "VIRTUAL_ENV": sys.prefix}
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "TMPDIR")}
        return kept | places | _FIXED | {"PATH": os.pathsep.join([str(LEDGER.parent), os.defpath]), "TERM": "dumb"}

    def git(self, *arguments: str) -> str:
        """What git prints."""
        return subprocess.run(
            ["git", *arguments], cwd=self.path, env=self.environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the checkout."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text).lstrip(), "utf-8")

    def commit(self, files: Mapping[str, str]) -> str:
        """Commit these files, and return the commit's id."""
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def ledger(self, *arguments: str, directory: Path | None = None, **variables: str) -> Answer:
        """Run `ledger` to its end."""
        ended = subprocess.run(
            [LEDGER, *arguments], cwd=directory or self.path, env=self.environment | variables, check=False,
            capture_output=True, text=True, errors="surrogateescape", timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        return Answer(ended.returncode, ended.stdout, ended.stderr)

    @contextlib.contextmanager
    def started(self, *arguments: str, name: str = "started") -> Iterator["Program"]:
        """`ledger` while it runs; whatever is left of it at the end is killed. `name` is for programs side by side."""
        program = Program(self, arguments, name)
        try:
            yield program
        finally:
            program.kill()

    def copy_store(self, destination: Path) -> Path:
        """A copy of the ledger's directory."""
        return Path(shutil.copytree(self.store, destination))


class Program:
    """A `ledger` that runs, with what it printed so far in files."""

    def __init__(self, project: Project, arguments: tuple[str, ...], name: str) -> None:
        self._out, self._err = project.root / f"{name}.out", project.root / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            # Started by a shell in the background it would ignore SIGINT; a session of its own has it as a user has.
            self.process = subprocess.Popen(
                [LEDGER, *arguments], cwd=project.path, env=project.environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip

    def told(self) -> str:
        """What is on standard error so far."""
        return self._err.read_text("utf-8")

    def printed(self) -> str:
        """What is on standard output so far."""
        return self._out.read_text("utf-8")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self.process.send_signal(number)

    def end(self) -> Answer:
        """Wait for its end."""
        code = self.process.wait(DEADLINE_SECONDS)
        return Answer(code, self.printed(), self.told())

    def kill(self) -> None:
        """End it without any chance to tidy up."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def wait_until(condition: Callable[[], bool], explain: Callable[[], str] = str) -> None:
    """Wait until the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"it did not come true in time: {explain()}"
        time.sleep(0.02)


def processes_below(directory: Path) -> list[str]:
    """The command lines of all processes that were started for what is below a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and str(directory).encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found
