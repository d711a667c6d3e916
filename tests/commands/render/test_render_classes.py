"""What a summary tells of cases beside those that decide: what is gone without blocking, and what failed and passed."""

import pytest

from commands.render.summary import MOST_FLAKY, summary_lines
from commands.render.why import why_lines
from ledger.errors import EvidenceDamaged
from ledger.events import JudgedCase
from ledger.tables import ClassRow, ClassTable
from ledger.values import TestId
from projections.run.summary import summarize_run
from tests.commands.render.test_render import NOW, READY, explained, finished, summary
from tests.support.makers import RUN, views_of


def test_what_is_gone_is_told_by_whether_it_blocks() -> None:
    counts = {"passed": 3, "vanished": 3}
    blocking = (JudgedCase("a.py::test_a", "vanished", ""),)
    shown = "\n".join(summary_lines(summary(*READY, *finished("passed", counts=counts)), 200))
    assert "cases      3 vanished (shown), 3 passed" in shown
    both = "\n".join(summary_lines(summary(*READY, *finished("failed", counts=counts, blocking=blocking)), 200))
    assert "cases      1 vanished, 2 vanished (shown), 3 passed" in both
    assert "  vanished: a.py::test_a" in both
    gone = {"case_class": "vanished", "rule": "removed x passed", "effect": "none"}
    assert why_lines(explained(**gone), {}, 200)[:2] == ["vanished (shown): a.py::test_a", "no effect"]
    assert why_lines(explained(**gone | {"effect": "failed"}), {}, 200)[0] == "vanished: a.py::test_a"


def flaky_rows(number: int) -> ClassTable:
    """A class table with so many flaky cases that do not block, one that does, and one that passed."""
    kinds = [("flaky", "none")] * number + [("flaky", "failed"), ("passed", "none")]
    rows = (
        ClassRow(
            test=TestId("a.py", (f"test_{place}",)), candidate="flaky", baseline="passed", case_class=case_class,
            effect=effect, rule="", line=f"not yet {place}",
        )
        for place, (case_class, effect) in enumerate(kinds)
    )  # fmt: skip
    return ClassTable(table="classes/2", rows=tuple(rows))


@pytest.mark.parametrize(("number", "more"), [(1, ""), (5, ""), (7, "... and 2 more: ")])
def test_a_gate_names_the_first_tests_that_failed_and_then_passed(number: int, more: str) -> None:
    blocking = (JudgedCase(f"a.py::test_{number}", "flaky", ""),)
    counts = {"flaky": number + 1, "passed": 1}
    views = views_of(*READY, *finished("failed", counts=counts, blocking=blocking))
    found = summarize_run(views, NOW, alive=None, load=lambda digest, kind: flaky_rows(number))
    assert [case.test for case in found.flaky] == [f"a.py::test_{place}" for place in range(number)]
    lines = summary_lines(found, 100)
    begin = lines.index("failed and then passed")
    named = min(number, MOST_FLAKY)
    assert lines[begin + 1 : begin + 3] == ["  flaky: a.py::test_0", "      not yet 0"]
    told = [line for line in lines[begin:] if line.startswith("  flaky: ")]
    assert len(told) == named
    query = f"ledger query classes {RUN} --where case_class=flaky"
    assert [line.strip() for line in lines if "query" in line] == ([more + query] if more else [])


def test_where_flaky_tests_cannot_be_named_the_command_that_tries_is_told() -> None:
    def damaged(digest: str, kind: type[ClassTable]) -> ClassTable:
        raise EvidenceDamaged("the evidence is gone")

    views = views_of(*READY, *finished("passed", counts={"flaky": 1, "passed": 3}))
    for found in (summarize_run(views, NOW, alive=None), summarize_run(views, NOW, alive=None, load=damaged)):
        lines = summary_lines(found, 100)
        assert f"  ... 1 case: ledger query classes {RUN} --where case_class=flaky" in lines
