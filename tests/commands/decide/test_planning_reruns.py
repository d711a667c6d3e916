"""Which new failures are run again, in which order, and when that ends: whole gates in memory, decision by decision."""

from datetime import UTC, datetime

import pytest
from msgspec import structs

from commands.decide.attempts.reruns import SAME_FAILURE, TESTS_MOST, TOO_MANY, WINDOW_TARGETS, WINDOW_TESTS
from commands.decide.registry import decide
from commands.messages import Judge, PlanReruns, Refusal
from commands.render.summary import summary_lines
from ledger.events import (
    AttemptRecorded,
    AttemptStarted,
    GatePolicy,
    MachinePolicy,
    Measured,
    Placed,
    PlannedRerun,
    RerunsPlanned,
)
from ledger.tables import CaseTable, ClassRow, ClassTable, decode_document
from projections.gate.progress import gate_progress
from projections.gate.remaining import remaining_time
from projections.gate.why import explain
from projections.history.results import target_results
from projections.queries.rows import RunSource, shard_rows
from projections.registry import RunViews
from projections.run.summary import summarize_run
from tests.support.gates import PureGate, Suite, finished
from tests.support.makers import RUN, views_of
from tests.support.sides import File
from tests.support.worlds import Mood

ON = GatePolicy(rerun="on", shards=1)
THERE = {"a.py": File({"t": "passed", "u": "passed", "v": "skipped"}), "b.py": File({"t": "failed"})}
HERE = {"a.py": File({"t": "failed", "u": "passed", "v": "failed", "w": "failed"}), "b.py": File({"t": "failed"})}


def windows(gate: PureGate) -> list[RerunsPlanned]:
    """Everything that was planned to run again."""
    return [event for event in gate.events if isinstance(event, RerunsPlanned)]


def planned(gate: PureGate) -> list[PlannedRerun]:
    """Every re-run."""
    return [rerun for window in windows(gate) for rerun in window.reruns]


def rows(gate: PureGate) -> dict[str, ClassRow]:
    """The judgements by test."""
    table = decode_document(gate.documents[gate.verdict.classes], ClassTable)
    return {row.test.text(): row for row in table.rows}


def many(count: int, mood: Mood) -> Suite:
    """So many files, each with a test that newly fails."""
    names = [f"f{number:03d}.py" for number in range(count)]
    moods: dict[str, Mood] = {f"{name}::t": mood for name in names}
    return Suite({n: File({"t": "failed"}) for n in names}, {n: File({"t": "passed"}) for n in names}, moods=moods)


def test_each_new_failure_is_run_again_alone_and_on_the_baseline_where_that_has_it() -> None:
    gate = finished(Suite(HERE, THERE), ON)
    assert [(one.test, one.targets, one.baseline) for one in planned(gate)] == [
        ("a.py::t", ("a.py",), True), ("a.py::v", ("a.py",), True), ("a.py::w", ("a.py",), False),
    ]  # fmt: skip
    started = [one for one in gate.events if isinstance(one, AttemptStarted) and one.shard == "rerun-alone-1"]
    assert [(one.side, one.targets, one.tests) for one in started] == [
        ("candidate", ("a.py",), ("a.py::t",)), ("baseline", ("a.py",), ("a.py::t",)),
    ]  # fmt: skip


def test_what_failed_before_what_is_hidden_and_what_cannot_be_collected_is_not_run_again() -> None:
    here = {"a.py": File({"t": "skipped"}), "b.py": File({"t": "failed"}), "c.py": File(error="SyntaxError")}
    there = {"a.py": File({"t": "passed"}), "b.py": File({"t": "failed"}), "c.py": File({"t": "passed"})}
    gate = finished(Suite(here, there), ON)
    assert [window.reruns for window in windows(gate)] == [()]
    assert {test: row.case_class for test, row in rows(gate).items()} == {
        "a.py::t": "newly-skipped", "b.py::t": "preexisting", "c.py": "introduced",
    }  # fmt: skip


IMPORTED = {"a.py": File({"t": "passed"}), "b.py": File({"t": "passed", "u": "passed"})}
HALVES = structs.replace(ON, retry="ladder/2")


def unimportable(mood: Mood) -> Suite:
    """The collection of the candidate finds all of a file, and its attempt cannot import it."""
    return Suite(IMPORTED, IMPORTED, moods={"b.py": mood}, unimportable=frozenset({"b.py"}))


@pytest.mark.parametrize(
    ("mood", "rule", "kinds"),
    [
        ("steady", "failed x passed x failed-again", ["alone"]),
        ("flaky", "failed x passed x passed-again", ["alone", "bundle"]),
        ("interfering", "failed x passed x failed-among-others", ["alone", "bundle"]),
    ],
)
def test_what_only_an_attempt_cannot_collect_is_run_again_as_a_whole(mood: Mood, rule: str, kinds: list[str]) -> None:
    gate = finished(unimportable(mood), HALVES)
    assert [one.kind for one in planned(gate)] == kinds
    first, *_ = planned(gate)
    assert (first.test, first.targets, first.baseline) == ("b.py", ("b.py",), True)
    started = [one for one in gate.events if isinstance(one, AttemptStarted) and one.shard == "rerun-alone-1"]
    assert [(one.side, one.targets, one.tests) for one in started] == [
        ("candidate", ("b.py",), None), ("baseline", ("b.py",), None),
    ]  # fmt: skip
    assert rows(gate)["b.py"].rule == rule


def test_a_run_of_the_version_before_takes_what_an_attempt_cannot_collect_for_a_failure() -> None:
    gate = finished(unimportable("flaky"), ON)
    assert planned(gate) == []
    assert rows(gate)["b.py"].case_class == "introduced"


@pytest.mark.parametrize("policy", [ON, HALVES])
def test_what_the_collection_could_not_collect_is_never_run_again(policy: GatePolicy) -> None:
    here = {**IMPORTED, "b.py": File(error="SyntaxError")}
    gate = finished(Suite(here, IMPORTED, moods={"b.py": "flaky"}), policy)
    assert planned(gate) == []
    assert rows(gate)["b.py"].case_class == "introduced"


@pytest.mark.parametrize("rerun", ["off", "on"])
def test_a_gate_without_failures_plans_nothing_and_says_nothing_of_re_runs(rerun: str) -> None:
    good = {"a.py": File({"t": "passed"})}
    gate = finished(Suite(good, good), GatePolicy(rerun=rerun))  # type: ignore[arg-type]
    assert windows(gate) == []
    assert gate.verdict.table == ("classes/2" if rerun == "on" else "classes/1")


@pytest.mark.parametrize("policy", [GatePolicy(), GatePolicy(rerun="off")])
def test_without_the_policy_a_failure_is_what_it_looks_like(policy: GatePolicy) -> None:
    gate = finished(Suite(HERE, THERE, moods={"a.py::t": "flaky"}), policy)
    assert windows(gate) == []
    assert rows(gate)["a.py::t"].rule == "failed x passed"
    assert gate.verdict.table == "classes/1"


def test_what_passes_alone_is_run_again_in_its_bundle_once_for_all_that_failed_in_it() -> None:
    gate = finished(Suite(HERE, THERE, moods={"a.py::t": "flaky", "a.py::w": "interfering"}), ON)
    bundles = [one for one in planned(gate) if one.kind == "bundle"]
    assert [(one.shard, one.of, one.attempt, one.targets) for one in bundles] == [
        ("rerun-bundle-1", "shard-1", 1, ("a.py", "b.py"))
    ]
    found = rows(gate)
    assert found["a.py::t"].rule == "failed x passed x passed-again"
    assert (found["a.py::w"].case_class, found["a.py::w"].cause) == ("interference", "interference")
    assert found["a.py::v"].rule == "failed x skipped x failed-again"


def test_the_bundle_is_the_attempt_that_saw_the_failure_as_it_was() -> None:
    suite = Suite(HERE, THERE, ends={"shard-1/candidate": ("lost", "cut")}, moods={"a.py::t": "flaky"})
    gate = finished(suite, GatePolicy(rerun="on", shards=1, rounds=3), seed=3)
    (bundle,) = [one for one in planned(gate) if one.kind == "bundle"]
    started = [one for one in gate.events if isinstance(one, AttemptStarted) and one.side == "candidate"]
    (seen,) = [one for one in started if (one.shard, one.attempt) == (bundle.of, bundle.attempt)]
    assert bundle.targets == (seen.targets or ("a.py", "b.py"))


def test_a_test_that_cannot_run_alone_is_judged_by_its_bundle() -> None:
    gate = finished(Suite(HERE, THERE, moods={"a.py::t": "dependent"}), ON)
    assert rows(gate)["a.py::t"].rule == "failed x passed x failed-again"
    assert [one.kind for one in planned(gate)].count("bundle") == 1


def test_what_passes_only_when_it_is_given_more_time_is_flaky_and_marked() -> None:
    row = rows(finished(Suite(HERE, THERE, moods={"a.py::t": "slow"}), ON))["a.py::t"]
    assert (row.case_class, row.note) == ("flaky", "load")


def test_flaky_tests_block_where_the_policy_says_so() -> None:
    suite = Suite({"a.py": File({"t": "failed"})}, {"a.py": File({"t": "passed"})}, moods={"a.py::t": "flaky"})
    assert finished(suite, ON).verdict.verdict == "passed"
    blocked = finished(suite, structs.replace(ON, flaky="block")).verdict
    assert (blocked.verdict, [one.case_class for one in blocked.blocking]) == ("failed", ["flaky"])


def test_re_runs_come_in_windows_of_so_many_targets_and_bundles_after_them() -> None:
    gate = finished(many(WINDOW_TARGETS + 3, "flaky"), ON)
    kinds = [[one.kind for one in window.reruns] for window in windows(gate)]
    assert kinds == [["alone"] * WINDOW_TARGETS, ["alone"] * 3, ["bundle"], []]
    names = [one.shard for one in planned(gate)]
    assert len(set(names)) == len(names)
    assert names[WINDOW_TARGETS] == f"rerun-alone-{WINDOW_TARGETS + 1}"
    assert gate.verdict.counts == {"flaky": WINDOW_TARGETS + 3}


def test_when_most_fail_again_in_the_same_way_it_is_the_change_and_no_more_are_run_again() -> None:
    gate = finished(many(WINDOW_TARGETS + 3, "steady"), ON)
    assert [len(window.reruns) for window in windows(gate)] == [WINDOW_TARGETS, 0]
    assert windows(gate)[-1].stopped == gate.views.gate.reruns_stopped == SAME_FAILURE
    assert gate.verdict.verdict == "failed"
    assert gate.verdict.counts == {"introduced": WINDOW_TARGETS + 3}
    summary = summarize_run(gate.views, datetime.now(UTC), alive=None)
    assert any(line.startswith("same-failure: Most tests") for line in summary_lines(summary, 200))


def one_file(count: int, mood: Mood) -> Suite:
    """One file with so many tests that newly fail."""
    names = [f"t[{number:03d}]" for number in range(count)]
    here, there = ({"a.py": File(dict.fromkeys(names, told))} for told in ("failed", "passed"))
    return Suite(here, there, moods={f"a.py::{name}": mood for name in names})


def test_a_window_has_a_limit_of_tests_too() -> None:
    gate = finished(one_file(WINDOW_TESTS + 2, "flaky"), ON)
    assert [len(window.reruns) for window in windows(gate)] == [WINDOW_TESTS, 2, 1, 0]
    assert gate.verdict.counts == {"flaky": WINDOW_TESTS + 2}


def test_after_so_many_tests_no_more_are_run_again_and_the_others_count_as_new() -> None:
    gate = finished(one_file(TESTS_MOST + 1, "flaky"), structs.replace(ON, parallel=4))
    assert windows(gate)[-1].stopped == TOO_MANY
    assert gate.verdict.counts == {"flaky": TESTS_MOST, "introduced": 1}


def test_few_tests_that_fail_in_the_same_way_stop_nothing() -> None:
    suite = many(WINDOW_TARGETS + 3, "flaky")
    steady: dict[str, Mood] = dict.fromkeys(list(suite.moods)[:7], "steady")
    gate = finished(Suite(suite.candidate, suite.baseline, moods={**suite.moods, **steady}), ON)
    assert [window.stopped for window in windows(gate)] == [""] * 4
    assert gate.verdict.counts == {"flaky": WINDOW_TARGETS - 4, "introduced": 7}


def test_a_re_run_has_a_place_and_tells_nothing_of_usage() -> None:
    gate = finished(Suite(HERE, THERE), ON)
    assert {one.shard for one in gate.events if isinstance(one, Placed)} >= {one.shard for one in planned(gate)}
    assert not any(isinstance(one, Measured) and one.shard.startswith("rerun") for one in gate.events)


def test_a_re_run_has_the_limits_of_the_shard_that_it_is_of() -> None:
    policy = structs.replace(ON, machine=MachinePolicy(), time_limit_seconds=77.0, memory_limit_bytes=2**30)
    gate = finished(Suite(HERE, THERE), policy)
    limits = {
        (one.memory_limit_bytes, one.time_limit_seconds)
        for one in gate.events
        if isinstance(one, AttemptStarted) and one.shard.startswith(("rerun", "shard"))
    }
    assert limits == {(2**30, 77.0)}


def before_the_first_window() -> tuple[PureGate, RunViews]:
    """A gate in which everything is measured, and what was to be decided then."""
    gate = finished(Suite(HERE, THERE), ON)
    number = next(number for number, event in enumerate(gate.events) if isinstance(event, RerunsPlanned))
    return gate, views_of(*gate.events[:number])


def test_nothing_is_judged_before_it_is_known_what_is_run_again() -> None:
    gate, views = before_the_first_window()
    with pytest.raises(Refusal) as refused:
        decide(Judge(stream=RUN), views, gate.documents_for(Judge(stream=RUN), views))
    assert refused.value.code == "not-rerun"


def test_nothing_is_planned_to_run_again_while_attempts_are_owed() -> None:
    gate = finished(Suite(HERE, THERE), ON)
    number = next(n for n, e in enumerate(gate.events) if isinstance(e, AttemptStarted) and e.shard == "rerun-alone-1")
    views, message = views_of(*gate.events[:number]), PlanReruns(stream=RUN)
    with pytest.raises(Refusal) as refused:
        decide(message, views, gate.documents_for(message, views))
    assert refused.value.code == "not-settled"


def test_planning_the_same_twice_gives_the_same_and_nothing_once_it_is_over() -> None:
    gate, views = before_the_first_window()
    message = PlanReruns(stream=RUN)
    first, second = (decide(message, views, gate.documents_for(message, views)) for _ in range(2))
    assert first == second
    assert decide(message, gate.views, gate.documents_for(message, gate.views)).events == ()


def test_why_lists_every_run_of_the_test_and_no_re_run_of_another() -> None:
    gate = finished(Suite(HERE, THERE, moods={"a.py::t": "flaky"}), ON)
    records = [a.recorded for side in gate.views.gate.sides.values() for a in side.attempts]
    tables = {r.table: decode_document(gate.documents[r.table], CaseTable) for r in records if r and r.table}
    why = explain(rows(gate)["a.py::t"], gate.verdict.table, gate.views.gate, tables)
    assert [(one.shard, one.side, one.outcome) for one in why.attempts] == [
        ("shard-1", "candidate", "failed"), ("shard-1", "baseline", "passed"),
        ("rerun-alone-1", "candidate", "passed"), ("rerun-alone-1", "baseline", "passed"),
        ("rerun-bundle-1", "candidate", "passed"),
    ]  # fmt: skip


def half_way() -> RunViews:
    """A gate that runs its first re-runs."""
    gate = finished(Suite(HERE, THERE), ON)
    number = next(n for n, e in enumerate(gate.events) if isinstance(e, AttemptStarted) and e.shard == "rerun-alone-2")
    return views_of(*gate.events[: number + 1])


def test_re_runs_are_part_of_the_progress_of_a_gate() -> None:
    views = half_way()
    found = {group.id: group.state for group in gate_progress(views.run, views.gate, datetime.now(UTC)).groups}
    assert found["rerun-alone-2/candidate"] == "running"
    assert found["rerun-alone-3/candidate"] == "pending"
    assert "rerun-alone-3/baseline" not in found


def test_re_runs_are_rows_of_the_shards_of_a_run() -> None:
    views = half_way()
    source = RunSource(views=views, events=list, load=lambda *_: pytest.fail("no evidence is read"))
    rows_of_reruns = [row for row in shard_rows(source) if row.shard.startswith("rerun")]
    assert [(row.shard, row.side, row.targets) for row in rows_of_reruns] == [
        ("rerun-alone-1", "candidate", 1), ("rerun-alone-1", "baseline", 1),
        ("rerun-alone-2", "candidate", 1), ("rerun-alone-2", "baseline", 1), ("rerun-alone-3", "candidate", 1),
    ]  # fmt: skip


def test_a_re_run_takes_its_share_of_the_time_that_its_shard_is_planned_to_take() -> None:
    views = half_way()
    assert views.gate.plan is not None
    shards = tuple(structs.replace(shard, seconds=60.0) for shard in views.gate.plan.shards)
    views.gate.plan = structs.replace(views.gate.plan, shards=shards)
    now = datetime.fromisoformat(views.gate.in_flight()[0].started_at)
    # Three sides of one of the two targets each; two run at a time, and everything takes as long as was planned.
    for side in views.gate.sides.values():
        for attempt in side.attempts:
            if attempt.recorded:
                attempt.recorded = structs.replace(attempt.recorded, duration_seconds=60.0)
    left = remaining_time(views.run, views.gate, now)
    assert left.factor == 1.0
    assert left.seconds is not None
    assert 30 <= left.seconds <= 90


def test_a_re_run_says_nothing_of_what_its_target_needs() -> None:
    gate = finished(Suite(HERE, THERE), ON)
    told = {}
    for event in gate.events:
        if isinstance(event, AttemptRecorded) and event.table is not None:
            table = decode_document(gate.documents[event.table], CaseTable)
            told[event.shard, event.side] = len(list(target_results(event, table)))
    assert told["shard-1", "candidate"] == 2
    assert {count for (shard, _), count in told.items() if shard.startswith("rerun")} == {0}
