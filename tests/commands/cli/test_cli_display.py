"""Progress in words: each start and each end of a job is told once, with what comes of it."""

import pytest

from commands.cli.display import LineDisplay
from commands.render.progress import changes, standing
from ledger.events import Event, GatePolicy
from tests.support.makers import attempt_recorded, attempt_started, begun, collections, placed, planned, views_of

POLICY = GatePolicy(rounds=2)
READY: list[Event] = [*begun(POLICY), *collections(), planned(), *placed("shard-1")]
STARTED, AGAIN = attempt_started(), attempt_started(attempt=2)


def killed(attempt: int = 1, **changed: object) -> Event:
    """An attempt that a signal ended before it had measured anything."""
    return attempt_recorded(attempt=attempt, cause="signalled", measured=0, duration_seconds=2.0, **changed)


DONE = attempt_recorded(duration_seconds=1.5, counts={"passed": 9, "failed": 3, "skipped": 0})
PUT_OFF = attempt_recorded(cause="no-room", measured=0, counted=False, detail="2 GiB are needed, 1 GiB is left")
REFUSED = attempt_recorded(attempt=2, cause="no-room", measured=0, detail="2 GiB are needed, 1 GiB is left")
STOPPED = attempt_recorded(cause="stopped", measured=0, counted=False, duration_seconds=2.0)


@pytest.mark.parametrize(
    ("events", "told", "stands"),
    [
        ([], [], "waiting"),
        ([STARTED], ["started"], "running"),
        ([STARTED, DONE], ["started", "done in 1.5 s, 3 failed, 9 passed"], "3 failed, 9 passed"),
        (
            [STARTED, killed()],
            ["started", "unmeasured after 2.0 s (signalled), will be tried again"],
            "will be tried again",
        ),
        (
            [STARTED, killed(), AGAIN],
            ["started", "unmeasured after 2.0 s (signalled), will be tried again", "started, attempt 2"],
            "running, attempt 2",
        ),
        (
            [STARTED, killed(), AGAIN, killed(2)],
            [
                "started", "unmeasured after 2.0 s (signalled), will be tried again", "started, attempt 2",
                "unmeasured after 2.0 s (signalled), no rounds are left",
            ],
            "unmeasured (signalled)",
        ),
        (
            [STARTED, PUT_OFF],
            ["started", "waits for room on this machine: 2 GiB are needed, 1 GiB is left"],
            "waits for room on this machine",
        ),
        (
            [STARTED, killed(), AGAIN, REFUSED],
            [
                "started", "unmeasured after 2.0 s (signalled), will be tried again", "started, attempt 2",
                "unmeasured after 1.5 s (no-room), no rounds are left",
            ],
            "unmeasured (no-room)",
        ),
        ([STARTED, STOPPED], ["started", "stopped after 2.0 s"], "will be tried again"),
    ],
    ids=["waiting", "running", "done", "owed", "again", "given-up", "put-off", "no-room", "stopped"],
)  # fmt: skip
def test_a_job_is_told_by_what_comes_of_it(events: list[Event], told: list[str], stands: str) -> None:
    views = views_of(*READY, *events)
    of_job = [change.words for change in changes(views.gate, POLICY) if change.job == "shard-1/candidate"]
    assert of_job == told
    assert standing(views.gate.side("shard-1", "candidate"), POLICY) == stands


def test_lines_tell_each_change_once_however_many_come_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay()
    display.changed(views_of(*READY))
    display.changed(views_of(*READY))
    told = capsys.readouterr().err.splitlines()
    assert sorted(line.split(" ", 1)[1] for line in told) == [
        "collection/baseline: done in 1.5 s", "collection/baseline: started", "collection/candidate: done in 1.5 s",
        "collection/candidate: started",
    ]  # fmt: skip
    display.changed(views_of(*READY, STARTED, killed(), AGAIN))
    assert capsys.readouterr().err.splitlines() == [
        "[2/4] shard-1/candidate: started",
        "[2/4] shard-1/candidate: unmeasured after 2.0 s (signalled), will be tried again",
        "[2/4] shard-1/candidate: started, attempt 2",
    ]


def test_what_was_so_before_a_resumption_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay()
    display.known(views_of(*READY, STARTED))
    display.changed(views_of(*READY, STARTED, killed()))
    told = capsys.readouterr().err.splitlines()
    assert told == ["[2/4] shard-1/candidate: unmeasured after 2.0 s (signalled), will be tried again"]
