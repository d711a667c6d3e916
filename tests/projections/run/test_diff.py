"""Two runs side by side: every difference is listed, and nothing is said where nothing is known."""

from collections.abc import Iterable

from hypothesis import given
from msgspec import structs

from ledger.events import AttemptRecorded, GatePolicy, MachinePolicy, PlanPolicy, VerdictDecided
from ledger.tables import ClassTable, decode_document
from projections.gate.verdict import judge_cases
from projections.registry import RunViews
from projections.run.diff import ClassChange, ComparedRun, Fact, RunDiff, Usage, changed_classes, diff_runs
from tests.support.gates import PureGate, Suite, finished
from tests.support.makers import recorded
from tests.support.sides import File, joined
from tests.support.worlds import World, worlds

PASSING = {"a.py": File({"t": "passed"}), "b.py": File({"t": "passed"})}
BROKEN = Suite({**PASSING, "a.py": File({"t": "failed"})}, PASSING)
MENDED = Suite(PASSING, PASSING)

GROUPS = ("plan", "machine")


def compared(gate: PureGate) -> ComparedRun:
    """A finished gate, ready to be compared."""
    return ComparedRun(gate.views, table_of(gate))


def table_of(gate: PureGate) -> ClassTable:
    """The class table of its verdict."""
    return decode_document(gate.documents[gate.verdict.classes], ClassTable)


def differing(facts: Iterable[Fact]) -> dict[str, tuple[str, str]]:
    """The facts in which the runs differ."""
    return {fact.name: (fact.left, fact.right) for fact in facts if fact.differs}


def sections(diff: RunDiff) -> tuple[tuple[Fact, ...], ...]:
    """All facts, by section."""
    return diff.commits, diff.policy, diff.verdict, diff.cases, diff.decisions


def test_a_run_does_not_differ_from_itself() -> None:
    run = compared(finished(BROKEN, GatePolicy()))
    diff = diff_runs(run, run)
    assert all(differing(facts) == {} for facts in sections(diff))
    assert diff.classes == ()
    assert all(one.left == one.right for one in diff.usage)


def test_a_test_that_was_mended_shows_in_verdict_cases_and_classes() -> None:
    diff = diff_runs(compared(finished(BROKEN, GatePolicy())), compared(finished(MENDED, GatePolicy())))
    assert differing(diff.verdict) == {"verdict": ("failed", "passed"), "reason": ("regression", "no-regression")}
    assert differing(diff.cases) == {"introduced": ("1", ""), "passed": ("1", "2")}
    assert diff.classes == (
        ClassChange(test="a.py::t", left="introduced", right="passed", left_effect="failed", right_effect="none"),
    )


def test_tests_of_only_one_run_are_listed_as_not_judged_in_the_other() -> None:
    more = Suite({**PASSING, "c.py": File({"t": "passed"})}, PASSING)
    diff = diff_runs(compared(finished(MENDED, GatePolicy())), compared(finished(more, GatePolicy())))
    assert diff.classes == (ClassChange(test="c.py::t", left="", right="passed", left_effect="", right_effect="none"),)
    assert differing(diff.decisions)["targets"] == ("2", "3")
    left, right = differing(diff.decisions)["candidate inventory"]
    assert (left.split(", ")[1], right.split(", ")[1]) == ("targets 2", "targets 3")


def test_every_rule_that_changed_is_listed() -> None:
    changed = GatePolicy(rounds=5, flaky="block", memory_limit_bytes=2**30, rerun="on", retry="ladder/2")
    policies = GatePolicy(), changed
    diff = diff_runs(*(compared(finished(MENDED, policy)) for policy in policies))
    assert differing(diff.policy) == {
        "rounds": ("2", "5"), "flaky": ("warn", "block"), "memory_limit_bytes": ("0", "1073741824"),
        "rerun": ("", "on"), "retry": ("", "ladder/2"),
    }  # fmt: skip
    assert [fact.name for fact in diff.policy] == [name for name in GatePolicy.__struct_fields__ if name not in GROUPS]


def test_the_rules_of_a_group_are_listed_one_by_one() -> None:
    policies = GatePolicy(plan=PlanPolicy(), machine=MachinePolicy()), GatePolicy(plan=PlanPolicy(spawn_shards=7))
    diff = diff_runs(*(compared(finished(MENDED, policy)) for policy in policies))
    names = [f"plan.{name}" for name in PlanPolicy.__struct_fields__]
    names += [f"machine.{name}" for name in MachinePolicy.__struct_fields__]
    assert [fact.name for fact in diff.policy if "." in fact.name] == names
    assert differing(diff.policy)["plan.spawn_shards"] == ("3", "7")
    assert differing(diff.policy)["machine.headroom_percent"] == ("150", "")


def test_commits_and_how_they_were_named_are_compared() -> None:
    left = finished(MENDED, GatePolicy())
    events = [structs.replace(left.events[0], candidate="d" * 40, candidate_ref="main"), *left.events[1:]]
    views = RunViews()
    for one in recorded(events):
        views.apply(one)
    diff = diff_runs(compared(left), ComparedRun(views, table_of(left)))
    assert differing(diff.commits) == {"candidate": ("c" * 40, "d" * 40), "candidate ref": ("HEAD", "main")}


def test_usage_counts_all_attempts_and_their_highest_peak() -> None:
    dying = Suite(PASSING, PASSING, ends={"shard-1/candidate": ("dies",)})
    diff = diff_runs(*(compared(finished(suite, GatePolicy(shards=1))) for suite in (MENDED, dying)))
    usage = {one.what: (one.left, one.right) for one in diff.usage}
    assert list(usage) == [
        "total", "collection/candidate", "collection/baseline", "shard-1/candidate", "shard-1/baseline",
    ]  # fmt: skip
    once = Usage(attempts=1, duration_seconds=1.5, peak_memory_bytes=2**20)
    assert usage["shard-1/candidate"] == (once, Usage(attempts=2, duration_seconds=3.0, peak_memory_bytes=2**20))
    assert usage["shard-1/baseline"] == (once, once)
    assert usage["total"][1] == Usage(attempts=5, duration_seconds=7.5, peak_memory_bytes=2**20)
    assert differing(diff.decisions)["incomplete attempts"] == ("0", "1")


def test_a_peak_that_no_attempt_told_is_not_zero() -> None:
    gate = finished(MENDED, GatePolicy())
    silent = [
        structs.replace(event, peak_memory_bytes=None) if isinstance(event, AttemptRecorded) else event
        for event in gate.events
    ]
    views = RunViews()
    for one in recorded(silent):
        views.apply(one)
    diff = diff_runs(compared(gate), ComparedRun(views, None))
    assert {one.right.peak_memory_bytes for one in diff.usage if one.right} == {None}


def test_without_a_verdict_tests_are_not_compared_rather_than_called_the_same() -> None:
    gate = finished(BROKEN, GatePolicy())
    views = RunViews()
    for one in recorded(gate.events):
        if isinstance(one.event, VerdictDecided):
            break
        views.apply(one)
    diff = diff_runs(ComparedRun(views, None), compared(gate))
    assert diff.classes is None
    assert differing(diff.verdict)["verdict"] == ("none", "failed")


def test_a_run_that_has_only_begun_can_be_compared() -> None:
    gate = PureGate(MENDED, GatePolicy())
    gate.start()
    diff = diff_runs(ComparedRun(gate.views, None), compared(finished(MENDED, GatePolicy())))
    assert differing(diff.decisions)["shards"] == ("", "2")
    assert diff.usage[0].left == Usage(attempts=0, duration_seconds=0, peak_memory_bytes=None)


@given(worlds(), worlds())
def test_the_changed_classes_are_exactly_the_rows_that_are_not_in_both(left: World, right: World) -> None:
    tables = [judged(world) for world in (left, right)]
    rows = [{(row.test.text(), row.case_class, row.effect) for row in table.rows} for table in tables]
    expected = {test for test, _, _ in rows[0] ^ rows[1]}
    changes = changed_classes(*tables)
    assert sorted(change.test for change in changes) == sorted(expected)


def judged(world: World) -> ClassTable:
    """The class table of a world."""
    return judge_cases(joined(world.evidence("candidate"), world.evidence("baseline")), flaky_blocks=False).table
