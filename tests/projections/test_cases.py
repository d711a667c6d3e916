"""Cases: inventories and tables of two sides, built by hand, and the states that they lead to."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ledger.tables import Plan, ShardTargets
from ledger.values import TestId
from projections.gate.cases import not_run_targets
from tests.support.makers import case_row, case_table
from tests.support.sides import File, evidence, joined, states, table_of

PASSING = {"a.py": File({"test_a": "passed"})}


def one(candidate: File, baseline: File | None) -> dict[str, tuple[str, str]]:
    """The states of the cases of a single file."""
    return states({"a.py": candidate}, {} if baseline is None else {"a.py": baseline})


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("passed", "passed"), ("failed", "failed"), ("error", "failed"), ("skipped", "skipped"),
        ("xfailed", "xfailed"), ("xpassed", "passed"), ("rerun", "flaky"),
    ],
)  # fmt: skip
def test_what_a_test_reports_is_its_state_on_either_side(told: str, state: str) -> None:
    assert one(File({"t": told}), File({"t": "passed"})) == {"a.py::t": (state, "passed")}
    assert one(File({"t": "passed"}), File({"t": told})) == {"a.py::t": ("passed", state)}


def test_a_test_that_failed_after_its_re_runs_has_failed() -> None:
    table = case_table("candidate", {"a.py": None}, [case_row(TestId("a.py", ("test_a",)), "failed", reruns=2)])
    assert states(evidence("candidate", PASSING, tables=(table,)), PASSING) == {"a.py::test_a": ("failed", "passed")}


def test_a_collected_case_that_is_not_reported_is_unmeasured() -> None:
    assert one(File({"t": None, "u": "passed"}), File({"t": "passed", "u": None})) == {
        "a.py::t": ("unmeasured", "passed"),
        "a.py::u": ("passed", "unmeasured"),
    }


def test_a_case_that_only_the_run_knows_of_counts_on_its_side() -> None:
    assert one(File({"t": "passed"}, extra={"x": "failed"}), File({"t": "passed"}, extra={"x": "passed"})) == {
        "a.py::t": ("passed", "passed"),
        "a.py::x": ("failed", "passed"),
    }
    assert one(File({"t": "passed"}), File({"t": "passed"}, extra={"x": "passed"}))["a.py::x"] == ("removed", "passed")


def test_a_new_test_and_a_new_file_are_proven_absent_from_the_baseline() -> None:
    assert one(File({"t": "failed"}), None) == {"a.py::t": ("failed", "absent")}
    assert one(File({"t": "failed", "u": "passed"}), File({"u": "passed"}))["a.py::t"] == ("failed", "absent")


def test_a_test_that_a_measured_file_of_the_same_bytes_no_longer_has_is_vanished() -> None:
    there = File({"t": "passed", "u": "passed"})
    assert one(File({"u": "passed"}), there)["a.py::t"] == ("vanished", "passed")


def test_a_test_of_a_file_that_is_kept_but_no_longer_collected_is_vanished() -> None:
    there = evidence("baseline", {**PASSING, "b.py": File({"t": "passed"})})
    for kept, state in ((True, "vanished"), (False, "removed"), (UNSET, "removed")):
        targets = tuple(replace(target, kept=kept) for target in there.inventory.targets)
        there.inventory = replace(there.inventory, targets=targets)
        assert states(PASSING, there)["b.py::t"][0] == state


@pytest.mark.parametrize(("ours", "theirs"), [("blob-2", "blob-1"), (None, "blob-1"), ("blob-1", None), (None, None)])
def test_a_test_is_only_removed_when_its_file_is_not_proven_to_be_the_same(ours: str, theirs: str) -> None:
    here, there = File({"u": "passed"}, blob=ours), File({"t": "passed", "u": "passed"}, blob=theirs)
    assert one(here, there)["a.py::t"] == ("removed", "passed")


def test_the_tests_of_a_deleted_file_are_removed_although_nobody_ran_them() -> None:
    candidate = {"b.py": File({"t": "passed"})}
    there = evidence("baseline", PASSING, tables=())
    assert states(candidate, there) == {
        "a.py::test_a": ("removed", "unmeasured"),
        "b.py::t": ("passed", "absent"),
    }


def test_a_lost_variant_is_removed_while_another_is_left_and_vanished_when_none_is() -> None:
    there = File({"t[1]": "passed", "t[2]": "passed", "u[1]": "passed"})
    assert one(File({"t[1]": "passed"}), there) == {
        "a.py::t[1]": ("passed", "passed"),
        "a.py::t[2]": ("removed", "passed"),
        "a.py::u[1]": ("vanished", "passed"),
    }


def test_a_lost_variant_is_hidden_when_all_that_are_left_are_skipped() -> None:
    there = File({"t[1]": "passed", "t[2]": "failed"})
    assert one(File({"t[NOTSET]": "skipped"}), there) == {
        "a.py::t[1]": ("skipped", "passed"),
        "a.py::t[2]": ("skipped", "failed"),
        "a.py::t[NOTSET]": ("skipped", "absent"),
    }
    assert one(File({"t[3]": "skipped", "t[4]": "passed"}), there)["a.py::t[1]"] == ("removed", "passed")
    assert one(File({"t[3]": "skipped"}, blob="changed"), there)["a.py::t[1]"] == ("removed", "passed")


def test_a_test_of_the_same_name_in_another_class_is_no_variant() -> None:
    there = File({"A::t": "passed", "B::t": "passed"})
    assert one(File({"B::t": "passed"}), there)["a.py::A::t"] == ("vanished", "passed")


def test_a_file_that_skips_itself_on_the_candidate_hides_each_case_of_the_baseline() -> None:
    here = File({}, skipped="needs a thing")
    assert one(here, File({"t": "passed", "u": "failed"})) == {
        "a.py::t": ("skipped", "passed"),
        "a.py::u": ("skipped", "failed"),
    }


def test_a_case_of_a_file_that_skips_itself_on_the_baseline_is_proven_absent_by_its_run() -> None:
    there = {"a.py": File({}, skipped="needs a thing")}
    assert states({"a.py": File({"t": "failed"})}, there) == {"a.py::t": ("failed", "absent")}
    unproven = evidence("baseline", there, tables=())
    assert states({"a.py": File({"t": "skipped"})}, unproven) == {"a.py::t": ("skipped", "unmeasured")}


def test_a_file_that_reports_its_own_skip_on_both_sides_is_skipped_on_both() -> None:
    files = {"a.py": File({}, skipped="needs a thing")}
    tables = [
        case_table(side, {"a.py": None}, [case_row(TestId("a.py"), "skipped")]) for side in ("candidate", "baseline")
    ]
    ours, theirs = evidence("candidate", files, tables=(tables[0],)), evidence("baseline", files, tables=(tables[1],))
    assert states(ours, theirs) == {"a.py": ("skipped", "skipped")}


def test_a_file_without_cases_that_was_not_measured_is_not_lost() -> None:
    files = {"a.py": File({}, skipped="needs a thing"), "b.py": File({"t": "passed"})}
    dead = evidence("candidate", files, missing={"a.py": "signalled"})
    assert states(dead, {})["a.py"] == ("unmeasured", "absent")
    assert [case.cause for case in joined(dead, {}) if case.test.target == "a.py"] == ["signalled"]
    assert states(evidence("candidate", files, tables=(table_of("candidate", {"b.py": files["b.py"]}),)), {})[
        "a.py"
    ] == (
        "unmeasured",
        "absent",
    )


def test_a_file_that_the_candidate_cannot_collect_is_one_failed_case() -> None:
    broken = File({}, error="SyntaxError")
    assert one(broken, File({"t": "passed", "u": "passed"})) == {"a.py": ("failed", "passed")}
    assert one(broken, None) == {"a.py": ("failed", "absent")}
    assert one(broken, broken) == {"a.py": ("failed", "failed")}


def test_a_collection_error_that_only_the_run_saw_is_a_failure_too() -> None:
    files = {"a.py": File({}, skipped="needs a thing")}
    table = case_table("candidate", {"a.py": None}, [case_row(TestId("a.py"), "error")])
    assert states(evidence("candidate", files, tables=(table,)), {}) == {"a.py": ("failed", "absent")}


def test_a_file_that_the_baseline_could_not_collect_proves_nothing_good_about_its_tests() -> None:
    assert one(File({"t": "passed", "u": "failed"}), File({}, error="SyntaxError")) == {
        "a.py": ("passed", "failed"),
        "a.py::t": ("passed", "uncollected"),
        "a.py::u": ("failed", "uncollected"),
    }


def test_a_class_that_the_baseline_could_not_collect_excuses_its_own_tests_and_no_others() -> None:
    there = File({"t": "passed"}, broken="C")
    assert one(File({"t": "passed", "n": "failed", "C::m": "failed"}, blob="blob-2"), there) == {
        "a.py": ("passed", "failed"),
        "a.py::C": ("removed", "failed"),
        "a.py::C::m": ("failed", "uncollected"),
        "a.py::n": ("failed", "absent"),
        "a.py::t": ("passed", "passed"),
    }


def test_a_class_that_can_be_collected_again_has_not_vanished_from_a_file_of_the_same_bytes() -> None:
    assert one(File({"C::m": "passed"}), File({}, broken="C"))["a.py::C"] == ("removed", "failed")


def test_a_file_that_breaks_as_a_whole_is_not_excused_by_a_class_that_was_broken_before() -> None:
    assert one(File({}, error="SyntaxError"), File({"t": "passed"}, broken="C")) == {
        "a.py": ("failed", "failed"),
        "a.py::C": ("failed", "failed"),
        "a.py::t": ("failed", "passed"),
    }


def test_a_class_that_breaks_hides_its_tests_and_leaves_the_rest_of_its_file() -> None:
    here, there = File({"t": "passed"}, broken="C"), File({"t": "passed", "C::m": "passed", "gone": "passed"})
    assert one(here, there) == {
        "a.py": ("failed", "passed"),
        "a.py::C": ("failed", "absent"),
        "a.py::gone": ("vanished", "passed"),
        "a.py::t": ("passed", "passed"),
    }


def test_nothing_of_a_broken_file_without_measurement_is_called_gone() -> None:
    died = evidence("candidate", {"a.py": File({}, error="SyntaxError")}, missing={"a.py": "signalled"})
    assert states(died, PASSING) == {"a.py": ("unmeasured", "passed")}
    there = {"a.py": File({"t": "passed"}, broken="C")}
    assert states(died, there)["a.py::t"] == ("unmeasured", "passed")
    lost = evidence("candidate", {"a.py": File({}, error="SyntaxError")}, tables=())
    assert states(lost, there)["a.py::t"] == ("unmeasured", "passed")


def test_a_case_of_an_uncollectable_file_that_ran_all_the_same_keeps_its_own_row() -> None:
    candidate = File({}, error="SyntaxError", extra={"t": "failed"})
    assert one(candidate, File({"t": "passed"})) == {"a.py": ("failed", "passed"), "a.py::t": ("failed", "passed")}


def test_a_target_without_measurement_is_unmeasured_on_its_side_with_its_reason_code() -> None:
    died = evidence("candidate", PASSING, missing={"a.py": "signalled"})
    assert [(c.candidate, c.baseline, c.cause) for c in joined(died, PASSING)] == [
        ("unmeasured", "passed", "signalled")
    ]
    lost = evidence("baseline", PASSING, missing={"a.py": "time-limit"})
    failing = {"a.py": File({"test_a": "failed"})}
    assert [(c.candidate, c.baseline, c.cause) for c in joined(failing, lost)] == [
        ("failed", "unmeasured", "time-limit")
    ]


def test_an_uncollectable_target_without_measurement_is_unmeasured_on_either_side() -> None:
    broken = {"a.py": File({}, error="SyntaxError")}
    lost = {side: evidence(side, broken, missing={"a.py": "lost"}) for side in ("candidate", "baseline")}
    assert states(lost["candidate"], {}) == {"a.py": ("unmeasured", "absent")}
    assert states(broken, lost["baseline"]) == {"a.py": ("failed", "unmeasured")}


def test_a_missing_target_is_not_measured_by_what_a_table_shows_of_it() -> None:
    seen = table_of("candidate", PASSING)
    died = evidence("candidate", PASSING, missing={"a.py": "wrong-tree"}, tables=(seen,))
    assert states(died, PASSING) == {"a.py::test_a": ("unmeasured", "passed")}


def test_nothing_of_a_target_that_the_policy_did_not_run_is_called_absent() -> None:
    candidate = {"a.py": File({"t": "passed", "n": "passed"}), "b.py": File({"t": "passed"})}
    there = evidence("baseline", {"a.py": File({"t": "passed"})}, not_run=("a.py",))
    assert states(candidate, there) == {
        "a.py::n": ("passed", "not-run"),
        "a.py::t": ("passed", "not-run"),
        "b.py::t": ("passed", "absent"),
    }
    broken = evidence("baseline", {"a.py": File({}, error="SyntaxError")}, not_run=("a.py",))
    assert states({"a.py": File({"t": "passed"})}, broken) == {
        "a.py": ("passed", "not-run"),
        "a.py::t": ("passed", "not-run"),
    }


def test_a_failure_without_the_run_that_it_must_be_compared_with_has_a_reason_code() -> None:
    there = evidence("baseline", PASSING, not_run=("a.py",))
    (case,) = joined({"a.py": File({"test_a": "failed"})}, there)
    assert (case.baseline, case.cause) == ("not-run", "not-measured")


def test_a_pass_of_a_target_counts_only_from_an_attempt_that_measured_it() -> None:
    files = {"a.py": File({"t": "skipped"}), "b.py": File({"t": "passed"})}
    first = table_of("candidate", files, {"a.py": "signalled"})
    second = table_of("candidate", {"a.py": File({"t": "passed"})})
    measured = evidence("candidate", files, tables=(first, second))
    assert states(measured, {}) == {"a.py::t": ("passed", "absent"), "b.py::t": ("passed", "absent")}
    dead_again = evidence(
        "candidate", files, tables=(first, table_of("candidate", files, {"a.py": "lost", "b.py": "lost"}))
    )
    assert states(dead_again, {}) == {"a.py::t": ("unmeasured", "absent"), "b.py::t": ("passed", "absent")}


@pytest.mark.parametrize(
    ("cause", "state"),
    [("signalled", "flaky"), ("time-limit", "flaky"), ("wrong-tree", "passed"), ("record-damaged", "passed")],
)
def test_a_failure_that_an_unmeasured_attempt_saw_is_not_undone_by_a_later_pass(cause: str, state: str) -> None:
    test = TestId("a.py", ("test_a",))
    died = case_table("candidate", {"a.py": cause}, [case_row(test, "failed")])
    again = case_table("candidate", {"a.py": None}, [case_row(test, "passed")])
    assert states(evidence("candidate", PASSING, tables=(died, again)), PASSING) == {"a.py::test_a": (state, "passed")}


def test_the_first_line_of_what_did_not_pass_comes_with_the_case() -> None:
    assert [case.line for case in joined({"a.py": File({"t": "failed", "u": "passed"})}, {})] == [
        "failed: it said so",
        "",
    ]


def test_cases_come_in_byte_order_each_once() -> None:
    here = {"b.py": File({"t": "passed"}), "a.py": File({"t[2]": "passed", "t[1]": "passed", "t": "passed"})}
    there = {"a.py": File({"t[1]": "passed", "s": "passed"}), "é.py": File({"t": "passed"})}
    names = [case.test.text() for case in joined(here, there)]
    assert names == ["a.py::s", "a.py::t", "a.py::t[1]", "a.py::t[2]", "b.py::t", "é.py::t"]


def test_what_on_failure_left_out_is_neither_asked_for_nor_missing() -> None:
    shards = (
        ShardTargets(shard="shard-1", candidate=("a.py", "n.py"), baseline=("a.py",)),
        ShardTargets(shard="shard-2", candidate=("b.py", "c.py"), baseline=("b.py", "c.py")),
    )
    plan = Plan(policy="count/1", candidate_inventory="1", baseline_inventory="2", shards=shards)
    assert not_run_targets(plan, {"c.py": "signalled"}, ["b.py"]) == {"a.py"}
    assert not_run_targets(plan, {}, ["a.py", "b.py", "c.py"]) == frozenset()


def test_two_empty_sides_have_no_cases() -> None:
    assert joined(evidence("candidate", {}, tables=()), evidence("baseline", {}, tables=())) == []
