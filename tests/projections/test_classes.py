"""The table of classes, over all of its cells, against sentences: one predicate per class and per effect."""

from collections.abc import Callable
from itertools import product

import pytest

from projections.gate.classes import (
    BASELINE_STATES,
    CANDIDATE_STATES,
    NEW_FAILURES,
    RERUN_STATES,
    RERUNS,
    TABLE,
    judge,
    printed_reruns,
    printed_table,
)

CELLS = [
    pytest.param(candidate, baseline, id=f"{candidate} x {baseline}")
    for candidate, baseline in product(CANDIDATE_STATES, BASELINE_STATES)
]

GONE = ("vanished", "removed")
HIDDEN = ("skipped", "xfailed")
PROVEN_GOOD = ("passed", "flaky")
PROVEN_BROKEN = ("failed", "uncollected")
NOT_MEASURED = ("unmeasured", "not-run")
NEVER_THERE = ("absent", "uncollected")


def compares(candidate: str) -> bool:
    """What the candidate did means nothing without what the baseline did."""
    return candidate == "failed" or candidate in HIDDEN


# Each sentence says when a pair has this class, and shares nothing with the table but the names of the states.
SENTENCES: dict[str, Callable[[str, str], bool]] = {
    # It passed here, and the baseline does not show that it was broken before.
    # Or it is hidden here, and it was hidden there too, or there was nothing that the hiding could hide.
    "passed": lambda here, there: (
        (here == "passed" and there not in (*PROVEN_BROKEN, "xfailed"))
        or (here in HIDDEN and there in (*HIDDEN, *NEVER_THERE))
    ),
    # It passed here and was broken, or known to be broken, before.
    "fixed": lambda here, there: here == "passed" and there in (*PROVEN_BROKEN, "xfailed"),
    # It failed here although the baseline shows it working, or working as badly as was expected.
    "introduced": lambda here, there: here == "failed" and there in (*PROVEN_GOOD, "xfailed"),
    # It failed here and the baseline, fully measured, never ran it.
    "new-test-failing": lambda here, there: here == "failed" and there in ("absent", "skipped"),
    # It was broken before: it fails on, or it was hidden instead of repaired.
    "preexisting": lambda here, there: (
        (here == "failed" and there in PROVEN_BROKEN) or (here in HIDDEN and there == "failed")
    ),
    # It worked before and is hidden now.
    "newly-skipped": lambda here, there: here in HIDDEN and there in PROVEN_GOOD,
    # It is gone, and the baseline had it.
    "vanished": lambda here, there: here in GONE and there not in NEVER_THERE,
    # It failed and passed within one attempt, whatever the baseline did.
    "flaky": lambda here, there: here == "flaky",
    # Nothing was seen here, or what was seen cannot be compared, or the two sides contradict each other.
    "unmeasured": lambda here, there: (
        here == "unmeasured"
        or (compares(here) and there in NOT_MEASURED)
        or (here in GONE and there in NEVER_THERE)
    ),
}  # fmt: skip


def effect_in_words(case_class: str, candidate: str, *, flaky_blocks: bool) -> str:
    """The effect that the design gives to a class; a test that is gone with its file's bytes changed is only shown."""
    if case_class == "unmeasured":
        return "unmeasured"
    blocks = case_class in ("introduced", "new-test-failing", "newly-skipped")
    blocks |= candidate == "vanished" and case_class == "vanished"
    blocks |= flaky_blocks and case_class == "flaky"
    return "failed" if blocks else "none"


@pytest.mark.parametrize(("candidate", "baseline"), CELLS)
def test_exactly_one_sentence_is_true_of_a_pair_and_names_its_class(candidate: str, baseline: str) -> None:
    true = [name for name, sentence in SENTENCES.items() if sentence(candidate, baseline)]
    assert true == [judge(candidate, baseline).case_class]


@pytest.mark.parametrize("flaky_blocks", [False, True])
@pytest.mark.parametrize(("candidate", "baseline"), CELLS)
def test_the_effect_follows_from_the_class(candidate: str, baseline: str, flaky_blocks: bool) -> None:
    judgement = judge(candidate, baseline, flaky_blocks=flaky_blocks)
    assert judgement.effect == effect_in_words(judgement.case_class, candidate, flaky_blocks=flaky_blocks)
    assert judgement.rule == f"{candidate} x {baseline}"


@pytest.mark.parametrize("flaky_blocks", [False, True])
@pytest.mark.parametrize("baseline", BASELINE_STATES)
def test_what_the_candidate_did_not_measure_is_never_without_effect(baseline: str, flaky_blocks: bool) -> None:
    assert judge("unmeasured", baseline, flaky_blocks=flaky_blocks).effect == "unmeasured"


@pytest.mark.parametrize("baseline", BASELINE_STATES)
def test_a_failure_is_exonerated_only_by_a_baseline_that_is_proven_broken(baseline: str) -> None:
    exonerated = judge("failed", baseline).effect == "none"
    assert exonerated == (baseline in PROVEN_BROKEN)


@pytest.mark.parametrize("candidate", CANDIDATE_STATES)
def test_losing_the_baseline_never_makes_a_pair_better(candidate: str) -> None:
    impossible = NEVER_THERE if candidate in GONE else ()
    measured = [there for there in BASELINE_STATES if there not in (*NOT_MEASURED, *impossible)]
    if all(judge(candidate, lost).effect == "none" for lost in NOT_MEASURED):
        assert {judge(candidate, there).effect for there in measured} == {"none"}


@pytest.mark.parametrize(("candidate", "baseline"), CELLS)
def test_the_policy_for_flaky_tests_changes_flaky_tests_only(candidate: str, baseline: str) -> None:
    warns, blocks = (judge(candidate, baseline, flaky_blocks=policy) for policy in (False, True))
    assert (warns == blocks) == (candidate != "flaky")
    assert warns.case_class == blocks.case_class


def test_a_state_that_the_table_does_not_know_is_a_crash_and_not_a_class() -> None:
    with pytest.raises(KeyError):
        judge("dreamt", "passed")  # type: ignore[arg-type]


def test_the_table_has_every_cell_once() -> None:
    header, *rows = [line.split() for line in TABLE.strip().splitlines()]
    assert header[1:] == list(BASELINE_STATES)
    assert [row[0] for row in rows] == list(CANDIDATE_STATES)
    assert {len(row) for row in rows} == {len(header)}


def test_the_printed_table_contains_every_cell_with_its_mark() -> None:
    header, *rows = [line.split(" | ") for line in printed_table().splitlines()]
    assert header[1:] == list(BASELINE_STATES)
    marks = {"none": "", "failed": "!", "unmeasured": "?"}
    printed = {(row[0], column): cell for row in rows for column, cell in zip(header[1:], row[1:], strict=True)}
    expected = {}
    for candidate, baseline in product(CANDIDATE_STATES, BASELINE_STATES):
        judgement = judge(candidate, baseline)
        expected[candidate, baseline] = marks[judgement.effect] + judgement.case_class
    assert printed == expected


# What a re-run showed says of a failure that is new, in a sentence for each class that it may come to.
RERUN_SENTENCES: dict[str, Callable[[str], bool]] = {
    # Nobody looked again, or whoever looked saw it fail again.
    "as it was": lambda shown: shown in ("none", "failed-again"),
    # It takes the company of others to make it fail.
    "interference": lambda shown: shown == "failed-among-others",
    # It passes wherever it failed.
    "flaky": lambda shown: shown == "passed-again",
    # Whoever looked saw nothing that counts.
    "unresolved": lambda shown: shown == "unresolved",
}  # fmt: skip

ALL_CELLS = [
    pytest.param(candidate, baseline, shown, id=f"{candidate} x {baseline} x {shown}")
    for candidate, baseline, shown in product(CANDIDATE_STATES, BASELINE_STATES, RERUN_STATES)
]


@pytest.mark.parametrize(("candidate", "baseline", "shown"), ALL_CELLS)
def test_re_runs_change_the_class_of_new_failures_as_one_sentence_says_and_of_nothing_else(
    candidate: str, baseline: str, shown: str
) -> None:
    before, after = judge(candidate, baseline), judge(candidate, baseline, shown)
    if before.case_class not in ("introduced", "new-test-failing"):
        assert after == before
        return
    (true,) = [name for name, sentence in RERUN_SENTENCES.items() if sentence(shown)]
    assert after.case_class == (before.case_class if true == "as it was" else true)
    assert after.rule == (before.rule if shown == "none" else f"{before.rule} x {shown}")


@pytest.mark.parametrize("flaky_blocks", [False, True])
@pytest.mark.parametrize("shown", RERUN_STATES)
@pytest.mark.parametrize("baseline", ["passed", "absent"])
def test_only_a_failure_that_passes_again_where_it_failed_stops_being_in_the_way(
    baseline: str, shown: str, flaky_blocks: bool
) -> None:
    effect = judge("failed", baseline, shown, flaky_blocks=flaky_blocks).effect
    words = {
        "none": "failed",
        "failed-again": "failed",
        "failed-among-others": "unmeasured",
        "unresolved": "unmeasured",
    }
    assert effect == words.get(shown, "failed" if flaky_blocks else "none")


def test_what_a_re_run_showed_is_a_state_of_the_table_or_a_crash() -> None:
    with pytest.raises(KeyError):
        judge("failed", "passed", "dreamt")  # type: ignore[arg-type]


def test_the_table_of_re_runs_has_every_cell_once() -> None:
    header, *rows = [line.split() for line in RERUNS.strip().splitlines()]
    assert [row[0] for row in rows] == list(RERUN_STATES)
    assert {len(row) for row in rows} == {len(header)} == {1 + len(NEW_FAILURES)}


def test_the_printed_table_of_re_runs_contains_every_cell_with_its_mark() -> None:
    header, *rows = [line.split(" | ") for line in printed_reruns().splitlines()]
    assert header[1:] == ["introduced", "new-test-failing"]
    assert rows == [
        ["none", "!introduced", "!new-test-failing"],
        ["failed-again", "!introduced", "!new-test-failing"],
        ["failed-among-others", "?interference", "?interference"],
        ["passed-again", "flaky", "flaky"],
        ["unresolved", "?unresolved", "?unresolved"],
    ]
