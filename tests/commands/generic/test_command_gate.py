"""Gates of suites whose runner is any command: real processes, real git, through the program."""

import json
import signal
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from ledger.evidence import EvidenceStore
from tests.commands.generic.suites import PASSING, RUNNER, SETTINGS, Gate, gate
from tests.support.cli import Project, processes_below, wait_until

SKIP = "import unittest\ndef test_one(): raise unittest.SkipTest('not here')\n"
ROUNDS = SETTINGS.replace("rounds = 1", "rounds = 2")


def only(blocking: dict[str, str], code: int, tmp_path: Path, candidate: dict[str, str], **more: str) -> Gate:
    """The gate of a change to the passing suite, which came out like this."""
    found = gate(tmp_path, PASSING, candidate, **more)
    assert (found.answer.code, found.classes) == (code, blocking), found.told()
    return found


def test_what_passes_on_both_sides_passes_and_every_report_is_evidence(tmp_path: Path) -> None:
    found = only({}, 0, tmp_path, {"suite/new.py": "def test_new(): pass\n"})
    assert {row["test"] for row in found.rows("classes")} == {
        "suite/a.py::test_one", "suite/b.py::test_two", "suite/new.py::test_new",
    }  # fmt: skip
    run = [one for one in found.events("attempt-recorded") if one["shard"] != "collection"]
    assert {one["reader"] for one in run} == {"junit/1"}
    evidence = EvidenceStore(found.project.store / "evidence")
    with tarfile.open(fileobj=BytesIO(evidence.get(run[0]["record"]))) as archive:
        assert archive.getnames() == ["report.xml"]


def test_a_failure_that_the_baseline_does_not_have_blocks(tmp_path: Path) -> None:
    only({"suite/a.py::test_one": "introduced"}, 1, tmp_path, {"suite/a.py": "def test_one(): assert 0\n"})


def test_a_failure_that_the_baseline_has_too_does_not_block(tmp_path: Path) -> None:
    failing = {"suite/a.py": "def test_one(): assert 0\n"}
    found = gate(tmp_path, {**PASSING, **failing}, {})
    assert (found.answer.code, found.classes) == (0, {"suite/a.py::test_one": "preexisting"}), found.told()


def test_a_test_that_is_skipped_now_blocks(tmp_path: Path) -> None:
    only({"suite/a.py::test_one": "newly-skipped"}, 1, tmp_path, {"suite/a.py": SKIP})


def test_a_target_that_only_skips_may_if_the_baseline_skips_all_of_it_too(tmp_path: Path) -> None:
    found = gate(tmp_path, {**PASSING, "suite/a.py": SKIP}, {"suite/a.py": SKIP + "test_more = test_one\n"})
    assert (found.answer.code, found.classes) == (0, {}), found.told()


def test_a_new_target_that_only_skips_measures_nothing(tmp_path: Path) -> None:
    found = only({"suite/new.py::test_one": "unmeasured"}, 3, tmp_path, {"suite/new.py": SKIP})
    causes = {row["test"]: row["cause"] for row in found.rows("classes")}
    assert causes["suite/new.py::test_one"] == "only-skipped"


DEPENDING = "def test_one(): pass\nif open('setting').read() == 'on\\n':\n    def test_more(): pass\n"


def test_a_test_that_is_gone_from_a_file_of_the_same_bytes_blocks(tmp_path: Path) -> None:
    found = gate(tmp_path, {"suite/a.py": DEPENDING, "setting": "on\n"}, {"setting": "off\n"})
    assert (found.answer.code, found.classes) == (1, {"suite/a.py::test_more": "vanished"}), found.told()


def test_a_test_that_is_gone_from_a_file_that_changed_is_shown_and_does_not_block(tmp_path: Path) -> None:
    baseline = {"suite/a.py": "def test_one(): pass\ndef test_more(): pass\n"}
    found = gate(tmp_path, baseline, {"suite/a.py": "def test_one(): pass\n"})
    assert (found.answer.code, found.classes) == (0, {"suite/a.py::test_more": "vanished"}), found.told()


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signalled"),
        ("import os; os._exit(0)", "report-missing"),
        ("import os; open(report, 'w').write('<testsuites'); os._exit(0)", "report-malformed"),
        ("import os; open(report, 'w').write(''); os._exit(0)", "report-empty"),
        ("import sys; sys.exit(7)", "exit-code-unexpected"),
    ],
)
def test_an_end_in_mid_run_is_never_a_pass(tmp_path: Path, end: str, cause: str) -> None:
    found = gate(tmp_path, PASSING, {"suite/b.py": f"def test_two():\n    {end}\n"})
    assert found.answer.code == 3, found.told()
    assert cause in found.causes()
    # What the baseline has is not said to be gone: nobody knows.
    assert found.classes.keys() > {"suite/a.py::test_one", "suite/b.py::test_two"}
    assert set(found.classes.values()) == {"unmeasured"}


def test_what_a_killed_run_did_not_measure_is_run_again_and_then_passes(tmp_path: Path) -> None:
    """The second round finds what the first one left, outside of the tree: in there nothing is left for it."""
    died = str(tmp_path / "died")
    once = f"if not os.path.exists({died!r}): open({died!r}, 'w'); os.kill(os.getpid(), 9)"
    dies = f"import os\ndef test_two():\n    {once}\n"
    found = gate(tmp_path, PASSING, {"suite/b.py": dies}, ROUNDS)
    assert (found.answer.code, found.classes) == (0, {}), found.told()
    assert "signalled" in found.causes()


def test_what_kills_its_runner_again_and_again_is_told_apart_from_its_neighbours(tmp_path: Path) -> None:
    settings = ROUNDS.replace('rerun = "off"', 'rerun = "on"')
    dies = "import os\ndef test_two(): os.kill(os.getpid(), 9)\n"
    found = gate(tmp_path, PASSING, {"suite/b.py": dies}, settings)
    assert found.answer.code == 3, found.told()
    assert found.classes.keys() == {"suite/b.py", "suite/b.py::test_two"}, found.told()


LYING = """
import subprocess, sys
subprocess.run([sys.executable, "runner.py", *sys.argv[1:]])
sys.exit(0)
"""


@pytest.mark.parametrize("rerun", ["on", "off"])
def test_a_failure_in_a_report_is_a_failure_whatever_the_exit_code_says(tmp_path: Path, rerun: str) -> None:
    settings = SETTINGS.replace("runner.py", "lying.py").replace('rerun = "off"', f'rerun = "{rerun}"')
    assert "lying.py" in settings
    suite = {**PASSING, "lying.py": LYING}
    found = gate(tmp_path, suite, {"suite/a.py": "def test_one(): assert 0\n"}, settings)
    assert found.answer.code == 1, found.told()
    assert found.classes["suite/a.py::test_one"] == "introduced"
    assert found.classes["suite/a.py"] == "unmeasured"
    assert found.causes() == {"exit-contradicts-cases"}


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_one_of_many_that_leaves_no_report_is_found_by_halves_and_all_others_are_measured(
    tmp_path: Path, end: str
) -> None:
    settings = ROUNDS.replace('rerun = "off"', 'rerun = "on"')
    suite = {f"suite/{name}.py": f"def test_{name}(): pass\n" for name in "abcdef"}
    found = gate(tmp_path, suite, {"suite/e.py": f"import os\ndef test_e(): {end}\n"}, settings)
    assert found.answer.code == 3, found.told()
    assert found.classes.keys() == {"suite/e.py", "suite/e.py::test_e"}, found.told()
    a, b, c, d, e, f = suite
    started = [one for one in found.events("attempt-started") if one["shard"] == "shard-1"]
    assert [one["targets"] for one in started if one["side"] == "candidate"] == [
        None, [a, b, c, d, e, f], [a, b, c], [d, e, f], [d, e], [f], [d], [e],
    ]  # fmt: skip
    assert len([one for one in started if one["side"] == "baseline"]) == 1
    assert found.project.ledger("replay").code == 0


def test_names_in_any_script_are_kept_and_nothing_of_them_reaches_the_terminal_raw(tmp_path: Path) -> None:
    name = "suite/Prüfung \N{SNOWMAN} 日本.py"
    raising = "def test_größe(): raise ValueError('\\x1b[31m\\u202e')\n"
    found = gate(tmp_path, {name: "def test_größe(): pass\n"}, {name: raising})
    assert (found.answer.code, found.classes) == (1, {f"{name}::test_größe": "introduced"}), found.told()
    assert "\x1b" not in found.answer.out + found.answer.err
    assert "\u202e" not in found.answer.out + found.answer.err


def test_shards_run_side_by_side_and_a_failure_is_run_again(tmp_path: Path) -> None:
    settings = SETTINGS.replace("shards = 1", "shards = 2").replace('rerun = "off"', 'rerun = "on"')
    found = gate(tmp_path, PASSING, {"suite/a.py": "def test_one(): assert 0\n"}, settings)
    assert (found.answer.code, found.classes) == (1, {"suite/a.py::test_one": "introduced"}), found.told()
    shards = {one["shard"] for one in found.events("attempt-started")}
    assert {"shard-1", "shard-2"} < shards
    assert len(shards) > 3


def test_without_any_target_nothing_is_collected(tmp_path: Path) -> None:
    found = gate(tmp_path, PASSING, {}, SETTINGS.replace("suite/**", "elsewhere/**"))
    assert (found.answer.code, found.causes()) == (3, {"nothing-collected"}), found.told()


def test_targets_may_come_from_a_command_whose_other_output_does_not_matter(tmp_path: Path) -> None:
    listing = """
        import glob, sys
        print("listing", file=sys.stderr)
        print("\\n".join(sorted(glob.glob("suite/*.py"))))
    """
    settings = SETTINGS.replace('targets = ["suite/**/*.py"]', 'list = ["python3", "list.py"]')
    found = gate(tmp_path, {**PASSING, "list.py": listing}, {}, settings)
    assert (found.answer.code, len(found.rows("classes"))) == (0, 2), found.told()


@pytest.mark.parametrize(
    ("listing", "cause"),
    [
        ("raise SystemExit('\\x1b[31mno such thing')", "list-failed"),
        ("print('suite/a.py'); print('--all')", "list-invalid"),
        ("print('suite/a.py', end='')", "list-invalid"),
        ("import os; os.kill(os.getpid(), 9)", "signalled"),
        ("pass", "nothing-collected"),
    ],
)
def test_a_list_that_cannot_be_trusted_gives_no_target(tmp_path: Path, listing: str, cause: str) -> None:
    settings = SETTINGS.replace('targets = ["suite/**/*.py"]', 'list = ["python3", "list.py"]')
    found = gate(tmp_path, {**PASSING, "list.py": listing}, {}, settings)
    assert (found.answer.code, found.causes()) == (3, {cause}), found.told()
    assert cause != "list-failed" or "no such thing" in found.told()
    assert "\x1b" not in found.told()


IN_TREE = SETTINGS.replace('"{report}"', '"out/report.xml"') + '    report_in_tree = "out/*.xml"\n'


def test_a_report_in_the_tree_is_moved_out_of_it_after_each_run(tmp_path: Path) -> None:
    failing = {"suite/a.py": "def test_one(): assert 0\n"}
    found = gate(tmp_path, PASSING, failing, IN_TREE.replace("shards = 1", "shards = 2"))
    assert (found.answer.code, found.classes) == (1, {"suite/a.py::test_one": "introduced"}), found.told()


def test_a_report_that_was_in_the_tree_before_is_refused(tmp_path: Path) -> None:
    stale = "<testsuites><testsuite><testcase name='test_one' file='suite/a.py'/></testsuite></testsuites>"
    found = gate(tmp_path, {"suite/a.py": "def test_one(): pass\n", "out/report.xml": stale}, {}, IN_TREE)
    assert (found.answer.code, found.causes()) == (3, {"report-not-fresh"}), found.told()


def test_a_report_behind_a_link_is_none(tmp_path: Path) -> None:
    stale = "<testsuites><testsuite><testcase name='test_two' file='suite/b.py'/></testsuite></testsuites>"
    linked = "def test_two():\n    import os; os.symlink(os.path.abspath('stale.xml'), report); os._exit(0)\n"
    found = gate(tmp_path, {"suite/b.py": "def test_two(): pass\n", "stale.xml": stale}, {"suite/b.py": linked})
    assert (found.answer.code, found.causes()) == (3, {"report-missing"}), found.told()


def test_a_report_about_files_outside_of_the_tree_proves_nothing(tmp_path: Path) -> None:
    outside = "def test_two(): pass\ntest_two.__name__\nglobals()['__file__']\n"
    runner = "cases = [c.replace('suite/b.py', '/elsewhere/suite/b.py') for c in cases]"
    found = gate(tmp_path, PASSING, {"suite/b.py": outside, "runner.py": _with(runner)})
    assert (found.answer.code, "foreign-tests" in found.causes()) == (3, True), found.told()


def test_exit_codes_may_be_named_and_others_are_then_unexpected(tmp_path: Path) -> None:
    settings = SETTINGS + '    exit_codes = { 0 = "passed", 3 = "failed" }\n'
    runner = {"runner.py": RUNNER.replace("sys.exit(failed > 0)", "sys.exit(3 if failed else 0)")}
    failing = {"suite/a.py": "def test_one(): assert 0\n"}
    found = gate(tmp_path / "known", {**PASSING, **runner}, failing, settings)
    assert (found.answer.code, found.classes) == (1, {"suite/a.py::test_one": "introduced"}), found.told()
    found = gate(tmp_path / "unknown", {**PASSING, **runner}, failing, settings.replace("3 =", "4 ="))
    assert (found.answer.code, "exit-code-unexpected" in found.causes()) == (3, True), found.told()


def test_what_the_version_command_prints_is_part_of_the_evidence(tmp_path: Path) -> None:
    settings = SETTINGS + '    version = ["python3", "-c", "print(42)"]\n    set_environment = { OUT = "{report}" }\n'
    found = gate(tmp_path, PASSING, {}, settings)
    assert found.answer.code == 0, found.told()
    evidence = EvidenceStore(found.project.store / "evidence")
    keys = {one["evidence_key"] for one in found.events("attempt-recorded") if one["shard"] != "collection"}
    documents = [json.loads(evidence.get(key)) for key in keys]
    assert {(one["runner"][0], one["environment"]["OUT"]) for one in documents} == {("42", "{report}")}
    assert documents[0]["command"] == ["python3", "runner.py", "{report}", "{targets}"]


def test_a_version_that_nobody_tells_measures_nothing(tmp_path: Path) -> None:
    found = gate(tmp_path, PASSING, {}, SETTINGS + '    version = ["python3", "-c", "raise SystemExit(1)"]\n')
    assert (found.answer.code, found.causes()) == (3, {"version-unknown"}), found.told()


def test_a_gate_that_was_stopped_is_resumed_and_runs_only_what_is_owed(tmp_path: Path) -> None:
    waits = "import os, time\ndef test_two():\n    while os.path.exists(os.environ['GATE_WAITS']): time.sleep(0.02)\n"
    settings = SETTINGS.replace("shards = 1", "shards = 2")
    settings += f'    set_environment = {{ GATE_WAITS = "{tmp_path}/wait" }}\n'
    project = Project.make(tmp_path, {"runner.py": RUNNER, "ledger.toml": settings, **PASSING})
    project.commit({"suite/b.py": waits})
    (tmp_path / "wait").touch()
    with project.started("gate") as program:
        wait_until(lambda: "shard-1/candidate: done" in program.told(), program.told)
        program.signal(signal.SIGINT)
        assert program.end().code == 8
    (tmp_path / "wait").unlink()
    answer = project.ledger("resume", "--from", "gate")
    found = Gate(project, answer)
    assert (answer.code, found.classes) == (0, {}), found.told()
    asked = [one for one in found.events("attempt-started") if one["shard"] == "shard-1" and one["side"] == "candidate"]
    assert len(asked) == 1


def test_a_gate_whose_driver_was_killed_is_resumed_although_its_report_was_left_in_the_tree(tmp_path: Path) -> None:
    waiting, written = tmp_path / "waiting", tmp_path / "written"
    settings = IN_TREE + f'    set_environment = {{ WAITING = "{waiting}", WRITTEN = "{written}" }}\n'
    hanging = """open(os.environ["WRITTEN"], "w")
    while os.path.exists(os.environ["WAITING"]): time.sleep(0.02)
    sys.exit(failed > 0)"""
    runner = RUNNER.replace("sys.exit(failed > 0)", hanging)
    project = Project.make(tmp_path, {"runner.py": runner, "ledger.toml": settings, **PASSING})
    project.commit({"change": "1\n"})
    waiting.touch()
    with project.started("gate") as program:
        wait_until(written.exists, program.told)
        program.kill()
    wait_until(lambda: not processes_below(tmp_path / "work"))
    waiting.unlink()
    found = Gate(project, project.ledger("resume", "--from", "gate"))
    assert (found.answer.code, found.classes) == (0, {}), found.told()
    records = [one for one in found.events("attempt-recorded") if one["shard"] == "shard-1"]
    assert [(one["side"], one["complete"]) for one in records] == [
        ("candidate", False), ("candidate", True), ("baseline", True),
    ]  # fmt: skip
    # The report that was cut off from its run is kept as what it is.
    assert records[0]["record"] is not None


def test_a_plan_of_a_commit_knows_its_targets(tmp_path: Path) -> None:
    project = Project.make(tmp_path, {"runner.py": RUNNER, "ledger.toml": SETTINGS, **PASSING})
    answer = project.ledger("plan", "--json")
    assert answer.code == 0, answer.err
    targets = [target for shard in json.loads(answer.out)["plan"]["shards"] for target in shard["targets"]]
    assert targets == ["suite/a.py", "suite/b.py"]


def _with(line: str) -> str:
    """The runner with one more line before it writes its report."""
    return RUNNER.replace("os.makedirs(", f"{line}\n    os.makedirs(")
