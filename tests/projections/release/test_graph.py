"""The steps of a release as a graph: each contradiction in a graph as small as it can be, and none in a sound one."""

import pytest

from ledger.steps import Step, StepGraph
from projections.release.graph import contradictions, dependents, handlers, main_steps, needed_by
from tests.support.releases import chain, step, usual

SOUND = {
    "usual": usual(),
    "one step": chain(step("docs")),
    "several gates": chain(step("quick", "gate"), step("whole", "gate")),
    "observers and tolerated steps": chain(step("look", observer=True), step("smoke", tolerated=True), step("docs")),
    "a shared handler": chain(
        step("gate", "gate", on_failed="triage", on_unmeasured="triage"),
        step("triage", observer=True),
        step("docs", on_failed="triage"),
    ),
    "a time to wait for": chain(step("night", "wait-until"), step("docs")),
    "tried again": chain(step("docs", retries=1)),
    "own manifest": chain(step("prepare", "prepare", manifest="write")),
    "before the cut": chain(step("clean", consumes_candidate=False), step("cut", "cut"), step("docs")),
}

APPROVE = step("approve", "approve")
CONTRADICTIONS: dict[str, tuple[StepGraph, list[tuple[str, str]]]] = {
    "no step": (chain(), [("steps-missing", "")]),
    "two of one name": (chain(step("one"), step("docs"), step("docs", needs=("one",))), [("step-repeated", "docs")]),
    "two cuts": (chain(step("cut", "cut"), step("more", "cut")), [("step-twice", "more")]),
    "two archives": (chain(step("prepare", "prepare"), step("more", "prepare")), [("step-twice", "more")]),
    "upper case": (chain(step("Docs")), [("step-name", "Docs")]),
    "too long a name": (chain(step("d" * 41)), [("step-name", "d" * 41)]),
    "a name with a line break": (chain(step("docs\n")), [("step-name", "docs\n")]),
    "no command": (chain(step("docs", run=())), [("run-missing", "docs")]),
    "no command to build": (chain(step("prepare", "prepare", run=())), [("run-missing", "prepare")]),
    "a gate with a command": (chain(step("gate", "gate", run=("make",))), [("run-unused", "gate")]),
    "until when?": (chain(step("night", "wait-until", until="")), [("until", "night")]),
    "until without waiting": (chain(step("docs", until="2030-01-02T12:00:00+00:00")), [("until", "docs")]),
    "a gate tried again": (chain(step("gate", "gate", retries=1)), [("retries-unused", "gate")]),
    "a manifest of nothing": (chain(step("docs", manifest="write")), [("manifest-unused", "docs")]),
    "an unknown need": (chain(step("docs", needs=("dcos",))), [("need-unknown", "docs")]),
    "a later need": (
        chain(step("docs", needs=("more",)), step("more")),
        [("need-later", "docs")],
    ),
    "itself": (chain(step("docs", needs=("docs",))), [("need-later", "docs")]),
    "needs a handler": (
        chain(step("gate", "gate", on_failed="look"), step("look", observer=True), step("docs", needs=("look",))),
        [("need-handler", "docs")],
    ),
    "needs an observer": (
        chain(step("look", observer=True), step("docs", needs=("look",))),
        [("need-observer", "docs")],
    ),
    "an unknown handler": (chain(step("gate", "gate", on_failed="look")), [("edge-unknown", "gate")]),
    "a handler that decides": (
        chain(step("gate", "gate", on_unmeasured="look"), step("look")),
        [("edge-decides", "gate")],
    ),
    "its own handler": (chain(step("gate", "gate", on_failed="gate")), [("edge-decides", "gate")]),
    "an edge that is never taken": (
        chain(step("docs", tolerated=True, on_failed="look"), step("look", observer=True)),
        [("edge-unused", "docs")],
    ),
    "a waiver of what is tolerated": (
        chain(step("docs", waivable=True, tolerated=True)),
        [("waivable-never-ends", "docs")],
    ),
    "a waiver of what decides nothing": (
        chain(step("look", waivable=True, observer=True)),
        [("waivable-never-ends", "look")],
    ),
    "a waiver of a publication": (
        chain(APPROVE, step("publish", irreversible=True, waivable=True)),
        [("waivable-protected", "publish")],
    ),
    "an irreversible observer": (
        chain(APPROVE, step("publish", irreversible=True, observer=True, needs=("approve",))),
        [("irreversible-decides", "publish")],
    ),
    "irreversible and tolerated": (
        chain(APPROVE, step("publish", irreversible=True, tolerated=True)),
        [("irreversible-decides", "publish")],
    ),
    "irreversible and tried again": (
        chain(APPROVE, step("publish", irreversible=True, retries=1)),
        [("irreversible-retried", "publish")],
    ),
    "irreversible without approval": (
        StepGraph(steps=(APPROVE, step("docs"), step("publish", irreversible=True, needs=("docs",)))),
        [("irreversible-unapproved", "publish")],
    ),
    "a consumer before the cut": (chain(step("docs"), step("cut", "cut")), [("consumer-before-cut", "docs")]),
    "a gate for any commit": (chain(step("gate", "gate", consumes_candidate=False)), [("consumes-anyway", "gate")]),
    "an archive for any commit": (
        chain(step("prepare", "prepare", consumes_candidate=False)),
        [("consumes-anyway", "prepare")],
    ),
    "a cut that consumes": (chain(step("cut", "cut", consumes_candidate=True)), [("consumes-anyway", "cut")]),
}
for _uses in ("cut", "prepare", "approve", "wait-until"):
    CONTRADICTIONS[f"a waiver of {_uses}"] = (
        chain(step("it", _uses, waivable=True)),
        [("waivable-protected", "it")],
    )
for _uses in ("cut", "prepare", "approve"):
    for _flag in ("tolerated", "observer"):
        CONTRADICTIONS[f"{_uses} as {_flag}"] = (
            chain(step("it", _uses, consumes_candidate=_uses == "prepare", **{_flag: True})),
            [("decides-anyway", "it")],
        )


@pytest.mark.parametrize("name", SOUND)
def test_sound_steps_have_no_contradiction(name: str) -> None:
    assert contradictions(SOUND[name]) == ()


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_found_at_its_step_and_nothing_else_is(name: str) -> None:
    graph, expected = CONTRADICTIONS[name]
    found = contradictions(graph)
    assert [(one.code, one.step) for one in found] == expected
    assert all(one.message for one in found)


def test_all_contradictions_are_found_at_once_those_of_the_whole_first() -> None:
    graph = chain(step("Docs", run=()), step("a", needs=("b",)), step("a", needs=("b",)))
    assert [one.code for one in contradictions(graph)] == [
        "step-repeated", "step-name", "run-missing", "need-unknown", "need-unknown",
    ]  # fmt: skip


def diamond() -> StepGraph:
    def needing(name: str, *needs: str) -> Step:
        return step(name, needs=needs)

    return StepGraph(
        steps=(
            needing("a"),
            needing("b", "a"),
            needing("c", "a"),
            needing("d", "b", "c"),
            needing("e"),
            needing("f", "e"),
        )
    )


def test_what_depends_on_a_step_and_what_it_needs_are_each_others_reverse() -> None:
    graph = diamond()
    assert dependents(graph, "a") == {"b", "c", "d"}
    assert needed_by(graph, "d") == ("a", "b", "c")
    assert needed_by(graph, "e") == ()
    for one in graph.names():
        for other in graph.names():
            assert (other in dependents(graph, one)) == (one in needed_by(graph, other))


def test_what_it_needs_comes_to_an_end_in_steps_that_contradict_each_other() -> None:
    graph = chain(step("a", needs=("b", "nothing")), step("b", needs=("a",)))
    assert needed_by(graph, "a") == ("a", "b")


def test_steps_that_run_only_when_something_went_wrong_are_beside_the_way() -> None:
    graph = usual()
    assert handlers(graph) == {"triage"}
    assert [one.name for one in main_steps(graph)] == [name for name in graph.names() if name != "triage"]
