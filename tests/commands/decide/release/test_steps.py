"""The decisions on the steps of a release: what comes of each, when it is refused, and when it is already so."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from commands.decide.base import stored
from commands.messages import EndReleaseStep, FinishRelease, RecordQuarantine, StartRelease
from ledger.events import (
    ApprovalRequested,
    GatePolicy,
    Prepared,
    Quarantined,
    RunFinished,
    RunStarted,
    StepFinished,
    StepReport,
    StepStarted,
)
from ledger.steps import StepGraph
from projections.release.approval import shown_now
from tests.support.given import given
from tests.support.makers import COMMITS, RUN, digest_of, run_started
from tests.support.releases import TODAY, PureRelease, chain, commit, step, usual


def start(graph: StepGraph, **changes: object) -> tuple[PureRelease, StartRelease]:
    release = PureRelease(graph)
    digest, data = stored(graph)
    release.documents[digest] = data
    values: dict[str, object] = {
        "stream": RUN, "run": RUN, "version": "1.2.3", "candidate": commit(0), "candidate_ref": "HEAD",
        "baseline": COMMITS["baseline"], "baseline_ref": "v1", "baseline_reason": "as asked for", "dirty": False,
        "policy": GatePolicy(), "config": "f" * 64, "graph": digest, "branch": "release/1.2.3", "remote": "origin",
    }  # fmt: skip
    return release, StartRelease(**values | changes)  # type: ignore[arg-type]


def test_a_release_is_started_once_with_the_names_of_its_steps() -> None:
    release, message = start(usual())
    (event,) = release.handle(message)
    assert isinstance(event, RunStarted)
    assert (event.kind, event.version, event.graph, event.branch) == ("release", "1.2.3", message.graph, message.branch)
    assert event.steps == usual().names()
    assert event.release is UNSET
    assert release.handle(message) == ()


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3-dev.1", ""])
def test_what_is_no_version_is_not_released(version: str) -> None:
    release, message = start(usual(), version=version)
    assert release.refusal(message).code == "version-invalid"


def test_steps_that_contradict_each_other_are_not_started_and_three_reasons_are_told() -> None:
    release, message = start(chain(step("A"), step("B"), step("C"), step("D")))
    refusal = release.refusal(message)
    assert refusal.code == "steps-contradict"
    assert [name in refusal.message for name in ("A:", "B:", "C:", "D:")] == [True, True, True, False]
    release, message = start(StepGraph(steps=()))
    assert release.refusal(message).code == "steps-contradict"


def test_a_commit_is_not_gated_against_itself_but_may_be_released_without_a_gate() -> None:
    release, message = start(usual(), baseline=commit(0))
    assert release.refusal(message).code == "equal-commits"
    release, message = start(chain(step("docs")), baseline=commit(0))
    assert len(release.handle(message)) == 1


def test_a_gate_is_no_release() -> None:
    release = PureRelease(usual())
    messages = (
        release.begin("gate"), release.answer("approve"), release.resume("gate"), release.finish(),
        EndReleaseStep(
            stream=RUN, step="gate", attempt=1, commit=commit(0), outcome="passed", report=StepReport()
        ),
    )  # fmt: skip
    for message in messages:
        given(run_started()).when(message).refused("not-a-release")


def test_a_step_begins_on_the_commit_that_counts_under_the_term_of_the_driver() -> None:
    release = PureRelease(usual()).start()
    release.take()
    assert release.handle(release.begin("cut")) == (StepStarted(step="cut", attempt=1, commit=commit(0), term=2),)
    assert release.handle(release.begin("cut")) == ()


def test_a_gate_is_taken_up_again_on_the_same_commit_and_a_new_one_is_made_on_another() -> None:
    release = PureRelease(usual()).start().came_to("gate", "unmeasured")
    first = release.views.release.steps["gate"].attempts[0].gate
    release.handle(release.resume("gate"))
    release.until("gate")
    (event,) = release.handle(release.begin("gate", gate="another"))
    assert isinstance(event, StepStarted)
    assert event.gate == first != "another"
    release.handle(release.end("gate", "failed"))
    release.drive()
    release.tip = commit(1)
    release.handle(release.resume("gate"))
    (event,) = release.handle(release.begin("gate", gate="another"))
    assert isinstance(event, StepStarted)
    assert (event.gate, event.commit) == ("another", commit(1))


@pytest.mark.parametrize("name", [name for name in usual().names() if name not in ("cut", "triage")])
def test_no_step_begins_before_what_it_needs(name: str) -> None:
    release = PureRelease(usual()).start()
    assert release.refusal(release.begin(name)).code == "needs-unsettled"


def test_a_step_that_is_not_the_next_one_does_not_begin() -> None:
    release = PureRelease(chain(step("a"), step("b"))).start()
    assert release.handle(release.begin("a"))
    assert release.handle(release.end("a", "passed"))
    assert release.handle(release.begin("a")) == ()
    loose = PureRelease(StepGraph(steps=(step("a"), step("b")))).start()
    assert loose.handle(loose.begin("b")) == ()


def test_an_unknown_step_is_refused_with_those_that_there_are() -> None:
    release = PureRelease(usual()).start()
    for message in (release.begin("gate"), release.answer("gate"), release.resume("gate")):
        refusal = release.refusal(replace(message, step="gtae"))
        assert refusal.code == "step-unknown"
        assert "gate, triage" in refusal.hint


def test_an_approval_is_asked_for_with_what_is_shown() -> None:
    release = PureRelease(usual()).start().until("approve")
    shown = shown_now(release.views.release, release.graph, TODAY)
    assert release.handle(release.begin("approve")) == (
        StepStarted(step="approve", attempt=1, commit=commit(0), term=1),
        ApprovalRequested(step="approve", attempt=1, commit=commit(0), shown=digest_of(shown)),
    )
    assert digest_of(shown) in release.documents
    assert release.handle(release.begin("approve")) == ()


def test_nothing_irreversible_begins_on_an_approval_of_something_else() -> None:
    release = PureRelease(usual()).start().until("publish")
    release.mutes = ("a.py::test_a",)
    assert release.refusal(release.begin("publish")).code == "approval-stale"
    release.mutes = ()
    assert release.handle(release.begin("publish"))


def test_nothing_irreversible_begins_while_the_archive_on_disk_is_another_one() -> None:
    release = PureRelease(usual()).start().until("publish")
    assert release.refusal(release.begin("publish", archive="0" * 64)).code == "archive-changed"
    assert release.refusal(release.begin("publish", archive="")).code == "archive-changed"
    assert release.handle(release.begin("publish"))
    release.until("docs")
    assert release.handle(release.begin("docs", archive="0" * 64))


def test_a_release_without_an_archive_is_published_without_one() -> None:
    release = (
        PureRelease(chain(step("approve", "approve"), step("publish", irreversible=True))).start().until("publish")
    )
    assert release.handle(release.begin("publish"))


def test_what_can_be_taken_back_waits_for_an_approval_that_it_needs_too() -> None:
    release = PureRelease(chain(step("approve", "approve"), step("docs"))).start()
    assert release.drive() == "approve"
    assert release.refusal(release.begin("docs")).code == "needs-unsettled"


def test_what_an_attempt_printed_is_named_where_it_was_kept() -> None:
    release = PureRelease(chain(step("docs"))).start()
    release.act()
    (ended,) = release.handle(replace(release.end("docs", "passed"), output="1" * 64, errors="2" * 64))
    assert isinstance(ended, StepFinished)
    assert (ended.output, ended.errors) == ("1" * 64, "2" * 64)
    attempt = release.views.release.steps["docs"].attempts[-1]
    assert (attempt.output, attempt.errors) == ("1" * 64, "2" * 64)


def test_an_attempt_ends_once_with_what_it_came_to() -> None:
    release = PureRelease(usual()).start().until("gate")
    release.act()
    ended = release.end("gate", "failed")
    assert release.handle(ended) == (
        StepFinished(step="gate", outcome="failed", attempt=1, commit=commit(0), report=StepReport(cause="exit-1")),
    )
    assert release.handle(ended) == ()
    assert ended.command() == f"step/{RUN}/gate/1"


def test_an_attempt_that_is_not_the_running_one_does_not_end_it() -> None:
    release = PureRelease(usual()).start().came_to("gate", "failed")
    old = release.end("gate", "passed")
    release.handle(release.resume("gate"))
    release.until("gate")
    release.act()
    assert release.handle(old) == ()


def test_what_is_built_is_bound_to_its_commit_before_the_step_ends() -> None:
    release = PureRelease(usual()).start().until("prepare")
    release.act()
    ended = release.end("prepare", "passed")
    prepared, finished = release.handle(ended)
    assert prepared == Prepared(
        step="prepare", version="1.2.3", commit=commit(0), digest=ended.digest, size_bytes=1, files=1,
        place="releases/1.2.3",
    )  # fmt: skip
    assert isinstance(finished, StepFinished)


def test_an_approval_is_not_ended_by_a_program() -> None:
    release = PureRelease(usual()).start()
    assert release.drive() == "approve"
    assert release.handle(release.end("approve", "passed")) == ()


def test_an_archive_that_was_moved_aside_is_recorded_and_built_again() -> None:
    release = PureRelease(usual()).start()
    assert release.drive() == "approve"
    digest = release.views.release.archives[0].digest
    message = RecordQuarantine(stream=RUN, place="quarantine/1", digest=digest, size_bytes=1, reason="older")
    (event,) = release.handle(message)
    assert isinstance(event, Quarantined)
    assert (event.what, event.place, event.digest) == ("archive", "quarantine/1", digest)
    assert release.drive() == "approve"
    assert [one.number for one in release.views.release.steps["prepare"].attempts] == [1, 2]


def test_a_release_ends_when_nothing_is_left_to_do_and_only_then() -> None:
    release = PureRelease(chain(step("docs"))).start()
    refusal = release.refusal(release.finish())
    assert (refusal.code, "docs" in refusal.message) == ("release-unfinished", True)
    release.act()
    assert release.refusal(release.finish()).code == "release-unfinished"
    release.act()
    assert release.handle(release.finish()) == (RunFinished(verdict="passed"),)
    assert release.handle(FinishRelease(stream=RUN, date=TODAY)) == ()
