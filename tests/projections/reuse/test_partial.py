"""What is measured again of a gate, what is carried, and that both together never pass what all of it would not."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from ledger.events import RecheckPlanned
from ledger.tables import ClassRow, ClassTable, Inventory
from ledger.values import SIDES, TestId
from projections.gate.cases import SideEvidence, index, join
from projections.gate.classes import BASELINE_STATES, CANDIDATE_STATES, RERUN_STATES, RerunState, judge
from projections.gate.verdict import Judged, judge_cases
from projections.people.muting import NO_MUTES, ValidMutes
from projections.reuse.partial import (
    CARRIED,
    Full,
    Prior,
    carried_rows,
    is_test_file,
    measured_again,
    narrowed,
    plan_partial,
    unsettled,
)
from tests.support.makers import case, inventory, inventory_target, muted
from tests.support.sides import File
from tests.support.worlds import TARGETS, World, files, worlds

OLD, NEW = "1" * 40, "2" * 40
DIGEST = "c" * 64
PASS = File({"t": "passed"})


# What of two commits makes a plan.


def class_row(name: str, case_class: str = "passed", effect: str = "none", **changes: object) -> ClassRow:
    row = ClassRow(
        test=case(name), candidate="passed", baseline="passed", case_class=case_class, effect=effect, rule="a row"
    )
    return structs.replace(row, **changes)


def class_table(*rows: ClassRow) -> ClassTable:
    return ClassTable(table="classes/2", rows=rows)


def prior_of(*targets: str, declared: bool = False) -> Prior:
    return Prior(gate="gate-1", commit=OLD, classes=DIGEST, targets=frozenset(targets), declared=declared)


SETTLED = class_table(class_row("test_a.py::t"), class_row("test_b.py::t"))
FAILED = class_table(class_row("test_a.py::t"), class_row("test_b.py::t", "introduced", "failed"))


def planned(
    *changed: str,
    table: ClassTable = SETTLED,
    commit: str = NEW,
    present: Iterable[str] = ("test_a.py", "test_b.py"),
    named: dict[str, str] | None = None,
) -> RecheckPlanned | Full:
    return plan_partial(prior_of("test_a.py", "test_b.py"), table, commit, changed, set(present), named or {})


def test_changed_tests_and_whatever_was_not_settled_are_measured_again() -> None:
    found = planned("test_a.py", "README.md", table=FAILED)
    assert found == RecheckPlanned(
        gate="gate-1",
        commit=OLD,
        classes=DIGEST,
        targets=("test_a.py", "test_b.py"),
        changed=("test_a.py",),
        unsettled=("test_b.py",),
    )


@pytest.mark.parametrize("source", ["thing.py", "conftest.py", "test_new.py", "docs/x.MD", "tests/notes.md", "a.md\n"])
def test_any_other_file_has_all_measured_and_is_named(source: str) -> None:
    assert planned("test_a.py", source, "README.md", table=FAILED) == Full("source-changed", (source,))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (planned("test_a.py", commit=OLD), Full("same-commit")),
        (planned("thing.py", commit=OLD), Full("same-commit")),
        (planned(), Full("nothing-to-recheck")),
        (planned("README.md"), Full("nothing-to-recheck")),
        (planned("test_a.py", present=["test_b.py"]), Full("nothing-to-recheck")),
        (planned("test_a.py", named={"test_a.py": "x.py"}), Full("test-named-elsewhere", ("test_a.py",))),
        (planned("test_a.py", "x.py", named={"test_a.py": "x.py"}), Full("source-changed", ("x.py",))),
    ],
)
def test_the_first_reason_that_holds_is_told(found: RecheckPlanned | Full, reason: Full) -> None:
    assert found == reason


def test_a_deleted_test_is_among_what_is_measured_as_long_as_something_is_left_to_measure() -> None:
    found = planned("test_a.py", table=FAILED, present=["test_b.py"])
    assert isinstance(found, RecheckPlanned)
    assert found.targets == ("test_a.py", "test_b.py")


@pytest.mark.parametrize("name", ["guide.md", "notes/test_guide.md", "calc.py", "calc/latest.py", "api.ts", "testX.py"])
def test_what_was_collected_is_a_test_file_by_its_name_or_because_the_project_declares_it(name: str) -> None:
    part = RecheckPlanned(gate="gate-1", commit=OLD, classes=DIGEST, targets=(name,), changed=(name,), unsettled=())
    by_name, declared = (
        plan_partial(prior_of(name, declared=told), SETTLED, NEW, [name], {name}, {}) for told in (False, True)
    )
    assert declared == part
    assert by_name == (part if "test_" in name or "testX" in name else Full("source-changed", (name,)))


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("name", ["conftest.py", "__init__.py", "tests/conftest.py", "tests/sub/__init__.py"])
def test_what_is_used_without_being_named_is_no_test_file_though_it_was_collected(name: str, declared: bool) -> None:
    prior = prior_of(name, "test_a.py", declared=declared)
    assert plan_partial(prior, FAILED, NEW, [name, "test_a.py"], {name, "test_a.py"}, {}) == Full(
        "source-changed", (name,)
    )


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("test_x.py", "x_test.py", "x.test.ts", "XTest.java", "tests.py", "x-spec.js")),
        *((name, True) for name in ("URLTest.java", "TestURL.java", "x_specs.rb", "TEST_x.py", "a/v2Test.java")),
        *((name, False) for name in ("contest.py", "latest.py", "attestation.py", "special.py", "Contest.java")),
        *((name, False) for name in ("tests/helper.py", "test/data.py", "testing.py", "test1.py", "TESTx.py")),
    ],
)
def test_the_words_of_a_name_say_whether_it_is_a_test_file(name: str, is_one: bool) -> None:
    assert is_test_file(name, prior_of(name)) is is_one
    assert not is_test_file(name, prior_of("test_a.py", declared=True))


def test_the_reason_is_told_with_the_first_files() -> None:
    assert Full("source-changed", ("a", "b", "c", "d", "e")).words() == "source-changed (a, b, c and 2 more)"
    assert Full("source-changed", ("a", "b", "c")).words() == "source-changed (a, b, c)"
    assert Full("same-commit").words() == "same-commit"


def is_inert(file: str, *present: str, named: str = "") -> bool:
    """Whether it makes no difference that this file has changed, too, in a commit that also holds these."""
    there = {"test_a.py", file, *present}
    found = planned("test_a.py", file, present=there, named={named: "calc.py"} if named else None)
    assert isinstance(found, RecheckPlanned) or found == Full("source-changed", (file,))
    return isinstance(found, RecheckPlanned)


NEAR = ["test", "tests", "fixtures", "__fixtures__", "__snapshots__", "__mocks__"]
DATA = ["testdata", "data", "templates", "resources", "assets"]


@pytest.mark.parametrize("directory", [*NEAR, *DATA])
def test_markdown_near_tests_or_among_data_is_not_inert(directory: str) -> None:
    assert not is_inert(f"{directory}/x.md")
    assert not is_inert(f"a/{directory}/b/x.md")
    assert is_inert(f"a/not-{directory}/x.md")
    assert is_inert(f"{directory}.md")
    assert not is_inert(f"{directory}.md.py")


@pytest.mark.parametrize("neighbour", ["calc/__init__.py", "calc/deep/down/x.png", "calc/prompt.md.txt", "calc/.md"])
def test_markdown_beside_anything_else_is_not_inert(neighbour: str) -> None:
    assert not is_inert("calc/prompt.md", neighbour)
    assert is_inert("calc/prompt.md", "calc/more.md", "calc/deep/even.md", "calculus/x.py", "setup.py")
    assert is_inert("calc/below/prompt.md", neighbour)
    assert is_inert("prompt.md", neighbour)


def test_markdown_that_something_names_is_not_inert() -> None:
    assert not is_inert("README.md", named="README.md")
    assert is_inert("README.md", named="NEWS.md")


# What of a judgement is settled.


@pytest.mark.parametrize("flaky_blocks", [False, True])
def test_no_cell_of_the_table_that_blocks_or_was_not_measured_is_settled(flaky_blocks: bool) -> None:
    settled = set()
    for candidate in CANDIDATE_STATES:
        for baseline in BASELINE_STATES:
            for rerun in RERUN_STATES:
                judged = judge(candidate, baseline, rerun, flaky_blocks=flaky_blocks)
                row = class_row("a.py::t", judged.case_class, judged.effect, candidate=candidate, baseline=baseline)
                if not unsettled(class_table(row)):
                    settled.add(judged.case_class)
                    assert judged.effect == "none"
                    assert candidate != "unmeasured"
    assert settled == {"passed", "fixed", "preexisting", "vanished"}


@pytest.mark.parametrize("case_class", ["flaky", "unresolved", "unmeasured", "muted"])
def test_what_may_come_out_otherwise_is_measured_again_even_where_it_did_not_block(case_class: str) -> None:
    mute = "mute-1" if case_class == "muted" else UNSET
    assert unsettled(class_table(class_row("b.py::t", case_class, mute=mute), class_row("a.py::t"))) == ("b.py",)


# What is measured when both sides were collected.


def recheck_of(*targets: str) -> RecheckPlanned:
    return RecheckPlanned(gate="gate-1", commit=OLD, classes=DIGEST, targets=targets, changed=targets, unsettled=())


def collected(**targets: str) -> Inventory:
    listed = [inventory_target(f"{name}.py", *tests.split()) for name, tests in targets.items()]
    return inventory("candidate", *listed)


A_AND_B = class_table(class_row("a.py::t"), class_row("b.py::t"))


def again(table: ClassTable, candidate: Inventory, *targets: str) -> set[str]:
    return set(measured_again(recheck_of(*targets), table, candidate, inventory("baseline")))


def test_the_targets_of_the_plan_are_measured_and_the_others_carried() -> None:
    assert again(A_AND_B, collected(a="t", b="t"), "a.py") == {"a.py"}


def test_a_target_that_the_last_gate_did_not_judge_is_measured_whichever_side_has_it() -> None:
    assert again(A_AND_B, collected(a="t", b="t", c="t"), "a.py") == {"a.py", "c.py"}
    baseline = inventory("baseline", inventory_target("c.py", "t"))
    assert measured_again(recheck_of("a.py"), A_AND_B, collected(a="t", b="t"), baseline) == {"a.py", "c.py"}


def test_a_target_that_is_collected_otherwise_than_it_was_judged_is_measured() -> None:
    """Its file is the same, so something else must have changed what is in it."""
    assert again(A_AND_B, collected(a="t", b="t u"), "a.py") == {"a.py", "b.py"}
    assert again(A_AND_B, collected(a="t"), "a.py") == {"a.py", "b.py"}
    broken = inventory("candidate", inventory_target("a.py", "t"), inventory_target("b.py", error="SyntaxError"))
    assert again(A_AND_B, broken, "a.py") == {"a.py", "b.py"}


def test_what_was_gone_already_may_stay_away() -> None:
    gone = class_row("b.py::t", "vanished", candidate="removed")
    assert again(class_table(class_row("a.py::t"), gone), collected(a="t"), "a.py") == {"a.py"}


def test_everything_is_measured_when_nothing_of_the_plan_is_there_any_more() -> None:
    assert again(A_AND_B, collected(b="t"), "a.py") == {"a.py", "b.py"}


# Whole worlds: a gate, a repair that changes nothing but tests, and the gate after it.


def judged_in_full(world: World, mutes: ValidMutes = NO_MUTES) -> Judged:
    sides = (index(world.evidence(side)) for side in ("candidate", "baseline"))
    return judge_cases(join(*sides), flaky_blocks=False, mutes=mutes)


def judged_in_part(
    world: World, prior: Judged, changed: Iterable[str], mutes: ValidMutes = NO_MUTES
) -> tuple[Judged, frozenset[str]] | None:
    """The verdict of a gate that measures a part, with that part; None where all has to be measured."""
    targets = frozenset({*world.candidate, *(row.test.target for row in prior.table.rows)})
    plan = plan_partial(prior_of(*targets, declared=True), prior.table, NEW, changed, world.candidate.keys(), {})
    if isinstance(plan, Full):
        return None
    sides = [world.evidence(side) for side in ("candidate", "baseline")]
    part = measured_again(plan, prior.table, *(side.inventory for side in sides))
    measured = (index(of_targets(side, part)) for side in sides)
    rows = carried_rows(prior.table, part)
    return judge_cases(join(*measured), flaky_blocks=False, mutes=mutes, carried=rows), part


def of_targets(side: SideEvidence, part: frozenset[str]) -> SideEvidence:
    """What a gate knows of a side when it was asked for these targets only."""
    tables = (
        structs.replace(
            table,
            targets=tuple(row for row in table.targets if row.target in part),
            cases=tuple(row for row in table.cases if row.test.target in part),
        )
        for table in side.tables
    )
    return SideEvidence(
        inventory=narrowed(side.inventory, part),
        tables=tuple(tables),
        missing={target: cause for target, cause in side.missing.items() if target in part},
        not_run=side.not_run & part,
    )


SETTLED_PAIRS = [
    (File({"t": here}), File({"t": there}))
    for here, there in (
        ("passed", "passed"),
        ("failed", "failed"),
        ("error", "error"),
        ("passed", "failed"),
        ("skipped", "skipped"),
    )
]
"""A target of both sides of which every test is settled."""


@st.composite
def repairs(draw: st.DrawFn) -> tuple[World, World, tuple[str, ...]]:
    """A world, what it is after a repair of some of its test files, and these.

    Some targets are settled from the start, so that there is something to carry. What was measured may get lost.
    """
    drawn = draw(worlds())
    pairs = draw(st.dictionaries(st.sampled_from(TARGETS), st.sampled_from(SETTLED_PAIRS), min_size=1))
    candidate = {**drawn.candidate, **{name: pair[0] for name, pair in pairs.items()}}
    baseline = {**drawn.baseline, **{name: pair[1] for name, pair in pairs.items()}}
    lost = {side: frozenset(drawn.lost[side] - pairs.keys()) for side in SIDES}
    before = World(candidate, baseline, lost, drawn.not_run - pairs.keys())
    most = max(1, len(candidate) - 1)
    changed = draw(st.sets(st.sampled_from(sorted(candidate)), min_size=1, max_size=most))
    rewritten = draw(files(extra=True, least=len(TARGETS)))
    deleted = draw(st.one_of(st.just(""), st.just(""), st.sampled_from(sorted(changed))))
    after = {name: rewritten.get(name, PASS) if name in changed else file for name, file in candidate.items()}
    kept = {name: file for name, file in after.items() if name != deleted}
    gone = draw(st.frozensets(st.sampled_from(TARGETS), max_size=1))
    return before, World(kept, baseline, {**lost, "candidate": gone}, before.not_run), tuple(sorted(changed))


def as_known(before: World, after: World, part: frozenset[str]) -> World:
    """What a full gate would have found at most: what was not measured again was lost no more than before."""
    lost = (after.lost["candidate"] & part) | (before.lost["candidate"] - part)
    return World(after.candidate, after.baseline, {**after.lost, "candidate": lost}, after.not_run)


@settings(max_examples=100, deadline=None)
@given(repair=repairs())
def test_a_part_never_passes_what_the_whole_would_not(repair: tuple[World, World, tuple[str, ...]]) -> None:
    before, after, changed = repair
    prior = judged_in_full(before)
    found = judged_in_part(after, prior, changed)
    if found is None:
        return
    partial, part = found
    full = judged_in_full(as_known(before, after, part))
    if partial.verdict == "passed":
        assert full.verdict == "passed"
    assert partial.verdict == full.verdict or partial.reason == "nothing-ran"
    assert [plain(row) for row in partial.table.rows] == [plain(row) for row in full.table.rows]


@settings(max_examples=100, deadline=None)
@given(repair=repairs())
def test_every_row_is_measured_or_carried_and_what_blocks_is_never_carried(
    repair: tuple[World, World, tuple[str, ...]],
) -> None:
    before, after, changed = repair
    prior = judged_in_full(before)
    found = judged_in_part(after, prior, changed)
    if found is None:
        return
    partial, part = found
    rows = partial.table.rows
    assert [row.test for row in rows] == sorted({row.test for row in rows}, key=TestId.sort_key)
    carried = [row for row in rows if row.note == CARRIED]
    assert {row.test.target for row in carried} & part == set()
    assert {row.test.target for row in rows if row.note != CARRIED} <= part
    assert set(changed) <= part
    assert all(
        row.effect == "none" and row.case_class in ("passed", "fixed", "preexisting", "vanished") for row in carried
    )
    told = {row.test: plain(row) for row in prior.table.rows}
    assert [plain(row) for row in carried] == [told[row.test] for row in carried]
    assert {row.test.target for row in prior.table.rows if row.effect != "none"} <= part
    assert {row.test for row in prior.table.rows if row.test.target not in part} == {row.test for row in carried}


@settings(max_examples=80, deadline=None)
@given(first=repairs(), data=st.data())
def test_a_part_of_a_part_is_as_good_as_a_part_of_the_whole(
    first: tuple[World, World, tuple[str, ...]], data: st.DataObject
) -> None:
    before, between, changed = first
    found = judged_in_part(between, judged_in_full(before), changed)
    if found is None or not between.candidate:
        return
    partial, part = found
    known = as_known(before, between, part)
    more = data.draw(st.sampled_from(sorted(between.candidate)))
    file = data.draw(files(extra=True, least=len(TARGETS))).get(more, PASS)
    after = World({**known.candidate, more: file}, known.baseline, known.lost, known.not_run)
    second = judged_in_part(after, partial, [more])
    whole = judged_in_part(after, judged_in_full(known), [more])
    assert second is not None
    assert whole is not None
    assert second[1] == whole[1]
    assert [plain(row) for row in second[0].table.rows] == [plain(row) for row in whole[0].table.rows]
    assert second[0].verdict != "passed" or judged_in_full(after).verdict == "passed"


def plain(row: ClassRow) -> ClassRow:
    """The judgement without its note."""
    return structs.replace(row, note=UNSET)


def test_what_was_carried_twice_was_measured_once() -> None:
    """One failure is repaired after another; the third file is carried from the first gate to the last."""
    broken = File({"t": "failed"})
    baseline = {"a.py": PASS, "b.py": PASS, "c.py": PASS}
    first = judged_in_full(World({"a.py": broken, "b.py": broken, "c.py": PASS}, baseline))
    assert (first.verdict, first.counts) == ("failed", {"introduced": 2, "passed": 1})
    second = judged_in_part(World({"a.py": PASS, "b.py": broken, "c.py": PASS}, baseline), first, ["a.py"])
    assert second is not None
    assert second[0].verdict == "failed"
    assert second[1] == {"a.py", "b.py"}
    third = judged_in_part(World(baseline, baseline), second[0], ["b.py"])
    assert third is not None
    assert third[0].verdict == "passed"
    assert third[1] == {"b.py"}
    assert [row.test.target for row in third[0].table.rows if row.note == CARRIED] == ["a.py", "c.py"]


@pytest.mark.parametrize("rerun", ["passed-again", "failed-among-others", "unresolved"])
def test_what_only_a_second_look_has_excused_is_measured_again(rerun: RerunState) -> None:
    judged = judge("failed", "passed", rerun, flaky_blocks=False)
    row = class_row("b.py::t", judged.case_class, judged.effect, candidate="failed")
    assert judged.case_class in ("flaky", "interference", "unresolved")
    assert unsettled(class_table(class_row("a.py::t"), row)) == ("b.py",)


def test_a_muted_failure_is_measured_again_and_judged_by_the_mutings_of_today() -> None:
    baseline = {"a.py": PASS, "b.py": PASS}
    world = World({"a.py": PASS, "b.py": File({"t": "failed"})}, baseline)
    mutes = ValidMutes.of([muted("b.py::t")], "2030-01-15", {})
    prior = judged_in_full(world, mutes)
    assert (prior.verdict, prior.counts) == ("passed", {"muted": 1, "passed": 1})
    again_muted, lapsed = judged_in_part(world, prior, ["a.py"], mutes), judged_in_part(world, prior, ["a.py"])
    assert again_muted is not None
    assert lapsed is not None
    assert again_muted[1] == lapsed[1] == {"a.py", "b.py"}
    assert (again_muted[0].verdict, lapsed[0].verdict) == ("passed", "failed")


def test_that_something_ran_is_shown_by_passes_only() -> None:
    """An error before a test is a failure as well; carried, the one cannot be told from the other."""
    error = File({"t": "error"})
    world = World({"a.py": File({"t": "skipped"}), "b.py": error}, {"a.py": File({"t": "skipped"}), "b.py": error})
    prior = judged_in_full(world)
    found = judged_in_part(world, prior, ["a.py"])
    assert found is not None
    assert found[1] == {"a.py"}
    assert (prior.verdict, prior.reason) == (found[0].verdict, found[0].reason) == ("unmeasured", "nothing-ran")
