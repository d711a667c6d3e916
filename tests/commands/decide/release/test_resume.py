"""Taking a release up again: all of what was asked for in one append, or a refusal with its code and nothing at all."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from commands.decide.release.next import Begin
from commands.messages import ResumeRelease
from ledger.events import (
    OverrideUsed,
    RegressionAccepted,
    ResumeStarted,
    TipMoved,
    Waived,
    WaiverRetired,
)
from ledger.tables import decode_document
from projections.release.resume import ReleasePlan, Tip, plan_release
from tests.support.releases import BRANCH, TODAY, PureRelease, chain, commit, step, usual

REASON = "Help does not close when requested"
Case = tuple[PureRelease, ResumeRelease]


def failed_at(name: str, outcome: str = "failed", **limits: object) -> PureRelease:
    return PureRelease(usual(**limits)).start().came_to(name, outcome)  # type: ignore[arg-type]


def waiving(release: PureRelease, name: str = "screens", **changes: object) -> Case:
    return release, release.resume(name, **{"waive": name, "reason": REASON} | changes)


def moved(release: PureRelease, to: int = 1, *, forward: bool = True) -> PureRelease:
    release.tip, release.forward = commit(to), forward
    return release


def passed() -> Case:
    release = PureRelease(chain(step("docs"))).start()
    assert release.drive() == "passed"
    return release, release.resume("docs")


def from_a_step_aside() -> Case:
    release = failed_at("gate")
    return release, release.resume("triage")


def from_before_the_cut() -> Case:
    release = PureRelease(chain(step("clean", consumes_candidate=False), step("cut", "cut"), step("docs"))).start()
    release.came_to("docs", "failed")
    return release, release.resume("clean")


def by_commit() -> Case:
    release = PureRelease(usual(), branch="").start().came_to("gate", "failed")
    return release, release.resume("gate", tip=commit(1))


def before_it(name: str, outcome: str, start: str) -> Case:
    release = failed_at(name, outcome)
    return release, release.resume(start)


def stale_before_it() -> Case:
    release = moved(failed_at("screens"))
    return release, release.resume("screens")


def waits() -> Case:
    release = PureRelease(usual()).start()
    assert release.drive() == "approve"
    return release, release.resume("publish")


def published(start: str) -> Case:
    release = failed_at("docs")
    return release, release.resume(start)


def publishing() -> Case:
    release = PureRelease(usual()).start().until("publish")
    release.act()
    release.take()
    return release, release.resume("prepare")


def running() -> Case:
    release = PureRelease(usual()).start().until("screens")
    release.act()
    return waiving(release)


def asked_again() -> Case:
    release = failed_at("screens")
    release.handle(release.resume("screens"))
    return waiving(release)


def measured_gate() -> Case:
    return waiving(failed_at("gate"), "gate")


def too_often(**changes: object) -> Case:
    release = failed_at("screens", attempts_max=1)
    release.handle(release.resume("screens"))
    assert release.drive({"screens": "failed"}) == "failed"
    return release, release.resume("screens", **changes)


def known_twice() -> Case:
    release = failed_at("screens")
    release.handle(release.resume("screens", accept=(("R1", "Settings do not persist"),)))
    release.drive({"screens": "failed"})
    return release, release.resume("screens", accept=(("R1", "Something else"),))


def accepting(*issues: tuple[str, str]) -> Case:
    release = failed_at("screens")
    return release, release.resume("screens", accept=issues)


REFUSED: dict[str, tuple[str, Callable[[], Case]]] = {
    "it has passed": ("release-passed", passed),
    "runs only when another went wrong": ("step-aside", from_a_step_aside),
    "at the cut": ("restart-at-cut", lambda: before_it("gate", "failed", "cut")),
    "before the cut": ("restart-at-cut", from_before_the_cut),
    "no branch of its own": ("not-own-branch", by_commit),
    "the branch was rewritten": (
        "not-fast-forward",
        lambda: ((r := moved(failed_at("gate"), forward=False)), r.resume("gate")),
    ),
    "what came before is stale": ("after-consumer", stale_before_it),
    "what came before has failed": ("predecessor-unsettled", lambda: before_it("gate", "failed", "screens")),
    "what came before is unmeasured": ("predecessor-unsettled", lambda: before_it("gate", "unmeasured", "publish")),
    "an approval is open": ("approval-open", waits),
    "it was published": ("irreversible-done", lambda: published("publish")),
    "before what was published": ("irreversible-done", lambda: published("gate")),
    "while it is published": ("irreversible-done", publishing),
    "no reason": ("waiver-pair", lambda: waiving(failed_at("screens"), reason="")),
    "nothing to waive": ("waiver-pair", lambda: waiving(failed_at("screens"), waive="")),
    "a blank step": ("waiver-blank", lambda: waiving(failed_at("screens"), waive="  ")),
    "a blank reason": ("waiver-blank", lambda: waiving(failed_at("screens"), reason=" \n ")),
    "another step": ("waiver-from", lambda: waiving(failed_at("screens"), waive="gate")),
    "not fit for the public": ("waiver-reason-unsafe", lambda: waiving(failed_at("screens"), reason="see #12")),
    "the branch has moved": ("waiver-moved-tip", lambda: waiving(moved(failed_at("screens")))),
    "not waivable": ("waiver-protected", lambda: waiving(failed_at("docs"), "docs")),
    "an archive": ("waiver-protected", lambda: waiving(failed_at("prepare"), "prepare")),
    "a gate that was measured": ("waiver-protected", measured_gate),
    "not among those who may": ("waiver-not-yours", lambda: waiving(failed_at("screens", may_waive=("grace",)))),
    "it has passed, the next one failed": ("waiver-not-failed", lambda: waiving(failed_at("prepare"))),
    "it was not run": ("waiver-not-failed", lambda: waiving(PureRelease(usual()).start().until("screens"))),
    "it is running": ("waiver-not-failed", running),
    "it is to be run again": ("waiver-not-failed", asked_again),
    "an issue without a name": ("issues-invalid", lambda: accepting((" ", "Settings do not persist"))),
    "an issue without a note": ("issues-invalid", lambda: accepting(("R1", " "))),
    "an issue with a path": ("issues-invalid", lambda: accepting(("R1", "see src/index.ts"))),
    "an issue twice": ("issues-duplicate", lambda: accepting(("R1", "One thing"), ("R1", "Another thing"))),
    "a known issue": ("issues-duplicate", known_twice),
    "too often": ("attempts-exhausted", too_often),
    "too often, with an empty reason": ("attempts-exhausted", lambda: too_often(allow_attempt=" ")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_its_code_and_changes_nothing(name: str) -> None:
    code, case = REFUSED[name]
    release, message = case()
    assert release.refusal(message).code == code


def test_a_refusal_of_everything_names_the_step_to_resume_from() -> None:
    release, message = stale_before_it()
    refusal = release.refusal(message)
    assert "gate" in refusal.message
    assert refusal.hint == "resume --from gate"


def test_resuming_runs_the_step_and_what_needs_it_again_and_counts() -> None:
    release = failed_at("screens")
    (event,) = release.handle(release.resume("screens"))
    assert isinstance(event, ResumeStarted)
    assert (event.step, event.number, event.commit, event.again) == ("screens", 1, commit(0), ("screens",))
    assert isinstance(event.plan, str)
    plan = decode_document(release.documents[event.plan], ReleasePlan)
    assert (plan.attempt, plan.attempts_max, plan.moved, plan.boundary) == (1, 5, False, "")
    assert (plan.gate, plan.gate_reason) == ("not-run", "gate is kept")
    assert [(one.step, one.action) for one in plan.steps] == [
        ("cut", "kept"), ("gate", "kept"), ("screens", "again"), ("prepare", "run"), ("approve", "run"),
        ("publish", "run"), ("docs", "run"),
    ]  # fmt: skip
    assert release.views.run.status == "open"
    assert release.to_do() == Begin("screens")


def test_everything_that_was_asked_for_is_one_append_in_this_order() -> None:
    release = failed_at("screens", attempts_max=0)
    moved(release)
    release.handle(release.resume("gate", allow_attempt="the night"))
    release.drive({"screens": "failed"})
    asked = release.resume(
        "screens", waive="screens", reason=f" {REASON} ", accept=(("R1", "Settings do not persist"),),
        allow_attempt="it is the last one",
    )  # fmt: skip
    waived, accepted, override, resumed = release.handle(asked)
    assert waived == Waived(
        waiver="waiver-1", step="screens", attempt=2, commit=commit(1), outcome="failed", cause="exit-1", reason=REASON
    )
    assert accepted == RegressionAccepted(issue="R1", note="Settings do not persist", commit=commit(1))
    assert override == OverrideUsed(what="attempts", reason="it is the last one")
    assert isinstance(resumed, ResumeStarted)
    assert (resumed.number, resumed.again) == (2, ())
    assert release.states()["screens"] == "waived"
    assert release.drive() == "approve"


def test_a_branch_that_went_forward_is_followed_and_what_is_stale_runs_again() -> None:
    release = moved(failed_at("screens"))
    tip, resumed = release.handle(release.resume("gate"))
    assert tip == TipMoved(previous=commit(0), commit=commit(1), branch=BRANCH)
    assert isinstance(resumed, ResumeStarted)
    assert (resumed.commit, resumed.again) == (commit(1), ("gate", "screens"))
    assert release.states()["cut"] == "passed"


def test_a_waiver_is_retired_when_its_step_runs_again_and_by_nothing_else() -> None:
    release = failed_at("screens")
    release.handle(waiving(release)[1])
    release.came_to("prepare", "failed")
    assert not any(isinstance(event, WaiverRetired) for event in release.handle(release.resume("prepare")))
    release.drive({"prepare": "failed"})
    retired, resumed = release.handle(release.resume("screens"))
    assert retired == WaiverRetired(waiver="waiver-1", why="run-again")
    assert isinstance(resumed, ResumeStarted)
    release.drive({"screens": "failed"})
    (waived, _) = release.handle(waiving(release)[1])
    assert isinstance(waived, Waived)
    assert waived.waiver == "waiver-2"


def test_a_gate_that_could_not_be_measured_may_be_waived_when_its_steps_say_so() -> None:
    release = failed_at("gate", "unmeasured")
    waived, _ = release.handle(waiving(release, "gate")[1])
    assert isinstance(waived, Waived)
    assert (waived.step, waived.outcome) == ("gate", "unmeasured")
    strict = PureRelease(chain(step("gate", "gate"))).start().came_to("gate", "unmeasured")
    assert strict.refusal(waiving(strict, "gate")[1]).code == "waiver-protected"


def test_issues_alone_are_accepted_and_waive_nothing() -> None:
    release, message = accepting(("R2", "Settings do not persist"), ("R1", "Help is slow"))
    events = release.handle(message)
    assert [event.issue for event in events if isinstance(event, RegressionAccepted)] == ["R2", "R1"]
    assert not any(isinstance(event, Waived) for event in events)
    assert release.states()["screens"] == "pending"


def test_a_release_that_merely_goes_on_records_nothing_and_counts_nothing() -> None:
    fresh = PureRelease(usual()).start()
    assert fresh.handle(fresh.resume("cut")) == ()
    waiting = PureRelease(usual()).start()
    assert waiting.drive() == "approve"
    assert waiting.handle(waiting.resume("approve")) == ()
    taken_up = failed_at("screens")
    taken_up.handle(taken_up.resume("gate"))
    assert taken_up.handle(taken_up.resume("gate")) == ()
    died = PureRelease(usual()).start().until("gate")
    died.act()
    died.take()
    assert died.handle(died.resume("gate")) == ()
    assert {one.views.run.resumes for one in (fresh, waiting, died)} == {0}


def test_the_last_attempt_is_allowed_and_one_more_needs_a_reason() -> None:
    release, message = too_often()
    assert len(release.views.release.resumes) == release.graph.attempts_max == 1
    assert "1 of 1" in release.refusal(message).message
    override, resumed = release.handle(release.resume("screens", allow_attempt="we need it"))
    assert (override, isinstance(resumed, ResumeStarted)) == (OverrideUsed(what="attempts", reason="we need it"), True)


def test_what_was_published_pins_the_commit_so_the_branch_may_move_as_it_likes() -> None:
    release = moved(failed_at("docs"), forward=False)
    events = release.handle(release.resume("docs"))
    assert [type(event) for event in events] == [ResumeStarted]
    assert release.drive() == "passed"
    assert release.views.release.commit == commit(0)


def test_a_plan_says_what_is_pinned_and_why_the_gate_is_run_how() -> None:
    release = failed_at("docs")
    plan = plan_release(release.views.release, release.graph, "docs", Tip(commit=commit(1)), TODAY)
    assert (plan.pinned, plan.moved, plan.to) == ("publish", False, commit(0))
    gate = failed_at("gate", "unmeasured")
    for tip, mode in ((commit(0), "owed"), (commit(1), "full")):
        plan = plan_release(gate.views.release, gate.graph, "gate", Tip(commit=tip), TODAY)
        assert (plan.gate, plan.moved, plan.boundary) == (mode, mode == "full", "gate" if mode == "full" else "")
    without = PureRelease(chain(step("docs"))).start()
    plan = plan_release(without.views.release, without.graph, "docs", Tip(), TODAY)
    assert (plan.gate, plan.gate_reason) == ("not-run", "no step of this release is a gate")
    fresh = PureRelease(usual()).start()
    plan = plan_release(fresh.views.release, fresh.graph, "gate", Tip(), TODAY)
    assert (plan.gate, plan.attempt) == ("full", 0)


def test_an_approval_holds_over_a_resume_while_nothing_of_what_was_shown_changes() -> None:
    release = failed_at("publish")
    (resumed,) = release.handle(release.resume("prepare"))
    assert isinstance(resumed, ResumeStarted)
    assert resumed.again == ("prepare", "publish")
    before = release.views.release.archives[-1]
    release.act()
    message = release.end("prepare", "passed")
    release.handle(replace(message, digest=before.digest))
    assert release.to_do() == Begin("publish")


def test_an_approval_that_does_not_hold_on_the_new_commit_keeps_nobody_from_resuming_after_it() -> None:
    release = PureRelease(chain(step("approve", "approve"), step("publish", irreversible=True))).start()
    release.came_to("publish", "failed")
    tip, resumed = release.handle(moved(release).resume("publish"))
    assert isinstance(tip, TipMoved)
    assert isinstance(resumed, ResumeStarted)
    assert resumed.again == ("publish",)
    assert release.to_do() == Begin("approve")


def test_an_approval_that_was_rejected_is_asked_for_again_without_doing_again_what_was_done_on_the_first() -> None:
    release = PureRelease(
        chain(
            step("approve", "approve"), step("publish", irreversible=True), step("verify"),
            step("announce", irreversible=True),
        )
    ).start().until("verify")  # fmt: skip
    release.mutes = ("a.py::test_a",)
    assert release.drive() == "approve"
    release.handle(release.answer("approve", "rejected"))
    assert release.drive() == "failed"
    (resumed,) = release.handle(release.resume("approve"))
    assert isinstance(resumed, ResumeStarted)
    assert resumed.again == ("approve",)
    assert release.drive() == "approve"
    release.handle(release.answer("approve"))
    assert release.drive() == "passed"
    assert len(release.views.release.steps["publish"].attempts) == 1


def test_another_archive_is_approved_of_anew() -> None:
    release = failed_at("publish")
    release.handle(release.resume("prepare"))
    assert release.drive() == "approve"
