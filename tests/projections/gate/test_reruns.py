"""What re-runs show of a test: every combination against sentences, and what is read from the attempts of a gate."""

from itertools import product

import pytest
from msgspec import structs

from ledger.events import Event, PlannedRerun, RerunsPlanned
from ledger.tables import CaseRow, CaseTable
from ledger.values import TestId
from projections.gate.reruns import HIDDEN, NOT_READ, Rerun, Seen, TestReruns, observed
from tests.support.makers import (
    COMMITS,
    attempt_recorded,
    attempt_started,
    begun,
    case,
    case_row,
    case_table,
    collections,
    digest_of,
    planned,
    views_of,
)

TOLD = ("nothing", "passed", "failed", "hidden", "not-read")
COMBINATIONS = list(product(TOLD, repeat=3))


def sentence(alone: str, there: str, bundle: str) -> str:
    """What a person says who is told what each run gave."""
    if alone == "nothing":
        return "none"
    if alone in ("hidden", "not-read"):
        return "unresolved"
    fails_everywhere_alone = alone == "failed" and there == "failed"
    if alone == "failed" and not fails_everywhere_alone:
        return "unresolved" if there == "not-read" else "failed-again"
    if bundle == "passed":
        return "passed-again"
    if bundle == "failed":
        return "failed-again" if fails_everywhere_alone else "failed-among-others"
    return "unresolved"


@pytest.mark.parametrize(("alone", "there", "bundle"), COMBINATIONS)
def test_every_combination_shows_what_a_person_would_say(alone: str, there: str, bundle: str) -> None:
    found = TestReruns(Seen(alone), Seen(there), Seen(bundle)).shown()  # type: ignore[arg-type]
    assert found.state == sentence(alone, there, bundle)
    assert bool(found.cause) == (found.state == "unresolved")


@pytest.mark.parametrize(("alone", "there", "bundle"), COMBINATIONS)
def test_a_failure_is_excused_only_by_a_pass_where_it_failed(alone: str, there: str, bundle: str) -> None:
    if TestReruns(Seen(alone), Seen(there), Seen(bundle)).shown().state == "passed-again":  # type: ignore[arg-type]
        assert bundle == "passed"


@pytest.mark.parametrize("told", ["nothing", "hidden", "not-read"])
@pytest.mark.parametrize("place", ["alone", "alone_baseline", "bundle"])
def test_seeing_less_of_a_failure_never_excuses_it(place: str, told: str) -> None:
    for alone, there, bundle in COMBINATIONS:
        runs = TestReruns(Seen(alone), Seen(there), Seen(bundle))  # type: ignore[arg-type]
        less = structs.replace(runs, **{place: Seen(told)})  # type: ignore[arg-type]
        if runs.shown().state != "passed-again" and place != "alone_baseline":
            assert less.shown().state != "passed-again"


def test_an_unresolved_re_run_names_its_cause() -> None:
    assert TestReruns(Seen("hidden")).shown() == Rerun("unresolved", HIDDEN)
    assert TestReruns(Seen("not-read", "lost")).shown() == Rerun("unresolved", "lost")
    assert TestReruns(Seen("passed")).shown() == Rerun("unresolved", NOT_READ)
    assert TestReruns(Seen("failed"), Seen("not-read", "signalled")).shown() == Rerun("unresolved", "signalled")


ALONE = PlannedRerun(
    shard="rerun-alone-1", kind="alone", of="shard-1", attempt=1, targets=("a.py",), test="a.py::t", baseline=True
)
BUNDLE = PlannedRerun(shard="rerun-bundle-1", kind="bundle", of="shard-1", attempt=1, targets=("a.py", "b.py"))
T = case("a.py::t")


class Told:
    """The events of re-runs and the tables that they name."""

    def __init__(self) -> None:
        self.tables: dict[str, CaseTable] = {}
        self.events: list[Event] = [
            *begun(), *collections(), planned(),
            RerunsPlanned(commit=COMMITS["candidate"], reruns=(ALONE, BUNDLE)),
        ]  # fmt: skip
        self._numbers: dict[tuple[str, str], int] = {}

    def attempt(self, shard: str, side: str, outcome: str, cause: str | None = None) -> "Told":
        """An attempt at the test with this outcome, which measured its target unless there is a cause."""
        number = self._numbers[shard, side] = self._numbers.get((shard, side), 0) + 1
        table = case_table(side, {"a.py": cause}, [case_row(T, outcome)] if outcome else [])  # type: ignore[arg-type]
        self.tables[digest_of(table)] = table
        missing = {"a.py": cause} if cause else None
        self.events += [
            attempt_started(shard, side, number),  # type: ignore[arg-type]
            attempt_recorded(shard, side, number, table=digest_of(table), missing=missing, cause=cause),  # type: ignore[arg-type]
        ]
        return self

    def seen(self) -> TestReruns:
        """What was observed of the test."""
        return observed(views_of(*self.events).gate, self.tables)[T]


def test_each_side_and_the_bundle_are_read_from_their_own_attempts() -> None:
    told = Told().attempt("rerun-alone-1", "candidate", "passed").attempt("rerun-alone-1", "baseline", "skipped")
    seen = told.attempt("rerun-bundle-1", "candidate", "failed").seen()
    assert (seen.alone.told, seen.alone_baseline.told, seen.bundle.told) == ("passed", "hidden", "failed")
    assert seen.shown() == Rerun("failed-among-others")


def test_a_re_run_that_was_not_run_yet_is_not_read() -> None:
    seen = Told().seen()
    assert (seen.alone, seen.alone_baseline, seen.bundle) == (Seen("not-read", NOT_READ),) * 3


def test_an_attempt_that_did_not_measure_the_target_says_nothing_of_the_test() -> None:
    seen = Told().attempt("rerun-alone-1", "candidate", "passed", cause="signalled").seen()
    assert (seen.alone.told, seen.alone.cause) == ("not-read", "signalled")


def test_the_newest_attempt_that_measured_the_target_counts() -> None:
    told = Told().attempt("rerun-alone-1", "candidate", "failed").attempt("rerun-alone-1", "candidate", "passed")
    assert told.attempt("rerun-alone-1", "candidate", "", cause="lost").seen().alone.told == "passed"


@pytest.mark.parametrize(("cause", "relaxed"), [("time-limit", True), ("idle-limit", True), ("lost", False)])
def test_a_pass_after_an_attempt_that_ran_out_of_time_is_marked(cause: str, relaxed: bool) -> None:
    told = Told().attempt("rerun-alone-1", "candidate", "", cause=cause).attempt("rerun-alone-1", "candidate", "passed")
    seen = told.attempt("rerun-bundle-1", "candidate", "passed").seen()
    assert seen.alone.relaxed == relaxed
    assert seen.shown() == Rerun("passed-again", load=relaxed)


def test_a_case_that_the_re_run_does_not_report_was_not_read() -> None:
    assert Told().attempt("rerun-alone-1", "candidate", "").seen().alone.told == "not-read"


def test_having_run_out_of_time_is_not_forgotten_over_another_trouble() -> None:
    told = Told().attempt("rerun-alone-1", "candidate", "", cause="time-limit")
    told.attempt("rerun-alone-1", "candidate", "", cause="lost").attempt("rerun-alone-1", "candidate", "passed")
    assert told.seen().alone.relaxed


COLLECTION_OF_A = structs.replace(ALONE, test="a.py")


@pytest.mark.parametrize(
    ("rows", "cause", "told"),
    [
        ([case_row(TestId("a.py"), "error")], None, "failed"),
        ([case_row(T, "passed")], None, "passed"),
        ([case_row(T, "failed")], None, "passed"),
        ([case_row(T, "passed"), case_row(TestId("a.py"), "error")], None, "failed"),
        # A target of which nothing was reported has skipped itself; one that was not measured tells nothing.
        ([], None, "hidden"),
        ([case_row(TestId("b.py", ("t",)), "passed")], None, "hidden"),
        ([case_row(T, "passed")], "signalled", "not-read"),
        ([], "signalled", "not-read"),
    ],
)
def test_the_collection_of_a_target_has_passed_where_a_test_of_it_was_reported(
    rows: list[CaseRow], cause: str | None, told: str
) -> None:
    table, missing = case_table("candidate", {"a.py": cause, "b.py": None}, rows), {"a.py": cause} if cause else {}
    gate = views_of(
        *begun(), *collections(), planned(),
        RerunsPlanned(commit=COMMITS["candidate"], reruns=(COLLECTION_OF_A,)),
        attempt_started("rerun-alone-1"),
        attempt_recorded("rerun-alone-1", table=digest_of(table), cause=cause, missing=missing),
    ).gate  # fmt: skip
    assert observed(gate, {digest_of(table): table})[TestId("a.py")].alone.told == told
