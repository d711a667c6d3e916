"""Notes on cases: what is worth saying of a test beside its class."""

from msgspec import structs

from ledger.values import TestId
from projections.gate.cases import index
from projections.gate.notes import notes_of
from tests.support.sides import File, Files, evidence, table_of


def noted(candidate: Files, baseline: Files, lines: dict[str, str] | None = None) -> dict[str, str]:
    """The notes by test; `lines` are first lines of the candidate's failures."""
    table = table_of("candidate", candidate)
    rows = tuple(structs.replace(row, line=(lines or {}).get(row.test.text(), row.line)) for row in table.cases)
    ours = evidence("candidate", candidate, tables=(structs.replace(table, cases=rows),))
    found = notes_of(index(ours), index(evidence("baseline", baseline)))
    return {test.text(): note for test, note in found.items()}


FAILING = {"a.py": File({"t": "failed", "u": "passed"})}


def test_a_test_that_fails_with_the_same_message_on_both_sides_has_no_note() -> None:
    assert noted(FAILING, FAILING) == {}


def test_numbers_and_names_make_no_difference_to_a_message() -> None:
    lines = {"a.py::t": "assert 3 == '17'"}
    assert noted(FAILING, FAILING, lines) == {"a.py::t": "fails-differently"}
    assert noted({"a.py": File({"t": "failed"})}, FAILING, {"a.py::t": "failed:  it said so"}) == {}


def test_failing_where_the_other_side_passes_is_not_failing_differently() -> None:
    passing = {"a.py": File({"t": "passed", "u": "failed"})}
    assert noted(FAILING, passing, {"a.py::t": "something else"}) == {}


def test_a_variant_of_one_side_is_unstable_when_both_sides_have_siblings_of_it() -> None:
    ours = {"a.py": File({"t[1]": "passed", "t[2030-01-02]": "passed"})}
    theirs = {"a.py": File({"t[1]": "passed", "t[2030-01-01]": "passed"})}
    assert noted(ours, theirs) == {"a.py::t[2030-01-02]": "unstable-variant", "a.py::t[2030-01-01]": "unstable-variant"}


def test_a_test_of_which_no_variant_is_on_both_sides_is_new_or_gone_and_not_unstable() -> None:
    assert noted({"a.py": File({"t[1]": "passed"})}, {"a.py": File({"t[2]": "passed", "u": "passed"})}) == {}


def test_siblings_are_variants_of_the_same_test_of_the_same_target() -> None:
    ours = {"a.py": File({"t[1]": "passed", "u[1]": "passed"}), "b.py": File({"t[1]": "passed", "t[2]": "passed"})}
    theirs = {"a.py": File({"t[1]": "passed"}), "b.py": File({"t[1]": "passed"})}
    assert noted(ours, theirs) == {TestId("b.py", ("t",), "2").text(): "unstable-variant"}
