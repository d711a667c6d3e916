"""The commands that look back, at real ledgers: at every moment, at what was changed, and without leaving a trace."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from commands.cli.app import cli
from commands.cli.exits import ExitCode
from commands.effects.locks import OwnedLock
from commands.replay import replay, summed_up
from ledger.evidence import EvidenceStore
from ledger.store.sqlite.schema import TRIGGERS
from scripts.history_files import History, contradicted, from_ledger
from tests.commands.cli.conftest import Ask, Histories
from tests.support.cli import Answer, Project

pytestmark = pytest.mark.real

READING = ("status", "log", "why", "show", "replay", "diff", "resume")
NAMES = ("passed", "failed", "unmeasured", "empty", "stopped", "interrupted")
TEST = "tests/test_calc.py::test_zero"


def document(answer: Answer) -> Any:
    """The document that was printed."""
    assert answer.code == ExitCode.PASSED, answer.err
    return json.loads(answer.out)


def logged(project: Project, ask: Ask) -> list[Any]:
    """All events of the latest run."""
    answer = ask(project, "log", "--json")
    return [json.loads(line) for line in answer.out.splitlines()]


@pytest.fixture
def copied(history: Histories, tmp_path: Path) -> Callable[[str], Project]:
    """Copies a history with its repository, so that it can be changed."""

    def copy(name: str) -> Project:
        project, _ = history(name)
        shutil.copytree(project.path, tmp_path / "project", symlinks=True)
        return Project(tmp_path)

    return copy


class TestAt:
    def test_every_command_that_reads_can_look_at_the_past(self) -> None:
        context = click.Context(cli)
        reading = (*READING, "timing", "usage", "query", "report", "mutes", "questions")
        verbs = {name: cli.get_command(context, name) for name in reading}
        options = {name: {one for param in verb.params for one in param.opts} for name, verb in verbs.items() if verb}
        assert [name for name in reading if "--at" not in options[name]] == []

    @pytest.mark.parametrize("name", ["failed", "interrupted"])
    def test_status_shows_every_moment_and_claims_nothing_about_the_driver(
        self, name: str, history: Histories, ask: Ask
    ) -> None:
        project, _ = history(name)
        events = logged(project, ask)
        for number, event in enumerate(events, start=1):
            shown = document(ask(project, "status", "--json", "--at", f"#{number}"))
            assert (shown["position"], shown["sequence"]) == (number, event["sequence"])
            assert shown["as_of"] == event["header"]["time"]
            assert shown["state"] in ("open", "finished")
            assert shown["next_command"] == ""
            assert (shown["driver"] or {"alive": None})["alive"] is None
        assert document(ask(project, "status", "--json"))["as_of"] == ""

    def test_a_sequence_and_a_time_show_the_same_moment(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        events = logged(project, ask)
        fifth = events[4]
        later = [event for event in events if event["header"]["time"] <= fifth["header"]["time"]][-1]
        by_sequence = document(ask(project, "status", "--json", "--at", f"@{fifth['sequence']}"))
        by_time = document(ask(project, "status", "--json", "--at", fifth["header"]["time"]))
        assert by_sequence["position"] == 5
        assert by_time["position"] == later["header"]["position"]

    def test_a_past_status_says_so_and_shows_no_driver(self, history: Histories, ask: Ask) -> None:
        project, _ = history("interrupted")
        last = len(logged(project, ask))
        now, then = ask(project, "status"), ask(project, "status", "--at", f"#{last}")
        assert now.out.startswith("interrupted: ")
        assert then.out.startswith("open: ")
        assert f"after #{last} @" in then.out
        assert "driver" not in then.out
        assert "next:" not in then.out

    def test_log_ends_at_the_moment(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        whole = ask(project, "log").out.splitlines()
        for number in (1, 7, len(whole)):
            assert ask(project, "log", "--at", f"#{number}").out.splitlines() == whole[:number]

    def test_why_explains_what_had_been_decided_by_then(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        now = ask(project, "why", TEST)
        last = len(logged(project, ask))
        assert ask(project, "why", TEST, "--at", f"#{last}") == now
        early = ask(project, "why", TEST, "--at", "#5")
        assert (early.code, early.error_code) == (ExitCode.USAGE, "verdict-missing")
        assert "at #5" in early.err

    def test_a_dry_run_shows_what_resuming_would_have_done(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        plan = document(ask(project, "resume", "--from", "gate", "--dry-run", "--json", "--at", "#4"))
        assert plan["in_flight"] == ["collection/candidate", "collection/baseline"][: len(plan["in_flight"])]
        assert plan["in_flight"]
        assert (plan["driven"], plan["nothing_to_do"]) == (False, False)
        told = ask(project, "resume", "--from", "gate", "--dry-run", "--at", "#4")
        assert "from gate as of " in told.out.splitlines()[0]

    def test_show_tells_the_story_up_to_the_moment(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        whole, early = (document(ask(project, "show", "--json", *at)) for at in ((), ("--at", "#6")))
        assert (early["position"], early["verdicts"], early["state"]) == (6, [], "open")
        assert whole["verdicts"]
        assert whole["head"] == logged(project, ask)[-1]["digest"]
        assert early["head"] == logged(project, ask)[5]["digest"]

    def test_diff_compares_both_runs_as_they_were(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        diff = document(ask(project, "diff", "latest", "--json", "--at", "#6"))
        assert diff["classes"] is None
        assert [fact["left"] for fact in diff["verdict"]] == ["none", "", ""]

    def test_replay_stops_at_the_moment(self, history: Histories, ask: Ask) -> None:
        project, _ = history("failed")
        report = document(ask(project, "replay", "--json", "--at", "#3"))
        assert [one["last"] for one in report["findings"]] == [1, 2, 3]

    @pytest.mark.parametrize(
        "command", [*(name for name in READING if name != "resume"), "resume --from gate --dry-run"]
    )
    @pytest.mark.parametrize(
        ("moment", "told"),
        [
            ("@1", "did not exist yet"),
            ("2020-01-01", "did not exist yet"),
            ("@999", "has not happened yet"),
            ("#999", "has no event #999"),
            ("yesterday", "is not a moment"),
            ("", "is not a moment"),
        ],
    )
    def test_a_moment_that_is_not_one_of_the_run_ends_with_two(
        self, command: str, moment: str, told: str, history: Histories, ask: Ask
    ) -> None:
        project, _ = history("passed")
        arguments = {"why": [TEST], "diff": ["latest"]}.get(command, [])
        answer = ask(project, *command.split(), *arguments, "--at", moment)
        assert (answer.code, answer.error_code, answer.out) == (ExitCode.USAGE, "moment-unknown", "")
        assert told in answer.err

    @pytest.mark.parametrize(
        "arguments", [("status", "--watch"), ("log", "--follow"), ("resume", "--from", "gate")], ids=lambda one: one[0]
    )
    def test_what_contradicts_the_past_is_refused(
        self, arguments: tuple[str, ...], history: Histories, ask: Ask
    ) -> None:
        project, _ = history("passed")
        answer = ask(project, *arguments, "--at", "#2")
        assert (answer.code, answer.error_code) == (ExitCode.USAGE, "usage-invalid")


class TestReplay:
    @pytest.mark.parametrize("name", NAMES)
    def test_whatever_became_of_a_real_run_its_decisions_agree(self, name: str, history: Histories, ask: Ask) -> None:
        project, _ = history(name)
        report = document(ask(project, "replay", "--json"))
        assert report["outcome"] == "agree"
        assert sum(len(one["tags"]) for one in report["findings"]) == len(logged(project, ask))
        assert ask(project, "replay").out.startswith(f"agree: {len(report['findings'])} decisions")

    @pytest.mark.parametrize("name", NAMES)
    def test_the_history_of_a_real_run_is_kept_with_all_that_its_replay_needs(
        self, name: str, history: Histories
    ) -> None:
        kept = from_ledger(history(name)[0].store)
        (run,) = {row.recorded().header.stream for row in kept.rows} - {"ledger"}
        assert summed_up(run, replay(kept.events(run), lambda digest: kept.evidence[digest])).outcome == "agree"

    def test_a_planted_verdict_ends_with_seven_and_both_answers(
        self, copied: Callable[[str], Project], ask: Ask
    ) -> None:
        project = copied("failed")
        rewrite(project, contradicted(from_ledger(project.store)))
        status = document(ask(project, "status", "--json"))
        assert status["verdict"] == "passed", "the chain fits, so that reading alone does not notice"
        answer = ask(project, "replay", "--json")
        assert answer.code == ExitCode.INTEGRITY
        (finding,) = [one for one in json.loads(answer.out)["findings"] if one["outcome"] != "agree"]
        verdicts = [finding[side]["events"][0]["event"]["verdict"] for side in ("recorded", "derived")]
        assert (finding["outcome"], verdicts) == ("disagree", ["passed", "failed"])
        told = ask(project, "replay", columns=80)
        assert told.code == ExitCode.INTEGRITY
        assert told.out.startswith("disagree: ")
        assert "recorded  verdict-decided: passed (no-regression)" in told.out
        assert "derived   verdict-decided: failed (regression)" in told.out

    def test_missing_evidence_ends_with_three_and_never_agrees(
        self, copied: Callable[[str], Project], ask: Ask
    ) -> None:
        project = copied("failed")
        (verdict,) = [one for one in logged(project, ask) if one["header"]["tag"] == "verdict-decided"]
        evidence_file(project, verdict["header"]["message"]).unlink()
        answer = ask(project, "replay", "--json")
        assert answer.code == ExitCode.UNMEASURED
        (finding,) = [one for one in json.loads(answer.out)["findings"] if one["outcome"] != "agree"]
        assert (finding["outcome"], finding["reason"]) == ("not-derivable", "evidence-damaged")
        assert ask(project, "replay").out.startswith("not derivable: of ")

    def test_altered_evidence_ends_with_three(self, copied: Callable[[str], Project], ask: Ask) -> None:
        project = copied("failed")
        planned = next(one for one in logged(project, ask) if one["header"]["tag"] == "planned")
        file = evidence_file(project, planned["event"]["plan"])
        file.write_bytes(evidence_file(project, planned["header"]["message"]).read_bytes())
        answer = ask(project, "replay", "--json")
        assert answer.code == ExitCode.UNMEASURED
        doubtful = [one["message"] for one in json.loads(answer.out)["findings"] if one["outcome"] == "not-derivable"]
        assert doubtful == ["plan-reruns", "plan-reruns", "judge"]

    def test_todays_rules_show_what_they_would_decide(self, copied: Callable[[str], Project], ask: Ask) -> None:
        project = copied("failed")
        same = document(ask(project, "replay", "--policy", "current", "--json"))["verdicts"]
        assert [(one["recorded_verdict"], one["verdict"], one["classes"]) for one in same] == [("failed", "failed", [])]
        project.write({"ledger.toml": "[gate]\nrounds = 3\n"})
        (one,) = document(ask(project, "replay", "--policy", "current", "--json"))["verdicts"]
        assert (one["verdict"], one["why_not"].partition(":")[0]) == (None, "not-settled")
        told = ask(project, "replay", "--policy", "current")
        assert told.code == ExitCode.PASSED
        assert "would not be decided: not-settled" in told.out
        assert "rounds               1 -> 3" in told.out

    def test_a_run_without_a_verdict_has_none_to_decide_again(self, history: Histories, ask: Ask) -> None:
        project, _ = history("stopped")
        answer = ask(project, "replay", "--policy", "current")
        assert answer.code == ExitCode.PASSED
        assert "has no verdict that could be decided again" in answer.out


class TestNoTrace:
    @pytest.mark.parametrize(
        "command", ["replay", "replay --policy current", "show", "diff latest", "status --at #5", f"why {TEST}"]
    )
    def test_looking_back_changes_no_byte_and_leaves_no_file(
        self, command: str, copied: Callable[[str], Project], ask: Ask
    ) -> None:
        project = copied("failed")
        before = dict(everything(project.store))
        assert ask(project, *command.split()).code == ExitCode.PASSED
        assert dict(everything(project.store)) == before

    def test_looking_back_needs_no_lock(self, copied: Callable[[str], Project], ask: Ask) -> None:
        project = copied("failed")
        run = document(ask(project, "status", "--json"))["run"]
        locks = project.store / "locks"
        with OwnedLock(locks / "member-local.lock", {}), OwnedLock(locks / f"run-{run}.lock", {}):
            for command in ("replay", "show", "diff latest"):
                assert ask(project, *command.split()).code == ExitCode.PASSED


@pytest.mark.slow
def test_two_runs_are_compared_test_by_test(copied: Callable[[str], Project], ask: Ask) -> None:
    project = copied("failed")
    first = document(ask(project, "status", "--json"))["run"]
    project.commit({"calc.py": "def add(left, right):\n    return left + right\n"})
    project.ledger("gate")
    diff = document(ask(project, "diff", first, "--json"))
    changed = {one["test"]: (one["left"], one["right"]) for one in diff["classes"]}
    assert changed["tests/test_calc.py::test_a_name_that_is_long_enough_to_fill_a_line_of_a_terminal[1-2-3]"] == (
        "introduced",
        "passed",
    )
    told = ask(project, "diff", first, columns=60)
    assert "introduced (blocks) -> passed" in told.out
    assert document(ask(project, "diff", "latest", first, "--json"))["left"] == diff["right"]


def everything(directory: Path) -> Iterator[tuple[str, object]]:
    """Every file below a directory with its bytes and the time of its last change.

    All but SQLite's shared memory, in which those who have the file open tell each other how far they read.
    """
    for path in sorted(set(directory.rglob("*")) - {directory / "ledger.sqlite-shm"}):
        content = path.read_bytes() if path.is_file() else None
        yield str(path.relative_to(directory)), (content, path.stat().st_mtime_ns)


def evidence_file(project: Project, digest: str) -> Path:
    """Where a piece of evidence is."""
    (file,) = EvidenceStore(project.store / "evidence").directory.rglob(f"{digest}.*")
    return file


def rewrite(project: Project, history: History) -> None:
    """Write the events of a history over those of a ledger, past everything that would refuse it."""
    with closing(sqlite3.connect(project.store / "ledger.sqlite")) as connection, connection:
        for name in ("changed", "removed", "replaced"):
            connection.execute(f"DROP TRIGGER events_are_not_{name}")
        for row in history.rows:
            connection.execute(
                "UPDATE events SET header=?, payload=?, digest=? WHERE sequence=?",
                (row.header, row.payload, row.digest, row.sequence),
            )
        for trigger in TRIGGERS:
            connection.execute(trigger)
