"""Gathers what a gate after a moved tip could take from the last one, and lets the rules say what is measured again."""

import os
import posixpath
from collections.abc import Iterable, Mapping
from typing import Literal

from commands.config.settings import decode_runner
from commands.effects.git import Blob, Git, GitFailed
from commands.wiring import Home, OpenLedger
from ledger.errors import EvidenceDamaged
from ledger.events import RecheckPlanned
from ledger.steps import StepGraph
from ledger.tables import ClassTable, Inventory
from ledger.values import Commit
from projections.release.state import ReleaseView
from projections.reuse.circumstances import collection_key
from projections.reuse.partial import Full, Prior, is_markdown, is_test_file, plan_partial

Partial = Literal["auto", "yes", "no"]
SYMBOLIC_LINK = "120000"
"""The mode under which git keeps one."""


def regate(
    home: Home, opened: OpenLedger, view: ReleaseView, graph: StepGraph, tip: Commit, partial: Partial
) -> RecheckPlanned | Full:
    """What a gate of this commit would measure again. Where something cannot be read, all of it is measured."""
    if partial == "no":
        return Full("partial-unwanted")
    try:
        prior = _prior(opened, view, graph)
        if prior is None:
            return Full("no-prior-verdict")
        table = opened.document(prior.classes, ClassTable)
        changed = _changed(home.git, prior.commit, tip)
        present = home.git.blobs(tip)
        told = [file for file in changed if is_test_file(file, prior) or is_markdown(file)]
        named = _named_elsewhere(home.git, tip, prior, told) | _linked(home.git, present, told)
    except EvidenceDamaged:
        return Full("prior-unreadable")
    except GitFailed:
        return Full("change-unreadable")
    return plan_partial(prior, table, tip, changed, present.keys(), named)


def _prior(opened: OpenLedger, view: ReleaseView, graph: StepGraph) -> Prior | None:
    """The newest gate of this release that came to a verdict, and what it had collected. Raises EvidenceDamaged."""
    attempts = [
        one for step in graph.steps if step.uses == "gate" for one in view.steps[step.name].attempts if one.gate
    ]
    for attempt in reversed(attempts):
        views = opened.views(attempt.gate)
        verdict, collected = views.gate.verdict, views.gate.inventories.get("candidate")
        if verdict is not None and collected is not None:
            inventory = opened.document(collected.inventory, Inventory)
            return Prior(
                gate=attempt.gate,
                commit=attempt.commit,
                classes=verdict.classes,
                targets=frozenset(target.target for target in inventory.targets),
                key=collection_key(views.gate),
                declared=decode_runner(opened.evidence(views.run.begun.config)).runner == "command",
            )
    return None


def _changed(git: Git, old: Commit, new: Commit) -> list[str]:
    """The files that differ; a rename is both of its names.

    A project may have told git not to show what became of its submodules, which is asked for here all the same.
    """
    argv = ("diff-tree", "-r", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", old, new)
    answer = git.run(*argv)
    return [os.fsdecode(name) for name in answer.stdout.split(b"\0") if name]


def _named_elsewhere(git: Git, commit: Commit, prior: Prior, files: Iterable[str]) -> dict[str, str]:
    """For each file that another one of the commit names as a word: that one. It may be used from there.

    Markdown that is no test is not used by other Markdown.
    """
    found = {}
    for file in files:
        stem = os.path.basename(file).split(".")[0]
        answer = git.run("grep", "-l", "-z", "-w", "-F", "-e", stem, commit, "--", accepted=(0, 1))
        names = (os.fsdecode(name).partition(":")[2] for name in answer.stdout.split(b"\0") if name)
        test = is_test_file(file, prior)
        other = next((name for name in names if name != file and (test or not is_markdown(name))), None)
        if other is not None:
            found[file] = other
    return found


def _linked(git: Git, present: Mapping[str, Blob], files: Iterable[str]) -> dict[str, str]:
    """For each file that a symbolic link of the commit leads to, or to a directory above it: that link.

    git does not look for words in links.
    """
    links = {
        path: posixpath.normpath(posixpath.join(posixpath.dirname(path), os.fsdecode(_content(git, blob))))
        for path, blob in present.items()
        if blob.mode == SYMBOLIC_LINK
    }
    found = {}
    for file in files:
        link = next((path for path, goal in links.items() if f"{file}/".startswith(f"{goal}/") or goal == "."), None)
        if link is not None:
            found[file] = link
    return found


def _content(git: Git, blob: Blob) -> bytes:
    return git.run("cat-file", "blob", blob.oid).stdout
