"""Waivers, accepted issues and the end of a release beside the original's: where they differ a listed rule says why,
and it is counted."""

from collections import Counter
from typing import Any

import pytest

from commands.decide.release.next import Finish, next_move
from commands.messages import Refusal
from ledger.events import Event, RegressionAccepted, StepFinished, StepStarted, Waived
from ledger.steps import Step
from projections.people.public_text import public_fault
from projections.registry import RunViews
from projections.release.standing import Now
from tests.commands.original.vectors import vectors
from tests.support.makers import recorded, run_started
from tests.support.releases import TODAY, PureRelease, chain, commit, step

Vector = dict[str, Any]

AGREE, OTHER_RULE = "agree", "both refuse, but another rule is the first to say so"
WHY = {
    OTHER_RULE: "The step is looked at before the waiver, and what a note says before what its issue is called.",
    "no such state": "Records that contradict each other, or an input that is missing: no ledger holds them.",
    "no such request": "A list of issues that is none is refused when it is read, before there is a request.",
    "a waiver is no issue": "The original keeps a waiver as an issue of the name waive:STEP, which a second one meets.",
    "what was stopped may be waived": "The original only lets a step be waived that came to its end.",
}
REFUSALS = {
    "must be supplied together": {"waiver-pair"},
    "--waive must not be empty": {"waiver-blank"},
    "--reason must not be empty": {"waiver-blank"},
    "unsafe public waiver reason": {"waiver-reason-unsafe"},
    "--from must name the waived node": {"waiver-from"},
    "cannot waive a safety": {"waiver-protected"},
    "requires the failed executable node": {"waiver-not-failed"},
    "acceptedRegressions must be an array": {"issues-invalid"},
    "acceptedRegressions IDs must be unique": {"issues-duplicate"},
}
FOUND = {
    "reason": {AGREE: 21},
    "waiver": {
        AGREE: 40, OTHER_RULE: 6, "no such state": 11, "no such request": 3, "a waiver is no issue": 1,
        "what was stopped may be waived": 1,
    },
    "accepted": {AGREE: 12, OTHER_RULE: 5, "no such state": 2, "no such request": 6},
}  # fmt: skip
"""How often each difference is found, by function."""


def of(function: str) -> list[Vector]:
    """The vectors about one function."""
    return [one for one in vectors("resume-waiver") if one["input"]["fn"] == function]


def release_of(state: dict[str, Any]) -> PureRelease | None:
    """The release in which this has happened; None when that cannot have happened."""
    path = state["path"]
    names = [name for name in path if name != "failed"]
    told = [node.get("nodeId") for node in state["nodes"]]
    results = [(node["ok"], node["executed"]) for node in state["nodes"][: len(names)] if "ok" in node]
    whole = path == told and path[-1:] == ["failed"] and path.count("failed") == 1 and len(results) == len(names)
    if not whole or len(set(names)) < len(names) or not all(ok for ok, _ in results[:-1]):
        return None
    release = PureRelease(chain(*(_step(name) for name in names), step("later"))).start()
    for name, (ok, executed) in zip(names, results, strict=True):
        release.until(name)
        release.act()
        release.handle(release.end(name, "passed" if ok else "failed" if executed else "unmeasured"))
    release.until("later") if results[-1][0] else release.drive()
    return release if _has_known(release, state.get("input")) else None


def _step(name: str) -> Step:
    kind = {"version-release": "cut", "gate": "gate"}.get(name, "run")
    return step(name, kind, waivable=name in ("tui", "mac-smoke"))


def _has_known(release: PureRelease, known: Any) -> bool:
    """Give the release its known issues, but for waivers, which are none here. Says whether they can be known."""
    issues = (known or {}).get("acceptedRegressions") or []
    if known is None or not _is_list_of_issues(issues) or any(not one["id"].strip() for one in issues):
        return False
    for one in issues:
        if not one["id"].startswith("waive:"):
            event = RegressionAccepted(issue=one["id"], note=one["note"], commit=commit(0))
            release.events.append(event)
            release.views.apply(recorded([event], start=len(release.events))[0])
    return True


def _is_list_of_issues(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(one, dict) and isinstance(one.get("id"), str) and isinstance(one.get("note"), str) for one in found
    )


def _asked(release: PureRelease, name: str, accept: Any, **waiver: str) -> tuple[Event, ...] | str:
    issues = tuple((one["id"], one["note"]) for one in accept)
    try:
        return release.handle(release.resume(name, accept=issues, **waiver))
    except Refusal as refusal:
        return refusal.code


def compared(vector: Vector, ours: tuple[Event, ...] | str) -> str:
    """The name of what is different."""
    if isinstance(ours, str) and "error" in vector:
        rules = [codes for text, codes in REFUSALS.items() if text in vector["error"]]
        return AGREE if ours in rules[0] else OTHER_RULE
    if isinstance(ours, str):
        return f"only we refuse: {ours}"
    if "error" in vector:
        return f"only the original refuses: {vector['error']}"
    return AGREE


def difference_of_a_waiver(vector: Vector) -> str:
    """What is different about a request to waive a step."""
    state, asked = vector["input"]["state"], vector["input"]["opts"]
    accept = asked.get("acceptedRegressions") or []
    release = release_of(state)
    if release is None:
        return "no such state"
    if not _is_list_of_issues(accept):
        return "no such request"
    waiver = {name: asked[name] for name in ("waive", "reason") if name in asked}
    ours = _asked(release, asked["from"], accept, **waiver)
    theirs = vector.get("output")
    if "error" not in vector and theirs is None:
        assert isinstance(ours, str) or not any(isinstance(event, Waived) for event in ours)
        return AGREE
    found = compared(vector, ours)
    if found == AGREE and theirs is not None:
        assert not isinstance(ours, str)
        (waived,) = (event for event in ours if isinstance(event, Waived))
        assert (waived.step, waived.reason) == (theirs["nodeId"], theirs["reason"])
        same = [(one["id"], one["note"]) for one in theirs["acceptedRegressions"] if not one["id"].startswith("waive:")]
        assert _known(release) == same
    if found.startswith("only the original refuses"):
        stopped = not state["nodes"][-2]["executed"]
        return "what was stopped may be waived" if stopped else "a waiver is no issue" if "unique" in found else found
    return found


def _known(release: PureRelease) -> list[tuple[str, str]]:
    return [(one.accepted.issue, one.accepted.note) for one in release.views.release.issues.values()]


def difference_of_issues(vector: Vector) -> str:
    """What is different about known issues: here they do not depend on where the release is taken up again."""
    release = PureRelease(chain(step("docs"))).start().came_to("docs", "failed")
    if not _has_known(release, vector["input"]["state"].get("input")):
        return "no such state"
    additions = vector["input"]["additions"]
    if not _is_list_of_issues(additions):
        assert "must be an array" in vector["error"]
        return "no such request"
    ours = _asked(release, "docs", additions)
    found = compared(vector, ours)
    if found == AGREE and "output" in vector:
        theirs = [(one["id"], one["note"]) for one in vector["output"] if not one["id"].startswith("waive:")]
        assert _known(release) == theirs
    return found


def difference_of_a_reason(vector: Vector) -> str:
    """Whether a text is fit for the public here and there."""
    fit = not public_fault(vector["input"]["text"])
    return AGREE if fit == ("output" in vector) else f"{vector['input']['text']!r} is {'' if fit else 'not '}fit here"


COMPARE = {"reason": difference_of_a_reason, "waiver": difference_of_a_waiver, "accepted": difference_of_issues}


@pytest.mark.parametrize("function", FOUND)
def test_every_difference_to_the_original_is_a_known_one(function: str) -> None:
    assert Counter(map(COMPARE[function], of(function))) == FOUND[function]
    assert set(FOUND[function]) - {AGREE} <= set(WHY)


@pytest.mark.parametrize("function", FOUND)
def test_what_cannot_be_asked_here_is_refused_by_the_original(function: str) -> None:
    for vector in of(function):
        if COMPARE[function](vector) in ("no such state", "no such request"):
            assert "error" in vector, vector["id"]


def test_no_waiver_is_given_here_that_the_original_refuses_but_for_two_listed_reasons() -> None:
    given = {"what was stopped may be waived", "a waiver is no issue"}
    found = [difference_of_a_waiver(vector) for vector in of("waiver") if "error" in vector]
    assert {one for one in found if one not in (AGREE, OTHER_RULE, "no such state", "no such request")} == given


TRIAGE = "gate-triage"


def end_of(vector: Vector) -> tuple[str, int] | None:
    """The step, and which attempt at it, that the release of a vector ends for; None when it does not end, or when its
    path and its records contradict each other. All that came before the end went well: what it was does not matter."""
    path, nodes = vector["input"]["state"]["path"], vector["input"]["state"]["nodes"]
    if path != [node["nodeId"] for node in nodes] or path[-1:] != ["failed"] or path.count("failed") > 1:
        return None
    visits = [(name, node["executed"]) for name, node in zip(path[:-1], nodes, strict=False)]
    last = max((number for number, (name, _) in enumerate(visits) if name != TRIAGE), default=-1)
    names = tuple(dict.fromkeys(name for name, _ in visits if name != TRIAGE))
    if last < 0:
        return None
    graph = chain(
        *(Step(name=name, on_failed=TRIAGE if TRIAGE in path and name == "gate" else "") for name in names),
        *([step(TRIAGE, observer=True)] if TRIAGE in path else []),
    )
    events: list[Event] = [run_started(kind="release", steps=graph.names(), version="1.2.3")]
    attempts: Counter[str] = Counter()
    for number, (name, executed) in enumerate(visits):
        if name == TRIAGE and not executed:
            continue
        attempts[name] += 1
        outcome = "failed" if number == last else "passed"
        events.append(StepStarted(step=name, attempt=attempts[name], commit=commit(0), term=0))
        events.append(StepFinished(step=name, attempt=attempts[name], commit=commit(0), outcome=outcome))  # type: ignore[arg-type]
    views = RunViews()
    for one in recorded(events):
        views.apply(one)
    move = next_move(views, graph, Now(TODAY))
    return (move.step, attempts[move.step]) if isinstance(move, Finish) else None


def ends_for_the_gate(vector: Vector) -> bool:
    """Whether the release ends for the gate at the index of a vector."""
    path, index = vector["input"]["state"]["path"], vector["input"]["index"]
    if not 0 <= index < len(path):
        return False
    return end_of(vector) == (path[index], path[: index + 1].count(path[index]))


def test_a_release_ends_for_its_gate_where_the_original_says_so() -> None:
    found: Counter[tuple[bool, bool]] = Counter()
    for vector in vectors("failed-after-gate"):
        assert ends_for_the_gate(vector) == vector["output"], vector["id"]
        found[vector["output"], end_of(vector) is not None] += 1
    # Those that come to no end here contradict themselves, or their triage was never run.
    assert found == {(True, True): 26, (False, True): 9, (False, False): 25}
