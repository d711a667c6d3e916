"""What was measured, as text: the right words for what is known and for what is not, in lines that fit."""

import pytest

from commands.cli.exits import ExitCode
from commands.cli.measures.timing import exit_code
from commands.render.measures.timing import MOST_SIDES, timing_lines
from commands.render.measures.usage import usage_lines
from ledger.events import GatePolicy, RunFinished
from projections.history.needs import Needs, TargetNeeds, needs_of
from projections.history.usage import SessionUsage, TargetUsage
from projections.run.timing import RunTiming, time_run
from tests.commands.measures.conftest import attempt, history
from tests.projections.run.conftest import Timed, plan_of, timed
from tests.support.makers import attempt_recorded, attempt_started, collections, driver_started, run_started

HOSTILE = "a\x1b[31mred\r\n\u202e.py"
BEGUN: list[Timed] = [(0, run_started(GatePolicy(parallel=1))), (0, driver_started())]
PLAN: Timed = (0, plan_of(10.0))
BOTH = [*attempt(0, 12, "shard-1", "candidate"), *attempt(12, 20, "shard-1", "baseline")]
DONE: Timed = (20, RunFinished(verdict="passed"))
COLLECTED: list[Timed] = [(0, event) for event in collections()]


def timing(*events: Timed, target_seconds: float | None = None, as_of: str = "") -> RunTiming:
    return time_run(timed(events), target_seconds=target_seconds, as_of=as_of)


UNKNOWN = attempt_recorded(cause="lost", measured=0, duration_seconds=0.0)
SHAPES = {
    "finished": timing(*BEGUN, *COLLECTED, PLAN, *BOTH, DONE),
    "by count": timing(*BEGUN, *COLLECTED, (0, plan_of(None)), *BOTH, DONE),
    "unfinished": timing(*BEGUN, *COLLECTED, PLAN, *BOTH[:3], target_seconds=60, as_of="2030-01-02T00:00:12.000000Z"),
    "collected": timing(*BEGUN, *COLLECTED, target_seconds=60),
    "unknown": timing(*BEGUN, PLAN, (1, attempt_started()), (5, UNKNOWN), (6, DONE[1]), target_seconds=60),
    "missed": timing(*BEGUN, *COLLECTED, PLAN, *BOTH, DONE, target_seconds=3),
    "stopped": timing(*history(None, GatePolicy())),
}


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_is_wider_than_the_terminal(shape: str, width: int) -> None:
    lines = timing_lines(SHAPES[shape], width)
    assert lines
    assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("finished", ["took       20 s, from", "10 s for the longest part; shard-1/candidate took 11 s, 10% longer"]),
        ("finished", ["retries    none", "bound      5.0 s; that is 2.200 times as long"]),
        ("by count", ["planned    no times"]),
        ("unfinished", ["took       12 s so far, from", "10 s for the longest part; not all of it is measured"]),
        ("unfinished", ["as of      2030-01-02 00:00:12 UTC"]),
        ("unfinished", ["1 min 0 s: undetermined (run-unfinished: The run is not finished.)"]),
        ("collected", ["overhead   no attempts", "planned    no times"]),
        ("unknown", ["unknown    1 record without a duration, left out", "overhead   unknown of 1 attempt"]),
        ("unknown", ["undetermined (duration-unknown: An attempt left no record of how long it ran.)"]),
        ("missed", ["target     3.0 s: missed"]),
        ("stopped", ["gaps       1 min 40 s without a driver", "retries    1, 42 s after that"]),
    ],
)  # fmt: skip
def test_what_is_known_is_told_and_what_is_not_is_said_to_be_so(shape: str, words: list[str]) -> None:
    text = "\n".join(timing_lines(SHAPES[shape], 200))
    assert [word for word in words if word not in text] == []


def test_a_target_that_nobody_can_judge_is_not_met() -> None:
    codes = {shape: exit_code(found) for shape, found in SHAPES.items()}
    assert codes == {
        "finished": ExitCode.PASSED, "by count": ExitCode.PASSED, "unfinished": ExitCode.UNMEASURED,
        "collected": ExitCode.UNMEASURED, "unknown": ExitCode.UNMEASURED, "missed": ExitCode.FAILED,
        "stopped": ExitCode.PASSED,
    }  # fmt: skip


def test_long_lists_of_sides_are_cut_and_say_how_many_are_left_out() -> None:
    lines = timing_lines(SHAPES["stopped"], 100)
    listed = [line for line in lines if line.startswith("  shard-")]
    assert (len(listed), lines[-1]) == (MOST_SIDES, "  ... and 1 more (--json has all)")


def usage(**changes: object) -> TargetUsage:
    values = {
        "duration_seconds": 1.0, "peak_memory_bytes": 2**20, "memory_basis": "alone", "aged": False,
        "measurements": 3, "commit": "c" * 40, "sequence": 7,
    }  # fmt: skip
    return TargetUsage(**values | changes)  # type: ignore[arg-type]


def needs(*, top: int = 0, session: SessionUsage | None = None, **known: TargetUsage) -> Needs:
    return needs_of(known, session or SessionUsage(), 9, top)


def test_targets_stand_in_the_order_of_their_time_then_memory_then_name() -> None:
    found = needs(
        d=usage(), a=usage(), b=usage(peak_memory_bytes=2**21), e=usage(duration_seconds=2.0, peak_memory_bytes=None),
        c=usage(peak_memory_bytes=None, memory_basis="none"),
    )  # fmt: skip
    assert [row.target for row in found.targets] == ["e", "b", "a", "d", "c"]


def test_aged_targets_and_those_that_are_left_out_are_counted() -> None:
    found = needs(top=1, a=usage(aged=True), b=usage(duration_seconds=2.0))
    assert (found.known, found.aged, [row.target for row in found.targets]) == (2, 1, ["b"])
    text = "\n".join(usage_lines(found, 100))
    assert "2 targets, 1 of them not measured of late" in text
    assert "... and 1 more (--top 0 shows all)" in text
    aged = usage_lines(needs(a=usage(aged=True)), 100)
    assert aged[-1].split() == ["1.0", "s", "1", "MiB", "3", "aged", "a"]


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (SessionUsage(), "unknown time and unknown memory besides its targets"),
        (SessionUsage(duration_seconds=1.5, memory_bytes=40 * 2**20), "1.5 s and 40 MiB besides its targets"),
    ],
)
def test_what_a_session_needs_is_told_as_far_as_it_is_known(session: SessionUsage, words: str) -> None:
    found = needs(a=usage(), session=session)
    assert usage_lines(found, 100)[1] == f"session  {words}"
    assert (found.session_seconds, found.session_memory_bytes) == (
        session.duration_seconds or None, session.memory_bytes or None,
    )  # fmt: skip


@pytest.mark.parametrize("basis", ["alone", "upper-bound", "at-least", "none"])
def test_a_bound_is_told_as_one_and_explained(basis: str) -> None:
    text = "\n".join(usage_lines(needs(a=usage(memory_basis=basis)), 100))
    sign = {"upper-bound": "<= 1 MiB", "at-least": ">= 1 MiB"}.get(basis)
    assert (sign or "   1 MiB") in text
    assert ("a limit ended it" in text) == (sign is not None)


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_hostile_in_the_name_of_a_target_reaches_the_terminal(width: int) -> None:
    known = {HOSTILE: usage(), "x" * 200: usage()}
    lines = usage_lines(needs_of(known, SessionUsage(), 9, 0), width)
    assert all(line.isprintable() for line in lines)
    assert f"    {'x' * 200}" in lines


def test_a_row_holds_all_that_is_known_of_a_target() -> None:
    (row,) = needs(a=usage(aged=True)).targets
    assert row == TargetNeeds(
        target="a", seconds=1.0, memory_bytes=2**20, memory_basis="alone", origin="aged", measurements=3,
        commit="c" * 40, sequence=7,
    )  # fmt: skip
