"""`ledger plan`: plans of real commits, whose tests are collected and neither run nor recorded."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import Ask, waiting_project
from tests.support.cli import Answer, Project, processes_below, wait_until

pytestmark = pytest.mark.real

NAMES = ("a", "b", "c", "d", "e")
TESTS = {f"tests/test_{name}.py": "def test_one():\n    raise SystemExit('planning runs no test')\n" for name in NAMES}
SETTINGS = {"ledger.toml": "[gate]\nparallel = 2\nmemory_limit_bytes = '1GiB'\n"}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Five files of tests at v1.0, one more at HEAD, and usage for four of them."""
    made = Project.make(
        tmp_path_factory.mktemp("planned"), TESTS | SETTINGS, {"tests/test_f.py": "def test_two():\n    pass\n"}
    )
    usage = {
        f"tests/test_{name}.py": {"memory_bytes": 300 * MEBIBYTE, "seconds": seconds}
        for name, seconds in zip("abcd", (60, 30, 30, 20), strict=True)
    }
    (made.path / "usage.json").write_text(json.dumps(usage), "utf-8")
    (made.path / "durations").write_text(
        json.dumps({f"tests/test_{name}.py::test_one": 5.5 for name in "abc"}), "utf-8"
    )
    return made


def planned(answer: Answer) -> Any:
    """The document of an answer that is one."""
    assert answer.code == ExitCode.PASSED, answer.err
    return json.loads(answer.out)


def test_a_plan_fits_the_budget_and_leaves_nothing_behind(project: Project, ask: Ask) -> None:
    document = planned(ask(project, "plan", "--usage", "usage.json", "--json"))
    plan = document["plan"]
    assert sorted(target for shard in plan["shards"] for target in shard["targets"]) == [
        *TESTS, "tests/test_f.py",
    ]  # fmt: skip
    assert all(shard["memory_bytes"] <= plan["budget_bytes"] == 1024 * MEBIBYTE for shard in plan["shards"])
    assert (document["candidate"], document["budget_origin"]) == (
        project.git("rev-parse", "HEAD"), "gate.memory_limit_bytes",
    )  # fmt: skip
    assert plan["origins"] == {"measured": 4, "aged": 0, "estimated": 2}
    assert plan["bound"]["shards_by_memory"] == len(plan["shards"]) == 2
    assert not project.store.exists()
    assert project.git("worktree", "list").count("\n") == 0
    assert list((project.root / "work").rglob("*.py")) == []
    assert processes_below(project.root) == []


def test_a_commit_and_a_number_of_shards_can_be_named(project: Project, ask: Ask) -> None:
    document = planned(ask(project, "plan", "v1.0", "--shards", "4", "--budget", "4GiB", "--json"))
    assert [len(shard["targets"]) for shard in document["plan"]["shards"]] == [2, 1, 1, 1]
    assert document["budget_origin"] == "as asked for"


def test_a_time_decides_how_many_shards_there_are(project: Project, ask: Ask) -> None:
    answer = ask(project, "plan", "v1.0", "--usage", "usage.json", "--target-time", "1m", "--budget", "8GiB", "--json")
    plan = planned(answer)["plan"]
    # 60 + 30 + 30 + 20 and 60 for the unknown one are 200 s, which three shards of 60 s do not hold.
    assert (len(plan["shards"]), plan["makespan_seconds"]) == (4, 60.0)


def test_durations_of_pytest_split_are_taken_for_what_they_are(project: Project, ask: Ask) -> None:
    document = planned(ask(project, "plan", "--usage", "durations", "--shards", "2", "--json"))
    assert document["plan"]["origins"]["measured"] == 0
    assert document["plan"]["makespan_seconds"] == 16.5
    assert [
        next(word for word in ("unknown time", "unknown memory") if word in line) for line in document["assumptions"]
    ] == ["unknown time", "unknown memory"]


def test_a_plan_is_told_in_words(project: Project, ask: Ask, golden: Callable[[str, str], None]) -> None:
    texts = [
        ask(project, "plan", "--usage", "usage.json", "--shards", shards, columns=columns)
        for shards, columns in (("3", 120), ("3", 50))
    ]
    assert [answer.code for answer in texts] == [ExitCode.PASSED] * 2
    golden("cli/plan.txt", "\n".join(answer.out for answer in texts))


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["--shards", "1", "--usage", "usage.json"], "plan-does-not-fit", ExitCode.REFUSED),
        (["--shards", "0"], "shard-count-invalid", ExitCode.REFUSED),
        (["--budget", "0"], "budget-invalid", ExitCode.REFUSED),
        (["--budget", "1MiB", "--usage", "usage.json"], "target-above-budget", ExitCode.REFUSED),
        (["--budget", "much"], "usage-invalid", ExitCode.USAGE),
        (["--target-time", "soon"], "usage-invalid", ExitCode.USAGE),
        (["--target-time", "1m", "--shards", "2"], "usage-invalid", ExitCode.USAGE),
        (["--usage", "no-such-file"], "usage-invalid", ExitCode.USAGE),
        (["--usage", "ledger.toml"], "usage-file-invalid", ExitCode.USAGE),
        (["no-such-ref"], "ref-unknown", ExitCode.USAGE),
    ],
)
def test_what_cannot_be_planned_is_told(
    arguments: list[str], code: str, exit_code: ExitCode, project: Project, ask: Ask
) -> None:
    answer = ask(project, "plan", *arguments)
    assert (answer.error_code, answer.code) == (code, exit_code)
    assert answer.out == ""


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"conftest.py": "import missing\n"}, "runner-usage-error"), ({"README.txt": "No tests.\n"}, "nothing-collected")],
)
def test_what_cannot_be_collected_is_not_planned(files: dict[str, str], reason: str, tmp_path: Path, ask: Ask) -> None:
    project = Project.make(tmp_path, files)
    answer = ask(project, "plan")
    assert (answer.error_code, answer.code) == ("collection-failed", ExitCode.UNMEASURED)
    assert f"({reason})" in answer.err
    assert project.git("worktree", "list").count("\n") == 0


WAITS_WHEN_COLLECTED = """
    import os, pathlib, time

    (pathlib.Path(os.environ["MARKS"]) / "collecting").touch()
    time.sleep(600)
    """


def test_a_plan_that_is_interrupted_ends_what_it_started_and_leaves_nothing(tmp_path: Path) -> None:
    project = waiting_project(tmp_path, WAITS_WHEN_COLLECTED)
    with project.started("plan") as program:
        wait_until((project.root / "marks" / "collecting").exists, program.told)
        program.signal(signal.SIGINT)
        ended = program.end()
    assert (ended.code, ended.error_code) == (ExitCode.INTERRUPTED, "interrupted")
    assert processes_below(project.root) == []
    assert project.git("worktree", "list").count("\n") == 0


def test_a_name_in_spawn_targets_that_is_no_target_is_told_by_plan_and_gate(tmp_path: Path) -> None:
    passing = {"tests/test_a.py": "def test_one():\n    pass\n"}
    spawning = {"ledger.toml": '[plan]\nspawn_targets = ["tests/test_a.py", "tests/test_*.py"]\n'}
    project = Project.make(tmp_path, passing | spawning, {"README.txt": "Nothing.\n"})
    warning = "plan.spawn_targets names 'tests/test_*.py', which is no target of the candidate"
    assert f"note: {warning}" in project.ledger("plan").out.splitlines()
    for _ in range(2):
        gate = project.ledger("gate")
        assert gate.code == ExitCode.PASSED
        assert gate.err.splitlines().count(warning) == 1
        assert gate.err.count("plan.spawn_targets") == 1
    assert project.ledger("replay").code == ExitCode.PASSED
