"""What the commands about releases have in common: which release is meant, how it is summed up and told."""

from commands.cli.common import emit_json, emit_lines, reader_may_go, say, width
from commands.cli.exits import ExitCode
from commands.messages import Refusal, StartRelease
from commands.render.words import safe, short
from commands.wiring import Home, OpenLedger
from ledger.steps import StepGraph
from ledger.values import Commit
from projections.release.graph import main_steps
from projections.release.resume import moved_to
from projections.release.standing import Now, standings
from projections.release.summary import ReleaseSummary, summarize_release


def release_of(home: Home, wanted: str) -> str:
    """The release that is meant: by its run, a prefix of that, its version, or the newest. Raises LedgerError.

    A gate that is a step of a release stands for the release.
    """
    with home.open_ledger() as opened:
        return find_release(opened, wanted)


def find_release(opened: OpenLedger, wanted: str) -> str:
    """As `release_of`, in a ledger that is open."""
    releases = opened.releases()
    if wanted in ("", "latest"):
        if not releases:
            raise Refusal("not-a-release", "this ledger has no release yet", "start one with `ledger release start`")
        return releases[-1][0]
    of_version = [run for run, version in releases if version == wanted]
    if of_version:
        return of_version[-1]
    run = opened.find_run(wanted)
    return opened.release_of(run) or run


def summary_of(home: Home, release: str, at: str | None) -> ReleaseSummary:
    """The summary of a release now, or as it was. Raises Refusal for a run that is none."""
    from commands.releasing.parts import today

    with home.open_ledger() as opened:
        past = opened.past(release, at)
        alive = None if past else opened.driven(release)
        views = opened.views(release, past)
        graph = views.run.begun.graph
        if not isinstance(graph, str):
            raise Refusal("not-a-release", f"run {release} is a gate and no release", "`ledger status` tells of it")
        date = past.time.date().isoformat() if past else today()
        return summarize_release(
            views, opened.document(graph, StepGraph), Now(date), alive=alive, as_of=past.as_of if past else ""
        )


def step_to_resume_from(home: Home, release: str, commit: Commit) -> str:
    """The first step that has to be run once this commit is the one that counts; "STEP" when none has."""
    from commands.releasing.parts import today

    with home.open_ledger() as opened:
        views = opened.views(release)
        graph = opened.document(str(views.run.begun.graph), StepGraph)
    standing = standings(moved_to(views.release, commit), graph, Now(today()))
    steps = (step.name for step in main_steps(graph) if not step.observer)
    owed = (name for name in steps if standing[name].state == "stale" or not standing[name].settled)
    return next(owed, "STEP")


def printed_by(home: Home, release: str, step: str, attempt: int | None) -> tuple[str, str]:
    """What an attempt at a step printed, on standard output and on standard error, with nothing in it that controls a
    terminal. Raises Refusal for a step or an attempt that the release does not have, and EvidenceDamaged."""
    with home.open_ledger() as opened:
        steps = opened.views(release).release.steps
        if step not in steps:
            raise Refusal("step-unknown", f"this release has no step {step!r}", f"its steps are: {', '.join(steps)}")
        ended = [one for one in steps[step].attempts if one.outcome and attempt in (None, one.number)]
        if not ended:
            raise Refusal("step-not-run", f"no such attempt at {step} has ended", "`ledger release show` lists them")
        digests = (ended[-1].output, ended[-1].errors)
        said, complained = (opened.evidence(one).decode("utf-8", "replace") if one else "" for one in digests)
    return "".join(f"{safe(line)}\n" for line in said.splitlines()), complained


def release_summaries(home: Home) -> list[ReleaseSummary]:
    """The summary of each release, the newest first."""
    with home.open_ledger() as opened:
        names = [run for run, _ in reversed(opened.releases())]
    return [summary_of(home, name, None) for name in names]


def emit_summary(summary: ReleaseSummary, as_json: bool) -> None:
    """The summary, as text or as JSON."""
    from commands.render.release.summary import release_lines

    if as_json:
        emit_json(summary)
    else:
        emit_lines(release_lines(summary, width()))


def finish(home: Home, release: str, as_json: bool) -> ExitCode:
    """Tell where a release stands after it was driven, and what the shell is told."""
    summary = summary_of(home, release, None)
    with reader_may_go():
        if not as_json:
            say("")
        emit_summary(summary, as_json)
    return of_release(summary)


def of_release(summary: ReleaseSummary) -> ExitCode:
    """The exit code for a release that is not driven any more: its verdict; 6 while it waits for a person; 5 or 8 when
    it was stopped."""
    if summary.state == "finished":
        verdicts = {"passed": ExitCode.PASSED, "failed": ExitCode.FAILED, "unmeasured": ExitCode.UNMEASURED}
        return verdicts[summary.verdict or "unmeasured"]
    if summary.state == "waiting":
        return ExitCode.WAITING
    return ExitCode.INTERRUPTED if summary.stop_reason == "interrupted" else ExitCode.OUTSTANDING


def started(message: StartRelease, graph: StepGraph, as_json: bool) -> None:
    """What starting a release would do."""
    if as_json:
        emit_json(message)
        return
    branch = f", as {message.branch} on {message.remote}" if message.branch else ", by commit"
    lines = [
        f"starting release {message.version} would",
        f"  cut        {short(message.candidate)} ({message.candidate_ref}){branch}",
        f"  compare    with {short(message.baseline)} ({message.baseline_ref}: {message.baseline_reason})",
        f"  run        {', '.join(graph.names())}",
    ]
    emit_lines(lines)
