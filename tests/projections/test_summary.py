"""The summary of a run and the plan of its resumption, at each station of its life."""

from datetime import UTC, datetime

import pytest

from ledger.events import (
    DriverStarted,
    Event,
    FailureLine,
    GatePolicy,
    JudgedCase,
    ResumeStarted,
    RunFinished,
    RunStopped,
    StepFinished,
)
from projections.run.resume import ResumePlan, plan_resume
from projections.run.summary import RunSummary, summarize_run
from tests.support.makers import (
    COMMITS,
    RUN,
    attempt_recorded,
    attempt_started,
    begun,
    collections,
    placed,
    planned,
    run_started,
    verdict_decided,
    views_of,
)

NOW = datetime(2030, 1, 2, 4, 0, 0, tzinfo=UTC)
POLICY = GatePolicy(rounds=1)
READY: list[Event] = [*begun(POLICY), *collections(), planned(), *placed("shard-1")]
CANDIDATE: list[Event] = [attempt_started(), attempt_recorded()]
BASELINE: list[Event] = [attempt_started(side="baseline"), attempt_recorded(side="baseline")]
PARTIAL = attempt_recorded(side="baseline", missing={"b.py": "time-limit"})
STOPPED = RunStopped(reason="asked", term=1)


def finished(verdict: str = "passed", **changes: object) -> list[Event]:
    """The three events of a decided gate."""
    decided = verdict_decided(verdict, **changes)
    return [decided, StepFinished(step="gate", outcome=decided.verdict), RunFinished(verdict=decided.verdict)]


def summary(*events: Event, alive: bool | None = None) -> RunSummary:
    return summarize_run(views_of(*events), NOW, alive=alive)


def plan(*events: Event, driven: bool = False) -> ResumePlan:
    return plan_resume(views_of(*events), "gate", driven=driven)


@pytest.mark.parametrize(("alive", "state"), [(True, "running"), (None, "running"), (False, "interrupted")])
def test_an_open_run_runs_unless_its_lock_says_that_nobody_drives_it(alive: bool | None, state: str) -> None:
    found = summary(*READY, alive=alive)
    assert (found.state, found.verdict, found.reason) == (state, None, "")
    assert found.driver is not None
    assert found.driver.alive is alive


@pytest.mark.parametrize(
    ("events", "alive", "command"),
    [
        (READY, True, f"ledger status {RUN} --watch"),
        (READY, False, f"ledger resume {RUN} --from gate"),
        ([*READY, STOPPED], None, f"ledger resume {RUN} --from gate"),
        ([*READY, *CANDIDATE, *BASELINE, *finished()], None, ""),
        ([*READY, *CANDIDATE, BASELINE[0], PARTIAL, *finished("unmeasured")], None, f"ledger resume {RUN} --from gate"),
        ([*READY, *CANDIDATE, BASELINE[0], PARTIAL, *finished("failed")], None, f"ledger resume {RUN} --from gate"),
    ],
    ids=["running", "interrupted", "stopped", "passed", "unmeasured", "failed-with-owed"],
)
def test_the_next_command_continues_what_is_not_over(events: list[Event], alive: bool | None, command: str) -> None:
    assert summary(*events, alive=alive).next_command == command


def test_a_summary_says_what_is_compared_and_how_it_was_chosen() -> None:
    found = summary(run_started(dirty=True))
    assert (found.candidate.commit, found.candidate.ref, found.candidate.reason) == (COMMITS["candidate"], "HEAD", "")
    assert (found.baseline.commit, found.baseline.ref, found.baseline.reason) == (
        COMMITS["baseline"],
        "v1",
        "the newest tag",
    )
    assert found.dirty
    assert found.driver is None
    assert (found.position, found.sequence) == (1, 101)


def test_what_was_decided_is_taken_from_the_verdict_and_gone_after_a_resume() -> None:
    blocking = (JudgedCase("a.py::t", "introduced", "no"),)
    unmeasured = (JudgedCase("b.py", "unmeasured", "lost"),)
    events = [
        *READY, *CANDIDATE, BASELINE[0], PARTIAL,
        *finished("failed", reason="regression", counts={"introduced": 1}, blocking=blocking, unmeasured=unmeasured),
    ]  # fmt: skip
    decided = summary(*events)
    assert (decided.state, decided.verdict, decided.reason) == ("finished", "failed", "regression")
    assert (decided.blocking, decided.unmeasured, decided.counts) == (blocking, unmeasured, {"introduced": 1})
    assert decided.steps == {"gate": "failed"}
    resumed = summary(*events, ResumeStarted(step="gate", number=1, owed=("shard-1/baseline",)))
    assert (resumed.state, resumed.verdict, resumed.reason, resumed.resumes) == ("running", None, "", 1)
    assert (resumed.blocking, resumed.unmeasured, resumed.counts, resumed.ended_at) == ((), (), {}, "")


def test_what_is_owed_is_listed_with_its_last_cause() -> None:
    found = summary(*READY, attempt_started(), attempt_recorded(missing={"b.py": "time-limit"}, cause="time-limit"))
    assert [(entry.what, entry.status, entry.targets, entry.cause) for entry in found.owed] == [
        ("shard-1/candidate", "unmeasured", 1, "time-limit"),
        ("shard-1/baseline", "pending", None, ""),
    ]


def test_failures_of_the_candidate_are_counted_once_each_before_the_verdict() -> None:
    lines = (FailureLine("a.py::t", "no"), FailureLine("a.py::u", "no"))
    events = [
        attempt_started(), attempt_recorded(missing={"b.py": "lost"}, failures=lines),
        attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2, failures=lines[:1]),
        attempt_started(side="baseline"), attempt_recorded(side="baseline", failures=(FailureLine("a.py::v", "no"),)),
    ]  # fmt: skip
    assert summary(*READY, *events).failing_so_far == 2
    assert summary(*READY).failing_so_far == 0


def test_a_side_shows_its_failures_although_a_later_attempt_measured_the_rest_without_any() -> None:
    partial = attempt_recorded(missing={"b.py": "lost"}, failures=(FailureLine("a.py::t", "no"),))
    rest = [attempt_started(attempt=2, targets=("b.py",)), attempt_recorded(attempt=2)]
    groups = {group.id: group.state for group in summary(*READY, attempt_started(), partial, *rest).progress.groups}
    assert groups == {
        "collection/candidate": "done",
        "collection/baseline": "done",
        "shard-1/candidate": "failed",
        "shard-1/baseline": "pending",
    }


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (None, "running"), (attempt_recorded(), "done"),
        (attempt_recorded(failures=(FailureLine("a.py::t", "no"),)), "failed"),
        (attempt_recorded(cause="time-limit", measured=0), "timeout"),
        (attempt_recorded(cause="signalled", measured=0), "unmeasured"),
        (attempt_recorded(cause="stopped", measured=0, counted=False), "pending"),
    ],
    ids=["running", "done", "failed", "timeout", "unmeasured", "pending"],
)  # fmt: skip
def test_progress_says_how_each_side_stands(record: Event | None, state: str) -> None:
    found = summary(*READY, attempt_started(), *([record] if record else []))
    group = next(group for group in found.progress.groups if group.id == "shard-1/candidate")
    assert (group.state, group.host) == (state, "local")
    assert group.elapsed_ms is not None
    assert found.progress.total == 4
    assert found.progress.completed == 2 + (state in ("done", "failed", "timeout", "unmeasured"))


def test_the_plan_of_a_resumption_lists_what_is_in_flight_and_what_is_owed() -> None:
    found = plan(
        *READY, attempt_started(), attempt_recorded(missing={"b.py": "lost"}), attempt_started(side="baseline")
    )
    assert found.in_flight == ("shard-1/baseline",)
    assert [(entry.what, entry.targets) for entry in found.owed] == [
        ("shard-1/candidate", 1),
        ("shard-1/baseline", None),
    ]
    assert (found.run, found.step, found.number, found.nothing_to_do) == (RUN, "gate", 1, False)


def test_there_is_nothing_to_do_only_for_a_finished_run_that_owes_nothing() -> None:
    measured = [*READY, *CANDIDATE, *BASELINE]
    assert plan(*measured, *finished()).nothing_to_do
    assert not plan(*measured).nothing_to_do
    assert not plan(*measured, STOPPED).nothing_to_do
    assert not plan(*READY, *CANDIDATE, BASELINE[0], PARTIAL, *finished("unmeasured")).nothing_to_do


def test_a_plan_says_that_the_run_is_driven_and_counts_on_from_earlier_resumptions() -> None:
    events = [*READY, STOPPED, DriverStarted(term=2, host="here", pid=9), ResumeStarted(step="gate", number=1, owed=())]
    found = plan(*events, driven=True)
    assert (found.driven, found.number) == (True, 2)
