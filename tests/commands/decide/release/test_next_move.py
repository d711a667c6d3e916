"""What a release does next, at each station, and how it is driven from there."""

import pytest

from commands.decide.release.next import Begin, Execute, Finish, Settle, Wait
from ledger.values import Verdict
from tests.support.releases import PureRelease, chain, step, usual


def started(*steps: object) -> PureRelease:
    return PureRelease(chain(*steps) if steps else usual()).start()  # type: ignore[arg-type]


def moves(release: PureRelease, outcome: Verdict = "passed") -> list[str]:
    """Everything that is done until it ends or waits, in short."""
    found: list[str] = []
    while len(found) < 30:
        move = release.act(outcome)
        told = move.verdict if isinstance(move, Finish) else move.step
        found.append(f"{type(move).__name__} {told}")
        if isinstance(move, Finish | Wait):
            return found
    raise AssertionError(f"the release does not come to an end: {found}")


def test_a_release_that_goes_well_takes_its_steps_in_order_and_waits_for_the_approval() -> None:
    release = started()
    assert moves(release) == [
        "Begin cut", "Execute cut", "Begin gate", "Execute gate", "Begin screens", "Execute screens",
        "Begin prepare", "Execute prepare", "Begin approve", "Wait approve",
    ]  # fmt: skip
    assert moves(release) == ["Wait approve"]
    release.handle(release.answer("approve"))
    assert moves(release) == ["Begin publish", "Execute publish", "Begin docs", "Execute docs", "Finish passed"]
    assert release.views.run.verdict == "passed"


@pytest.mark.parametrize("outcome", ["failed", "unmeasured"])
def test_a_step_that_did_not_pass_ends_the_release_with_its_outcome(outcome: Verdict) -> None:
    release = started(step("smoke"), step("docs"))
    assert moves(release, outcome) == ["Begin smoke", "Execute smoke", f"Finish {outcome}"]
    assert release.to_do() == Finish(outcome, "smoke")


@pytest.mark.parametrize("outcome", ["failed", "unmeasured"])
def test_a_tolerated_step_and_an_observer_end_nothing(outcome: Verdict) -> None:
    release = started(step("look", observer=True), step("smoke", tolerated=True), step("docs"))
    assert release.drive({"look": outcome, "smoke": outcome}) == "passed"
    assert release.states() == {"look": outcome, "smoke": outcome, "docs": "passed"}


@pytest.mark.parametrize("outcome", ["failed", "unmeasured"])
@pytest.mark.parametrize(("on_failed", "on_unmeasured"), [("look", ""), ("", "look"), ("look", "look"), ("", "")])
def test_the_step_that_a_failure_leads_to_is_run_once_before_the_end(
    outcome: Verdict, on_failed: str, on_unmeasured: str
) -> None:
    gate = step("gate", "gate", on_failed=on_failed, on_unmeasured=on_unmeasured)
    release = started(gate, step("look", observer=True))
    taken = bool(on_failed if outcome == "failed" else on_unmeasured)
    aside = ["Begin look", "Execute look"] if taken else []
    assert moves(release, outcome) == ["Begin gate", "Execute gate", *aside, f"Finish {outcome}"]
    release.handle(release.resume("gate"))
    assert moves(release, outcome) == ["Begin gate", "Execute gate", *aside, f"Finish {outcome}"]


def test_a_step_is_tried_again_at_once_as_often_as_it_says_and_is_flaky_when_that_helps() -> None:
    release = started(step("smoke", retries=1), step("docs"))
    assert moves(release, "failed") == ["Begin smoke", "Execute smoke", "Begin smoke", "Execute smoke", "Finish failed"]
    release.handle(release.resume("smoke"))
    release.act()
    release.act("failed")
    release.drive()
    attempts = release.views.release.steps["smoke"].attempts
    assert [(one.outcome, one.report.verdict) for one in attempts] == [
        ("failed", ""), ("failed", ""), ("failed", ""), ("passed", "flaky"),
    ]  # fmt: skip


def test_what_passes_the_first_time_is_not_flaky_nor_is_what_was_cut_off_before() -> None:
    release = started(step("smoke", retries=1), step("docs", retries=1))
    release.act()
    release.take()
    assert release.act() == Settle("smoke")
    assert release.drive() == "passed"
    attempts = [*release.views.release.steps["smoke"].attempts, *release.views.release.steps["docs"].attempts]
    assert [(one.outcome, one.report.verdict) for one in attempts] == [
        ("unmeasured", ""), ("passed", ""), ("passed", ""),
    ]  # fmt: skip


def test_what_passes_after_somebody_took_it_up_again_or_healed_it_is_not_flaky() -> None:
    release = started(step("smoke", retries=1)).came_to("smoke", "failed")
    release.handle(release.resume("smoke"))
    healed = healing(autoheal=True)
    for outcome in ("passed", "unmeasured", "passed"):
        healed.act(outcome)
    assert (release.drive(), healed.drive()) == ("passed", "passed")
    for one in (release.views.release.steps["smoke"], healed.views.release.steps["gate"]):
        assert len(one.attempts) > 1
        assert {attempt.report.verdict for attempt in one.attempts} == {""}


def test_what_an_earlier_driver_left_is_brought_to_rest_first() -> None:
    release = started().until("screens")
    release.act()
    assert release.to_do() == Execute("screens")
    release.take()
    assert release.to_do() == Settle("screens")
    release.handle(release.resume("gate"))
    assert release.to_do() == Settle("screens")
    release.act()
    assert release.to_do() == Begin("gate")


def test_a_step_that_leads_aside_is_brought_to_rest_too() -> None:
    release = started().until("gate")
    release.act()
    release.act("failed")
    assert release.act() == Begin("triage")
    assert release.to_do() == Execute("triage")
    release.take()
    assert release.to_do() == Settle("triage")


def test_what_was_shown_has_changed_so_the_approval_is_asked_for_again() -> None:
    release = started()
    assert release.drive() == "approve"
    release.mutes = ("a.py::test_a",)
    assert release.to_do() == Begin("approve")
    release.act()
    assert release.to_do() == Wait("approve")
    release.handle(release.answer("approve"))
    assert release.to_do() == Begin("publish")
    release.mutes = ()
    assert release.to_do() == Begin("approve")


def test_what_was_published_is_not_asked_about_again() -> None:
    release = started().until("docs")
    release.mutes = ("a.py::test_a",)
    assert release.to_do() == Begin("docs")


def test_a_rejection_ends_the_release_until_somebody_asks_anew() -> None:
    release = started()
    assert release.drive() == "approve"
    release.handle(release.answer("approve", "rejected"))
    assert release.drive() == "failed"
    release.handle(release.resume("approve"))
    assert release.drive() == "approve"
    release.handle(release.answer("approve"))
    assert release.drive() == "passed"


@pytest.mark.parametrize(
    ("outcome", "then"),
    [
        ("choice", Begin("smoke")),
        ("deferred", Finish("unmeasured", "smoke")),
        ("cancelled", Finish("unmeasured", "smoke")),
    ],
)
def test_a_step_that_asked_is_waited_for_and_begun_again_when_it_has_something_to_go_on_with(
    outcome: str, then: object
) -> None:
    release = started(step("smoke"), step("docs"))
    release.act()
    release.act(asks=True)
    assert release.to_do() == Wait("smoke")
    release.handle(release.reply("smoke", outcome))
    assert release.to_do() == then


def answered() -> PureRelease:
    release = started(step("smoke", retries=1))
    release.act()
    release.act(asks=True)
    release.handle(release.reply("smoke"))
    return release


def test_to_ask_is_no_try_of_a_step() -> None:
    tried = ["Begin smoke", "Execute smoke"]
    assert moves(answered(), "failed") == [*tried, *tried, "Finish failed"]
    release = answered()
    assert release.drive() == "passed"
    assert [one.report.verdict for one in release.views.release.steps["smoke"].attempts] == ["", ""]


def test_a_question_of_something_that_is_tolerated_or_observes_holds_nobody_up() -> None:
    release = started(step("look", observer=True), step("smoke", tolerated=True), step("docs"))
    for _ in range(2):
        release.act()
        release.act(asks=True)
    assert release.to_do() == Begin("docs")


def healing(**flags: bool) -> PureRelease:
    return PureRelease(chain(step("gate", "gate", on_unmeasured="look"), step("look", observer=True), **flags)).start()


def test_a_gate_that_did_not_pass_is_looked_at_and_what_can_be_healed_is_begun_again() -> None:
    release = healing(autoheal=True)
    heals = ["Begin gate", "Execute gate", "Heal gate"]
    assert moves(release, "unmeasured") == [*heals, *heals, *heals, "Begin look", "Execute look", "Finish unmeasured"]
    assert [one.action for one in release.views.release.heals] == ["retry-shard", "retry-shard", "hitl"]


def test_a_gate_that_failed_is_looked_at_once_and_left_to_people() -> None:
    assert moves(healing(autoheal=True), "failed") == ["Begin gate", "Execute gate", "Heal gate", "Finish failed"]
    assert moves(healing(), "failed") == ["Begin gate", "Execute gate", "Finish failed"]


def test_a_gate_that_was_cut_off_is_not_looked_at() -> None:
    release = healing(autoheal=True)
    release.act()
    release.take()
    assert moves(release) == ["Settle gate", "Begin look", "Execute look", "Finish unmeasured"]
