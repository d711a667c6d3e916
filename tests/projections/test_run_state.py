"""The state of a run, after each event of its life."""

import pytest

from ledger.events import (
    DriverReplaced,
    DriverStarted,
    Event,
    ResumeStarted,
    RunFinished,
    RunStopped,
    StepFinished,
    StepStarted,
)
from projections.run.state import Driver, RunView
from tests.support.makers import RUN, SEQUENCE_OF_FIRST, driver_started, recorded, run_started, views_of

STARTED = run_started()
TAKEN = driver_started(pid=7)
REPLACED = DriverReplaced(term=2, previous_term=1, host="there", pid=8, reason="died")
STEP = StepStarted(step="gate")
STOPPED = RunStopped(reason="interrupted", term=1)
RESUMED = ResumeStarted(step="gate", number=1, owed=())
FINISHED: list[Event] = [StepFinished(step="gate", outcome="failed"), RunFinished(verdict="failed")]


def after(*events: Event) -> RunView:
    return views_of(*events).run


def time_of(position: int) -> str:
    return recorded([STARTED], start=position)[0].header.time


def test_nothing_is_known_of_a_run_without_events_and_asking_for_its_rules_is_an_error() -> None:
    run = after()
    assert (run.status, run.term, run.verdict, run.position) == ("unknown", 0, None, 0)
    with pytest.raises(LookupError, match="run-started"):
        _ = run.policy


def test_a_started_run_is_open_with_its_steps_before_them() -> None:
    run = after(STARTED)
    assert (run.run, run.status, run.steps) == (RUN, "open", {"gate": None})
    assert run.begun == STARTED
    assert run.policy == STARTED.policy
    assert run.started_at == time_of(1)
    assert (run.position, run.sequence) == (1, SEQUENCE_OF_FIRST)


def test_the_driver_is_the_one_that_took_the_run_last() -> None:
    assert after(STARTED, TAKEN).driver == Driver(1, "here", 7, time_of(2))
    run = after(STARTED, TAKEN, REPLACED)
    assert (run.driver, run.term, run.status) == (Driver(2, "there", 8, time_of(3)), 2, "open")


def test_a_stopped_run_says_why_and_when() -> None:
    run = after(STARTED, TAKEN, STEP, STOPPED)
    assert (run.status, run.stop_reason, run.ended_at, run.verdict) == ("stopped", "interrupted", time_of(4), None)
    assert run.steps == {"gate": "running"}


@pytest.mark.parametrize("more", [[], [RESUMED]])
def test_a_stopped_run_that_is_taken_again_is_open_and_nothing_of_the_stop_is_left(more: list[Event]) -> None:
    run = after(STARTED, TAKEN, STEP, STOPPED, DriverStarted(term=2, host="here", pid=9), *more)
    assert (run.status, run.stop_reason, run.ended_at, run.term) == ("open", "", "", 2)


def test_a_finished_run_has_its_verdict_and_its_end() -> None:
    run = after(STARTED, TAKEN, STEP, *FINISHED)
    assert (run.status, run.verdict, run.ended_at) == ("finished", "failed", time_of(5))
    assert run.steps == {"gate": "failed"}


def test_taking_a_finished_run_does_not_reopen_it_but_resuming_does() -> None:
    taken = [STARTED, TAKEN, STEP, *FINISHED, DriverStarted(term=2, host="here", pid=9)]
    assert (after(*taken).status, after(*taken).verdict) == ("finished", "failed")
    run = after(*taken, RESUMED)
    assert (run.status, run.verdict, run.ended_at, run.resumes) == ("open", None, "", 1)
    assert run.steps == {"gate": "running"}


def test_resumptions_are_counted_as_they_are_numbered() -> None:
    again = ResumeStarted(step="gate", number=2, owed=())
    assert after(STARTED, TAKEN, STEP, RESUMED, again).resumes == 2


def test_the_place_is_that_of_the_last_event_even_of_one_that_says_nothing_about_the_run() -> None:
    run = after(STARTED, TAKEN, STEP)
    assert (run.position, run.sequence) == (3, SEQUENCE_OF_FIRST + 4)
