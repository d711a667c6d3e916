"""Reports from public bug reports, made again: one named test for each."""

from typing import Any

import pytest

from ledger.values import TestId
from tests.commands.junit.conftest import CASES, codes, reading_of, truth

FOLDERS = sorted(folder.name for folder in CASES.iterdir())
# Each file of these is a report of its own attempt; those of the others belong to one attempt.
SINGLY = ("B05", "B16", "B18", "B20", "B32", "B37", "B50", "B78", "B85", "B86")
# What these tell is known from the pod or from an earlier attempt, not from a report.
WITHOUT_REPORT = ("B97", "P06", "P12")


def attempts() -> list[Any]:
    """One entry an attempt: the folder, its reports and the verdict on it."""
    found = []
    for folder in FOLDERS:
        about = truth(CASES / folder, "case.json")
        names = sorted(file.name for file in (CASES / folder).glob("*.xml"))
        per_input = about["per_input"] if isinstance(about.get("per_input"), dict) else {}
        for group in [[name] for name in names] if folder in SINGLY else [names]:
            verdict = next((per_input[name] for name in group if name in per_input), about["verdict"])
            if folder not in WITHOUT_REPORT:
                found.append(pytest.param(folder, group, verdict, id="-".join([folder, *group])))
    return found


@pytest.mark.parametrize(("folder", "names", "verdict"), attempts())
def test_an_attempt_is_judged_as_its_bug_report_demands(folder: str, names: list[str], verdict: str) -> None:
    about = truth(CASES / folder, "case.json")
    reading = reading_of(
        *[(CASES / folder / name).read_bytes() for name in names], planned=about["plan"], exit_code=about["exit_code"]
    )
    assert reading.verdict in verdict.split(" / ")
    for target in reading.targets:
        if target.target in about.get("per_file", {}) and target.verdict != "unmeasured":
            assert target.verdict == about["per_file"][target.target]


@pytest.mark.parametrize(
    ("folder", "dialect", "profile"), [("B36", "catch2", "catch2-assertions/1"), ("B25", "pytest", "pytest-skips/1")]
)
def test_a_profile_accepts_what_is_a_contradiction_without_it(folder: str, dialect: str, profile: str) -> None:
    about = truth(CASES / folder, "case.json")
    document = (CASES / folder / "report.xml").read_bytes()
    with_it = reading_of(document, planned=about["plan"], dialect=dialect, profile=profile)
    without = reading_of(document, planned=about["plan"], dialect=dialect)
    assert (with_it.verdict, without.verdict) == ("accepted", "unmeasured")


def test_a_report_that_holds_only_what_was_retried_lacks_the_cases_that_were_collected() -> None:
    about = truth(CASES / "B97", "case.json")
    (target,) = about["plan"]
    kept, lost = (TestId(target, ("orders", name)) for name in about["collected_ids"])
    final = (CASES / "B97" / "final.xml").read_bytes()
    reading = reading_of(final, planned=[target], cases={target: frozenset({kept, lost})})
    assert (reading.verdict, codes(reading)) == ("unmeasured", {"cases-missing"})
    assert "removes" in reading.targets[0].detail
    assert reading_of(final, planned=[target], cases={target: frozenset({kept})}).verdict == "accepted"


def test_a_failure_before_the_cut_of_a_report_proves_nothing() -> None:
    reading = reading_of((CASES / "B02" / "report.xml").read_bytes(), planned=["tests/orders_test.x"], exit_code=1)
    assert (reading.verdict, list(reading.cases())) == ("unmeasured", [])
    assert "report-malformed" in codes(reading)
