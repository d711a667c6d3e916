"""A release from its start, its resumption, and the answers of people: chooses, holds the locks, drives, sums up."""

import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from commands.decide.base import Documents
from commands.decide.next import MEMBER
from commands.decide.registry import decide
from commands.decide.release.resume import plan_or_refuse
from commands.effects.locks import is_held, owner_details
from commands.effects.release.remote import Remote
from commands.effects.release.repair import Repair as Repair
from commands.effects.release.repair import repair
from commands.effects.signals import StopRequests
from commands.effects.worktrees import Owner, delete_tree, reap, work_root
from commands.gating import Display
from commands.messages import DecideApproval, Refusal, ResumeRelease, StartRelease
from commands.releasing.driver import bring_to_rest, drive, mutes_used, take
from commands.releasing.parts import Bench, today
from commands.releasing.regate import Partial, regate
from commands.render.words import safe, short
from commands.wiring import Home, Workshop, open_workshop
from ledger.events import RecheckPlanned
from ledger.steps import StepGraph
from ledger.tables import decode_document, encode_document
from ledger.values import Commit, Digest
from projections.registry import RunViews
from projections.release.resume import ReleasePlan, as_if_settled
from projections.release.standing import pinned_by
from projections.release.state import ReleaseView
from projections.release.version import (
    PrereleaseKind,
    is_release,
    is_stable,
    next_prerelease,
    previous_release,
    release_branch,
)
from projections.reuse.partial import Full

VERSIONS = "use x.y.z, or x.y.z-rc.N (alpha, beta) for a prerelease; with --prerelease, x.y.z"


def start_message(
    home: Home, version: str, *, cut: str | None, branch: bool, baseline: str | None, prerelease: PrereleaseKind | None
) -> tuple[StartRelease, bytes, bytes]:
    """What starting this release would record, with the documents that it names: the runner's settings, the steps.

    Only reads, also from the remote. Raises LedgerError.
    """
    git, settings = home.git, home.loaded.settings
    if prerelease is not None and not branch:
        raise Refusal("prerelease-by-commit", "a prerelease is cut as a branch, whose number it takes: add --branch")
    if not (is_stable(version) if prerelease is not None else is_release(version)):
        raise Refusal("version-invalid", f"{version!r} is no version of a release", VERSIONS)
    remote = Remote(git, settings.release.remote) if branch else None
    if prerelease is not None and remote is not None:
        version = next_prerelease(version, prerelease, remote.taken(version, prerelease))
    _refuse_taken(home, version, remote)
    ref = cut or "HEAD"
    candidate = git.resolve(ref)
    if remote is not None and not remote.is_ancestor(candidate, remote.fetch(settings.release.main)):
        raise Refusal(
            "cut-not-on-main",
            f"{short(candidate)} is not on {settings.release.main} of {remote.name}",
            "land it there first; `release.main` names another branch",
        )
    base = (git.resolve(baseline), baseline, "as asked for") if baseline else _baseline(home, version, candidate)
    config, graph = encode_document(settings.runner), encode_document(settings.graph)
    run = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    message = StartRelease(
        stream=run,
        run=run,
        version=version,
        candidate=candidate,
        candidate_ref=safe(ref),
        baseline=base[0],
        baseline_ref=safe(base[1]),
        baseline_reason=base[2],
        dirty=bool(git.dirty_paths(1).paths),
        policy=settings.policy,
        config=_digest(config),
        graph=_digest(graph),
        branch=release_branch(version) if branch else "",
        remote=settings.release.remote if branch else "",
    )
    decide(message, RunViews(), Documents({message.graph: settings.graph}))
    return message, config, graph


def _baseline(home: Home, version: str, candidate: Commit) -> tuple[Commit, str, str]:
    """The last stable release before this version, by the ledger or by a tag among the ancestors; else what a gate
    would choose. A prerelease is no release that users have."""
    git = home.git
    tags = {tag.removeprefix("v"): tag for tag in git.version_tags(candidate)}
    known = {
        name: (git.resolve(f"refs/tags/{tag}"), tag, "last release") for name, tag in tags.items() if is_stable(name)
    }
    if home.ledger_file.exists():
        with home.open_ledger() as opened:
            for run, name in opened.releases():
                views = opened.views(run)
                if is_stable(name) and views.run.verdict == "passed" and views.release.commit != candidate:
                    known[name] = (views.release.commit, f"release {name}", "last release that passed")
    previous = previous_release(version, known)
    if previous is not None:
        return known[previous]
    chosen = git.choose_baseline(candidate, None)
    return chosen.commit, chosen.ref, chosen.reason


def _refuse_taken(home: Home, version: str, remote: Remote | None) -> None:
    """A version is not released beside itself, nor again after anything of it was done for good, or was tagged."""
    tags = home.git.all_version_tags() | (remote.version_tags(version) if remote is not None else frozenset())
    named = sorted({version, f"v{version}"} & tags)
    if named:
        raise Refusal("version-taken", f"there is a tag {named[0]} already", "start the release of the next version")
    if not home.ledger_file.exists():
        return
    with home.open_ledger() as opened:
        for run in [name for name, taken in opened.releases() if taken == version]:
            views = opened.views(run)
            graph = opened.document(str(views.run.begun.graph), StepGraph)
            if views.run.status != "finished" or views.run.verdict == "passed" or pinned_by(views.release, graph):
                raise Refusal(
                    "version-taken",
                    f"{version} is being released by run {run}, or was",
                    f"`ledger release show {run}` says where it stands; resume it, or start the next version",
                )


def start_release(home: Home, message: StartRelease, documents: tuple[bytes, ...], display: Display) -> RunViews:
    """Start the release and drive it until it has ended or waits; returns where it then stands."""
    display.note(f"release   {message.version}")
    display.note(f"candidate {short(message.candidate)} ({message.candidate_ref})")
    display.note(f"baseline  {short(message.baseline)} ({message.baseline_ref}: {message.baseline_reason})")
    if message.dirty:
        display.note("the checkout has uncommitted changes; they are not part of the release")
    with open_workshop(home, message.run) as workshop:
        for document in documents:
            workshop.evidence.put_bytes(document)
        workshop.loop.handle(message)
        display.note(f"run {message.run}, recorded in {home.directory}")
        with _bench(workshop, message.run, display) as bench:
            take(bench)
            return drive(bench, display.note)


class Request(Struct, frozen=True, kw_only=True):
    """What somebody asks for with a resume, besides the step; `reason` is that of the waiver, and of the override of
    the limit of attempts where that is asked for. `expires` is a day."""

    waive: str | None = None
    reason: str | None = None
    expires: str = ""
    accept: tuple[tuple[str, str], ...] = ()
    partial: Partial = "auto"
    reroute: str = ""
    allow_attempt: bool = False


def resume_message(home: Home, release: str, step: str, at: str | None, request: Request) -> ResumeRelease:
    """What resuming from this step asks for, with the tip of the branch as its remote has it now.

    Fetches the tip, into a reference of this program's own. Raises LedgerError.
    """
    with home.open_ledger() as opened:
        views = opened.views(release, opened.past(release, at))
        graph = opened.document(str(views.run.begun.graph), StepGraph)
        begun, view = views.run.begun, views.release
        tip, forward = None, True
        if begun.branch and at is None and _is_cut(view, graph):
            remote = Remote(home.git, str(begun.remote))
            tip = remote.fetch(str(begun.branch))
            forward = remote.is_ancestor(view.commit, tip)
        again = regate(home, opened, view, graph, tip or view.commit, request.partial)
        last = view.steps[step].last if request.reroute and step in view.steps else None
        shards = tuple(opened.views(last.gate).gate.shards()) if last is not None and last.gate else ()
    text = (request.reason or "").strip()
    return ResumeRelease(
        stream=release,
        step=step,
        by=str(owner_details(release, "")["user"]),
        date=today(),
        tip=tip,
        forward=forward,
        waive=request.waive or "",
        reason=text if request.waive is not None or not request.allow_attempt else "",
        expires=request.expires,
        accept=request.accept,
        allow_attempt=text if request.allow_attempt else "",
        recheck=again if isinstance(again, RecheckPlanned) else None,
        full=again.reason if isinstance(again, Full) else "",
        full_files=again.files if isinstance(again, Full) else (),
        reroute=request.reroute,
        shards=shards,
        members=(MEMBER,),
    )


def dry_run(home: Home, message: ResumeRelease, at: str | None) -> ReleasePlan:
    """What resuming would do, or would have done at a moment; takes no lock and writes nothing."""
    with home.open_ledger() as opened:
        views = opened.views(message.stream, opened.past(message.stream, at))
        graph = opened.document(str(views.run.begun.graph), StepGraph)
    return plan_resume(views, graph, message)


def _is_cut(view: ReleaseView, graph: StepGraph) -> bool:
    """Whether the branch was made: before that there is nothing to look for."""
    attempts = (one for step in graph.steps if step.uses == "cut" for one in view.steps[step.name].attempts)
    return any(one.outcome == "passed" for one in attempts)


def plan_resume(views: RunViews, graph: StepGraph, message: ResumeRelease) -> ReleasePlan:
    """What resuming would do; takes no lock and writes nothing. Raises the refusals of the real one.

    The driver that had the release before is gone, so what it ran has ended."""
    then = replace(views, release=as_if_settled(views.release, graph))
    return plan_or_refuse(message, then, Documents({str(views.run.begun.graph): graph}))


def resume_release(home: Home, message: ResumeRelease, display: Display) -> RunViews:
    """Take it up again; refused requests leave nothing behind. Returns where it then stands."""
    with open_workshop(home, message.stream) as workshop:
        views = workshop.loop.views(message.stream)
        graph = graph_of(workshop, views)
        plan = plan_resume(views, graph, message)
        with _bench(workshop, message.stream, display) as bench:
            take(bench)
            running = views.release.steps[plan.step].running is not None
            bring_to_rest(bench, display.note)
            last = workshop.loop.views(message.stream).release.steps[plan.step].last
            done = running and last is not None and last.outcome == "passed"
            # What had said that it passed before its driver died is not run again for that.
            if not (done and not plan.moved and not message.accept):
                workshop.loop.handle(message)
            display.note(f"release {plan.version}, run {plan.release}, taken up again from {plan.step}")
            return drive(bench, display.note)


def graph_of(workshop: Workshop, views: RunViews) -> StepGraph:
    """The steps that the release was started with. Raises Refusal for a run that is none, and EvidenceDamaged."""
    graph = views.run.begun.graph
    if not isinstance(graph, str):
        raise Refusal("not-a-release", f"run {views.run.run} is a gate and no release", "`ledger release list`")
    return decode_document(workshop.evidence.get(graph), StepGraph)


@contextmanager
def _bench(workshop: Workshop, release: str, display: Display) -> Iterator[Bench]:
    home, graph = workshop.home, graph_of(workshop, workshop.loop.views(release))
    root = work_root(home.loaded.settings, workshop.ledger_id, home.git.toplevel)
    requests = StopRequests(home.stop_file(release))
    requests.answered()
    previous = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    requests.install(-1)
    try:
        reap(home.git, root, lambda owner: is_held(home.run_lock(owner.run)), time.time())
        yield Bench(workshop, release, graph, root, display, requests)
        requests.answered()
        if workshop.loop.views(release).run.status == "finished":
            # Everything that counts is evidence by now.
            delete_tree(root / release)
    finally:
        signal.signal(signal.SIGINT, previous[0])
        signal.signal(signal.SIGTERM, previous[1])


def repair_release(home: Home, release: str, picks: tuple[str, ...], *, dry_run: bool) -> Repair:
    """Pick commits of the main branch onto the branch of a release. Raises LedgerError, and Refusal for one by commit.

    Nothing is recorded: that the tip has moved is found when the release is taken up again.
    """
    with open_workshop(home, release) as workshop:
        views = workshop.loop.views(release)
        begun, graph = views.run.begun, graph_of(workshop, views)
        done = begun.version if views.run.verdict == "passed" else ""
        if done or (pinned := pinned_by(views.release, graph)):
            why = "has passed" if done else f"is bound to its commit, because {pinned} was begun"
            raise Refusal("repair-too-late", f"release {begun.version} {why}", "start the release of the next version")
        if not begun.branch:
            raise Refusal("not-own-branch", f"release {begun.version} was cut by commit, so it has no branch to repair")
        root = work_root(home.loaded.settings, workshop.ledger_id, home.git.toplevel)
        remote = Remote(home.git, str(begun.remote))
        owner = Owner.here(workshop.ledger_id, release)
        return repair(remote, begun.branch, graph.main, picks, root=root, owner=owner, dry_run=dry_run)


def answer_approval(
    workshop: Workshop,
    run: str,
    decision: Literal["approved", "rejected"],
    by: str,
    reason: str,
    step: str | None,
    commit: str | None = None,
) -> RunViews:
    """Approve or reject what waits; recorded even while the release is driven. Raises Refusal, also where the release
    is not at the `commit` that somebody has looked at."""
    views = workshop.loop.views(run)
    if commit is not None and not (len(commit) >= 7 and views.release.commit.startswith(commit.lower())):
        raise Refusal(
            "approval-stale",
            f"the release is at {short(views.release.commit)} and not at {commit}",
            "`ledger release show` shows what it is now",
        )
    graph = graph_of(workshop, views)
    waiting = [name for name, asked in views.release.approvals.items() if asked[-1].decided is None]
    chosen = step or (waiting[0] if waiting else next((s.name for s in graph.steps if s.uses == "approve"), ""))
    workshop.loop.handle(
        DecideApproval(
            stream=run,
            step=chosen,
            decision=decision,
            by=by,
            reason=reason,
            date=today(),
            mutes=mutes_used(workshop.loop, views),
        )
    )
    return workshop.loop.views(run)


def _digest(document: bytes) -> Digest:
    from hashlib import sha256

    return sha256(document).hexdigest()
