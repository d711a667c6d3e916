"""Cases of runners whose collection names targets only: what the reports of both sides tell is all that is known."""

from typing import Any

import pytest

from projections.gate.cases import JoinedCase, SideEvidence
from projections.gate.classes import judge
from tests.support.sides import File, evidence, joined, states


def suite(tests: dict[str, str], blob: str = "blob-1") -> File:
    """A file whose tests only the reports know."""
    return File({}, extra=tests, blob=blob)


def judged(candidate: SideEvidence | dict[str, File], baseline: SideEvidence | dict[str, File]) -> dict[str, Any]:
    """The classes of all cases, with the cause of those that have one."""

    def told(one: JoinedCase) -> Any:
        found = judge(one.candidate, one.baseline).case_class
        return (found, one.cause) if one.cause else found

    return {one.test.text(): told(one) for one in joined(candidate, baseline)}


BASELINE = {"a.js": suite({"kept": "passed", "lost": "passed"})}


def test_a_test_that_only_the_baseline_reports_from_a_file_of_the_same_bytes_is_vanished() -> None:
    assert states({"a.js": suite({"kept": "passed"})}, BASELINE)["a.js::lost"] == ("vanished", "passed")


def test_a_test_that_only_the_baseline_reports_from_a_file_that_changed_is_removed() -> None:
    changed = {"a.js": suite({"kept": "passed"}, blob="blob-2")}
    assert states(changed, BASELINE)["a.js::lost"] == ("removed", "passed")


def test_nothing_is_gone_from_a_target_that_the_candidate_has_still_to_measure() -> None:
    owed = evidence("candidate", {"a.js": suite({})}, missing={"a.js": "signalled"})
    found = states(owed, BASELINE)
    assert found.keys() == {"a.js", "a.js::kept", "a.js::lost"}
    assert set(found.values()) == {("unmeasured", "passed")}


def test_a_target_that_only_skips_may_when_all_of_it_is_skipped_on_the_baseline_too() -> None:
    baseline = {"a.js": suite({"one": "skipped"})}
    assert judged({"a.js": suite({"one": "skipped", "new": "skipped"})}, baseline) == {
        "a.js::new": "passed", "a.js::one": "passed",
    }  # fmt: skip


@pytest.mark.parametrize("baseline", [{}, {"a.js": suite({"other": "passed"}, blob="blob-2")}])
def test_a_target_that_only_skips_is_not_measured_when_the_baseline_runs_it_or_has_none(
    baseline: dict[str, File],
) -> None:
    assert judged({"a.js": suite({"one": "skipped"})}, baseline)["a.js::one"] == ("unmeasured", "only-skipped")


def test_a_new_test_may_be_skipped_in_a_target_that_runs_others() -> None:
    candidate = {"a.js": suite({"kept": "passed", "lost": "passed", "new": "skipped"})}
    assert judged(candidate, BASELINE)["a.js::new"] == "passed"


def test_a_test_that_is_skipped_now_is_newly_skipped_also_where_nothing_else_runs() -> None:
    found = judged({"a.js": suite({"kept": "skipped", "lost": "skipped"})}, BASELINE)
    assert found == {"a.js::kept": "newly-skipped", "a.js::lost": "newly-skipped"}
