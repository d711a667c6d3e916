"""Versions of releases: the recorded answers of the original, and laws that hold for numbers of any length."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.release.version import (
    KINDS,
    BaseNotStable,
    PrereleaseKind,
    VersionInvalid,
    base_version,
    branch_version,
    is_release,
    is_stable,
    next_prerelease,
    prerelease_kind,
    previous_release,
    release_branch,
    version_key,
)

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "release-version.public.json").read_text("utf-8")
)["vectors"]  # fmt: skip

ROUNDED = "the original rounds numbers from 2^53 on; here the next one is exactly one more"
DIFFERENCES = {ROUNDED: 4, "the same": 95}
"""Every kind of difference to the recorded answers, with its count, so that none comes or goes unseen."""

numbers = st.one_of(st.integers(0, 12), st.integers(0, 10**40)).map(str)
stable_versions = st.tuples(numbers, numbers, numbers).map(".".join)
kinds: st.SearchStrategy[PrereleaseKind] = st.sampled_from(KINDS)
versions = st.one_of(stable_versions, st.builds("{}-{}.{}".format, stable_versions, kinds, numbers))


def answer(given_: dict[str, Any]) -> object:
    """What is answered here to the input of a vector."""
    match given_["fn"]:
        case "isRelease":
            return is_release(given_["version"])
        case "isStable":
            return is_stable(given_["version"])
        case "isKind":
            return given_["value"] in KINDS
        case "base":
            return base_version(given_["version"])
        case "kind":
            return prerelease_kind(given_["version"])
        case function:
            assert function == "next"
            return next_prerelease(given_["base"], given_["kind"], given_["taken"])


def highest(given_: dict[str, Any]) -> int:
    """The highest number among the taken names that end as the wanted prereleases do, found without any parsing."""
    ends = [name.removesuffix("^{}").rpartition(f"{given_['base']}-{given_['kind']}.")[2] for name in given_["taken"]]
    return max((int(end) for end in ends if end.isascii() and end.isdecimal()), default=-1)


def difference(vector: dict[str, Any]) -> str:
    """Which kind of difference there is to the recorded answer."""
    found = answer(vector["input"])
    if vector["input"]["fn"] == "next" and highest(vector["input"]) >= 2**53 - 1:
        assert found == f"{vector['input']['base']}-{vector['input']['kind']}.{highest(vector['input']) + 1}"
        return ROUNDED
    assert found == vector["output"], vector["id"]
    return "the same"


def test_the_answers_are_the_recorded_ones_or_differ_in_a_known_way() -> None:
    found = Counter("the same" if "error" in vector else difference(vector) for vector in VECTORS)
    assert found == DIFFERENCES


@pytest.mark.parametrize("vector", [one for one in VECTORS if "error" in one], ids=lambda one: str(one["id"]))
def test_what_the_original_refuses_is_refused_with_the_text_that_was_given(vector: dict[str, Any]) -> None:
    given_ = vector["input"]
    expected, text = (BaseNotStable, given_["base"]) if given_["fn"] == "next" else (VersionInvalid, given_["version"])
    with pytest.raises(expected) as refused:
        answer(given_)
    assert repr(text) in str(refused.value)


@given(versions)
def test_a_version_is_its_base_and_what_follows_it(version: str) -> None:
    base, kind = base_version(version), prerelease_kind(version)
    assert is_stable(base)
    assert base_version(base) == base
    assert is_stable(version) == (kind is None) == (version == base)
    assert version.startswith(base if kind is None else f"{base}-{kind}.")


@given(versions, st.sampled_from(["v{}", "{}\n", " {}", "{}-", "0{}", "{}.0", "{}+build", "{}-rc.01", "release/{}"]))
def test_nothing_may_stand_around_a_version(version: str, around: str) -> None:
    text = around.format(version)
    assert not is_release(text)
    for function in (base_version, prerelease_kind, version_key, release_branch):
        with pytest.raises(VersionInvalid):
            function(text)


@given(versions, versions)
def test_the_order_is_that_of_the_numbers_and_a_prerelease_comes_before_its_version(one: str, other: str) -> None:
    def oracle(version: str) -> tuple[object, ...]:
        base, _, end = version.partition("-")
        # "~" is behind every letter, so that no kind at all comes last.
        kind, _, number = end.partition(".") if end else ("~", "", "0")
        return (*map(int, base.split(".")), kind, int(number))

    assert (version_key(one) < version_key(other)) == (oracle(one) < oracle(other))
    assert (version_key(one) == version_key(other)) == (one == other)


@pytest.mark.parametrize(
    "ordered",
    [
        ["1.0.0-alpha.9", "1.0.0-alpha.10", "1.0.0-beta.0", "1.0.0-rc.0", "1.0.0", "1.0.1-alpha.0", "1.0.10", "1.2.0"],
        ["0.2.18", f"0.2.{2**53}", f"0.2.{2**53 + 1}", f"0.{2**64}.0", "1.0.0"],
        ["1.0.0-rc." + "9" * 5000, "1.0.0-rc.1" + "0" * 5000],
    ],
)
def test_versions_are_sorted_as_people_sort_them(ordered: list[str]) -> None:
    assert all(version_key(one) < version_key(other) for one, other in pairwise(ordered))


WRITTEN = ("{}", "v{}", "release/{}", "refs/heads/release/{}", "refs/tags/v{}", "refs/tags/v{}^{{}}")


@given(stable_versions, kinds, st.lists(st.tuples(st.integers(0, 10**20), st.sampled_from(WRITTEN)), max_size=5))
def test_the_next_prerelease_is_one_above_the_highest_taken_one(
    base: str, kind: PrereleaseKind, taken: list[tuple[int, str]]
) -> None:
    names = [written.format(f"{base}-{kind}.{number}") for number, written in taken]
    found = next_prerelease(base, kind, names)
    assert found == f"{base}-{kind}.{max((number for number, _ in taken), default=-1) + 1}"
    assert next_prerelease(base, kind, [*names, f"refs/heads/{release_branch(found)}"]) != found


@given(stable_versions, kinds, st.lists(versions, max_size=8))
def test_prereleases_of_other_versions_and_kinds_do_not_count(
    base: str, kind: PrereleaseKind, others: list[str]
) -> None:
    names = [f"refs/tags/v{one}" for one in others if not one.startswith(f"{base}-{kind}.")]
    longer = [f"refs/tags/v{base}0-{kind}.7", f"refs/tags/v1{base}-{kind}.7", f"refs/tags/vv{base}-{kind}.7"]
    assert next_prerelease(base, kind, [*names, *longer, f"{base}-{kind}.07"]) == f"{base}-{kind}.0"


@pytest.mark.parametrize("number", ["9", "199", "9" * 5000])
def test_the_next_number_carries_over_all_its_nines(number: str) -> None:
    expected = {"9": "10", "199": "200"}.get(number, "1" + "0" * 5000)
    assert next_prerelease("1.0.0", "rc", [f"v1.0.0-rc.{number}"]) == f"1.0.0-rc.{expected}"


@given(versions, st.lists(versions, max_size=8))
def test_the_previous_release_is_the_highest_stable_one_below_the_base(version: str, known: list[str]) -> None:
    found = previous_release(version, known)
    below = [one for one in known if is_stable(one) and version_key(one) < version_key(base_version(version))]
    assert (found is None) == (not below)
    assert found is None or (found in below and all(version_key(one) <= version_key(found) for one in below))


def test_a_release_is_never_compared_with_itself_or_its_prereleases() -> None:
    known = ["0.2.9", "0.2.10", "0.2.11-rc.3", "0.2.11", "0.3.0"]
    assert previous_release("0.2.11", known) == "0.2.10"
    assert previous_release("0.2.11-rc.4", known) == "0.2.10"
    assert previous_release("0.2.9", known) is None


def test_a_known_release_that_is_none_is_not_passed_over() -> None:
    with pytest.raises(VersionInvalid, match=r"v0\.2\.10"):
        previous_release("0.2.11", ["0.2.9", "v0.2.10"])


@given(versions)
def test_a_branch_and_its_version_name_each_other(version: str) -> None:
    assert branch_version(release_branch(version)) == version
    assert branch_version(version) is None


@pytest.mark.parametrize(
    "branch",
    [
        "main",
        "",
        "release/",
        "release/1.2",
        "release/release/1.2.3",
        "release/1.2.3/x",
        "release/1.2.3\n",
        "-release/1.2.3",
    ],
)
def test_no_other_branch_is_that_of_a_release(branch: str) -> None:
    assert branch_version(branch) is None
