"""Muting as a user does it: what is printed, what is refused without a trace, and what the next gate makes of it."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest

from ledger.events import STREAM, Muted, Unmuted, VerdictDecided
from ledger.record import Actor, NewEvent, Stamp
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.commands.people.conftest import BROKEN, CALC, SETTINGS, TEST, TESTS
from tests.ledger.stores import newer_program
from tests.support.cli import Answer, Project, wait_until

pytestmark = pytest.mark.real

Command = Callable[..., tuple[str, ...]]
WIDE, NARROW = "120", "50"


def events(project: Project, stream: str | None = STREAM) -> list[object]:
    """The events of a stream, or of the whole ledger."""
    with Reader.open(project.store / "ledger.sqlite") as reader:
        return [recorded.event for recorded in reader.events(stream)]


def transcript(*asked: tuple[str, Answer]) -> str:
    """Command lines and their answers, without what is different each time."""
    parts = [f"$ {command}\n{answer.out}{answer.err}--- exit code {answer.code}\n\n" for command, answer in asked]
    text = re.sub(r"\d{4}-\d\d-\d\d", "2030-01-01", "".join(parts))
    return re.sub(r'by": ?"\w+"', 'by":"somebody"', text)


def in_days(days: int) -> str:
    return str((datetime.now(UTC) + timedelta(days=days)).date())


def test_muting_is_told_as_it_is_recorded(project: Project, mute: Command, golden: Callable[[str, str], None]) -> None:
    asked = [
        ("ledger mutes", project.ledger("mutes")),
        (f"ledger mute {TEST} ...", project.ledger(*mute(), COLUMNS=WIDE)),
        (f"ledger mute {TEST}[1-2-3] ...", project.ledger(*mute(f"{TEST}[1-2-3]"), COLUMNS=NARROW)),
        (
            "ledger mute tests/test_calc.py::test_zero ...",
            project.ledger(*mute("tests/test_calc.py::test_zero", "--env", "platform=linux"), COLUMNS=NARROW),
        ),
        ("ledger mutes    # 120 columns", project.ledger("mutes", COLUMNS=WIDE)),
        ("ledger mutes    # 50 columns", project.ledger("mutes", COLUMNS=NARROW)),
        (f"ledger unmute {TEST} ...", project.ledger("unmute", TEST, "--reason", "repaired")),
        (f"ledger unmute {TEST} ...", project.ledger("unmute", TEST, "--reason", "repaired")),
        ("ledger unmute mute-2 ...", project.ledger("unmute", "mute-2", "--reason", "mistaken", "--json")),
        ("ledger mutes", project.ledger("mutes", COLUMNS=WIDE)),
    ]
    golden("cli/mutes.txt", transcript(*asked))
    first, second = (event for event in events(project) if isinstance(event, Muted))
    assert (first.test, first.expires, first.lines) == (TEST, in_days(7), ("assert -1 == 3", "assert 3 == 5"))
    assert second.environment == {"platform": "linux"}
    assert [event.mute for event in events(project) if isinstance(event, Unmuted)] == ["mute-1", "mute-2"]


@pytest.mark.parametrize(
    ("test", "expires", "more", "code", "error"),
    [
        (TEST, "2001-01-01", (), 4, "mute-expired"),
        (TEST, "31", (), 4, "mute-too-long"),
        (TEST, "soon", (), 4, "mute-date-invalid"),
        ("tests/test_calc.py", "7", (), 4, "mute-test-invalid"),
        ("tests/test_calc.py::test_su", "7", (), 4, "mute-test-unknown"),
        (f"{TEST}[1-2-4]", "7", (), 4, "mute-test-unknown"),
        ("\udcff::t", "7", (), 4, "mute-test-invalid"),
        (TEST, "7", ("--owner", " "), 4, "mute-incomplete"),
        (TEST, "7", ("--reason", "\x1b[31mred"), 4, "mute-incomplete"),
        (TEST, "7", ("--env", "platform"), 2, "usage-invalid"),
        (TEST, "7", ("--env", "CI=1", "--env", "CI=2"), 2, "usage-invalid"),
    ],
)
def test_what_is_refused_leaves_no_trace(
    project: Project, mute: Command, test: str, expires: str, more: tuple[str, ...], code: int, error: str
) -> None:
    before = (project.store / "ledger.sqlite").read_bytes()
    answer = project.ledger(*mute(test, *more, expires=expires))
    assert (answer.code, answer.error_code, answer.out) == (code, error, "")
    assert project.ledger("explain", error).code == 0
    assert (project.store / "ledger.sqlite").read_bytes() == before


def test_a_test_that_is_written_as_its_runner_writes_it_is_named_as_the_ledger_does(
    tmp_path: Path, mute: Command
) -> None:
    tests = {
        "test_a.py": """
            import pytest

            @pytest.mark.parametrize("text", ["a::b", "[1]", "plain"])
            def test_text(text):
                assert text == "plain"
            """
    }
    project = Project.make(tmp_path, CALC | TESTS | SETTINGS, tests)
    assert project.ledger("gate").code == 1
    for typed, name in (
        ("test_a.py::test_text[a::b]", r"test_a.py::test_text[a\:\:b]"),
        ("test_a.py::test_text[[1]]", r"test_a.py::test_text[\[1\]]"),
    ):
        answer = project.ledger(*mute(typed))
        assert (answer.code, answer.error_code) == (4, "mute-test-invalid")
        assert f"did you mean '{name}'?" in answer.err
        assert project.ledger("why", typed).out.startswith(f"new-test-failing: {name}\n")
        assert project.ledger(*mute(name)).code == 0
        assert project.ledger("unmute", typed, "--reason", "repaired").code == 0
    assert "did you mean" not in project.ledger(*mute("test_a.py::test_text[c::d]")).err


def test_the_limits_are_those_of_the_configuration(project: Project, mute: Command) -> None:
    project.write({"ledger.toml": "[mutes]\ncount_max = 1\ndays_max = 3\n"})
    assert project.ledger(*mute(expires="4")).error_code == "mute-too-long"
    assert project.ledger(*mute(expires=in_days(3))).code == 0
    assert project.ledger(*mute("tests/test_calc.py::test_zero", expires="0")).error_code == "mutes-full"


def test_looking_changes_nothing_and_knows_the_past(project: Project, mute: Command) -> None:
    assert project.ledger(*mute()).code == 0
    head = len(events(project, None))
    assert project.ledger("unmute", TEST, "--reason", "repaired").code == 0
    before = (project.store / "ledger.sqlite").read_bytes()

    def states(*at: str) -> list[str]:
        return [row["state"] for row in json.loads(project.ledger("mutes", "--json", *at).out)["mutes"]]

    assert states() == states("--at", "9999-12-31") == ["unmuted"]
    assert states("--at", f"@{head}") == ["valid"]
    assert states("--at", f"@{head - 1}") == []
    assert project.ledger("mutes", "--at", "#2").error_code == "moment-unknown"
    assert (project.store / "ledger.sqlite").read_bytes() == before


def test_a_project_without_a_ledger_has_nothing_to_mute(tmp_path: Path, mute: Command) -> None:
    project = Project.make(tmp_path, CALC | TESTS)
    for command in (mute(), ("unmute", TEST, "--reason", "r"), ("mutes",)):
        assert project.ledger(*command).error_code == "ledger-missing"
    assert not project.store.exists()


def test_people_who_mute_at_the_same_time_do_not_get_the_same_name(project: Project, mute: Command) -> None:
    tests = [f"{TEST}[1-2-3]", f"{TEST}[4-1-5]", "tests/test_calc.py::test_zero"]
    start, codes = Barrier(len(tests)), []

    def ask(test: str) -> None:
        start.wait()
        answers = (project.ledger(*mute(test)) for _ in range(20))
        codes.append(next(answer.code for answer in answers if answer.error_code != "lock-held"))

    threads = [Thread(target=ask, args=(test,)) for test in tests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0]
    muted = [event for event in events(project) if isinstance(event, Muted)]
    assert [event.mute for event in muted] == ["mute-1", "mute-2", "mute-3"]
    assert {event.test for event in muted} == set(tests)


def judged(project: Project) -> VerdictDecided:
    """The last verdict of the ledger."""
    return [event for event in events(project, None) if isinstance(event, VerdictDecided)][-1]


@pytest.mark.slow
def test_a_muted_failure_passes_the_gate_and_blocks_again_once_it_is_taken_back(
    project: Project, mute: Command
) -> None:
    assert project.ledger(*mute(f"{TEST}[1-2-3]", "--env", "platform=linux")).code == 0
    assert project.ledger("gate").code == 1, "the other variant blocks"
    assert judged(project).counts == {"introduced": 1, "muted": 1, "passed": 1}
    assert project.ledger(*mute()).code == 0
    gate = project.ledger("gate")
    assert (gate.code, gate.out.splitlines()[0]) == (0, "passed: no regression in 3 cases; 2 failures muted")
    assert [(used.mute, used.cases, used.otherwise) for used in judged(project).muted] == [
        ("mute-1", 1, 0), ("mute-2", 1, 0),
    ]  # fmt: skip
    why = project.ledger("why", "1-2-3").out
    assert why.startswith("muted: ")
    assert "muted      mute-1" in why
    assert project.ledger("replay").code == 0
    assert "would be passed again" in project.ledger("replay", "--policy", "current").out
    for name in ("mute-1", "mute-2"):
        assert project.ledger("unmute", name, "--reason", "it has to be repaired").code == 0
    assert project.ledger("gate").code == 1
    # What was decided then stays decided as it was.
    runs = json.loads(project.ledger("query", "runs", "--json").out)["rows"]
    assert [run["verdict"] for run in runs] == ["failed", "failed", "passed", "failed"]
    assert project.ledger("replay", runs[2]["run"]).code == 0
    assert project.ledger("verify").code == 0


@pytest.mark.slow
def test_what_a_newer_program_decided_is_not_guessed_at(project: Project, mute: Command) -> None:
    assert project.ledger(*mute()).code == 0
    with newer_program(Unmuted), Writer.open(project.store / "ledger.sqlite") as writer:
        position = len(events(project))
        stamp = Stamp(time="2030-01-01T00:00:00.000000Z", actor=Actor("a", "b", "c"), command="newer")
        writer.append([NewEvent(STREAM, Unmuted(mute="mute-1", by="b", reason="r"))], {STREAM: position}, stamp)
    for command in (mute("tests/test_calc.py::test_zero"), ("unmute", TEST, "--reason", "r"), ("mutes",)):
        assert project.ledger(*command).error_code == "ledger-newer"
    gate = project.ledger("gate")
    assert gate.code == 1
    assert "no muting is taken into account: " in gate.err


@pytest.mark.slow
def test_a_muting_for_another_environment_and_a_test_that_does_not_run_change_nothing(
    project: Project, mute: Command
) -> None:
    assert project.ledger(*mute(TEST, "--env", "platform=win32")).code == 0
    assert project.ledger("gate").code == 1
    assert judged(project).muted == ()
    assert project.ledger(*mute()).code == 0
    skipping = TESTS["tests/test_calc.py"].replace(
        "@pytest.mark.param", '@pytest.mark.skip("later")\n        @pytest.mark.param'
    )
    project.commit({"tests/test_calc.py": skipping})
    assert project.ledger("gate").code == 1
    assert judged(project).counts == {"newly-skipped": 2, "passed": 1}


@pytest.mark.slow
def test_a_muted_test_that_fails_in_another_way_is_shown(project: Project, mute: Command) -> None:
    assert project.ledger(*mute()).code == 0
    project.commit({"calc.py": "def add(left, right):\n    raise OSError('no disk') if left else None\n    return 0\n"})
    project.commit({"calc.py": "def add(left, right):\n    if left:\n        raise OSError('no disk')\n    return 0\n"})
    gate = project.ledger("gate", "--baseline", "v1.0")
    assert gate.code == 0
    shown = gate.out.partition("muted, and failing otherwise than before\n")[2].splitlines()
    assert shown[:2] == [f"  mute-1: {TEST} (2 of 2 cases)", "      OSError: no disk"]


WAITING = {
    "tests/test_calc.py": """
        import pathlib, time
        from calc import add

        def test_sum():
            for _ in range(600):
                if (pathlib.Path(MARKS) / "go").exists():
                    break
                time.sleep(0.1)
            assert add(1, 2) == 3
        """
}


@pytest.mark.slow
def test_a_test_can_be_muted_while_it_runs_and_the_verdict_knows(tmp_path: Path, mute: Command) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    tests = {name: text.replace("MARKS", repr(str(marks))) for name, text in WAITING.items()}
    project = Project.make(tmp_path, CALC | tests | SETTINGS, BROKEN)
    with project.started("gate") as gate:
        wait_until(lambda: "shard-1/candidate: started" in gate.told(), gate.told)
        assert project.ledger(*mute()).code == 0, "the test was collected, though nobody has seen it end"
        (marks / "go").touch()
        assert gate.end().code == 0
    assert judged(project).counts == {"muted": 1}
    assert project.ledger("replay").code == 0


@pytest.mark.slow
def test_a_repaired_test_is_proposed_to_be_unmuted_after_enough_passes(project: Project, mute: Command) -> None:
    project.write({"ledger.toml": SETTINGS["ledger.toml"] + "[mutes]\npasses = 2\n"})
    assert project.ledger(*mute()).code == 0
    project.commit(CALC)
    for passes in (1, 2):
        project.commit({"README.txt": f"{passes}\n"})
        assert project.ledger("gate", "--baseline", "HEAD~1").code == 0
        (row,) = json.loads(project.ledger("mutes", "--json").out)["mutes"]
        assert (row["passes"], row["proposed"]) == (passes, passes == 2)
    assert f"ledger unmute {row['mute']} --reason" in project.ledger("mutes").out


@pytest.mark.slow
def test_flakiness_is_found_over_runs_of_the_same_commit(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    flaky = f"import pathlib\n\ndef test_weather():\n    assert not pathlib.Path({str(mark)!r}).exists()\n"
    project = Project.make(tmp_path, {"tests/test_flaky.py": flaky} | SETTINGS, {"README.txt": "x\n"})
    assert project.ledger("gate").code == 0
    assert project.ledger("query", "flaky", "--format", "csv").out.count("\n") == 1
    mark.touch()
    project.ledger("gate")
    (row,) = json.loads(project.ledger("query", "flaky", "--json").out)["rows"]
    assert (row["test"], row["runs"], row["flaky_runs"], row["rate"]) == (
        "tests/test_flaky.py::test_weather", 2, 1, 0.5,
    )  # fmt: skip
    assert (row["reruns"], row["retries"], row["other_runs"]) == (0, 0, 2)
    assert sum(row["hosts"].values()) == 2
    assert len(row["causes"]) == 1
    run = row["last_run"]
    assert json.loads(project.ledger("query", "flaky", run, "--json").out)["rows"] == []
