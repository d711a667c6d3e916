"""What `release show`, `log` and `resume --dry-run` print in the situations that releases get into."""

import json
import re
from collections.abc import Callable
from getpass import getuser
from pathlib import Path

import pytest

from tests.commands.cli.test_cli_golden import redacted
from tests.commands.releasing.projects import BROKEN, FAILING_SCREENS, REASON, ReleaseProject

pytestmark = [pytest.mark.real, pytest.mark.slow]

Golden = Callable[[str, str], None]
Situation = Callable[[Path], tuple[ReleaseProject, str]]


def failing_screens(tmp_path: Path) -> ReleaseProject:
    project = ReleaseProject.with_steps(tmp_path, FAILING_SCREENS)
    project.start()
    return project


def waived_with_an_issue(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = failing_screens(tmp_path)
    noted = tmp_path / "issues.json"
    noted.write_text(json.dumps([{"id": "KI-1", "note": "Dark mode is slow to switch"}]), "utf-8")
    project.resume("screens", "--waive", "screens", "--reason", REASON, "--accept", str(noted))
    return project, "approve"


def killed_and_waived(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path, {"screens.py": "import os\nos.kill(os.getpid(), 9)\n"})
    project.start()
    project.resume("screens", "--waive", "screens", "--reason", REASON)
    return project, "approve"


def waiver_on_a_moved_tip(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = failing_screens(tmp_path)
    project.repair({"thing.txt": "three\n"})
    project.resume("screens", "--waive", "screens", "--reason", REASON)
    return project, "gate"


def waiver_retired(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = failing_screens(tmp_path)
    project.resume("screens", "--waive", "screens", "--reason", REASON)
    project.resume("screens")
    return project, "screens"


def gate_never_measured(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path, {"suite/b.py": "import os\ndef test_two(): os._exit(0)\n"})
    project.start()
    project.resume("gate", "--waive", "gate", "--reason", REASON)
    return project, "approve"


def gate_failed(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    project.start()
    return project, "gate"


def repaired_by_source(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    project.start()
    project.repair({"thing.txt": "mended\n"})
    return project, "gate"


def repaired_by_a_test(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path, {"suite/b.py": "def test_two(): assert 0\n"})
    project.start()
    project.repair({"suite/b.py": "def test_two(): assert 1\n"})
    return project, "gate"


def after_the_consumer(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = failing_screens(tmp_path)
    project.repair({"screens.py": "print('mended')\n"})
    return project, "screens"


def archive_set_aside(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    project.ledger("approve", "1.1.0")
    project.repair({"thing.txt": "three\n"})
    project.resume("gate")
    return project, "approve"


def rejected(tmp_path: Path) -> tuple[ReleaseProject, str]:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    project.ledger("reject", "1.1.0", "--reason", "not before Monday")
    return project, "approve"


SITUATIONS: tuple[Situation, ...] = (
    waived_with_an_issue, killed_and_waived, waiver_on_a_moved_tip, waiver_retired, gate_never_measured, gate_failed,
    repaired_by_source, repaired_by_a_test, after_the_consumer, archive_set_aside, rejected,
)  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_a_situation_is_told_as_it_was_recorded(situation: Situation, tmp_path: Path, golden: Golden) -> None:
    project, step = situation(tmp_path)
    parts = []
    for command in (
        ("release", "show", "1.1.0"),
        ("log", "1.1.0"),
        ("resume", "1.1.0", "--from", step, "--dry-run"),
    ):
        # Wide, because places of different lengths would be broken differently.
        answer = project.ledger(*command, COLUMNS="400")
        parts += [f"$ ledger {' '.join(command)}\n", answer.out, answer.err, f"--- exit code {answer.code}\n\n"]
    golden(f"releases/{situation.__name__}.txt", _numbered(redacted("".join(parts), tmp_path)))


def _numbered(told: str) -> str:
    """Ids that are different each time get numbers in the order in which they come, so that none stands for another."""
    told = re.sub(r"\.quarantine-[0-9a-f]{16}", ".quarantine-0", told).replace(f"by {getuser()}", "by SOMEBODY")
    known: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        return known.setdefault(found[0][:12], f"id-{len(known) + 1:09}")

    return re.sub(r"\b[0-9a-f]{12}(?:[0-9a-f]{28})?\b", numbered, told)
