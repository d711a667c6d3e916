"""Approvals: they bind to what was shown, are given once, and by those who may."""

from collections.abc import Callable

import pytest

from commands.messages import DecideApproval
from ledger.events import ApprovalDecided, StepFinished, StepReport
from ledger.values import Verdict
from tests.support.releases import PureRelease, chain, commit, step, usual

Case = tuple[PureRelease, DecideApproval]


def waiting(**limits: object) -> PureRelease:
    release = PureRelease(usual(**limits)).start()
    assert release.drive() == "approve"
    return release


def answered(decision: str) -> Case:
    release = waiting()
    release.handle(release.answer("approve", decision))
    return release, release.answer("approve")


def other_mutes() -> Case:
    release = waiting()
    release.mutes = ("a.py::test_a",)
    return release, release.answer("approve")


def moved_commit() -> Case:
    release = waiting()
    release.tip = commit(1)
    release.handle(release.resume("gate"))
    return release, release.answer("approve")


def other_archive() -> Case:
    release = waiting()
    release.handle(release.resume("prepare"))
    release.act()
    release.act()
    return release, release.answer("approve")


def asked_for_again() -> Case:
    steps = chain(step("approve", "approve"), step("sign", "approve"), step("publish", irreversible=True))
    release = PureRelease(steps).start().until("sign")
    release.act()
    release.handle(release.answer("sign", "rejected"))
    release.drive()
    release.handle(release.resume("sign"))
    return release, release.answer("sign")


def waived_by_the_same() -> Case:
    release = PureRelease(usual(separate_duties=True)).start().came_to("screens", "failed")
    release.handle(release.resume("screens", waive="screens", reason="Help is slow"))
    assert release.drive() == "approve"
    waiver = release.views.release.waivers["waiver-1"]
    return release, release.answer("approve", by=waiver.by)


def by(name: str, **limits: object) -> Case:
    release = waiting(**limits)
    return release, release.answer("approve", by=name)


def without_a_reason() -> Case:
    release = waiting()
    return release, release.answer("approve", "rejected", reason=" ")


REFUSED: dict[str, tuple[str, Callable[[], Case]]] = {
    "nobody was asked": ("approval-not-asked", lambda: ((r := PureRelease(usual()).start()), r.answer("approve"))),
    "it is no approval": ("approval-not-asked", lambda: ((r := waiting()), r.answer("gate"))),
    "approved already": ("approval-decided", lambda: answered("approved")),
    "rejected already": ("approval-decided", lambda: answered("rejected")),
    "rejected, and to be asked for again": ("approval-decided", asked_for_again),
    "other tests are muted": ("approval-stale", other_mutes),
    "another commit counts": ("approval-stale", moved_commit),
    "another archive was built": ("approval-stale", other_archive),
    "not among those who may": ("approval-not-yours", lambda: by("ada", may_approve=("grace",))),
    "who waived does not approve": ("approval-not-yours", waived_by_the_same),
    "a rejection without a reason": ("reason-missing", without_a_reason),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_its_code_and_changes_nothing(name: str) -> None:
    code, case = REFUSED[name]
    release, message = case()
    assert release.refusal(message).code == code


@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_an_answer_ends_the_step_and_names_what_it_is_about(decision: str) -> None:
    release = waiting()
    asked = release.views.release.approvals["approve"][-1].requested
    decided, ended = release.handle(release.answer("approve", decision, reason=" it looks right "))
    assert decided == ApprovalDecided(
        step="approve", attempt=1, commit=commit(0), shown=asked.shown, decision=decision, by="ada",  # type: ignore[arg-type]
        reason="it looks right",
    )  # fmt: skip
    approved = decision == "approved"
    report = StepReport() if approved else StepReport(cause="rejected", detail="it looks right")
    assert ended == StepFinished(
        step="approve", outcome="passed" if approved else "failed", attempt=1, commit=commit(0), report=report
    )
    assert release.states()["approve"] == ("passed" if approved else "failed")


def test_those_who_may_approve_do_and_everybody_may_reject() -> None:
    release, message = by("grace", may_approve=("grace",))
    assert len(release.handle(message)) == 2
    other = waiting(may_approve=("grace",))
    assert len(other.handle(other.answer("approve", "rejected", by="ada"))) == 2


def test_somebody_else_approves_of_what_was_waived() -> None:
    release, _ = waived_by_the_same()
    assert len(release.handle(release.answer("approve", by="grace"))) == 2


def test_with_one_pair_of_eyes_who_waived_may_approve() -> None:
    release = PureRelease(usual()).start().came_to("screens", "failed")
    release.handle(release.resume("screens", waive="screens", reason="Help is slow"))
    release.drive()
    assert len(release.handle(release.answer("approve", by=release.views.release.waivers["waiver-1"].by))) == 2


def test_an_approval_is_taken_back_while_nothing_was_done_on_it_that_cannot_be() -> None:
    release, _ = answered("approved")
    release.handle(release.answer("approve", "rejected", reason="the wrong version"))
    assert release.states()["approve"] == "failed"
    assert release.views.release.approvals["approve"][-1].decided.decision == "rejected"  # type: ignore[union-attr]


@pytest.mark.parametrize("outcome", [None, "passed", "unmeasured"])
def test_an_approval_is_not_taken_back_after_that_was_begun(outcome: Verdict | None) -> None:
    release, _ = answered("approved")
    release.handle(release.begin("publish"))
    if outcome is not None:
        release.handle(release.end("publish", outcome))
    assert release.refusal(release.answer("approve", "rejected", reason="too late")).code == "approval-decided"
