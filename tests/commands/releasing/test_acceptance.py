"""Releases that go wrong in every way that they do, and what people then do: each case given, when, then."""

import json
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.releasing.projects import BROKEN, FAILING_SCREENS, REASON, ReleaseProject

pytestmark = [pytest.mark.real, pytest.mark.slow]


def failing_screens(tmp_path: Path, **files: str) -> ReleaseProject:
    """A release that ended because a step failed that may be waived."""
    project = ReleaseProject.with_steps(tmp_path, {**FAILING_SCREENS, **files})
    answer = project.start()
    assert answer.code == ExitCode.FAILED, answer.err
    assert project.states()["screens"] == "failed"
    return project


def issues(project: ReleaseProject, *named: tuple[str, str]) -> str:
    """A file with known issues."""
    file = project.root / "issues.json"
    file.write_text(json.dumps([{"id": name, "note": note} for name, note in named]), "utf-8")
    return str(file)


def test_a_release_without_trouble_waits_for_its_approval_and_is_then_published(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    assert project.start().code == ExitCode.WAITING
    assert project.tip() == project.git("rev-parse", "HEAD")
    assert project.ledger("approve", "1.1.0").code == ExitCode.PASSED
    answer = project.resume("publish")
    assert answer.code == ExitCode.PASSED, answer.err
    assert (tmp_path / "published" / "1.1.0" / "thing.txt").read_text() == "two\n"
    assert set(project.states().values()) == {"passed", "pending"}
    assert project.states()["triage"] == "pending"
    project.whole()


def test_a_waived_step_lets_the_release_go_on_and_never_passes(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    noted = issues(project, ("KI-1", "Dark mode is slow to switch"))
    answer = project.resume("screens", "--waive", "screens", "--reason", REASON, "--accept", noted)
    assert answer.code == ExitCode.WAITING, answer.err
    shown = project.show()
    assert project.states()["screens"] == "waived"
    assert len(project.attempts("screens")) == 1
    (waiver,) = shown["waivers"]
    assert (waiver["outcome"], waiver["cause"], waiver["holds"]) == ("failed", "step-exit", True)
    notes = project.ledger("report", "1.1.0", "--format", "notes").out
    assert f"- {REASON}.\n- Dark mode is slow to switch.\n" in notes
    assert "KI-1" not in notes
    assert "waiver-1" not in notes
    assert answer.out.index(REASON) < answer.out.index("commit ")
    project.ledger("approve", "1.1.0")
    assert project.resume("publish").code == ExitCode.PASSED
    assert "passed (with waivers)" in project.ledger("release", "show", "1.1.0").out
    project.whole()


def test_a_step_that_was_killed_is_unmeasured_and_may_be_waived_with_that(tmp_path: Path) -> None:
    killed = {"screens.py": "import os\nos.kill(os.getpid(), 9)\n"}
    project = ReleaseProject.with_steps(tmp_path, killed)
    assert project.start().code == ExitCode.UNMEASURED
    assert project.attempts("screens")[0]["cause"] == "step-signalled"
    answer = project.resume("screens", "--waive", "screens", "--reason", REASON)
    assert answer.code == ExitCode.WAITING, answer.err
    assert (project.show()["waivers"][0]["outcome"], project.show()["waivers"][0]["cause"]) == (
        "unmeasured",
        "step-signalled",
    )


REFUSED = {
    "a waiver of yesterday": (
        ("screens", "--waive", "screens", "--reason", REASON, "--expires", "2020-01-01"),
        "waiver-expired",
    ),
    "a waiver to no day": (
        ("screens", "--waive", "screens", "--reason", REASON, "--expires", "soon"),
        "waiver-expired",
    ),
    "without a reason": (("screens", "--waive", "screens"), "waiver-pair"),
    "a reason alone": (("screens", "--reason", REASON), "waiver-pair"),
    "a blank reason": (("screens", "--waive", "screens", "--reason", "  "), "waiver-pair"),
    "a reason from the inside": (("screens", "--waive", "screens", "--reason", "see #12"), "waiver-reason-unsafe"),
    "from another step": (("gate", "--waive", "screens", "--reason", REASON), "waiver-from"),
    "a step that has passed": (("gate", "--waive", "gate", "--reason", REASON), "waiver-not-failed"),
    "what builds": (("prepare", "--waive", "prepare", "--reason", REASON), "waiver-protected"),
    "what cannot be taken back": (("publish", "--waive", "publish", "--reason", REASON), "waiver-protected"),
    "a step that is not there": (("nothing", "--waive", "nothing", "--reason", REASON), "step-unknown"),
    "later than what failed": (("prepare",), "predecessor-unsettled"),
    "the cut once more": (("cut",), "restart-at-cut"),
    "what runs only when something went wrong": (("triage",), "step-aside"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_every_byte_as_it_was(case: str, tmp_path: Path) -> None:
    arguments, code = REFUSED[case]
    project = failing_screens(tmp_path)
    before = project.rows()
    for more in (("--dry-run",), ()):
        answer = project.resume(*arguments, *more)
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, code), answer.err
    assert project.rows() == before


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ((("KI-1", "it is slow"), ("KI-1", "it is slow again")), "issues-duplicate"),
        ((("KI-1", "see /srv/me/notes"),), "issues-invalid"),
    ],
)
def test_known_issues_that_cannot_be_told_are_refused(
    named: tuple[tuple[str, str], ...], code: str, tmp_path: Path
) -> None:
    project = failing_screens(tmp_path)
    before = project.rows()
    answer = project.resume("screens", "--accept", issues(project, *named))
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, code), answer.err
    assert project.rows() == before


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '[{"id": "a"}]', '[{"id": "", "note": "x"}]', "nothing", '[{"id":1,"note":2}]']
)
def test_a_file_of_known_issues_that_lists_none_is_refused(text: str, tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    (tmp_path / "bad.json").write_text(text, "utf-8")
    before = project.rows()
    answer = project.resume("screens", "--accept", str(tmp_path / "bad.json"))
    assert answer.code == ExitCode.USAGE
    assert project.rows() == before


def test_a_waiver_is_refused_when_the_branch_has_moved(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    project.repair({"thing.txt": "three\n"})
    before = project.rows()
    answer = project.resume("screens", "--waive", "screens", "--reason", REASON)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "waiver-moved-tip"), answer.err
    assert project.rows() == before


def test_known_issues_are_accepted_without_waiving_anything(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    project.resume("screens", "--accept", issues(project, ("KI-1", "Dark mode is slow to switch")))
    shown = project.show()
    assert [one["issue"] for one in shown["issues"]] == ["KI-1"]
    assert shown["waivers"] == []
    assert len(project.attempts("screens")) == 2


def test_a_waiver_is_retired_when_its_step_runs_again_and_known_issues_stay(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    noted = issues(project, ("KI-1", "Dark mode is slow to switch"), ("waiver-1", "The logo is blurred"))
    project.resume("screens", "--waive", "screens", "--reason", REASON, "--accept", noted)
    answer = project.resume("screens")
    assert answer.code == ExitCode.FAILED, answer.err
    shown = project.show()
    assert [one["holds"] for one in shown["waivers"]] == [False]
    assert [one["issue"] for one in shown["issues"]] == ["KI-1", "waiver-1"]
    assert [one["waiver"] for one in project.events("waiver-retired")] == ["waiver-1"]


def test_a_measured_gate_is_never_waived(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    assert project.start().code == ExitCode.FAILED
    assert project.states()["triage"] == "passed"
    before = project.rows()
    answer = project.resume("gate", "--waive", "gate", "--reason", REASON)
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "waiver-protected"), answer.err
    assert project.rows() == before


def test_a_gate_that_was_never_measured_may_be_waived(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, {"suite/b.py": "import os\ndef test_two(): os._exit(0)\n"})
    assert project.start().code == ExitCode.UNMEASURED
    answer = project.resume("gate", "--waive", "gate", "--reason", REASON)
    assert answer.code == ExitCode.WAITING, answer.err
    assert project.states()["gate"] == "waived"


def test_a_result_that_was_printed_before_a_kill_is_a_result(tmp_path: Path) -> None:
    told = 'print(\'{"outcome": "fail", "summary": "two screens differ"}\', flush=True)\n'
    project = ReleaseProject.with_steps(tmp_path, {"screens.py": f"import os\n{told}os.kill(os.getpid(), 9)\n"})
    assert project.start().code == ExitCode.FAILED
    assert project.attempts("screens")[0]["summary"] == "two screens differ"


def test_a_repair_moves_the_tip_and_runs_again_what_does_not_count_any_more(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    project.start()
    cut = project.tip()
    tip = project.repair({"thing.txt": "mended\n"})
    plan = json.loads(project.resume("gate", "--dry-run", "--json").out)
    assert (plan["previous"], plan["to"], plan["boundary"], plan["gate"]) == (cut, tip, "gate", "full")
    assert "source-changed" in plan["gate_reason"]
    answer = project.resume("gate")
    assert answer.code == ExitCode.WAITING, answer.err
    assert [(one["commit"], one["outcome"]) for one in project.attempts("gate")] == [(cut, "failed"), (tip, "passed")]
    assert [(one["previous"], one["commit"]) for one in project.events("tip-moved")] == [(cut, tip)]
    assert project.show()["commit"] == tip
    project.whole()


def test_a_step_after_the_first_stale_one_is_refused_and_the_stale_one_is_named(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    project.repair({"screens.py": "print('mended')\n"})
    before = project.rows()
    answer = project.resume("screens")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "after-consumer"), answer.err
    assert "resume --from gate" in answer.err
    assert project.rows() == before
    assert project.resume("gate").code == ExitCode.WAITING


def test_a_branch_that_did_not_go_forward_is_refused(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    project.start()
    project.git("push", "--quiet", "--force", "origin", "v1.0.0^{commit}:refs/heads/release/1.1.0")
    before = project.rows()
    answer = project.resume("gate")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "not-fast-forward"), answer.err
    assert project.rows() == before


def test_a_branch_that_is_gone_is_refused(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    project.start()
    project.git("push", "--quiet", "origin", ":refs/heads/release/1.1.0")
    before = project.rows()
    answer = project.resume("gate")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "branch-missing"), answer.err
    assert project.rows() == before


def test_a_release_that_has_passed_is_not_taken_up_again(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, steps='[[step]]\nname = "check"\nrun = ["true"]\n')
    assert project.ledger("release", "start", "1.1.0").code == ExitCode.PASSED
    before = project.rows()
    answer = project.resume("check")
    assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "release-passed"), answer.err
    assert project.rows() == before


@pytest.mark.parametrize("named", ["../../etc", "9.9.9", "20990101", "a\x1bb"])
def test_a_release_that_is_not_there_is_refused(named: str, tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, steps='[[step]]\nname = "check"\nrun = ["true"]\n')
    project.ledger("release", "start", "1.1.0")
    answer = project.ledger("resume", named, "--from", "check")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "run-unknown")
    assert "\x1b" not in answer.err


def test_a_dry_run_of_a_start_takes_no_lock_and_writes_nothing(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    answer = project.start("1.1.0", "--dry-run")
    assert answer.code == ExitCode.PASSED, answer.err
    assert "as release/1.1.0 on origin" in answer.out
    assert not project.store.exists()
    assert not project.git("ls-remote", "origin", "refs/heads/release/*")


def test_a_prerelease_takes_the_number_after_the_greatest_that_was_ever_used(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.git("push", "--quiet", "origin", "HEAD:refs/heads/release/1.1.0-rc.2", "v1.0.0:refs/tags/v1.1.0-rc.7")
    answer = project.start("1.1.0", "--prerelease", "rc")
    assert answer.code == ExitCode.WAITING, answer.err
    assert project.show("1.1.0-rc.8")["branch"] == "release/1.1.0-rc.8"
    refused = project.ledger("release", "start", "1.1.0", "--prerelease", "rc")
    assert (refused.code, refused.error_code) == (ExitCode.REFUSED, "prerelease-by-commit")


def test_an_approval_holds_only_for_what_was_shown(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    project.ledger("approve", "1.1.0")
    archive = Path(project.show()["archives"][0]["place"])
    (archive / "thing.txt").write_text("something else\n")
    answer = project.resume("publish")
    assert answer.code != ExitCode.PASSED
    assert answer.error_code == "archive-changed", answer.err
    assert not (tmp_path / "published").exists()


def test_an_approval_does_not_hold_after_the_tip_has_moved(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    first = Path(project.show()["archives"][0]["place"])
    project.ledger("approve", "1.1.0")
    project.repair({"thing.txt": "three\n"})
    assert project.resume("publish").error_code == "after-consumer"
    answer = project.resume("gate")
    assert answer.code == ExitCode.WAITING, answer.err
    shown = project.show()
    assert [one["decision"] for one in shown["approvals"]] == ["approved", ""]
    assert [one["state"] for one in shown["archives"]] == ["set-aside", "current"]
    assert (Path(shown["archives"][0]["place"]) / "thing.txt").read_text() == "two\n"
    assert (first / "thing.txt").read_text() == "three\n"
    project.whole()


def test_a_rejection_ends_the_release_and_can_be_asked_again(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    assert project.ledger("reject", "1.1.0").code == ExitCode.USAGE
    assert project.ledger("reject", "1.1.0", "--reason", "not before Monday").code == ExitCode.PASSED
    assert project.resume("publish").error_code == "predecessor-unsettled"
    assert project.resume("approve").code == ExitCode.WAITING
    assert project.ledger("approve", "1.1.0").code == ExitCode.PASSED
    assert project.resume("publish").code == ExitCode.PASSED
    project.whole()


def test_a_release_is_taken_up_again_only_so_often(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(
        tmp_path, steps='[release]\nattempts_max = 1\n[[step]]\nname = "check"\nrun = ["false"]\n'
    )
    project.ledger("release", "start", "1.1.0")
    assert project.resume("check").code == ExitCode.FAILED
    before = project.rows()
    assert project.resume("check").error_code == "attempts-exhausted"
    assert project.resume("check", "--allow-attempt").error_code == "attempts-exhausted"
    assert project.rows() == before
    assert project.resume("check", "--allow-attempt", "--reason", "the disk was full").code == ExitCode.FAILED
    assert project.show()["overrides"] == [["attempts", "the disk was full"]]


def test_a_waiver_with_a_last_day_says_so_and_known_issues_that_come_later_are_approved_as_well(tmp_path: Path) -> None:
    project = failing_screens(tmp_path)
    answer = project.resume("screens", "--waive", "screens", "--reason", REASON, "--expires", "3")
    assert answer.code == ExitCode.WAITING, answer.err
    (waiver,) = project.show()["waivers"]
    assert waiver["holds"]
    assert len(waiver["expires"]) == len("2030-01-31")
    project.ledger("approve", "1.1.0")
    noted = issues(project, ("KI-1", "Dark mode is slow to switch"))
    plan = json.loads(project.resume("approve", "--accept", noted, "--dry-run", "--json").out)
    assert {one["step"]: one["action"] for one in plan["steps"]}["approve"] == "run"
    assert project.resume("approve", "--accept", noted).code == ExitCode.WAITING
    assert [one["decision"] for one in project.show()["approvals"]] == ["approved", ""]
    project.whole()


def test_a_version_that_is_under_way_or_has_passed_is_not_started_again(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    assert project.start().code == ExitCode.WAITING
    before = project.rows()
    for _ in range(2):
        answer = project.start()
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "version-taken"), answer.err
    assert project.rows() == before
    project.ledger("approve", "1.1.0")
    assert project.resume("publish").code == ExitCode.PASSED
    assert project.start().error_code == "version-taken"


def test_a_version_whose_release_failed_may_be_started_again_with_other_steps(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, steps='[[step]]\nname = "check"\nrun = ["false"]\n')
    assert project.ledger("release", "start", "1.1.0").code == ExitCode.FAILED
    project.write({"ledger.toml": '[[step]]\nname = "check"\nrun = ["true"]\n'})
    assert project.ledger("release", "start", "1.1.0").code == ExitCode.PASSED


def test_a_release_and_its_gates_are_exported_each_by_itself_and_tell_the_same_elsewhere(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path)
    project.start()
    shown = project.show()
    (gate,) = (one["gate"] for one in project.attempts("gate"))
    exported = project.ledger("export", "1.1.0", "-o", str(tmp_path / "release.tar"))
    assert exported.code == ExitCode.PASSED, exported.err
    assert gate in exported.err
    assert project.ledger("export", gate, "-o", str(tmp_path / "gate.tar")).code == ExitCode.PASSED
    elsewhere = str(tmp_path / "elsewhere")
    for name in ("release.tar", "gate.tar"):
        assert project.ledger("import", str(tmp_path / name), "--store", elsewhere).code == ExitCode.PASSED
    assert project.ledger("verify", "--store", elsewhere).code == ExitCode.PASSED
    assert project.ledger("replay", "1.1.0", "--store", elsewhere).code == ExitCode.PASSED
    there = json.loads(project.ledger("release", "show", "1.1.0", "--store", elsewhere, "--json").out)
    moved = {"sequence", "state", "archives"}
    assert {key: value for key, value in there.items() if key not in moved} == {
        key: value for key, value in shown.items() if key not in moved
    }
