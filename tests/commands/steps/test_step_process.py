"""The process of a step: however it ends and whatever it prints, all of it ends, and what it said is kept."""

import base64
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest

from commands.effects.steps.process import StepEnd, StepJob, Stream, run_step, settle
from commands.readers.step_result import LINE_BYTES_MAX, StepReading, read_step
from commands.shipped import supervisor
from commands.shipped.step_supervisor import TAIL_BYTES
from tests.commands.jobs import (
    PATIENCE_SECONDS,
    end_all_below,
    eventually,
    is_alive,
    left_below,
    python,
    recorded_pid,
    text_of,
)

pytestmark = pytest.mark.real

ROOT = Path(supervisor.__file__).parents[2]
OK = '{"outcome":"ok","summary":"done"}'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory for one attempt at a step; no process of it may be left after the test."""
    yield tmp_path / "attempt"
    assert end_all_below(tmp_path) == []


def step(place: Path, *argv: str, **fields: Any) -> StepJob:
    """A step that runs beside its attempt's directory."""
    values: dict[str, Any] = {
        "name": "step-1",
        "argv": argv,
        "directory": place.parent,
        "environment": {"PATH": os.environ["PATH"]},
        "idle_timeout_seconds": 0.0,
        "context": b"{}",
    }
    return StepJob(**{**values, **fields})


def shell(place: Path, script: str, **fields: Any) -> StepJob:
    """A step that is a few lines of shell."""
    return step(place, "sh", "-c", script, **fields)


def reading_of(end: StepEnd) -> StepReading:
    """What came of it."""
    return read_step(end.printed, end.cause, end.exit_code)


def answer_of(end: StepEnd) -> tuple[str, str]:
    """What came of it, in short."""
    reading = reading_of(end)
    return reading.outcome, reading.cause


def as_soon_as(path: Path, text: str) -> Callable[[], bool]:
    """A request to stop that comes when the file holds the text."""
    return lambda: text in text_of(path)


def as_soon_as_begun(path: Path) -> Callable[[], bool]:
    """A request to stop that comes when anything was printed."""
    return lambda: path.exists() and path.stat().st_size > 0


# Ends


@pytest.mark.parametrize(
    ("script", "exit_code", "answer"),
    [
        ("exit 0", 0, ("passed", "")),
        ("exit 2", 2, ("failed", "step-exit")),
        (f"echo building; echo '{OK}'", 0, ("passed", "")),
        (f"printf '%s' '{OK}'", 0, ("passed", "")),
        (f"echo '{OK}'; exit 1", 1, ("unmeasured", "step-contradicts-exit")),
        ('echo \'{"outcome":"fail"}\'; exit 1', 1, ("failed", "step-failed")),
        ('echo \'{"outcome":"error"}\'; exit 2', 2, ("unmeasured", "step-error")),
        (f"echo '{OK}' >&2; exit 3", 3, ("failed", "step-exit")),
    ],
)
def test_a_step_that_exits(place: Path, script: str, exit_code: int, answer: tuple[str, str]) -> None:
    end = run_step(shell(place, script), place)
    assert (end.cause, end.exit_code, end.signal, end.left_running) == ("exited", exit_code, None, False)
    assert answer_of(end) == answer
    assert end.started_at.endswith("Z")
    assert 0 < end.duration_seconds < PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("kill -9 $$", ("unmeasured", "step-signalled")),
        (f"echo '{OK}'; kill -9 $$", ("passed", "")),
        (f"printf '%s' '{OK}'; kill -9 $$", ("unmeasured", "step-signalled")),
    ],
)
def test_a_step_that_is_killed(place: Path, script: str, answer: tuple[str, str]) -> None:
    end = run_step(shell(place, script), place)
    assert (end.cause, end.exit_code, end.signal) == ("signalled", None, signal.SIGKILL)
    assert answer_of(end) == answer


def test_a_step_whose_program_does_not_exist(place: Path) -> None:
    end = run_step(step(place, "no-such-program-anywhere"), place)
    assert answer_of(end) == ("unmeasured", "step-not-started")
    assert "no-such-program-anywhere" in end.detail
    assert (end.printed, end.exit_code) == (b"", None)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [1, 2])
def test_the_idle_timeout_counts_from_the_last_output_on_either_stream(place: Path, stream: int) -> None:
    script = f"for i in 1 2 3; do sleep 0.7; echo $i >&{stream}; done; sleep 60"
    end = run_step(shell(place, script, idle_timeout_seconds=1.4), place)
    assert (end.cause, answer_of(end)) == ("idle-limit", ("unmeasured", "step-idle"))
    assert text_of(end.output) + text_of(end.errors) == "1\n2\n3\n"
    assert end.duration_seconds >= 2.1 + 1.4


def test_an_idle_step_that_has_said_its_result_counts(place: Path) -> None:
    end = run_step(shell(place, f"echo '{OK}'; sleep 60", idle_timeout_seconds=0.5), place)
    assert (end.cause, answer_of(end)) == ("idle-limit", ("passed", ""))


# Stopping


def test_a_step_that_is_stopped_may_clean_up(place: Path) -> None:
    script = "trap 'echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    end = run_step(shell(place, script), place, stopping=as_soon_as(place / "stdout.log", "ready"))
    assert (end.cause, end.exit_code, answer_of(end)) == ("stopped", 7, ("unmeasured", "step-stopped"))
    assert text_of(end.output) == "ready\ncleaned\n"


@pytest.mark.parametrize("said", ['{"outcome":"fail"}', OK])
def test_what_a_step_says_because_it_is_stopped_is_no_verdict(place: Path, said: str) -> None:
    script = f"trap \"echo '{said}'; exit 1\" TERM; echo ready; while :; do sleep 0.05; done"
    script = script.replace('"outcome":"fail"', '\\"outcome\\":\\"fail\\"').replace(OK, OK.replace('"', '\\"'))
    end = run_step(shell(place, script), place, stopping=as_soon_as(place / "stdout.log", "ready"))
    assert said in text_of(end.output)
    assert answer_of(end) == ("unmeasured", "step-stopped")


def test_a_verdict_before_the_stop_is_a_verdict(place: Path) -> None:
    script = f"trap 'echo bye; exit 1' TERM; echo '{OK}'; while :; do sleep 0.05; done"
    end = run_step(shell(place, script), place, stopping=as_soon_as(place / "stdout.log", "outcome"))
    assert (end.cause, answer_of(end)) == ("stopped", ("passed", ""))


def test_a_step_that_ignores_sigterm_is_killed_with_its_children(place: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $! > pids; echo ready; while :; do sleep 0.05; done"
    began = time.monotonic()
    end = run_step(shell(place, script), place, stopping=as_soon_as(place / "stdout.log", "ready"))
    assert (end.cause, end.signal) == ("stopped", signal.SIGKILL)
    assert time.monotonic() - began < supervisor.GRACE_SECONDS + PATIENCE_SECONDS / 2
    assert not is_alive(int(text_of(place.parent / "pids")))


@pytest.mark.slow
def test_a_step_that_floods_its_output_is_stopped_all_the_same_and_what_it_said_then_does_not_count(
    place: Path,
) -> None:
    script = f"trap '' TERM; echo ready; exec yes '{OK}'"
    end = run_step(shell(place, script), place, stopping=as_soon_as_begun(place / "stdout.log"))
    assert (end.cause, end.printed, reading_of(end).outcome) == ("stopped", b"", "unmeasured")
    assert end.duration_seconds < PATIENCE_SECONDS / 2
    assert end.output.stat().st_size <= supervisor.OUTPUT_LIMIT_BYTES


def test_an_interrupted_wait_ends_the_step(place: Path) -> None:
    def interrupted(stream: Stream, line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_step(shell(place, "echo $$ > pids; echo ready; sleep 60"), place, on_line=interrupted)
    assert not is_alive(int(text_of(place.parent / "pids")))
    assert settle(place).cause == "stopped"


# Processes left behind


@pytest.mark.parametrize("detach", ["", "setsid "])
def test_a_grandchild_that_holds_the_pipes_holds_up_nothing(place: Path, detach: str) -> None:
    script = f"{detach}sh -c 'echo $$ >> pids; sleep 60' & sleep 0.3; echo '{OK}'"
    began = time.monotonic()
    end = run_step(shell(place, script), place)
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    assert (end.cause, answer_of(end)) == ("exited", ("passed", ""))
    assert end.left_running
    assert "left running by the command and ended" in end.detail
    assert settle(place) == end
    assert not is_alive(int(text_of(place.parent / "pids")))


# Output


def test_streams_are_kept_apart_and_bytes_as_they_are(place: Path) -> None:
    code = "import os; os.write(1, bytes(range(256))); os.write(2, bytes(range(255, -1, -1)))"
    end = run_step(step(place, *python(code)), place)
    assert end.output.read_bytes() == bytes(range(256))
    assert end.errors.read_bytes() == bytes(range(255, -1, -1))
    assert answer_of(end) == ("passed", "")


def test_every_line_is_shown_as_it_comes_and_safely(place: Path) -> None:
    shown: list[tuple[Stream, str]] = []
    code = "import os; os.write(1, b'one\\n\\x1b[2Jtwo\\r\\n\\xff\\n\\nlast'); os.write(2, b'careful\\n')"
    run_step(step(place, *python(code)), place, on_line=lambda stream, line: shown.append((stream, line)))
    assert [line for stream, line in shown if stream == "stdout"] == ["one", "\\x1b[2Jtwo", "\ufffd", "", "last"]
    assert [line for stream, line in shown if stream == "stderr"] == ["careful"]


def test_a_line_is_shown_while_the_step_runs(place: Path) -> None:
    def on_line(stream: Stream, line: str) -> None:
        (place.parent / "seen").write_text(line)

    end = run_step(
        shell(place, "echo hello; while [ ! -e seen ]; do sleep 0.05; done; cat seen"), place, on_line=on_line
    )
    assert text_of(end.output) == "hello\nhello"


@pytest.mark.slow
def test_a_huge_output_keeps_its_beginning_its_end_and_its_result_in_bounded_memory(place: Path) -> None:
    printed_bytes = 200 * 2**20
    code = f"""
import os, sys
block = (b'x' * 1023 + b'\\n') * 1024
for number in range({printed_bytes} // len(block)):
    for stream in (1, 2):
        left = memoryview(block)
        while left: left = left[os.write(stream, left):]
print('{{"outcome":"ok","filler":"' + 'y' * (2**20 - 40) + '"}}', flush=True)
open('blocks', 'w').write(' '.join(str(os.stat('attempt/' + name).st_blocks) for name in ('stdout.log', 'output.log')))
"""
    peaks = []

    def watch() -> bool:
        for process in psutil.Process().children():
            peaks.append(process.memory_info().rss)
        return False

    shown: list[str] = []
    before = psutil.Process().memory_info().rss
    end = run_step(step(place, *python(code)), place, stopping=watch, on_line=lambda stream, line: shown.append(line))
    assert answer_of(end) == ("passed", "")
    for path in (end.output, end.errors):
        kept = path.read_bytes()
        assert len(kept) <= supervisor.OUTPUT_LIMIT_BYTES
        assert kept.startswith(b"xxx")
        assert b"bytes of output were dropped here]" in kept
    assert max(int(blocks) * 512 for blocks in text_of(place.parent / "blocks").split()) < 80 * 2**20
    assert max(peaks) < 100 * 2**20
    assert psutil.Process().memory_info().rss - before < 150 * 2**20
    assert any(line.endswith("bytes are not shown]") for line in shown)
    assert "x" * 1023 in shown


@pytest.mark.parametrize("empty_bytes", [10, 2**17, 2**20])
@pytest.mark.parametrize("empty", [" \n", "\x1b[0m\n", "\r\x1b[1;31m \x1b[K"])
@pytest.mark.parametrize(("end", "cause"), [("", "exited"), ("; sys.stdout.flush(); os.kill(0, 9)", "signalled")])
def test_a_result_is_found_before_any_number_of_empty_lines(
    place: Path, empty: str, empty_bytes: int, end: str, cause: str
) -> None:
    many = f"{empty!r} * {empty_bytes // len(empty)}"
    code = f"import os, sys; print('x' * 10); print({OK!r}, flush=True); sys.stdout.write({many}){end}"
    seen = run_step(step(place, *python(code)), place)
    assert (seen.cause, reading_of(seen).summary) == (cause, "done")
    assert seen.printed.startswith(b"xxxxxxxxxx\n{")


@pytest.mark.parametrize("block_bytes", [24, 25, 31])
def test_what_is_read_from_the_end_says_what_all_of_it_says(
    place: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("commands.effects.steps.process.BLOCK_BYTES", block_bytes)
    run_step(shell(place, "exit 0"), place)
    lines = (b'{"outcome":"ok"}\n', b"x\r", b"x\x1b[0m\n", b"\x1b[0m\x1b[2K\r\n", b"\n" * 30, b"\x1b[0m")
    for printed in map(b"".join, product(lines, repeat=4)):
        (place / "stdout.log").write_bytes(printed)
        end = settle(place)
        for cause in ("exited", "signalled"):
            assert read_step(end.printed, cause, 0) == read_step(printed, cause, 0), printed


def test_of_a_line_that_is_longer_than_any_result_so_much_is_read_that_this_is_seen(place: Path) -> None:
    code = "import os; left = memoryview(b'{' + b'x' * 2**21)\nwhile left: left = left[os.write(1, left):]"
    end = run_step(step(place, *python(code)), place)
    assert answer_of(end) == ("unmeasured", "step-result-invalid")
    assert len(end.printed) == LINE_BYTES_MAX + 1


@pytest.mark.slow
def test_a_step_that_has_closed_its_streams_costs_nothing_while_it_works_on(place: Path) -> None:
    spent_seconds = [0.0]

    def watch() -> bool:
        times = [process.cpu_times() for process in psutil.Process().children()]
        spent_seconds.append(sum(one.user + one.system for one in times))
        return False

    end = run_step(shell(place, "exec >&- 2>&-; sleep 3"), place, stopping=watch)
    assert (end.cause, end.exit_code) == ("exited", 0)
    assert max(spent_seconds) < 0.7


def test_a_huge_output_without_any_line_break_is_shown_in_pieces(place: Path) -> None:
    shown: list[str] = []
    code = "import os; os.write(1, b'x' * 30000)"
    run_step(step(place, *python(code)), place, on_line=lambda stream, line: shown.append(line))
    assert "".join(shown) == "x" * 30000
    assert max(map(len, shown)) <= 4096


def test_a_result_that_finds_no_room_on_the_disk_is_not_taken_for_none(place: Path) -> None:
    place.mkdir()
    (place / "stdout.log").symlink_to("/dev/full")
    end = run_step(shell(place, 'echo \'{"outcome":"ask"}\'; echo on >&2; sleep 0.2; echo off >&2'), place)
    assert (end.cause, reading_of(end).outcome) == ("lost", "unmeasured")
    assert "No space left" in end.detail
    # It is not ended in the middle of what cannot be taken back.
    assert text_of(end.errors) == "on\noff\n"


# Context, environment, secrets


def test_a_step_sees_its_context_and_what_it_is_told_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_DRIVER", "1")
    monkeypatch.setenv("LEDGER_SECRET_STRAY", "1")
    told = {"PATH": os.environ["PATH"], "LEDGER_STORE": "/store", "LEDGER_RUN_ID": "run-1"}
    code = "import os, json; print(open(os.environ['LEDGER_CONTEXT']).read()); print(json.dumps(dict(os.environ)))"
    end = run_step(step(place, *python(code), environment=told, context=b'{"step": "check"}'), place)
    context, environment = text_of(end.output).splitlines()
    assert context == '{"step": "check"}'
    seen = json.loads(environment)
    assert told.items() <= seen.items()
    marks = {"LEDGER_CONTEXT", "LEDGER_ATTEMPT", "LEDGER_ATTEMPT_DIRECTORY", "LC_CTYPE"}
    assert set(seen) - set(told) <= marks
    assert stat.S_IMODE(Path(seen["LEDGER_CONTEXT"]).stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_secrets_reach_the_step_and_nothing_else(place: Path) -> None:
    secret = 'corréct"horse/battery'
    code = f"""
import base64, hashlib, json, os, sys, time
secret = os.environ['TOKEN'].encode()
assert hashlib.sha256(secret).hexdigest() == {hashlib.sha256(secret.encode()).hexdigest()!r}
os.write(1, b'begin ' + secret[:7]); time.sleep(0.3); os.write(1, secret[7:] + b' end\\n')
os.write(2, base64.b64encode(secret) + b'\\n')
print(json.dumps({{'outcome': 'ok', 'summary': os.environ['TOKEN'], 'key': [os.environ['TOKEN']]}}))
"""
    shown: list[str] = []
    end = run_step(
        step(place, *python(code), secrets={"TOKEN": secret}), place, on_line=lambda stream, line: shown.append(line)
    )
    reading = reading_of(end)
    assert (reading.outcome, reading.summary) == ("passed", "[secret TOKEN]")
    assert reading.keys == {"key": ["[secret TOKEN]"]}
    assert text_of(end.output).splitlines()[0] == "begin [secret TOKEN] end"
    assert text_of(end.errors) == "[secret TOKEN]\n"
    assert "begin [secret TOKEN] end" in shown
    for path in place.rglob("*"):
        everything = path.read_bytes()
        for form in (secret.encode(), secret[8:].encode(), base64.b64encode(secret.encode())):
            assert form not in everything, path


def test_what_only_looks_like_the_beginning_of_a_secret_is_not_withheld_at_the_end(place: Path) -> None:
    end = run_step(shell(place, "printf hush-hu; printf hush >&2", secrets={"TOKEN": "hush-hush-hush"}), place)
    assert (text_of(end.output), text_of(end.errors)) == ("hush-hu", "hush")


# The death of the driver


DRIVER = """
import sys
from pathlib import Path
from commands.effects.steps.process import StepJob, run_step
place = Path(sys.argv[1])
run_step(
    StepJob(
        name="step-1", argv=tuple(sys.argv[2:]), directory=place.parent, environment={"PATH": "/usr/bin:/bin"},
        idle_timeout_seconds=0, context=b"{}", secrets={"TOKEN": "hush-hush-hush"},
    ),
    place,
)
"""


def killed_driver(place: Path, script: str, ready: Callable[[], object]) -> None:
    """Start a driver that runs this script as a step, and kill it when the step is as far as that."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(place), "sh", "-c", script], cwd=ROOT)
    try:
        eventually(ready, "what the step was to do before its driver died")
    finally:
        driver.kill()
        driver.wait()


def test_the_tree_is_gone_when_the_driver_is_killed_and_what_it_said_is_not(place: Path) -> None:
    script = f"setsid sleep 60 & echo $! >> pids; sleep 60 & echo $! >> pids; echo '{OK}'; echo $TOKEN >&2; wait"
    killed_driver(place, script, lambda: text_of(place / "stdout.log") and text_of(place / "output.log"))
    eventually(lambda: not left_below(place.parent), "the end of the step")
    end = settle(place)
    assert (end.cause, answer_of(end)) == ("driver-died", ("passed", ""))
    assert reading_of(end).summary == "done"
    assert text_of(end.errors) == "[secret TOKEN]\n"
    assert [pid for pid in text_of(place.parent / "pids").split() if is_alive(int(pid))] == []
    assert settle(place) == end


def test_a_step_that_had_said_nothing_when_its_driver_died_is_unmeasured(place: Path) -> None:
    killed_driver(place, "echo working; sleep 60", lambda: text_of(place / "stdout.log"))
    end = settle(place)
    assert (end.cause, answer_of(end)) == ("driver-died", ("unmeasured", "step-driver-died"))


def test_a_step_whose_supervisor_was_killed_as_well_is_lost_and_what_it_said_is_not(place: Path) -> None:
    def both_killed() -> bool:
        if "outcome" not in text_of(place / "stdout.log"):
            return False
        os.kill(recorded_pid(place, "supervisor"), signal.SIGKILL)
        return True

    killed_driver(place, f"sleep 60 & echo '{OK}'; wait", both_killed)
    end = settle(place)
    assert (end.cause, answer_of(end)) == ("lost", ("passed", ""))
    assert left_below(place.parent) == []


def test_a_step_that_was_begun_is_not_begun_again(place: Path) -> None:
    first = run_step(shell(place, f"echo once >> times; echo '{OK}'"), place)
    assert run_step(shell(place, f"echo once >> times; echo '{OK}'"), place) == first
    assert text_of(place.parent / "times") == "once\n"


@pytest.mark.parametrize(
    ("late_bytes", "answer"), [(0, "unmeasured"), (TAIL_BYTES - 1, "passed"), (TAIL_BYTES, "unmeasured")]
)
def test_what_came_late_is_left_out_and_when_it_was_too_much_nothing_counts(
    place: Path, late_bytes: int, answer: str
) -> None:
    run_step(shell(place, "exit 0"), place)
    (place / "stdout.log").write_text(OK + "\n" + "x" * max(late_bytes, 10))
    result = json.loads(text_of(place / "result.json"))
    (place / "result.json").write_text(json.dumps({**result, "end": "stopped", "late_bytes": late_bytes}))
    assert reading_of(settle(place)).outcome == answer


def test_an_output_that_its_supervisor_did_not_come_to_shorten_is_shortened(place: Path) -> None:
    run_step(shell(place, "exit 0"), place)
    with (place / "stdout.log").open("r+b") as file:
        file.seek(200 * 2**20)
        file.write(b"\n" + OK.encode())
    end = settle(place)
    assert reading_of(end).summary == "done"
    assert end.output.stat().st_size < supervisor.OUTPUT_LIMIT_BYTES


@pytest.mark.parametrize("job", [None, b"", b"[]", b'{"name": "step-1"}'])
def test_an_attempt_of_which_little_or_nothing_is_there_is_lost(place: Path, job: bytes | None) -> None:
    if job is not None:
        place.mkdir()
        (place / "job.json").write_bytes(job)
    end = settle(place)
    assert (end.cause, answer_of(end), end.printed) == ("lost", ("unmeasured", "step-lost"), b"")
