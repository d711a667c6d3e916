"""What each command prints, wide and narrow, compared with what was recorded: read the diff when it changes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.cli.conftest import CALC, TESTS, Ask, Histories, both_sides_run, waiting_project
from tests.support.cli import Answer, Project

pytestmark = pytest.mark.real

Golden = Callable[[str, str], None]

WIDE, NARROW = 120, 50
COMMANDS = (
    "", "answer", "config", "diff", "explain", "gate", "init", "log", "mute", "mutes", "plan", "questions", "read",
    "replay", "resume", "show", "status", "stop", "unmute", "why",
)  # fmt: skip

REDACTED = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}"), "20300101-000000-0000"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "2030-01-01 00:00:00 UTC"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "2030-01-01T00:00:00.000000Z"),
    (re.compile(r"held by \S+ on \S+, process \d+"), "held by somebody on host, process 0000"),
    (re.compile(r"\b(\d+ min )?\d+(\.\d)? (ms|s)\b"), "0.0 s"),
    (re.compile(r"process \d+ on [^\s,]+"), "process 0000 on host"),
    (re.compile(r"#\d+ +@\d+ +"), "#0    @0     "),
    (re.compile(r"@\d+"), "@0"),
    (re.compile(r"\[\d/\d\]"), "[0/0]"),
    (re.compile(r"ROOT/work/[0-9a-f]{32}"), "ROOT/work/LEDGER"),
    (re.compile(r"(platform linux|plugins:) .*"), r"\1 ..."),
    (re.compile(r"\b\d+ MiB \("), "9 MiB ("),
)


def redacted(text: str, root: Path) -> str:
    """The text without what is different each time; what stands for it keeps columns where they are."""
    text = text.replace(str(root), "ROOT")
    for pattern, replacement in REDACTED:
        text = pattern.sub(replacement, text)
    return text


def transcript(project: Project, *asked: tuple[str, Answer]) -> str:
    """Command lines and their answers, as in a session."""
    parts = []
    for command, answer in asked:
        parts += [f"$ {command}\n", answer.out]
        parts += ["--- standard error\n", answer.err] if answer.err else []
        parts += [f"--- exit code {answer.code}\n\n"]
    return redacted("".join(parts), project.root)


def both_widths(ask: Ask, project: Project, *arguments: str) -> str:
    """One command line at both widths."""
    shown = " ".join(["ledger", *arguments])
    widths = ((width, ask(project, *arguments, columns=width)) for width in (WIDE, NARROW))
    return transcript(project, *((f"{shown}    # {width} columns", answer) for width, answer in widths))


@pytest.fixture
def nowhere(tmp_path: Path) -> Project:
    """A project that has no repository."""
    project = Project(tmp_path)
    project.path.mkdir()
    return project


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_how_it_is_used(command: str, ask: Ask, nowhere: Project, golden: Golden) -> None:
    arguments = [command, "--help"] if command else ["--help"]
    golden(f"cli/help-{command or 'ledger'}.txt", both_widths(ask, nowhere, *arguments))


@pytest.mark.parametrize("name", ["passed", "failed", "unmeasured", "empty", "stopped", "interrupted"])
def test_a_run_is_summed_up(name: str, history: Histories, ask: Ask, golden: Golden) -> None:
    project, _ = history(name)
    golden(f"cli/status-{name}.txt", both_widths(ask, project, "status"))


@pytest.mark.parametrize("name", ["passed", "failed", "unmeasured", "empty", "stopped"])
def test_a_gate_tells_what_it_does(name: str, history: Histories, golden: Golden) -> None:
    project, answer = history(name)
    # What runs at the same time ends in any order.
    lines = answer.err.splitlines()
    told = sorted(lines, key=lambda line: redacted(line, project.root) if line.startswith("[") else "")
    answer = Answer(answer.code, answer.out, "\n".join([*told, ""]))
    golden(f"cli/gate-{name}.txt", transcript(project, ("ledger gate", answer)))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("passed", "tests/test_calc.py::test_zero"),
        ("failed", "fill_a_line_of_a_terminal[1-2-3]"),
        ("failed", "tests/test_killer.py"),
        ("unmeasured", "collection/candidate"),
    ],
    ids=["passed", "failed", "killed", "not-collected"],
)
def test_a_class_is_explained(
    name: str, wanted: str, history: Histories, ask: Ask, golden: Golden, request: pytest.FixtureRequest
) -> None:
    project, _ = history(name)
    golden(f"cli/why-{request.node.callspec.id}.txt", both_widths(ask, project, "why", wanted))


def test_a_log_has_a_line_for_each_event(history: Histories, ask: Ask, golden: Golden) -> None:
    project, _ = history("failed")
    answer = ask(project, "log")
    lines = sorted(redacted(answer.out, project.root).splitlines())
    golden("cli/log.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize("name", ["passed", "failed", "interrupted", "stopped"])
def test_a_dry_run_says_what_a_resumption_would_do(name: str, history: Histories, ask: Ask, golden: Golden) -> None:
    project, _ = history(name)
    golden(f"cli/dry-run-{name}.txt", both_widths(ask, project, "resume", "--from", "gate", "--dry-run"))


def test_a_run_that_owes_nothing_is_not_resumed(history: Histories, ask: Ask, golden: Golden) -> None:
    project, _ = history("passed")
    golden("cli/resume-passed.txt", both_widths(ask, project, "resume", "--from", "gate"))


def test_stopping_what_nobody_drives_changes_nothing(history: Histories, ask: Ask, golden: Golden) -> None:
    project, _ = history("interrupted")
    before = (project.store / "ledger.sqlite").read_bytes()
    golden("cli/stop-interrupted.txt", both_widths(ask, project, "stop"))
    assert (project.store / "ledger.sqlite").read_bytes() == before


@pytest.mark.slow
def test_a_run_that_is_driven_is_shown_and_stopped(tmp_path: Path, ask: Ask, golden: Golden) -> None:
    project = waiting_project(tmp_path)
    with project.started("gate") as gate:
        both_sides_run(project, gate)
        golden("cli/status-running.txt", both_widths(ask, project, "status"))
        golden("cli/dry-run-running.txt", both_widths(ask, project, "resume", "--from", "gate", "--dry-run"))
        golden("cli/gate-refused.txt", transcript(project, ("ledger gate", ask(project, "gate"))))
        golden("cli/stop-running.txt", transcript(project, ("ledger stop", ask(project, "stop"))))
        assert gate.end().code == ExitCode.OUTSTANDING


def test_a_repository_is_set_up(tmp_path: Path, ask: Ask, golden: Golden) -> None:
    project = Project.make(tmp_path, CALC | TESTS)
    first, again = ask(project, "init"), ask(project, "init")
    written = f"$ cat ledger.toml\n{(project.path / 'ledger.toml').read_text('utf-8')}"
    golden("cli/init.txt", transcript(project, ("ledger init", first), ("ledger init", again)) + written)


def test_the_settings_are_shown_with_where_they_come_from(tmp_path: Path, ask: Ask, golden: Golden) -> None:
    project = Project.make(tmp_path, CALC)
    # How many run at a time is set because its default is the machine's own affair.
    project.write({"ledger.toml": '[gate]\nrounds = 3\nparallel = 7\n\n[runner.set_environment]\nNAME = "värde"\n'})
    project.write({"../.config/release-ledger/config.toml": "[gate]\nrounds = 4\ntime_limit_seconds = '5m'\n"})
    golden("cli/config.txt", both_widths(ask, project, "config"))


def test_codes_are_explained(ask: Ask, nowhere: Project, golden: Golden) -> None:
    asked = [
        ("ledger explain " + code, ask(nowhere, "explain", code)) for code in ("signalled", "lock-held", "signaled")
    ]
    golden("cli/explain.txt", transcript(nowhere, *asked))
