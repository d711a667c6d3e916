"""What is done about a gate that did not pass: the whole table against an oracle, and everything that goes into it."""

from collections.abc import Mapping
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any, get_args

import pytest

from commands.causes import CAUSES, HEALED
from ledger.events import AutohealDecided
from projections.release.healing import (
    CAPS,
    HEALING_VERSION,
    Action,
    answer,
    choose,
    facts_of,
    heals,
    is_known,
    printed_healing,
    rerouted,
    rerouted_by,
    told,
)
from projections.release.trouble import CODES, PRECEDENCE, Cause, OwedSide, Trouble
from tests.support.makers import COMMITS

PAGE = (Path(__file__).parents[3] / "docs" / "autoheal.md").read_text("utf-8")
ACTIONS: tuple[Action, ...] = get_args(Action)
HEALING: tuple[str, ...] = tuple(action for action in ACTIONS if action != "hitl")
FACTS = ("nothing-owed", "signature-cap", "release-cap", "memory", "halves", "alone", "member", "may-differ")


def trouble(*codes: str, **changes: Any) -> Trouble:
    """A gate without a verdict of which one side of a shard is owed, with these codes."""
    side = OwedSide(shard="shard-1", what="shard-1/candidate", targets=("a.py",), codes=codes, seconds=3.0)
    values: dict[str, Any] = {"verdict": "unmeasured", "owed": (side,), "members": ("local",)}
    return Trouble(**values | changes)


def decided(action: str = "retry-shard", **changes: Any) -> AutohealDecided:
    """A decision on the newest attempt at a gate."""
    values: dict[str, Any] = {
        "step": "gate", "attempt": 1, "commit": COMMITS["candidate"], "gate": "gate-1", "table": HEALING_VERSION,
        "cause": "shard-death", "codes": ("signalled",), "signature": trouble("signalled").signature(), "history": {},
        "taken": 0, "caps": dict(CAPS), "facts": (), "row": "D5", "action": action, "passed_over": {},
        "subject": "shard-1",
    }  # fmt: skip
    return AutohealDecided(**values | changes)


def expected(cause: Cause, facts: frozenset[str], taken: Mapping[str, int]) -> Action:
    """The oracle: what may be done at all, then what helps best, one cause after another."""
    if cause == "true-regression" or facts & {"nothing-owed", "signature-cap", "release-cap"}:
        return "hitl"
    elsewhere = "member" in facts
    if cause == "host-down" or cause == "environment":
        times = 2 if cause == "host-down" else 1
        if elsewhere and taken.get("host-switch", 0) < times:
            return "host-switch"
        helps = cause == "host-down" or "may-differ" in facts
        return "retry-shard" if helps and not taken.get("retry-shard") else "hitl"
    if cause == "interference":
        return "hitl" if taken.get("partial-resume") else "partial-resume"
    if cause == "shard-death" and "memory" in facts and not taken.get("more-memory"):
        return "more-memory"
    if "halves" in facts and not taken.get("split"):
        return "split"
    if "alone" in facts and not taken.get("isolate"):
        return "isolate"
    if elsewhere and not taken.get("reroute-shard"):
        return "reroute-shard"
    return "retry-shard" if taken.get("retry-shard", 0) < (2 if cause == "shard-death" else 1) else "hitl"


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_row_of_the_table_is_what_the_oracle_says(cause: Cause) -> None:
    histories = [
        {action: taken.count(action) for action in taken}
        for number in range(4)
        for taken in combinations_with_replacement(HEALING, number)
    ]
    so = [frozenset(some) for number in range(len(FACTS) + 1) for some in combinations(FACTS, number)]
    rows = set()
    for facts in so:
        for history in histories:
            row, passed_over = answer(cause, facts, history)
            assert row.action == expected(cause, facts, history), (facts, history, row)
            assert row.cause in ("*", cause)
            assert all(why == "taken" or why not in facts for why in passed_over.values())
            rows.add(row.row)
    assert rows == {line.split()[0] for line in printed_healing().splitlines() if reachable(line, cause)}


def reachable(line: str, cause: Cause) -> bool:
    """Whether a printed line is a row that can be the answer for this cause."""
    row, of, *_ = (*line.split(), "", "")
    if cause == "true-regression":
        return row == "A1"
    return of in ("*", cause)


@pytest.mark.parametrize(
    ("cause", "codes"),
    [
        ("host-down", ("no-room", "prepare-failed", "signalled")),
        ("environment", ("prepare-failed", "signalled", "time-limit")),
        ("environment", ("what-nobody-knows",)),
        ("shard-death", ("signalled", "time-limit")),
        ("shard-death", ("memory-limit",)),
        ("timeout", ("idle-limit", "interference")),
        ("interference", ("tree-changed",)),
        ("environment", ()),
    ],
)
def test_the_cause_is_what_explains_the_others(cause: Cause, codes: tuple[str, ...]) -> None:
    assert trouble(*codes).cause == cause
    assert trouble(*codes, verdict="failed").cause == "true-regression"


def test_a_gate_without_a_verdict_is_one_of_the_environment() -> None:
    nothing = Trouble(verdict=None, code="store-unwritable")
    assert (nothing.cause, nothing.codes) == ("environment", ("store-unwritable",))
    assert choose(nothing, ()).row == "A2"
    assert trouble("signalled", verdict=None).cause == "environment"


def test_every_code_belongs_to_one_cause_and_is_told() -> None:
    codes = [code for some in CODES.values() for code in some]
    assert len(codes) == len(set(codes))
    assert set(codes) <= {*CAUSES, "unresolved"} | {*HEALED}
    assert set(PRECEDENCE) == {*get_args(Cause)} - {"true-regression"}
    assert {*get_args(Cause), *ACTIONS, *FACTS, "taken"} <= {*HEALED, *CAUSES}


@pytest.mark.parametrize(
    ("fact", "other"),
    {
        "nothing-owed": trouble(owed=()),
        "memory": trouble("wrong-tree", more_memory=True),
        "halves": trouble("tree-changed", halves=True),
        "alone": trouble("tree-changed", alone=True),
        "member": trouble("wrong-tree", members=("local", "pod")),
        "may-differ": trouble("signalled"),
    }.items(),
)
def test_a_fact_is_so_when_it_is_and_not_before(fact: str, other: Trouble) -> None:
    assert fact in facts_of(other, {}, 0)
    assert fact not in facts_of(trouble("wrong-tree"), {}, 0)


def test_what_was_done_before_counts_for_its_signature_and_for_the_release() -> None:
    elsewhere = decided(signature="0" * 64)
    for before, row, history, taken in [
        ([], "D5", {}, 0),
        ([decided()], "D5", {"retry-shard": 1}, 1),
        ([decided(), decided("hitl"), decided("split")], "A3", {"retry-shard": 1, "split": 1}, 2),
        ([elsewhere] * 3, "D5", {}, 3),
        ([elsewhere] * 4, "A4", {}, 4),
        ([decided(), decided(action="teleport")], "D5", {"retry-shard": 1}, 1),
    ]:
        found = choose(trouble("signalled"), before)
        assert (found.row, found.history, found.taken) == (row, history, taken)


def test_the_signature_tells_causes_owed_targets_and_codes_apart_and_nothing_else() -> None:
    one = trouble("signalled")
    (side,) = one.owed
    less = OwedSide(shard="shard-1", what=side.what, targets=("b.py",), codes=side.codes)
    renamed = OwedSide(shard="rerun-9", what=side.what, targets=side.targets, codes=side.codes, seconds=9.0)
    others = [
        trouble("lost"), trouble("signalled", "time-limit"), trouble("signalled", verdict="failed"),
        trouble(owed=(less,)), trouble("signalled", unsure=(("a.py::test", "interference"),)),
    ]  # fmt: skip
    assert len({one.signature(), *(other.signature() for other in others)}) == 1 + len(others)
    assert trouble(owed=(renamed,)).signature() == one.signature()
    assert trouble("signalled", members=("a", "b"), halves=True).signature() == one.signature()


def test_what_it_is_about_is_the_one_shard_or_what_the_pool_chooses() -> None:
    two = tuple(OwedSide(shard=name, what=name, codes=("signalled",)) for name in ("shard-1", "shard-2"))
    away = {"members": ("local", "pod")}
    assert choose(trouble("signalled"), ()).subject == "shard-1"
    assert choose(trouble(owed=two), ()).subject == ""
    assert [choose(trouble("signalled", **away), ()).action, choose(trouble(owed=two, **away), ()).subject] == [
        "reroute-shard",
        "auto",
    ]
    assert choose(trouble("no-room", **away), ()).subject == "auto"


@pytest.mark.parametrize(
    "odd", [{"action": "teleport"}, {"cause": "gremlins"}, {"action": ""}, {"table": "autoheal/9", "cause": "3"}]
)
def test_a_decision_that_nobody_knows_is_shown_and_ignored(odd: dict[str, str]) -> None:
    found = decided(**odd)
    assert not is_known(found)
    assert not heals(found)
    assert rerouted_by(found) == ""
    assert told(found).startswith("ignored: this version knows no ")
    assert odd.get("action", odd.get("cause", "")) in told(found)


def test_a_newer_table_of_known_words_is_known() -> None:
    assert heals(decided(table="autoheal/2", row="Q7"))
    assert not heals(decided("hitl"))


@pytest.mark.parametrize(
    ("action", "subject", "shard"),
    [
        ("host-switch", "auto", "auto"), ("host-switch", "shard-1", "auto"), ("retry-shard", "3", "pod-3"),
        ("reroute-shard", "pod-3", "pod-3"), ("retry-shard", "", "auto"), ("more-memory", "3", ""), ("hitl", "3", ""),
        ("split", "3", ""),
    ],
)  # fmt: skip
def test_what_was_decided_may_move_a_shard(action: str, subject: str, shard: str) -> None:
    assert rerouted_by(decided(action, subject=subject)) == shard
    assert rerouted_by(None) == ""


def test_a_number_is_a_pod() -> None:
    assert [rerouted(one) for one in ("3", "pod-3", "auto", "", "shard-3")] == ["pod-3", "pod-3", "auto", "", "shard-3"]


def test_the_table_is_printed_as_it_is() -> None:
    assert f"```text\n{printed_healing()}\n```" in PAGE
    assert {fact for fact in FACTS if f"| `{fact}` |" in PAGE} == set(FACTS)
