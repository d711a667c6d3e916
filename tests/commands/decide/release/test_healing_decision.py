"""Deciding about a gate of a release that did not pass: once, with all that it was reached by; and then it is done."""

from typing import Any

import pytest
from msgspec.structs import replace

from commands.decide.release.next import Begin, Finish, Heal
from commands.messages import HealGate
from commands.replay import replay
from ledger.events import AutohealDecided, RecheckPlanned, ResumeStarted, StepStarted
from ledger.tables import decode_document
from ledger.values import Verdict
from projections.release.healing import CAPS
from projections.release.resume import ReleasePlan, Tip, plan_release
from projections.release.trouble import OwedSide, Trouble
from tests.support.makers import RUN, recorded
from tests.support.releases import TODAY, PureRelease, chain, commit, step, usual

KILLED = OwedSide(shard="shard-1", what="shard-1/candidate", targets=("a.py",), codes=("signalled",), seconds=2.0)
POOL = ("local", "pod")


def ended(outcome: Verdict = "unmeasured", cause: str = "cases-unmeasured", **limits: Any) -> PureRelease:
    """A release whose gate came to this."""
    release = PureRelease(usual(**{"autoheal": True} | limits)).start().until("gate")
    release.act()
    release.handle(release.end("gate", outcome, cause))
    return release


def heal(release: PureRelease, *owed: OwedSide, **changes: Any) -> HealGate:
    """The message of the driver about the newest attempt at the gate."""
    last = release.views.release.steps["gate"].attempts[-1]
    trouble = Trouble(verdict=last.outcome, owed=owed or (KILLED,), members=("local",))
    values: dict[str, Any] = {"step": "gate", "attempt": last.number, "trouble": trouble}
    return HealGate(stream=RUN, **values | changes)


def again(release: PureRelease, outcome: Verdict = "unmeasured") -> None:
    """The gate is begun again, and comes to this."""
    assert release.act() == Begin("gate")
    release.handle(release.end("gate", outcome, "cases-unmeasured"))


def test_a_gate_that_did_not_pass_is_decided_about_then_begun_again_in_the_same_run() -> None:
    release = ended()
    assert release.to_do() == Heal("gate")
    (event,) = release.handle(heal(release))
    first = release.views.release.steps["gate"].attempts[0]
    assert event == AutohealDecided(
        step="gate", attempt=1, commit=commit(0), gate=first.gate, table="autoheal/1", cause="shard-death",
        codes=("signalled",), signature=heal(release).trouble.signature(), history={}, taken=0, caps=CAPS,
        facts=("may-differ",), row="D5", action="retry-shard",
        passed_over={"D1": "memory", "D2": "halves", "D3": "alone", "D4": "member"}, subject="shard-1",
        shard_seconds=2.0, elapsed_seconds=1.0,
    )  # fmt: skip
    assert (release.to_do(), release.states()["gate"]) == (Begin("gate"), "pending")
    (begun,) = release.handle(release.begin("gate"))
    assert isinstance(begun, StepStarted)
    assert (begun.attempt, begun.gate) == (2, first.gate)
    assert release.views.release.resumes == []


def test_it_is_decided_once_for_each_attempt() -> None:
    release = ended()
    message = heal(release)
    assert release.handle(message)
    assert release.handle(message) == ()
    again(release)
    assert release.handle(message) == ()
    assert release.handle(heal(release))
    assert message.command() == f"heal/{RUN}/gate/1"
    assert heal(release).command() == f"heal/{RUN}/gate/2"


@pytest.mark.parametrize("outcome", ["failed", "unmeasured"])
def test_what_is_left_to_a_person_ends_the_release_as_without_healing(outcome: Verdict) -> None:
    release = ended(outcome)
    trouble = Trouble(verdict=outcome)
    (event,) = release.handle(heal(release, trouble=trouble))
    assert isinstance(event, AutohealDecided)
    assert (event.action, event.row) == ("hitl", "A1" if outcome == "failed" else "A2")
    assert release.states()["gate"] == outcome
    assert release.drive() == outcome
    assert release.views.release.steps["triage"].attempts != [] or outcome == "unmeasured"


def test_what_comes_again_and_again_is_left_to_a_person_by_the_cap_of_its_signature() -> None:
    release, rows = ended(), []
    while release.to_do() == Heal("gate"):
        (event,) = release.handle(heal(release))
        assert isinstance(event, AutohealDecided)
        rows.append((event.row, event.history, event.taken))
        if event.action != "hitl":
            again(release)
    assert rows == [("D5", {}, 0), ("D5", {"retry-shard": 1}, 1), ("A3", {"retry-shard": 2}, 2)]
    assert release.drive() == "unmeasured"


def test_ever_new_troubles_are_left_to_a_person_by_the_cap_of_the_release() -> None:
    release, rows = ended(), []
    for number in range(5):
        (event,) = release.handle(heal(release, replace(KILLED, targets=(f"{number}.py",))))
        assert isinstance(event, AutohealDecided)
        rows.append(event.row)
        if number < 4:
            again(release)
    assert rows == ["D5"] * 4 + ["A4"]
    # What a person has run again does not begin the count anew.
    assert release.drive() == "unmeasured"
    release.handle(release.resume("gate"))
    again(release)
    (event,) = release.handle(heal(release))
    assert isinstance(event, AutohealDecided)
    assert event.row == "A4"


@pytest.mark.parametrize(
    ("limits", "outcome", "cause"),
    [
        ({"autoheal": False}, "unmeasured", "cases-unmeasured"),
        ({}, "passed", ""),
        ({}, "unmeasured", "step-stopped"),
        ({}, "unmeasured", "step-driver-died"),
    ],
)
def test_nothing_is_decided_where_there_is_nothing_to_heal(
    limits: dict[str, Any], outcome: Verdict, cause: str
) -> None:
    release = ended(outcome, cause, **limits)
    assert release.to_do() != Heal("gate")
    assert release.handle(heal(release)) == ()


def test_only_a_gate_that_decides_is_healed() -> None:
    graph = chain(step("gate", "gate", tolerated=True), step("lint"), autoheal=True)
    release = PureRelease(graph).start()
    assert release.drive({"gate": "unmeasured", "lint": "unmeasured"}) == "unmeasured"
    assert not any(isinstance(event, AutohealDecided) for event in release.events)
    assert release.handle(heal(release, step="lint")) == ()
    assert release.refusal(heal(release, step="nothing")).code == "step-unknown"


def test_a_release_does_not_end_before_it_is_decided() -> None:
    release = ended()
    assert release.refusal(release.finish()).code == "release-unfinished"
    release.handle(heal(release))
    assert release.refusal(release.finish()).code == "release-unfinished"


def test_a_driver_that_died_after_the_decision_is_followed_without_an_attempt() -> None:
    release = ended()
    release.handle(heal(release))
    release.take()
    assert release.handle(release.resume("gate")) == ()
    assert release.act() == Begin("gate")
    assert release.views.release.resumes == []


def test_a_decision_that_nobody_knows_is_left_alone() -> None:
    """A newer program has decided something that this one cannot do."""
    release = ended()
    (event,) = release.handle(heal(release))
    assert isinstance(event, AutohealDecided)
    odd = with_decision(ended(), replace(event, action="teleport", table="autoheal/9"))
    assert odd.states()["gate"] == "unmeasured"
    assert odd.to_do() == Finish("unmeasured", "gate")
    assert odd.handle(heal(odd)) == ()
    odd.handle(odd.finish())
    plan = planned(odd)
    assert plan.healing == "ignored: this version knows no 'teleport' for 'shard-death' (autoheal/9)"
    assert plan.reroute == ""


def test_a_decision_about_an_attempt_that_is_not_there_changes_nothing() -> None:
    release = ended()
    (event,) = release.handle(heal(release))
    assert isinstance(event, AutohealDecided)
    for odd in (replace(event, attempt=7), replace(event, step="nothing")):
        assert with_decision(ended(), odd).states()["gate"] == "unmeasured"


def with_decision(release: PureRelease, event: AutohealDecided) -> PureRelease:
    """The release, with a decision that another program recorded."""
    release.events.append(event)
    release.views.apply(recorded([event], start=len(release.events))[0])
    return release


def planned(release: PureRelease, **changes: Any) -> ReleasePlan:
    """What taking it up again from the gate records as its plan."""
    *_, resumed = release.handle(release.resume("gate", **changes))
    assert isinstance(resumed, ResumeStarted)
    assert isinstance(resumed.plan, str)
    return decode_document(release.documents[resumed.plan], ReleasePlan)


def left_to_a_person(*owed: OwedSide) -> PureRelease:
    """A release that ended because its gate was healed as often as it may be."""
    release = ended()
    while release.to_do() == Heal("gate"):
        release.handle(heal(release, *owed))
        if release.to_do() == Begin("gate"):
            again(release)
    assert release.drive() == "unmeasured"
    return release


def test_a_plan_carries_the_last_decision_only_for_the_commit_that_it_is_about() -> None:
    release = left_to_a_person()
    assert planned(release).healing == "left to a person: shard-death of shard-1 (signalled), by row A3 of autoheal/1"
    for elsewhere in (left_to_a_person(), left_to_a_person()):
        elsewhere.tip = commit(1)
        assert planned(elsewhere).healing == ""


REROUTED = {"reroute": "shard-1", "shards": ("shard-1", "pod-3"), "members": POOL}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tip": commit(1)}, "reroute-moved-tip"),
        ({"reroute": "shard-2"}, "reroute-unknown"),
        ({"reroute": "2"}, "reroute-unknown"),
        ({"shards": ()}, "reroute-unknown"),
        ({"members": ("local",)}, "reroute-no-member"),
        ({"reroute": "auto", "members": ()}, "reroute-no-member"),
        ({"waive": "gate", "reason": "The gate could not be measured"}, "reroute-not-gate"),
    ],
)
def test_a_shard_goes_elsewhere_only_where_it_can(changes: dict[str, Any], code: str) -> None:
    release = left_to_a_person()
    refused = release.refusal(release.resume("gate", **REROUTED | changes))
    assert refused.code == code
    if code == "reroute-unknown":
        assert ("pod-2" in refused.message) == (changes.get("reroute") == "2")


def test_a_gate_of_the_commit_before_has_no_shards_that_could_go_elsewhere() -> None:
    """The move of the branch is recorded already, but the gate was not begun again since."""
    release = left_to_a_person()
    release.tip = commit(1)
    assert planned(release).healing == ""
    assert release.refusal(release.resume("gate", **REROUTED)).code == "reroute-moved-tip"


def test_only_shards_of_a_gate_go_elsewhere() -> None:
    release = PureRelease(usual()).start().came_to("screens", "failed")
    assert release.refusal(release.resume("screens", **REROUTED)).code == "reroute-not-gate"


@pytest.mark.parametrize(("asked", "moves"), [("shard-1", "shard-1"), ("3", "pod-3"), ("auto", "auto")])
def test_what_is_asked_for_is_planned_and_excludes_a_partial_gate(asked: str, moves: str) -> None:
    recheck = RecheckPlanned(
        gate="gate-1", commit=commit(0), classes="d" * 64, targets=("a.py",), changed=(), unsettled=("a.py",)
    )
    plan = planned(left_to_a_person(), **REROUTED | {"reroute": asked, "recheck": recheck})
    assert (plan.reroute, plan.recheck, plan.gate) == (moves, None, "owed")


def test_what_is_asked_for_wins_over_what_was_decided_and_is_planned_even_while_that_is_to_be_done() -> None:
    release = ended()
    away = Trouble(verdict="unmeasured", owed=(KILLED,), members=POOL)
    (event,) = release.handle(heal(release, trouble=away))
    assert isinstance(event, AutohealDecided)
    assert (event.action, event.subject) == ("reroute-shard", "shard-1")
    assert planned(release, **REROUTED | {"reroute": "3"}).reroute == "pod-3"


def test_what_was_decided_moves_a_shard_only_on_its_commit_and_in_a_pool_that_has_where() -> None:
    release = ended()
    release.handle(heal(release, trouble=Trouble(verdict="unmeasured", owed=(KILLED,), members=POOL)))

    def moved(tip: int, members: tuple[str, ...]) -> str:
        view = release.views.release
        return plan_release(view, release.graph, "gate", Tip(commit=commit(tip)), TODAY, members=members).reroute

    assert (moved(0, POOL), moved(1, POOL), moved(0, ("local",))) == ("shard-1", "", "")


def test_replay_says_so_of_a_table_that_it_does_not_have() -> None:
    release = ended()
    (event,) = release.handle(heal(release))
    assert isinstance(event, AutohealDecided)
    (finding,) = replay(recorded([replace(event, table="autoheal/9")]), lambda digest: b"")
    assert (finding.outcome, finding.reason) == ("not-derivable", "table-unknown")
    assert "autoheal/9" in finding.detail
    (finding,) = replay(recorded([event]), lambda digest: b"")
    assert finding.reason == "message-missing"
