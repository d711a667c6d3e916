"""Mutings as text: in the summary of a run and in their list, whatever their words hold."""

from datetime import UTC, datetime
from typing import Any

import pytest

from commands.render.people.mutes import mute_lines, muted_lines, unmuted_lines
from commands.render.summary import MOST_ENTRIES, headline, summary_lines
from ledger.events import MuteUsed, RunFinished, StepFinished, Unmuted
from projections.people.listing import MuteList, MuteRow
from projections.run.summary import RunSummary, summarize_run
from tests.support.makers import begun, muted, verdict_decided, views_of

NOW = datetime(2030, 1, 2, 4, 0, 0, tzinfo=UTC)
HOSTILE = "a\x1b[31mred\x1b[0m\r\n\x07\x00\u202ereversed\u2066"


def row(**changes: Any) -> MuteRow:
    """A valid muting."""
    values: dict[str, Any] = {
        "mute": "mute-1", "test": "a.py::t", "owner": "ann", "reason": "r", "expires": "2030-01-31", "environment": {},
        "since": "2030-01-02T03:04:05Z", "sequence": 9, "state": "valid", "days_left": 3, "passes": None,
        "proposed": False, "ended_by": "", "ended_reason": "",
    }  # fmt: skip
    return MuteRow(**values | changes)


def text(*rows: MuteRow) -> str:
    return "\n".join(mute_lines(MuteList(date="2030-01-28", passes_needed=10, mutes=rows), 100))


def summary(*used: MuteUsed, **counts: int) -> RunSummary:
    """A run that passed with these mutings."""
    verdict = verdict_decided("passed", counts=counts, muted=used)
    return summarize_run(
        views_of(*begun(), verdict, StepFinished(step="gate", outcome="passed"), RunFinished(verdict="passed")),
        NOW,
        alive=None,
    )


def test_muted_cases_are_a_number_unless_they_fail_in_another_way() -> None:
    quiet = summary(MuteUsed("mute-1", "a.py::t", 3, 0, "assert 1 == 2"), muted=3, passed=9)
    assert headline(quiet) == "passed: no regression in 12 cases; 3 failures muted"
    shown = "\n".join(summary_lines(quiet, 100))
    assert "cases      3 muted, 9 passed" in shown
    assert "a.py::t" not in shown
    loud = summary(MuteUsed("mute-1", "a.py::t", 3, 1, "KeyError"), MuteUsed("mute-2", "b.py::t", 1, 1, ""), muted=4)
    lines = summary_lines(loud, 100)
    start = lines.index("muted, and failing otherwise than before")
    assert lines[start + 1 : start + 4] == [
        "  mute-1: a.py::t (1 of 3 cases)", "      KeyError", "  mute-2: b.py::t",
    ]  # fmt: skip
    assert headline(summary(passed=2)) == "passed: no regression in 2 cases"


def test_many_that_fail_in_another_way_are_cut() -> None:
    used = [MuteUsed(f"mute-{number}", "a.py::t", 1, 1, "") for number in range(MOST_ENTRIES + 5)]
    assert "  ... and 5 more (--json has all)" in summary_lines(summary(*used, muted=25), 100)


def test_the_list_has_the_valid_ones_and_counts_the_others() -> None:
    assert text() == "nothing is muted on 2030-01-28"
    assert text(row(state="expired"), row(state="unmuted")).splitlines() == [
        "nothing is muted on 2030-01-28", "", "2 mutings ended before (--json has all)",
    ]  # fmt: skip
    assert "1 test muted" in text(row(), row(state="expired"))
    assert "today is the last day" in text(row(days_left=0))
    assert "passed " not in text(row())
    assert "passed     in 1 run in a row" in text(row(passes=1))
    assert "proposal   ledger unmute mute-1 --reason 'passed 10 times" in text(row(passes=10, proposed=True))
    assert "until      2030-01-31, 3 days left, where A=1, where B=2" in text(row(environment={"B": "2", "A": "1"}))


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_of_a_muting_can_control_a_terminal_and_lines_fit(width: int) -> None:
    hostile = row(mute=HOSTILE, test=HOSTILE, owner=HOSTILE, reason=HOSTILE, environment={HOSTILE: HOSTILE}, passes=3)
    shown = [
        *mute_lines(MuteList(date="2030-01-28", passes_needed=1, mutes=(hostile,)), width),
        *muted_lines(muted(HOSTILE, owner=HOSTILE, reason="word " * 60, lines=(HOSTILE,)), width),
        *unmuted_lines(Unmuted(mute="mute-1", by=HOSTILE, reason=HOSTILE), width),
        *summary_lines(summary(MuteUsed(HOSTILE, HOSTILE, 2, 1, HOSTILE), muted=2), width),
    ]
    assert all(line.isprintable() for line in shown)
    assert all(len(line) <= width or max(map(len, line.split())) > width - 24 for line in shown)


def test_a_muting_says_how_the_test_failed_last() -> None:
    assert "failing    not in any run so far" in muted_lines(muted(), 100)
    assert muted_lines(muted(lines=("KeyError", "OSError")), 100)[-2:] == ["failing    KeyError", "failing    OSError"]
