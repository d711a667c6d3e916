"""The steps of releases as they are declared: what each may say, and what the release does about it."""

import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.cli.exits import ExitCode
from tests.commands.releasing.projects import ReleaseProject
from tests.support.cli import processes_below, wait_until

pytestmark = [pytest.mark.real, pytest.mark.slow]


def step(name: str, *argv: str, **keys: object) -> str:
    """One step, as TOML."""
    lines = [f"run = {json.dumps(argv)}"] if argv else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(["[[step]]", f'name = "{name}"', *lines, ""])


def project_of(root: Path, *steps: str, **files: str) -> ReleaseProject:
    """A project with these steps and files, cut by commit."""
    return ReleaseProject.with_steps(
        root, {name.replace("__", "."): text for name, text in files.items()} or {"a": "1"}, steps="".join(steps)
    )


def start(project: ReleaseProject, **variables: str) -> int:
    return project.ledger("release", "start", "1.1.0", **variables).code


def test_a_tolerated_step_may_fail_and_an_observer_decides_nothing(tmp_path: Path) -> None:
    project = project_of(
        tmp_path,
        step("smoke", "false", tolerated=True),
        step("look", "false", observer=True),
        step("check", "true"),
    )
    assert start(project) == ExitCode.PASSED
    assert project.states() == {"smoke": "failed", "look": "failed", "check": "passed"}
    project.whole()


def test_what_passes_when_it_is_tried_once_more_is_flaky(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    once = f"import pathlib, sys\np = pathlib.Path({str(marker)!r})\nseen = p.exists()\np.touch()\nsys.exit(not seen)\n"
    project = project_of(tmp_path, step("check", "python3", "once.py", retries=1), once__py=once)
    assert start(project) == ExitCode.PASSED
    assert [(one["outcome"], one["verdict"]) for one in project.attempts("check")] == [
        ("failed", "fail"),
        ("passed", "flaky"),
    ]
    assert "flaky" in project.ledger("release", "show", "1.1.0").out
    project.whole()


def test_a_step_without_output_for_too_long_is_ended_and_unmeasured(tmp_path: Path) -> None:
    project = project_of(tmp_path, step("check", "sleep", "60", idle_timeout="1s"))
    assert start(project) == ExitCode.UNMEASURED
    assert project.attempts("check")[0]["cause"] == "step-idle"
    assert not processes_below(tmp_path / "work")


def test_probes_are_shown_and_never_counted(tmp_path: Path) -> None:
    told = {
        "outcome": "ok",
        "summary": "two\nlines",
        "probes": [
            {"name": "screen", "outcome": "warning", "detail": "differs"},
            {"name": "x", "outcome": "unmeasured"},
        ],
    }
    project = project_of(tmp_path, step("check", "python3", "told.py"), told__py=f"print({json.dumps(told)!r})\n")
    assert start(project) == ExitCode.PASSED
    (attempt,) = project.attempts("check")
    assert attempt["summary"] == "two lines"
    shown = project.ledger("release", "show", "1.1.0").out
    assert "probe screen: warning differs" in shown
    assert "probe x: unmeasured" in shown


@pytest.mark.parametrize("says", ["true", """echo '{"outcome": "ok", "summary": "sent", "id": 7}'"""])
def test_what_cannot_be_taken_back_has_not_passed_when_it_left_processes_at_work(tmp_path: Path, says: str) -> None:
    leaves = ("sh", "-c", f"sleep 60 & sleep 0.3; {says}")
    project = project_of(
        tmp_path,
        step("check", *leaves),
        step("approve", uses="approve"),
        step("publish", *leaves, irreversible=True),
    )
    assert start(project) == ExitCode.WAITING
    assert project.ledger("approve", "1.1.0").code == ExitCode.PASSED
    assert project.resume("publish").code == ExitCode.UNMEASURED
    assert project.states() == {"check": "passed", "approve": "passed", "publish": "unmeasured"}
    (checked,), (published,) = project.attempts("check"), project.attempts("publish")
    detail = "left running by the command and ended (1): sleep"
    assert (checked["verdict"], checked.get("cause", ""), checked["detail"]) == ("pass", "", detail)
    assert (published.get("verdict", ""), published["cause"]) == ("", "step-left-running")
    assert published["detail"] == detail
    assert published.get("summary") == checked.get("summary")
    assert "(step-left-running)" in (shown := " ".join(project.ledger("release", "show", "1.1.0").out.split()))
    assert detail in shown
    assert "may be half done" in project.ledger("explain", "step-left-running").out
    project.whole()


@pytest.mark.parametrize("command", ["sleep 0.1 & wait", "(sleep 0.1 & wait); true"])
def test_what_cannot_be_taken_back_passes_when_it_waited_for_what_it_started(tmp_path: Path, command: str) -> None:
    publish = step("publish", "sh", "-c", command, irreversible=True)
    project = project_of(tmp_path, step("approve", uses="approve"), publish)
    assert start(project) == ExitCode.WAITING
    project.ledger("approve", "1.1.0")
    assert project.resume("publish").code == ExitCode.PASSED
    project.whole()


def test_a_secret_is_given_and_never_shown(tmp_path: Path) -> None:
    says = "import os\nprint('token', os.environ['TOKEN'], os.environ.get('OTHER'))\n"
    project = project_of(tmp_path, step("check", "python3", "says.py", secrets=["TOKEN"]), says__py=says)
    answer = project.ledger("release", "start", "1.1.0", TOKEN="hunter2-hunter2", OTHER="not-let-through")
    assert answer.code == ExitCode.PASSED
    for file in [*project.store.rglob("*"), *(tmp_path / "work").rglob("*")]:
        assert not file.is_file() or b"hunter2" not in file.read_bytes()
    assert "hunter2" not in answer.out + answer.err
    assert "not-let-through" not in answer.err
    missing = project_of(tmp_path / "other", step("check", "true", secrets=["TOKEN"]))
    assert start(missing) == ExitCode.UNMEASURED
    assert missing.attempts("check")[0]["cause"] == "secret-missing"


def test_a_step_is_told_what_the_steps_before_it_came_to(tmp_path: Path) -> None:
    reads = (
        "import json, os\ncontext = json.load(open(os.environ['LEDGER_CONTEXT']))\n"
        "assert context['outputs']['first'] == {'outcome': 'passed', 'summary': '', 'number': 7}, context\n"
        "assert context['release'] == os.environ['LEDGER_RUN_ID']\n"
        "assert os.environ['LEDGER_STORE'] and os.environ['LEDGER_STEP'] == 'second'\n"
        "import subprocess\nhead = subprocess.check_output(['git', 'rev-parse', 'HEAD'], text=True)\n"
        "assert head.strip() == context['commit']\n"
    )
    project = project_of(
        tmp_path,
        step("first", "python3", "-c", 'print(\'{"outcome": "ok", "number": 7}\')'),
        step("second", "python3", "reads.py"),
        reads__py=reads,
    )
    assert start(project) == ExitCode.PASSED, project.ledger("release", "show", "1.1.0").out


def test_a_time_that_is_past_is_not_waited_for_and_one_that_comes_is(tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=4)
    project = project_of(
        tmp_path,
        step("past", uses="wait-until", until="2020-01-01T00:00:00Z"),
        step("soon", uses="wait-until", until=soon.isoformat()),
        step("check", "true"),
    )
    assert start(project) == ExitCode.PASSED
    assert datetime.now(UTC) >= soon
    bad = project_of(tmp_path / "bad", step("when", uses="wait-until", until="tomorrow"))
    assert start(bad) == ExitCode.FAILED
    assert bad.attempts("when")[0]["cause"] == "until-invalid"


ASKS = """
import json, os
context = json.load(open(os.environ["LEDGER_CONTEXT"]))
answer = context["answers"].get("channel")
if answer is None:
    print(json.dumps({"outcome": "ask", "question": {
        "decision": "channel", "prompt": "Which channel?", "impact": IMPACT,
        "options": [{"label": "stable", "recommended": True}, {"label": "beta"}], "deadline_minutes": 1}}))
else:
    print(json.dumps({"outcome": "ok", "summary": "channel " + answer}))
"""


def test_a_question_of_little_weight_is_assumed_and_the_step_goes_on(tmp_path: Path) -> None:
    project = project_of(tmp_path, step("ask", "python3", "asks.py"), asks__py=ASKS.replace("IMPACT", '"low"'))
    assert start(project) == ExitCode.PASSED
    assert [one["summary"] for one in project.attempts("ask")] == ["", "channel stable"]
    project.whole()


def test_a_question_is_answered_while_the_driver_waits(tmp_path: Path) -> None:
    project = project_of(tmp_path, step("ask", "python3", "asks.py"), asks__py=ASKS.replace("IMPACT", '"critical"'))
    with project.started("release", "start", "1.1.0") as program:
        wait_until(lambda: "question-1" in project.ledger("questions", "1.1.0").out, program.told)
        assert project.ledger("answer", "question-1", "beta", "1.1.0").code == ExitCode.PASSED
        assert program.end().code == ExitCode.PASSED
    assert project.attempts("ask")[-1]["summary"] == "channel beta"
    project.whole()


def test_a_step_that_asks_again_what_was_answered_measures_nothing(tmp_path: Path) -> None:
    always = ASKS.replace("IMPACT", '"low"').replace("if answer is None:", "if True:")
    project = project_of(tmp_path, step("ask", "python3", "asks.py"), asks__py=always)
    assert start(project) == ExitCode.UNMEASURED
    assert project.attempts("ask")[-1]["cause"] == "question-repeated"


def test_a_question_that_cannot_be_asked_measures_nothing(tmp_path: Path) -> None:
    one_option = ASKS.replace("IMPACT", '"critical"').replace(', {"label": "beta"}', "")
    project = project_of(tmp_path, step("ask", "python3", "asks.py"), asks__py=one_option)
    assert start(project) == ExitCode.UNMEASURED
    assert project.attempts("ask")[-1]["cause"] == "question-invalid"


WAITS = "import pathlib, time\nprint('begun', flush=True)\nwhile not pathlib.Path(GO).exists(): time.sleep(0.05)\n"


def waiting(tmp_path: Path, told: str = "") -> tuple[ReleaseProject, Path]:
    """A release whose one step runs until a file is there; `told` is what it prints before."""
    go = tmp_path / "go"
    text = WAITS.replace("GO", repr(str(go))).replace("print('begun'", f"{told}print('begun'")
    return project_of(tmp_path, step("check", "python3", "waits.py"), step("after", "true"), waits__py=text), go


def test_a_driver_that_was_killed_leaves_nothing_and_its_step_is_run_again(tmp_path: Path) -> None:
    project, go = waiting(tmp_path)
    with project.started("release", "start", "1.1.0") as program:
        wait_until(lambda: "begun" in program.told(), program.told)
        program.kill()
    wait_until(lambda: not processes_below(tmp_path / "work"))
    go.touch()
    shown = project.show()
    assert (shown["state"], shown["steps"][0]["state"]) == ("interrupted", "running")
    before = project.rows()
    assert "run again" in project.resume("check", "--dry-run").out
    assert project.rows() == before
    assert project.resume("check").code == ExitCode.PASSED
    assert [one["cause"] for one in project.attempts("check")] == ["step-driver-died", ""]
    project.whole()


def test_a_result_that_was_printed_before_the_driver_died_counts(tmp_path: Path) -> None:
    printed = 'print(\'{"outcome": "ok", "summary": "all well"}\', flush=True)\n'
    text = "import time\n" + printed + "time.sleep(60)\n"
    project = project_of(tmp_path, step("check", "python3", "waits.py"), step("after", "true"), waits__py=text)
    with project.started("release", "start", "1.1.0") as program:
        wait_until(lambda: "all well" in program.told(), program.told)
        program.kill()
    assert project.resume("check").code == ExitCode.PASSED
    assert [one["outcome"] for one in project.attempts("check")] == ["passed"]
    project.whole()


@pytest.mark.parametrize("how", ["signal", "stop"])
def test_a_release_that_is_stopped_says_so_and_is_taken_up_again(tmp_path: Path, how: str) -> None:
    project, go = waiting(tmp_path)
    with project.started("release", "start", "1.1.0") as program:
        wait_until(lambda: "begun" in program.told(), program.told)
        if how == "signal":
            program.signal(signal.SIGINT)
        else:
            assert project.ledger("stop", project.show()["release"]).code == ExitCode.PASSED
        assert program.end().code == (ExitCode.INTERRUPTED if how == "signal" else ExitCode.OUTSTANDING)
    assert project.attempts("check")[0]["cause"] == "step-stopped"
    go.touch()
    assert project.resume("check").code == ExitCode.PASSED
    project.whole()


def test_a_second_driver_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    project, go = waiting(tmp_path)
    with project.started("release", "start", "1.1.0") as program:
        wait_until(lambda: "begun" in program.told(), program.told)
        answer = project.resume("check")
        assert (answer.code, answer.error_code) == (ExitCode.REFUSED, "lock-held"), answer.err
        go.touch()
        assert program.end().code == ExitCode.PASSED


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((), "steps-missing"),
        ((step("a", "true", waivable=True, tolerated=True),), "waivable-never-ends"),
        ((step("publish", "true", irreversible=True),), "irreversible-unapproved"),
        ((step("check", "true"), step("cut", uses="cut")), "consumer-before-cut"),
        ((step("check"),), "run-missing"),
        ((step("check", "true", needs=["nothing"]),), "need-unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_steps_that_contradict_each_other_are_told_and_never_started(
    tmp_path: Path, steps: tuple[str, ...], code: str
) -> None:
    project = project_of(tmp_path, *steps)
    answer = project.ledger("release", "check")
    assert answer.code == ExitCode.USAGE
    assert code in answer.out
    started = project.ledger("release", "start", "1.1.0")
    assert (started.code, started.error_code) == (ExitCode.REFUSED, "steps-contradict")
    assert not project.store.exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[step]]\nname = "a"\nrun = "true"\n', "step 'a'"),
        ('[[step]]\nrun = ["true"]\n', "step 1"),
        ('[[step]]\nname = "a"\nidle_timeout = "soon"\n', "idle_timeout"),
        ('[[step]]\nname = "a"\nwaiveable = true\n', "waiveable"),
        ('[step]\nname = "a"\n', "[[step]]"),
        ('[[step]]\nname = "a"\nretries = 5\n', "retries"),
    ],
)
def test_a_step_that_is_not_written_as_one_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    project = ReleaseProject.with_steps(tmp_path, steps=text)
    answer = project.ledger("release", "check")
    assert (answer.code, answer.error_code) == (ExitCode.USAGE, "config-invalid")
    assert told in answer.err
    assert "ledger.toml" in answer.err
