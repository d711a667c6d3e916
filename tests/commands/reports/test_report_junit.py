"""The merged JUnit file: every case once, red exactly where the gate did not pass, readable by anybody."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]

from commands.executors.api import JobEnd
from commands.readers.junit import Expectations, read_reports
from commands.readers.junit import Report as JUnitReport
from commands.render.reports.junit import junit_pieces, names
from commands.render.reports.report import shown
from commands.render.reports.xml import MOST_CHARACTERS, visible
from ledger.events import JudgedCase
from ledger.values import TestId
from projections.gate.cases import JoinedCase
from projections.gate.classes import BASELINE_STATES, CANDIDATE_STATES
from projections.gate.verdict import judge_cases
from projections.queries.tries import UNDECIDED, TriedCase
from tests.commands.reports.conftest import cases, class_row, kinds, parsed, report, tried
from tests.support.makers import case

TEST = case("tests/test_a.py::TestSum::test_one[1-2]")
RED = {"failure", "error"}


def file_of(*of: TriedCase, **changes: object) -> etree._Element:
    """The file of a run with these cases."""
    return parsed(junit_pieces(report(of, **changes)))  # type: ignore[arg-type]


def is_red(root: etree._Element) -> bool:
    """Whether a tool that reads the file finds a failure or an error in it."""
    return any(RED & set(one) for one in kinds(root))


@given(cases())
def test_every_case_is_there_once_whatever_it_is_called(of: list[TriedCase]) -> None:
    root = file_of(*of)
    told = [one for one in of if shown(one.row) is not None]
    found = [
        (suite.get("file"), one.get("classname"), one.get("name"))
        for suite in root
        for one in suite.findall("testcase")
        if suite.get("name") != "ledger" or suite.get("file")
    ]
    assert found == [tuple(map(visible, (one.row.test.target, *names(one.row.test)))) for one in told]


@given(cases())
def test_the_class_of_every_case_that_is_not_passed_is_a_property_of_its_suite(of: list[TriedCase]) -> None:
    found = [
        (one.get("name"), one.get("value"))
        for one in file_of(*of).iter("property")
        if str(one.get("name")).startswith("ledger.class:")
    ]
    told = [one.row for one in of if shown(one.row) is not None and one.row.case_class != "passed"]
    assert found == [(visible(f"ledger.class:{row.test.text()}"), row.case_class) for row in told]


@pytest.mark.parametrize(("candidate", "baseline"), list(product(CANDIDATE_STATES, BASELINE_STATES)))
@pytest.mark.parametrize("flaky_blocks", [False, True])
def test_the_file_is_red_exactly_where_the_gate_did_not_pass(candidate: str, baseline: str, flaky_blocks: bool) -> None:
    joined = JoinedCase(TEST, candidate, baseline, ran=candidate in ("passed", "failed", "flaky"))  # type: ignore[arg-type]
    judged = judge_cases([joined], flaky_blocks=flaky_blocks)
    of = [TriedCase(row, ()) for row in judged.table.rows]
    assert is_red(file_of(*of, verdict=judged.verdict, reason=judged.reason)) == (judged.verdict != "passed")


def test_a_failure_that_does_not_block_is_a_skip_with_its_class() -> None:
    root = file_of(tried(class_row(TEST, "failed", "failed", line="assert 1 == 2"), "failed", message="long"))
    (skipped,) = root.iter("skipped")
    assert (skipped.get("message"), skipped.text) == ("preexisting: assert 1 == 2", "long")


@pytest.mark.parametrize("effect", ["none", "failed", "unmeasured", "something-new"])
def test_a_class_that_nobody_knows_yet_never_looks_like_a_pass(effect: str) -> None:
    row = class_row(TEST, "failed", "passed", case_class="something-new", effect=effect)
    (found,) = kinds(file_of(TriedCase(row, ()), verdict="passed"))
    assert found == [{"none": "skipped", "failed": "failure"}.get(effect, "error")]


def test_tries_that_failed_before_one_that_passed_are_flaky_failures() -> None:
    root = file_of(
        tried(class_row(TEST, "flaky", "passed"), "failed", "error", "passed", message="it said"), verdict="passed"
    )
    (found,) = root.iter("testcase")
    assert [one.tag for one in found] == ["flakyFailure", "flakyFailure"]
    assert [one.get("message") for one in found] == [
        "attempt 1 of shard-1: failure 1",
        "attempt 2 of shard-1: failure 2",
    ]
    assert [one.findtext("stackTrace") for one in found] == ["it said", "it said"]
    assert found.get("time") == "0.750"


def test_tries_that_a_plug_in_hid_are_told_without_a_text() -> None:
    (found,) = file_of(tried(class_row(TEST, "flaky", "passed"), "passed", reruns=2)).iter("flakyFailure")
    assert found.get("message") == "attempt 1 of shard-1: failed 2 times before it passed"


def test_tries_that_failed_again_follow_the_failure() -> None:
    (found,) = file_of(tried(class_row(TEST), "failed", "failed", "passed", "failed")).iter("testcase")
    assert [one.tag for one in found] == ["failure", "rerunFailure", "rerunFailure"]
    assert [one.get("type") for one in found] == ["ledger.introduced"] * 3
    assert str(found[2].get("message")).endswith("failure 4")


def test_what_was_seen_in_a_doubtful_attempt_is_no_try() -> None:
    doubtful = tried(class_row(TEST, "flaky", "passed"), "failed", cause="wrong-tree")
    assert kinds(file_of(doubtful, verdict="passed")) == [[]]


def test_what_is_unmeasured_is_an_error_with_its_reason_first() -> None:
    (found,) = file_of(TriedCase(class_row(TEST, "unmeasured", "passed", cause="signalled"), ())).iter("error")
    assert found.get("type") == "ledger.unmeasured"
    assert str(found.get("message")).startswith("signalled: The test process was killed by a signal.")


def test_a_case_that_is_gone_from_a_changed_file_is_no_case_of_the_candidate() -> None:
    assert kinds(file_of(TriedCase(class_row(TEST, "removed", "passed"), ()), verdict="passed")) == []


def test_without_a_verdict_nothing_is_green() -> None:
    row = class_row(TEST, "passed", "unmeasured", case_class="unmeasured", effect="unmeasured", cause=UNDECIDED)
    root = file_of(tried(row, "passed"), verdict=None)
    assert kinds(root) == [["error"]]
    assert {one.get("name"): one.get("value") for one in root.iter("property")}["ledger.verdict"] == "none yet"


def test_a_gate_without_a_case_is_red_all_the_same() -> None:
    judged = JudgedCase("collection/candidate", "unmeasured", "collection-aborted")
    root = file_of(verdict="unmeasured", unmeasured=(judged,))
    (found,) = root.iter("testcase")
    assert (found.get("classname"), found.get("name"), kinds(root)) == ("ledger", "collection/candidate", [["error"]])
    (error,) = file_of(verdict="unmeasured", reason="nothing-ran").iter("error")
    assert error.get("message") == "nothing-ran: unmeasured: not one test of the candidate ran to its result"


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x1b", "\x1f", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold_is_made_visible(character: str) -> None:
    test = TestId(f"a{character}.py", (f"test{character}",))
    root = file_of(tried(class_row(test, line=character), "failed", message=f"said {character}"))
    told = f"#x{ord(character):02X}"
    assert [one.get("name") for one in root.iter("testcase")] == [f"test{told}"]
    assert root.findtext(".//failure") == f"said {told}"


def test_names_and_texts_have_a_largest_size() -> None:
    huge = "x" * 2_000_000
    test = TestId("a.py", (huge + "end",), huge)
    text = "".join(junit_pieces(report([tried(class_row(test, line=huge), "failed", "failed", message=huge)])))
    assert len(text) < 10 * MOST_CHARACTERS
    (name,) = (str(one.get("name")) for one in parsed([text]).iter("testcase"))
    assert len(name) == MOST_CHARACTERS - 1
    assert name.endswith("x]")


def test_what_is_written_does_not_wait_for_what_is_still_to_come() -> None:
    def endless() -> Iterator[TriedCase]:
        for number in range(1_000_000):
            yield tried(class_row(TestId(f"test_{number:07}.py", ("test",)), "passed"), "passed")
            assert number < 3, "more is read than is written"

    pieces = junit_pieces(report(endless(), verdict="passed"))
    assert ['file="test_0000001.py"' in next(pieces) for _ in range(4)][-1]


IDENTIFIERS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
PYTHON_TESTS = st.builds(
    TestId,
    # No module may begin the name of another one: a report does not say where a module ends.
    st.sampled_from(["test_a.py", "tests/test_b.py", "tests/inner/test_c.py"]),
    st.lists(IDENTIFIERS, min_size=1, max_size=3).map(tuple),
    st.none() | st.from_regex(r"[a-zA-Z0-9 <&\"'-]{1,8}", fullmatch=True),
)


@given(
    st.lists(st.tuples(PYTHON_TESTS, st.sampled_from(CANDIDATE_STATES), st.sampled_from(BASELINE_STATES)), min_size=1)
)
def test_our_own_strict_reader_finds_the_same_tests(drawn: list[tuple[TestId, str, str]]) -> None:
    states = {test: (ours, theirs) for test, ours, theirs in drawn}
    of = [TriedCase(class_row(test, *states[test]), ()) for test in sorted(states, key=TestId.sort_key)]
    expected = {one.row.test: shape for one in of if (shape := shown(one.row)) is not None}
    written = "".join(junit_pieces(report(of))).encode()
    planned = tuple(sorted({test.target for test in expected}))
    end = JobEnd(
        name="", end="exited", exit_code=1, signal=None, started_at="", duration_seconds=0.0, peak_memory_bytes=None,
        memory_method="",
    )  # fmt: skip
    reading = read_reports([JUnitReport("report.xml", [written])], end, Expectations(planned=planned), dialect="pytest")
    outcomes = {"passed": "passed", "failure": "failed", "error": "error", "skipped": "skipped"}
    found = {row.test: row.outcome for row in reading.cases() if row.test.target in planned}
    assert found == {test: outcomes[shape] for test, shape in expected.items()}
    assert not [one for one in reading.troubles if one.code.startswith(("report-", "count", "element", "status"))]


def test_a_muting_and_a_note_are_told_beside_the_class() -> None:
    row = class_row(TEST, case_class="muted", effect="none", mute="mute-1", note="fails-differently", line="no")
    (skipped,) = file_of(TriedCase(row, ()), verdict="passed").iter("skipped")
    assert skipped.get("message") == "muted (mute-1, fails-differently): no"
