"""What is wrong with a gate, read from the views of its run."""

from typing import Any

import pytest

from ledger.events import Event, GatePolicy, JudgedCase, PlannedRerun, RerunsPlanned
from ledger.tables import Plan, ShardTargets
from projections.gate.ladder import LADDER_VERSION
from projections.release.trouble import OwedSide, Trouble, trouble_of
from tests.support.makers import (
    COMMITS,
    attempt_recorded,
    attempt_started,
    begun,
    collections,
    planned,
    verdict_decided,
    views_of,
)

ONCE = GatePolicy(rounds=1, rerun="on", retry=LADDER_VERSION)
TWICE = GatePolicy(rounds=2, rerun="on", retry=LADDER_VERSION)
LOCAL = ("local",)


def trouble(*events: Event, policy: GatePolicy = ONCE, code: str = "") -> Trouble:
    """What is wrong with a gate after both collections, a plan and these."""
    views = views_of(*begun(policy), *collections(), *events)
    return trouble_of(views.gate, policy, code, LOCAL)


def shards(*targets: tuple[str, ...]) -> Event:
    """A plan of shards with these targets, which the baseline does not have."""
    named = tuple(ShardTargets(shard=f"shard-{n}", candidate=some, baseline=()) for n, some in enumerate(targets, 1))
    return planned(Plan(policy="count/1", candidate_inventory="1" * 64, baseline_inventory="2" * 64, shards=named))


def attempt(shard: str = "shard-1", number: int = 1, *, start: dict[str, Any] | None = None, **how: Any) -> list[Event]:
    """One attempt at the candidate of a shard."""
    return [attempt_started(shard, attempt=number, **start or {}), attempt_recorded(shard, attempt=number, **how)]


def unmeasured(*cases: JudgedCase) -> Event:
    """A gate that came to no answer."""
    return verdict_decided("unmeasured", reason="cases-unmeasured", unmeasured=cases)


def test_what_is_owed_is_named_with_the_codes_of_its_newest_record() -> None:
    found = trouble(
        shards(("a.py", "b.py"), ("c.py",)),
        *attempt(missing={"b.py": "time-limit"}, cause="time-limit"),
        *attempt(number=2, missing={"b.py": "signalled"}, cause="signalled", duration_seconds=7.0),
        *attempt("shard-2"),
        unmeasured(),
    )
    assert found.verdict == "unmeasured"
    assert found.owed == (
        OwedSide(shard="shard-1", what="shard-1/candidate", targets=("b.py",), codes=("signalled",), seconds=7.0),
    )
    assert (found.cause, found.shards, found.longest_seconds) == ("shard-death", ("shard-1",), 7.0)
    assert found.members == LOCAL


def test_what_an_attempt_did_not_come_to_has_no_code_of_its_own() -> None:
    found = trouble(
        shards(("a.py", "b.py", "c.py")),
        *attempt(missing={"a.py": "worker-crashed", "b.py": "not-run", "c.py": "not-run"}, cause="interrupted"),
        unmeasured(),
    )
    assert found.codes == ("interrupted", "worker-crashed")


def test_a_side_that_cannot_tell_its_targets_apart_is_owed_as_a_whole() -> None:
    (side,) = trouble(shards(("a.py", "b.py")), *attempt(measured=0, cause="lost"), unmeasured()).owed
    assert (side.targets, side.codes) == (None, ("lost",))


def test_whether_more_memory_is_to_be_had_is_told_by_whoever_knows_the_limits() -> None:
    views = views_of(*begun(ONCE))
    assert not trouble_of(views.gate, ONCE, "", LOCAL).more_memory
    assert trouble_of(views.gate, ONCE, "", LOCAL, more_memory=True).more_memory


def test_a_collection_that_failed_is_owed_before_anything_is_planned() -> None:
    views = views_of(
        *begun(ONCE),
        attempt_started("collection", "baseline"),
        attempt_recorded("collection", "baseline", cause="prepare-failed", measured=0),
    )
    found = trouble_of(views.gate, ONCE, "prepare-failed", LOCAL)
    assert [side.what for side in found.owed] == ["collection/candidate", "collection/baseline"]
    assert (found.verdict, found.cause, found.may_differ) == (None, "environment", True)


@pytest.mark.parametrize("code", ["", "store-unwritable"])
def test_a_gate_that_was_never_started_owes_nothing(code: str) -> None:
    found = trouble_of(views_of().gate, None, code, LOCAL)
    assert (found.verdict, found.owed, found.cause) == (None, (), "environment")
    assert found.codes == tuple(filter(None, [code]))


def test_a_measured_gate_owes_nothing_and_says_who_cannot_be_judged() -> None:
    judged = [
        JudgedCase("a.py::test_a", "interference", "interference"),
        JudgedCase("b.py::test_b", "unresolved", "rerun-hidden"),
        JudgedCase("c.py", "unmeasured", "signalled"),
    ]
    found = trouble(shards(("a.py",)), *attempt(), unmeasured(*judged))
    assert found.owed == ()
    assert found.unsure == (("a.py::test_a", "interference"), ("b.py::test_b", "rerun-hidden"))
    assert (found.codes, found.cause) == (("interference", "rerun-hidden"), "interference")


def test_a_rerun_is_named_by_its_test_so_that_its_number_makes_no_difference() -> None:
    def rerun(number: int) -> Trouble:
        shard = f"rerun-alone-{number}"
        planned_rerun = PlannedRerun(
            shard=shard, kind="alone", of="shard-1", attempt=1, targets=("a.py",), test="a.py::test_a"
        )
        return trouble(
            shards(("a.py",)),
            *attempt(attention=("a.py",)),
            RerunsPlanned(commit=COMMITS["candidate"], reruns=(planned_rerun,), stopped=""),
            *attempt(shard, measured=0, cause="signalled", start={"targets": ("a.py",)}),
            unmeasured(JudgedCase("a.py::test_a", "unresolved", "rerun-not-read")),
        )

    (side,) = rerun(1).owed
    assert (side.shard, side.what) == ("rerun-alone-1", "alone a.py::test_a/candidate")
    assert rerun(1).cause == "shard-death"
    assert rerun(1).signature() == rerun(7).signature()


FOUR = (("a.py", "b.py", "c.py", "d.py"), ("e.py", "f.py"), ("g.py", "h.py"))


def test_a_ladder_that_was_given_up_has_something_left_to_tell_apart() -> None:
    """The same cause ended every shard, so the gate did not look who it was."""
    dead = [
        event
        for n, targets in enumerate(FOUR, 1)
        for event in attempt(f"shard-{n}", measured=0, cause="signalled", targets=len(targets),
                             missing=dict.fromkeys(targets, "signalled"))
    ]  # fmt: skip
    left = trouble(shards(*FOUR), *dead, unmeasured(), policy=TWICE)
    assert (left.halves, left.alone) == (True, True)
    once = trouble(shards(*FOUR), *dead, unmeasured(), policy=ONCE)
    assert (once.halves, once.alone) == (False, False)
    old = GatePolicy(rounds=2, rerun="on")
    assert not trouble(shards(*FOUR), *dead, unmeasured(), policy=old).halves


def test_a_ladder_that_came_to_its_end_has_nothing_left() -> None:
    tried = [
        event
        for number in (1, 2, 3)
        for event in attempt(number=number, measured=0, cause="signalled", missing={"a.py": "signalled"},
                             start={"targets": ("a.py",)})
    ]  # fmt: skip
    found = trouble(shards(("a.py",)), *tried, unmeasured(), policy=TWICE)
    assert (found.halves, found.alone) == (False, False)
