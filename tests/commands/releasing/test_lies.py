"""What somebody tried who wanted a release to say or to publish what is not so."""

import shutil
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.releasing.projects import FAILING_SCREENS, ReleaseProject
from tests.support.cli import wait_until

pytestmark = [pytest.mark.real, pytest.mark.slow]


def approved(tmp_path: Path, **files: str) -> ReleaseProject:
    """A release that is approved and not published."""
    project = ReleaseProject.with_steps(
        tmp_path, {"thing.txt": "two\n", **{n.replace("__", "."): t for n, t in files.items()}}
    )
    assert project.start().code == ExitCode.WAITING
    assert project.ledger("approve", "1.1.0").code == ExitCode.PASSED
    return project


def test_the_archive_that_is_handed_out_is_the_one_that_was_looked_at(tmp_path: Path) -> None:
    project = approved(tmp_path)
    recorded = Path(project.show()["archives"][0]["place"])
    moved = ReleaseProject(tmp_path, "moved")
    project.path.rename(moved.path)
    recorded.mkdir(parents=True)
    (recorded / "thing.txt").write_text("something else\n")
    assert moved.resume("publish").code == ExitCode.PASSED
    assert (tmp_path / "published" / "1.1.0" / "thing.txt").read_text() == "two\n"


SPOILS = """
import json, os, pathlib
context = json.load(open(os.environ["LEDGER_CONTEXT"]))
pathlib.Path(context["archive"]["path"], "thing.txt").write_text("spoilt\\n")
"""


def test_an_archive_that_was_changed_while_it_was_published_leaves_that_unmeasured(tmp_path: Path) -> None:
    project = approved(tmp_path, publish__py=SPOILS)
    assert project.resume("publish").code == ExitCode.UNMEASURED
    (attempt,) = project.attempts("publish")
    assert attempt["cause"] == "archive-changed"
    assert "it may have been done" in project.ledger("release", "show", "1.1.0", COLUMNS="200").out


UPLOADS = """
import os, pathlib, time
print("uploading", flush=True)
with open(pathlib.Path(os.environ["LEDGER_STORE"]).parents[2] / "uploads", "a") as file:
    file.write("once\\n")
time.sleep(60)
"""


def test_what_may_have_been_published_binds_the_release_to_its_commit(tmp_path: Path) -> None:
    project = approved(tmp_path, publish__py=UPLOADS)
    with project.started("resume", "1.1.0", "--from", "publish") as program:
        wait_until(lambda: "uploading" in program.told(), program.told)
        program.kill()
    landed = project.land({"thing.txt": "three\n"})
    answer = project.ledger("release", "repair", "1.1.0", "--pick", landed)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "repair-too-late"), answer.err
    # Somebody else may have moved the branch all the same.
    project.git("push", "--quiet", "origin", f"{landed}:refs/heads/release/1.1.0")
    assert "the branch is not followed any more" in project.resume("publish", "--dry-run").out
    # What comes before may be done again; the step itself only when somebody says so.
    assert project.resume("gate").code == ExitCode.UNMEASURED
    assert (tmp_path / "uploads").read_text() == "once\n"
    assert [one["cause"] for one in project.attempts("publish")] == ["step-driver-died"]
    assert project.show()["commit"] != landed
    project.whole()


def test_a_version_that_has_a_tag_on_the_remote_is_not_released_again(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.git("push", "--quiet", "origin", "v1.0.0:refs/tags/v1.1.0")
    assert project.start().error_code == "version-taken"
    assert project.start("1.0.0").error_code == "version-taken"
    assert not project.store.exists()


def test_a_release_is_compared_with_the_last_one_that_is_no_prerelease(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, {"thing.txt": "two\n"}, {"thing.txt": "three\n"})
    project.git("tag", "v1.1.0-rc.1", "HEAD~1")
    assert project.start().code == ExitCode.WAITING
    assert project.show()["baseline_ref"] == "v1.0.0"
    project.ledger("approve", "1.1.0")
    assert project.resume("publish").code == ExitCode.PASSED
    project.land({"thing.txt": "four\n"})
    assert project.start("1.2.0").code == ExitCode.WAITING
    shown = project.show("1.2.0")
    assert (shown["baseline_ref"], shown["baseline"]) == ("release 1.1.0", project.show()["commit"])


def test_an_approval_can_name_the_commit_that_was_looked_at(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    looked_at = project.show()["commit"]
    project.repair({"thing.txt": "three\n"})
    assert project.resume("gate").code == ExitCode.WAITING
    before = project.rows()
    answer = project.ledger("approve", "1.1.0", "--commit", looked_at)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "approval-stale"), answer.err
    assert project.rows() == before
    assert project.ledger("approve", "1.1.0", "--commit", project.show()["commit"][:12]).code == ExitCode.PASSED


def test_a_muting_that_was_taken_back_does_not_carry_an_approval(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, {"suite/b.py": "def test_two(): assert 0\n"})
    assert project.start().code == ExitCode.FAILED
    muted = project.ledger("mute", "suite/b.py::test_two", "--owner", "a", "--reason", "known", "--expires", "5")
    assert muted.code == ExitCode.PASSED, muted.err
    project.land({"thing.txt": "three\n"})
    assert project.start("1.2.0").code == ExitCode.WAITING
    assert project.ledger("approve", "1.2.0").code == ExitCode.PASSED
    assert project.ledger("unmute", "suite/b.py::test_two", "--reason", "repaired").code == ExitCode.PASSED
    assert project.resume("publish", version="1.2.0").code == ExitCode.WAITING
    assert not (tmp_path / "published").exists()


def test_a_release_that_has_passed_is_not_repaired(tmp_path: Path) -> None:
    project = approved(tmp_path)
    assert project.resume("publish").code == ExitCode.PASSED
    landed = project.land({"thing.txt": "three\n"})
    tip = project.tip()
    answer = project.ledger("release", "repair", "1.1.0", "--pick", landed)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "repair-too-late"), answer.err
    assert project.tip() == tip


def test_a_repair_comes_from_the_branch_that_the_release_was_started_with(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, {"thing.txt": "broken\n"})
    project.start()
    project.git("switch", "--quiet", "--create", "evil")
    commit = project.commit({"thing.txt": "evil\n"})
    project.git("push", "--quiet", "origin", "evil")
    settings = project.path / "ledger.toml"
    settings.write_text(settings.read_text() + '[release]\nmain = "evil"\n')
    answer = project.ledger("release", "repair", "1.1.0", "--pick", commit)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "pick-not-on-main"), answer.err


def test_what_a_step_printed_can_be_read_later(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, FAILING_SCREENS)
    answer = project.start()
    assert "look: ledger release output screens" in answer.out
    shutil.rmtree(tmp_path / "work", ignore_errors=True)
    assert project.ledger("release", "output", "screens", "1.1.0").out == "the help screen does not close\n"
    assert project.ledger("release", "output", "nothing", "1.1.0").error_code == "step-unknown"
    assert project.ledger("release", "output", "publish", "1.1.0").error_code == "step-not-run"
