"""Which run is meant by what a person types."""

import pytest

from ledger.errors import RunUnknown
from projections.run.lookup import find_run

RUNS = ["20300102-030405-abcd", "20300102-030405-abce", "20300103-000000-0000"]


@pytest.mark.parametrize("wanted", ["", "latest"])
def test_the_latest_is_the_run_that_began_last_whatever_its_name(wanted: str) -> None:
    assert find_run(RUNS, wanted) == RUNS[-1]
    assert find_run(RUNS[::-1], wanted) == RUNS[0]


def test_a_whole_name_is_that_run_even_when_it_begins_another() -> None:
    assert find_run([*RUNS, "2030"], "2030") == "2030"
    assert find_run(RUNS, RUNS[0]) == RUNS[0]


def test_a_beginning_that_only_one_run_has_is_enough() -> None:
    assert find_run(RUNS, "20300103") == RUNS[2]
    assert find_run(RUNS, RUNS[1][:-1] + "e") == RUNS[1]


@pytest.mark.parametrize("wanted", ["2030", "20300102-030405-abc"])
def test_a_beginning_that_several_runs_have_is_refused_and_names_some(wanted: str) -> None:
    with pytest.raises(RunUnknown, match=r"could be any of .*abce") as refused:
        find_run(RUNS, wanted)
    assert refused.value.hint


def test_of_many_that_match_only_a_few_are_named() -> None:
    runs = [f"2030-{number:03d}" for number in range(100)]
    with pytest.raises(RunUnknown) as refused:
        find_run(runs, "2030")
    assert refused.value.message.count("2030-") < 10
    assert "2030-099" in refused.value.message


@pytest.mark.parametrize("wanted", ["abcd", "LATEST", " latest", "20300103-000000-0000-", "%", "*"])
def test_what_no_run_begins_with_is_refused(wanted: str) -> None:
    with pytest.raises(RunUnknown, match="no run begins with") as refused:
        find_run(RUNS, wanted)
    assert RUNS[-1] in refused.value.hint


@pytest.mark.parametrize("wanted", ["latest", "", "x"])
def test_a_ledger_without_runs_says_so(wanted: str) -> None:
    with pytest.raises(RunUnknown, match="no runs yet") as refused:
        find_run([], wanted)
    assert "ledger gate" in refused.value.hint
    assert refused.value.exit_code == 2
