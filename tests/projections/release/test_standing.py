"""Where a step stands: every case of its table against sentences that are written down another way, and the state of a
release that it rests on."""

from itertools import product
from typing import Any

import pytest
from msgspec import structs

from ledger.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    Prepared,
    Quarantined,
    ResumeStarted,
    RunStarted,
    StepFinished,
    StepReport,
    StepStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.steps import Step, StepGraph
from projections.fold import fold
from projections.release.approval import shown_now
from projections.release.standing import Now, Standing, pinned_by, standing, standings, valid_waivers
from projections.release.state import RELEASE, ReleaseView, archive_of
from tests.support.makers import recorded, run_started, views_of
from tests.support.releases import TODAY, commit, step

NAME, SHOWN, OTHER = "it", "1" * 64, "2" * 64


def begun(*names: str) -> RunStarted:
    return run_started(kind="release", steps=names or (NAME,), version="1.2.3", branch="release/1.2.3", remote="origin")


def started(name: str = NAME, attempt: int = 1, at: int = 0, term: int = 1) -> StepStarted:
    return StepStarted(step=name, attempt=attempt, commit=commit(at), term=term)


def finished(outcome: str, name: str = NAME, attempt: int = 1, at: int = 0) -> StepFinished:
    return StepFinished(step=name, outcome=outcome, attempt=attempt, commit=commit(at))  # type: ignore[arg-type]


def moved(to: int = 1) -> TipMoved:
    return TipMoved(previous=commit(to - 1), commit=commit(to), branch="release/1.2.3")


def waived(name: str = NAME, attempt: int = 1, at: int = 0, **changes: Any) -> Waived:
    values: dict[str, Any] = {"waiver": "waiver-1", "outcome": "failed", "cause": "exit-1", "reason": "Help is slow"}
    return Waived(step=name, attempt=attempt, commit=commit(at), **values | changes)


def again(*names: str) -> ResumeStarted:
    return ResumeStarted(step=names[0], number=1, owed=(), commit=commit(0), again=names, plan="3" * 64)


def requested(name: str = NAME, attempt: int = 1, at: int = 0, shown: str = SHOWN) -> list[Event]:
    asked = ApprovalRequested(step=name, attempt=attempt, commit=commit(at), shown=shown)
    return [started(name, attempt, at), asked]


def decided(decision: str, name: str = NAME, attempt: int = 1, at: int = 0, shown: str = SHOWN) -> list[Event]:
    told = ApprovalDecided(
        step=name, attempt=attempt, commit=commit(at), shown=shown, decision=decision, by="ada", reason="so"  # type: ignore[arg-type]
    )  # fmt: skip
    return [told, finished("passed" if decision == "approved" else "failed", name, attempt, at)]


def release(*events: Event, names: tuple[str, ...] = (NAME,)) -> ReleaseView:
    return views_of(begun(*names), *events).release


def where(one: Step, *events: Event, date: str = TODAY, shown: str = "") -> Standing:
    return standing(release(*events), one, Now(date, shown))


ATTEMPTS: dict[str, list[Event]] = {
    "none": [],
    "running": [started()],
    "passed": [started(), finished("passed")],
    "failed": [started(), finished("failed")],
    "unmeasured": [started(), finished("unmeasured")],
}
AFTER: dict[str, list[Event]] = {"nothing": [], "asked again": [again(NAME)], "moved": [moved()]}
WAIVERS: dict[str, list[Event]] = {
    "none": [],
    "valid": [waived()],
    "retired": [waived(), WaiverRetired(waiver="waiver-1", why="run-again")],
    "over": [waived(expires="2030-01-01")],
    "last day": [waived(expires="2030-01-02")],
    "of another attempt": [waived(attempt=2)],
    "of another commit": [waived(at=7)],
    "of another step": [waived(name="other")],
}
FLAGS: dict[str, dict[str, Any]] = {"plain": {}, "tolerated": {"tolerated": True}, "observer": {"observer": True}}


def told(attempt: str, after: str, waiver: str, own_commit: bool) -> str:
    """The state in the words of somebody who decides it by elimination."""
    if attempt == "running":
        return "running"
    possible = {"pending", "stale", "waived", attempt}
    if attempt != "none" and after != "asked again":
        possible.discard("pending")
    if not (after == "moved" and own_commit) or attempt == "none":
        possible.discard("stale")
    # Whoever waived a result waived it on one commit, even when the result would do for another one.
    if waiver not in ("valid", "last day") or attempt in ("none", "passed") or after == "moved":
        possible.discard("waived")
    return next(state for state in ("pending", "stale", "waived", attempt) if state in possible)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(
    ("attempt", "after", "waiver", "own_commit"), list(product(ATTEMPTS, AFTER, WAIVERS, (True, False)))
)
def test_a_step_stands_where_the_table_says(
    attempt: str, after: str, waiver: str, own_commit: bool, flags: str
) -> None:
    one = step(NAME, consumes_candidate=own_commit, **FLAGS[flags])
    found = where(one, *ATTEMPTS[attempt], *WAIVERS[waiver], *AFTER[after])
    state = told(attempt, after, waiver, own_commit)
    assert found.state == state
    tolerated = flags == "tolerated" and state in ("failed", "unmeasured")
    assert found.settled == (flags == "observer" or state in ("passed", "waived") or tolerated)
    assert found.waiver == ("waiver-1" if state == "waived" else "")
    assert bool(found.why) == (state in ("stale", "waived"))
    assert (found.attempt, found.commit) == ((0, "") if attempt == "none" else (1, commit(0)))


ANSWERS: dict[str, list[Event]] = {
    "none": [],
    "asked": requested(),
    "begun": [started()],
    "approved": [*requested(), *decided("approved")],
    "approved, half told": [*requested(), decided("approved")[0]],
    "rejected": [*requested(), *decided("rejected")],
}


def told_of_an_approval(answer: str, after: str, shown: str) -> str:
    if answer in ("none", "begun") or after == "asked again":
        return "pending"
    other = shown == OTHER or after == "moved"
    if answer == "rejected":
        return "stale" if after == "moved" else "failed"
    return "stale" if other else "awaiting" if answer == "asked" else "passed"


@pytest.mark.parametrize(("answer", "after", "shown"), list(product(ANSWERS, AFTER, ("", SHOWN, OTHER))))
def test_an_approval_stands_for_what_was_shown_on_its_commit(answer: str, after: str, shown: str) -> None:
    found = where(step(NAME, "approve"), *ANSWERS[answer], *AFTER[after], shown=shown)
    state = told_of_an_approval(answer, after, shown)
    assert found.state == state
    assert found.settled == (state == "passed")
    assert bool(found.why) == (state in ("stale", "failed"))


def test_a_newer_request_counts_and_the_older_answer_does_not() -> None:
    history = [*requested(), *decided("approved"), *requested(attempt=2, shown=OTHER)]
    assert where(step(NAME, "approve"), *history, shown=OTHER).state == "awaiting"
    assert where(step(NAME, "approve"), *history, *decided("rejected", attempt=2, shown=OTHER)).state == "failed"


def built(at: int = 0, digest: str = "a" * 64) -> Prepared:
    return Prepared(
        step="prepare", version="1.2.3", commit=commit(at), digest=digest, size_bytes=1, files=1, place="releases/1.2.3"
    )


def aside(digest: str = "a" * 64) -> Quarantined:
    return Quarantined(
        what="archive", place="quarantine/1", digest=digest, size_bytes=1, reason="older", kept_sequence=0, lost=()
    )


def test_an_archive_that_was_moved_aside_is_gone_until_it_is_built_again() -> None:
    one, names = step("prepare", "prepare"), ("prepare",)
    first = [started("prepare"), built(), finished("passed", "prepare")]
    second = [started("prepare", 2), built(), finished("passed", "prepare", 2)]
    gone = release(*first, aside(), names=names)
    assert (archive_of(gone), standing(gone, one, Now(TODAY)).state) == (None, "stale")
    assert standing(gone, one, Now(TODAY)).why == "its archive was moved aside"
    back = release(*first, aside(), *second, names=names)
    assert (archive_of(back), standing(back, one, Now(TODAY)).state) == (built(), "passed")
    other = release(*first, aside("b" * 64), names=names)
    assert standing(other, one, Now(TODAY)).state == "passed"


def test_a_build_that_failed_has_failed_whatever_became_of_the_archive_before() -> None:
    history = [started("prepare"), built(), finished("passed", "prepare"), started("prepare", 2), aside()]
    view = release(*history, finished("failed", "prepare", 2), names=("prepare",))
    assert standing(view, step("prepare", "prepare"), Now(TODAY)).state == "failed"


def test_a_missing_archive_is_of_no_account_from_when_anything_irreversible_was_done() -> None:
    graph = StepGraph(steps=(step("prepare", "prepare"), *PUBLISHING.steps))
    history = [
        started("prepare"), built(), finished("passed", "prepare"), *requested("approve"),
        *decided("approved", "approve"), started("publish"), aside(),
    ]  # fmt: skip
    for outcome, state in (("passed", "passed"), ("failed", "stale"), ("unmeasured", "stale")):
        view = release(*history, finished(outcome, "publish"), names=graph.names())
        assert standings(view, graph, Now(TODAY))["prepare"].state == state


def test_the_archive_of_a_release_is_the_newest_one_of_the_commit_that_counts() -> None:
    history = [built(digest="a" * 64), built(digest="b" * 64)]
    assert archive_of(release(*history)) == built(digest="b" * 64)
    assert archive_of(release(*history, moved())) is None
    assert archive_of(release(*history, moved(), built(1, "c" * 64))) == built(1, "c" * 64)


PUBLISHING = StepGraph(
    steps=(
        step("approve", "approve"),
        step("publish", irreversible=True, needs=("approve",)),
        step("announce", irreversible=True, needs=("publish",)),
    )
)


def publishing(*events: Event) -> dict[str, str]:
    view = release(*requested("approve"), *decided("approved", "approve"), *events, names=PUBLISHING.names())
    return {name: one.state for name, one in standings(view, PUBLISHING, Now(TODAY, OTHER)).items()}


def test_an_approval_stands_whatever_changes_from_when_all_that_needs_it_was_done_and_not_before() -> None:
    published = [started("publish"), finished("passed", "publish")]
    announced = [started("announce"), finished("passed", "announce")]
    assert publishing()["approve"] == "stale"
    assert publishing(*published)["approve"] == "stale"
    assert publishing(*published, started("announce"), finished("failed", "announce"))["approve"] == "stale"
    assert publishing(*published, *announced)["approve"] == "passed"


def _ended_for(cause: str) -> Event:
    return structs.replace(finished("unmeasured", "publish"), report=StepReport(cause=cause))


@pytest.mark.parametrize(
    ("events", "pinned"),
    [
        ([], ""),
        ([started("publish")], "publish"),
        ([started("publish"), finished("failed", "publish")], ""),
        ([started("publish"), finished("unmeasured", "publish")], "publish"),
        ([started("publish"), _ended_for("secret-missing")], ""),
        ([started("publish"), _ended_for("step-driver-died")], "publish"),
        ([started("publish"), finished("passed", "publish")], "publish"),
        ([started("publish"), finished("passed", "publish"), moved()], ""),
        ([started("approve"), finished("passed", "approve")], ""),
    ],
)
def test_what_was_begun_and_cannot_be_taken_back_pins_the_commit(events: list[Event], pinned: str) -> None:
    assert pinned_by(release(*events, names=PUBLISHING.names()), PUBLISHING) == pinned


def test_the_newest_waiver_of_a_step_is_the_one_that_holds() -> None:
    graph = StepGraph(steps=(step(NAME, waivable=True), step("other", waivable=True)))
    history = [started(), finished("failed"), waived(expires="2030-01-01"), waived(waiver="waiver-2")]
    found = valid_waivers(release(*history, names=graph.names()), graph, TODAY)
    assert {name: one.waived.waiver for name, one in found.items()} == {NAME: "waiver-2"}


def test_an_attempt_after_a_waived_one_is_not_waived() -> None:
    history = [started(), finished("failed"), waived(), started(attempt=2), finished("failed", attempt=2)]
    assert where(step(NAME, waivable=True), *history).state == "failed"


def test_nothing_of_a_release_is_forgotten() -> None:
    history = [
        started(), finished("failed"), waived(), moved(), again(NAME),
        WaiverRetired(waiver="waiver-1", why="run-again"),
        started(attempt=2, at=1, term=2), finished("passed", attempt=2, at=1), moved(2),
    ]  # fmt: skip
    view = release(*history)
    attempts = view.steps[NAME].attempts
    assert [(one.number, one.commit, one.outcome, one.term) for one in attempts] == [
        (1, commit(0), "failed", 1), (2, commit(1), "passed", 2),
    ]  # fmt: skip
    assert view.commits() == (commit(0), commit(1), commit(2))
    assert view.waivers["waiver-1"].retired == "run-again"
    assert [one.number for one in view.resumes] == [1]
    assert release().commits() == (commit(0),)
    whole = recorded([begun(), *history])
    for number, one in enumerate(whole, start=1):
        assert fold(RELEASE, whole, as_of=one.sequence) == fold(RELEASE, whole[:number])


def test_a_gate_is_no_release() -> None:
    view = views_of(run_started(), StepStarted(step="gate"), again("gate"), StepFinished(step="gate", outcome="passed"))
    assert view.release == ReleaseView()
    with pytest.raises(LookupError):
        _ = view.release.begun


def test_what_is_shown_is_all_that_was_let_pass_and_what_came_before_the_approval() -> None:
    graph = StepGraph(
        steps=(step("look", observer=True), step(NAME, waivable=True), step("approve", "approve"), step("publish"))
    )
    view = release(started(), finished("failed"), waived(expires=TODAY), built(), names=graph.names())
    shown = shown_now(view, graph, TODAY, ("b", "a"))
    assert (shown.commit, shown.archive, shown.mutes) == (commit(0), "a" * 64, ("a", "b"))
    assert shown.waivers == ((NAME, "Help is slow"),)
    assert shown.verdicts == ((NAME, "waived"),)
    later = shown_now(view, graph, "2030-01-03")
    assert (later.waivers, later.verdicts) == ((), ((NAME, "failed"),))
