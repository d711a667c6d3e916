"""The time that is left, wherever a gate is looked at while it runs."""

import io
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from commands.cli import display, show
from commands.render.summary import summary_lines
from ledger.events import Event, GatePolicy, RunFinished, RunStopped
from projections.registry import RunViews
from projections.run.summary import RunSummary, summarize_run
from tests.projections.run.conftest import START, plan_of, timed
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, verdict_decided

BEGUN: list[Event] = [*begun(GatePolicy(parallel=1)), *collections()]
PLANNED: list[Event] = [*BEGUN, plan_of(30.0), attempt_started()]
STOPPED = [attempt_recorded(cause="stopped", measured=0, counted=False), RunStopped(reason="asked", term=1)]


def views_of(*events: Event) -> RunViews:
    """The views of a run in which all of this happened at once."""
    views, history = RunViews(), [(0, event) for event in events]
    for one in timed(history):
        views.apply(one)
    return views


def summary(*events: Event, second: int = 10, alive: bool | None = True, as_of: str = "") -> RunSummary:
    return summarize_run(views_of(*events), START + timedelta(seconds=second), alive=alive, as_of=as_of)


def told(found: RunSummary, width: int = 100) -> list[str]:
    return [line for line in summary_lines(found, width) if line.startswith("remaining")]


def test_a_run_that_is_driven_says_how_long_it_still_takes() -> None:
    assert told(summary(*PLANNED)) == ["remaining  about 50 s, by the plan alone"]
    assert told(summary(*BEGUN)) == ["remaining  unknown (not-planned-yet)"]
    assert told(summary(*BEGUN, plan_of(None))) == ["remaining  unknown (planned-by-count)"]
    assert told(summary(*PLANNED, second=61)) == ["remaining  unknown (longer-than-planned)"]
    slow = [attempt_recorded(duration_seconds=45.0)]
    assert told(summary(*PLANNED, *slow)) == [
        "remaining  about 45 s, if all goes on to take 1.50 times what was planned"
    ]  # fmt: skip
    assert all(len(line) <= 40 for line in summary_lines(summary(*PLANNED, *slow), 40) if "next:" not in line)


def test_the_past_is_looked_at_with_what_was_left_then() -> None:
    found = summary(*PLANNED, alive=None, as_of="2030-01-02T00:00:10.000000Z")
    assert (found.state, told(found)) == ("open", ["remaining  about 50 s, by the plan alone"])


@pytest.mark.parametrize(
    ("events", "alive"),
    [
        (PLANNED, False),
        ([*PLANNED, *STOPPED], None),
        ([*PLANNED, attempt_recorded(), verdict_decided(), RunFinished(verdict="passed")], None),
    ],
    ids=["interrupted", "stopped", "finished"],
)
def test_a_run_that_nobody_drives_takes_no_time(events: list[Event], alive: bool | None) -> None:
    found = summary(*events, alive=alive)
    assert (found.remaining, told(found)) == (None, [])


@pytest.mark.parametrize("columns", [40, 100])
def test_the_live_table_says_it_above_the_jobs(columns: int) -> None:
    console = Console(file=io.StringIO(), width=columns)
    console.print(display._picture(views_of(*PLANNED), START + timedelta(seconds=10)))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    jobs = lines.index("2 of 4 jobs done")
    assert " ".join(lines[:jobs]) == "time left: about 50 s, by the plan alone"
    assert all(len(line) <= columns for line in lines)


class Watched:
    """A ledger in which nothing is recorded any more; the run is running for so many looks."""

    def __init__(self, looks: int) -> None:
        self._states: Iterator[str] = iter(["running"] * looks + ["interrupted"])
        self.looked = 0

    def version(self) -> int:
        return 1

    def summary(self, run: str) -> Any:
        self.looked += 1
        return SimpleNamespace(state=next(self._states))


def test_what_is_watched_is_shown_again_for_people_when_times_have_gone_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "FOLLOW_SECONDS", 0.0)
    monkeypatch.setattr(show, "REFRESH_SECONDS", 0.0)
    for as_json, looks in ((False, 1), (True, 6)):
        watched = Watched(5)
        show._wait_for_change(watched, "run-1", 1, as_json=as_json)  # type: ignore[arg-type]
        assert watched.looked == looks, "programs are told of changes only"


def test_what_is_watched_is_shown_again_as_soon_as_something_is_recorded() -> None:
    watched = Watched(5)
    show._wait_for_change(watched, "run-1", 0, as_json=False)  # type: ignore[arg-type]
    assert watched.looked == 0
