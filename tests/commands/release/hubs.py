"""A real bare repository that several clones push to, and a git that lets something happen in between."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from commands.effects.git import Git
from commands.effects.processes import Completed
from tests.commands.conftest import Repository


class Hub:
    """A bare repository. `ours` is the clone that the ledger works in, `theirs` one that others push from."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "hub.git"
        self.ours = Repository(directory / "ours")
        self.ours.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.path))
        self.ours.commit({"app.py": "VALUE = 1\n"})
        self.ours.commit({"app.py": "VALUE = 2\n"})
        self.ours.git("remote", "add", "origin", str(self.path))
        self.ours.git("push", "--quiet", "origin", "main")
        self.theirs = Repository(directory / "theirs")
        self.theirs.git("remote", "add", "origin", str(self.path))
        self.theirs.git("fetch", "--quiet", "origin")
        self.theirs.git("reset", "--quiet", "--hard", "origin/main")

    def refs(self) -> dict[str, str]:
        """What the bare repository itself says it has, by full name."""
        listing = self.ours.git("for-each-ref", "--format=%(refname) %(objectname)", directory=self.path)
        return dict(line.split(" ") for line in listing.splitlines())

    def others_push(self, branch: str, *, start: str = "origin/main", force: bool = False) -> str:
        """Somebody else commits on top of `start` and pushes it as the branch; the id of that commit."""
        self.theirs.git("fetch", "--quiet", "origin")
        self.theirs.git("checkout", "--quiet", "--detach", start)
        commit = self.theirs.commit({f"{len(self.refs())}-{branch}".replace("/", "-"): start})
        self.theirs.git("push", "--quiet", *(["--force"] if force else []), "origin", f"{commit}:refs/heads/{branch}")
        return commit

    def hook(self, name: str, script: str) -> None:
        """Let the bare repository run a hook of its own."""
        file = self.path / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


class Meanwhile(Git):
    """The real git, which lets something happen once, right before or after its first command of a name."""

    def __init__(self, directory: Path, verb: str, happens: Callable[[], object], *, after: bool = False) -> None:
        super().__init__(directory)
        self.verb, self.happens, self.after, self.happened = verb, happens, after, False

    def run(
        self,
        *arguments: str,
        accepted: Collection[int] = (0,),
        timeout_seconds: float | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a git command, with what happens around it."""
        if self.verb not in arguments or self.happened:
            return super().run(*arguments, accepted=accepted, timeout_seconds=timeout_seconds, extra=extra)
        self.happened = True
        if not self.after:
            self.happens()
        completed = super().run(*arguments, accepted=accepted, timeout_seconds=timeout_seconds, extra=extra)
        if self.after:
            self.happens()
        return completed
