"""A release killed at any step that changes the world goes on by the command that it names, to the same end."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.releasing.projects import ReleaseProject
from tests.simulation.test_crashes import NEVER, SCRIPT
from tests.support.cli import Answer, processes_below

pytestmark = [pytest.mark.slow, pytest.mark.real]

STEPS = 96
COMMANDS_MOST = 12
PUBLISH = {
    "publish.py": """
        import json, os, pathlib
        context = json.load(open(os.environ["LEDGER_CONTEXT"]))
        place = pathlib.Path(context["archive"]["path"]).parents[5]
        with open(place / "published.txt", "a") as file:
            file.write(context["archive"]["digest"] + "\\n")
    """
}


class Crashing(ReleaseProject):
    """A project whose `ledger` can be killed at a step."""

    def crash(self, *arguments: str, at: int = NEVER, when: str = "before") -> Answer:
        """Run `ledger` in a process that kills itself there."""
        root = str(SCRIPT.parent.parent.parent)
        ended = subprocess.run(
            [sys.executable, str(SCRIPT), str(at), when, str(self.root / "trace"), *arguments],
            cwd=self.path, env=self.environment | {"PYTHONPATH": root}, check=False, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        return Answer(ended.returncode, ended.stdout, ended.stderr)

    def go_on(self) -> dict[str, object]:
        """Do what the release says is to be done next, until there is nothing left."""
        for _ in range(COMMANDS_MOST):
            shown = self.ledger("release", "show", "1.1.0", "--json")
            if shown.code:
                # It died before it was recorded that there is a release.
                assert self.start().code in (0, 6)
                continue
            summary: dict[str, object] = json.loads(shown.out)
            if not summary["next_command"]:
                return summary
            _, *arguments = shlex.split(str(summary["next_command"]))
            answer = self.ledger(*arguments)
            assert answer.code in (0, 1, 3, 6), answer.err
        raise AssertionError(f"it does not come to an end: {self.ledger('release', 'show', '1.1.0').out}")


def check_end(project: Crashing) -> None:
    """It has passed, everything was done, nothing is left over, and every decision can be taken again."""
    summary = project.go_on()
    assert (summary["state"], summary["verdict"]) == ("finished", "passed")
    states = project.states()
    assert {state for step, state in states.items() if step != "triage"} == {"passed"}
    published = (project.root / "published.txt").read_text().splitlines()
    assert len(set(published)) == 1
    (archive,) = (one for one in project.show()["archives"] if one["state"] == "current")
    assert published[0] == archive["digest"]
    assert not [line for line in processes_below(project.root / "work") if line]
    assert project.git("worktree", "list").count("\n") == 0
    project.whole()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", range(2, STEPS, 9))
def test_a_release_that_is_killed_at_a_step_comes_to_the_same_end(tmp_path: Path, step: int, when: str) -> None:
    project = Crashing.with_steps(tmp_path, PUBLISH)
    project.crash("release", "start", "1.1.0", "--branch", at=step, when=when)
    check_end(project)


@pytest.mark.parametrize("step", range(2, 50, 6))
def test_a_repaired_release_that_is_killed_at_a_step_of_its_resumption_comes_to_the_same_end(
    tmp_path: Path, step: int
) -> None:
    project = Crashing.with_steps(tmp_path, PUBLISH)
    assert project.start().code == 6
    project.repair({"thing.txt": "three\n"})
    project.crash("resume", "1.1.0", "--from", "gate", at=step)
    # What was not resumed yet is still to be.
    if project.show()["commit"] != project.tip():
        assert project.resume("gate").code == 6
    check_end(project)
    assert (project.root / "published.txt").read_text().count("\n") == 1
