"""The steps of a release as a graph: their order, who waits for whom, and what in it contradicts itself."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from ledger.steps import Step, StepGraph

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PROTECTED = ("cut", "prepare", "approve", "wait-until")
"""What cannot be waived: there is nothing to let pass in it, or everything after it rests on it."""
_DECIDES = ("cut", "prepare", "approve")
"""What the release cannot go on without, whatever its flags say."""


class Contradiction(Struct, frozen=True, kw_only=True):
    """Something in the steps that cannot be meant: a stable code, the step, and what to change."""

    code: str
    step: str
    message: str


def handlers(graph: StepGraph) -> frozenset[str]:
    """The steps that run only because another one failed or could not be measured."""
    edges = ((step.on_failed, step.on_unmeasured) for step in graph.steps)
    return frozenset(name for pair in edges for name in pair if name)


def main_steps(graph: StepGraph) -> tuple[Step, ...]:
    """The steps of a release that goes well, in order."""
    aside = handlers(graph)
    return tuple(step for step in graph.steps if step.name not in aside)


def dependents(graph: StepGraph, name: str) -> frozenset[str]:
    """The steps that need this one, or one that does; every step needs the ones that it names."""
    found = {name}
    for step in graph.steps:
        if found & set(step.needs):
            found.add(step.name)
    return frozenset(found - {name})


def needed_by(graph: StepGraph, name: str) -> tuple[str, ...]:
    """The steps that this one needs, directly or not, in order; names that are no steps are left out."""
    known = {step.name: step for step in graph.steps}
    found: set[str] = set()
    waiting = list(known[name].needs)
    while waiting:
        need = waiting.pop()
        if need in known and need not in found:
            found.add(need)
            waiting.extend(known[need].needs)
    return tuple(step.name for step in graph.steps if step.name in found)


def contradictions(graph: StepGraph) -> tuple[Contradiction, ...]:
    """Everything that speaks against these steps, in their order; without any a release may start."""
    found = [one for step in graph.steps for rule in _RULES for one in rule(step, graph)]
    return (*_on_the_whole(graph), *found)


def _on_the_whole(graph: StepGraph) -> Iterator[Contradiction]:
    names = graph.names()
    if not names:
        yield _said("steps-missing", "", "no step is declared; a release needs at least one `[[step]]`")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _said("step-repeated", name, "two steps have this name")
    for uses in ("cut", "prepare"):
        several = [step.name for step in graph.steps if step.uses == uses]
        if len(several) > 1:
            yield _said("step-twice", several[1], f"only one step can be `{uses}`; {several[0]} is one already")


def _is_named(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    if not _NAME.fullmatch(step.name):
        yield _said("step-name", step.name, "a name is lower-case letters, digits, `-` and `_`, at most 40 of them")


def _has_its_keys(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    runs = step.uses in ("run", "prepare")
    if runs and not step.run:
        yield _said("run-missing", step.name, "it needs `run`, the command as a list of texts")
    if not runs and step.run:
        yield _said("run-unused", step.name, f'`uses = "{step.uses}"` takes no `run`')
    if (step.uses == "wait-until") != bool(step.until):
        yield _said("until", step.name, '`until` and `uses = "wait-until"` go together')
    if step.retries and step.uses != "run":
        yield _said("retries-unused", step.name, "only a command can be tried again at once")
    if step.manifest != "check" and step.uses != "prepare":
        yield _said("manifest-unused", step.name, "only `prepare` has a manifest")


def _needs_what_is_there(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    names = graph.names()
    before = names[: names.index(step.name)]
    for need in step.needs:
        if need not in names:
            yield _said("need-unknown", step.name, f"it needs {need!r}, which is no step")
        elif need not in before:
            yield _said("need-later", step.name, f"it needs {need!r}, which runs later; put that one first")
        elif need in handlers(graph):
            yield _said("need-handler", step.name, f"it needs {need!r}, which runs only when something went wrong")
        elif graph.step(need).observer:
            yield _said("need-observer", step.name, f"it needs {need!r}, which is an observer and settles nothing")


def _edges_lead_to_observers(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    for name in filter(None, (step.on_failed, step.on_unmeasured)):
        if name not in graph.names():
            yield _said("edge-unknown", step.name, f"it leads to {name!r}, which is no step")
        elif name == step.name or not graph.step(name).observer:
            yield _said("edge-decides", step.name, f"it leads to {name!r}, which has to be another step, an observer")
    if (step.on_failed or step.on_unmeasured) and (step.tolerated or step.observer):
        yield _said("edge-unused", step.name, "the release does not end for it, so its edges are never taken")


def _is_waivable_where_that_helps(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    if not step.waivable:
        return
    if step.tolerated or step.observer:
        yield _said("waivable-never-ends", step.name, "its failure cannot end a release, so there is nothing to waive")
    if step.irreversible or step.uses in _PROTECTED:
        yield _said("waivable-protected", step.name, "what is built, approved or cannot be taken back is never waived")


def _is_irreversible_after_an_approval(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    if not step.irreversible:
        return
    if step.observer or step.tolerated:
        yield _said("irreversible-decides", step.name, "what cannot be taken back has to decide whether it went well")
    if step.retries:
        yield _said("irreversible-retried", step.name, "what cannot be taken back is never tried again by itself")
    if not any(graph.step(need).uses == "approve" for need in needed_by(graph, step.name)):
        yield _said("irreversible-unapproved", step.name, "it cannot be taken back, and needs no `approve` step before")


def _comes_after_the_cut(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    names = graph.names()
    cut = next((one.name for one in graph.steps if one.uses == "cut"), None)
    if cut and step.consumes_candidate and step.uses != "cut" and names.index(step.name) < names.index(cut):
        yield _said("consumer-before-cut", step.name, f"it consumes the candidate, which {cut!r} makes only later")


def _decides_what_it_must(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    if step.uses in _DECIDES and (step.tolerated or step.observer):
        yield _said("decides-anyway", step.name, f"a release does not go on without its `{step.uses}`")


def _consumes_what_it_does(step: Step, graph: StepGraph) -> Iterator[Contradiction]:
    if step.uses in ("gate", "prepare") and not step.consumes_candidate:
        yield _said("consumes-anyway", step.name, f"what a `{step.uses}` comes to holds for one commit only")
    if step.uses == "cut" and step.consumes_candidate:
        yield _said("consumes-anyway", step.name, "a cut makes the candidate; it does not consume it")


def _said(code: str, step: str, message: str) -> Contradiction:
    return Contradiction(code=code, step=step, message=message)


_RULES: tuple[Callable[[Step, StepGraph], Iterator[Contradiction]], ...] = (
    _is_named,
    _has_its_keys,
    _needs_what_is_there,
    _edges_lead_to_observers,
    _is_waivable_where_that_helps,
    _is_irreversible_after_an_approval,
    _decides_what_it_must,
    _consumes_what_it_does,
    _comes_after_the_cut,
)
