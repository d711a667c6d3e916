"""Versions of releases: `x.y.z`, or `x.y.z-KIND.N` before it; what they are based on, their order, the next one.

No number starts with a zero that it could do without, and the digits are those of ASCII. Numbers may have any length
and are never rounded: one without leading zeros is the larger one when it has more digits, and else in the order of
text. (Python's own conversion refuses more than 4300 digits, and a name on a remote may have more.)
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

PrereleaseKind = Literal["alpha", "beta", "rc"]
KINDS: tuple[PrereleaseKind, ...] = ("alpha", "beta", "rc")
"""The kinds of prereleases, those that come first before the others."""

_NUMBER = r"(?:0|[1-9][0-9]*)"
_STABLE = rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
_RELEASE = re.compile(rf"{_STABLE}(?:-({'|'.join(KINDS)})\.({_NUMBER}))?")
_BRANCH = "release/"


class VersionInvalid(ValueError):
    """The text is no version of a release."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no release version, which is x.y.z or x.y.z-rc.N (or alpha, beta)")


class BaseNotStable(ValueError):
    """A prerelease was asked for of a text that is no `x.y.z`."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} can have no prerelease: only x.y.z can")


class Magnitude(NamedTuple):
    """A number of any size in an order of its own: by how many digits it has, then by them."""

    length: int
    digits: str


VersionKey = tuple[Magnitude, Magnitude, Magnitude, int, Magnitude]
"""A version as it is ordered: three numbers, the rank of its kind, the number of the prerelease."""


def is_release(text: str) -> bool:
    """Whether the text is a version of a release, stable or not; nothing may stand around it."""
    return _RELEASE.fullmatch(text) is not None


def is_stable(text: str) -> bool:
    """Whether the text is an `x.y.z`."""
    return is_release(text) and prerelease_kind(text) is None


def base_version(version: str) -> str:
    """The `x.y.z` of a version. Raises VersionInvalid."""
    return ".".join(_parts(version).group(1, 2, 3))


def prerelease_kind(version: str) -> PrereleaseKind | None:
    """Which kind of prerelease it is; None for a stable version. Raises VersionInvalid."""
    found = _parts(version)[4]
    return next((kind for kind in KINDS if kind == found), None)


def version_key(version: str) -> VersionKey:
    """What to sort by: a prerelease before its stable version, alpha before beta before rc. Raises VersionInvalid."""
    major, minor, patch, kind, number = _parts(version).groups()
    rank = KINDS.index(kind) if kind else len(KINDS)
    return _magnitude(major), _magnitude(minor), _magnitude(patch), rank, _magnitude(number or "0")


def next_prerelease(base: str, kind: PrereleaseKind, taken: Iterable[str]) -> str:
    """The prerelease after the highest one that is taken, or number 0; a gap below it is never filled.

    `taken` are names of branches and tags, as a remote or a person writes them: `refs/heads/release/1.2.0-rc.3`,
    `refs/tags/v1.2.0-rc.3^{}`, `1.2.0-rc.3`. What is not exactly such a prerelease does not count.
    Raises BaseNotStable.
    """
    if not is_stable(base):
        raise BaseNotStable(base)
    prefix = f"{base}-{kind}."
    names = [name for name in map(_named, taken) if name.startswith(prefix) and is_release(name)]
    numbers = [name.removeprefix(prefix) for name in names]
    return prefix + (_successor(max(numbers, key=_magnitude)) if numbers else "0")


def previous_release(version: str, known: Iterable[str]) -> str | None:
    """The highest stable version of `known` that is below the base of `version`; None without one.

    Raises VersionInvalid, also for one of `known`: to pass it over would be to compare with an older release.
    """
    limit = version_key(base_version(version))
    stable = [one for one in known if prerelease_kind(one) is None]
    return max((one for one in stable if version_key(one) < limit), key=version_key, default=None)


def release_branch(version: str) -> str:
    """The branch on which a release is made. Raises VersionInvalid."""
    return _BRANCH + _parts(version)[0]


def branch_version(branch: str) -> str | None:
    """The version of a release's branch; None for every other name."""
    version = branch.removeprefix(_BRANCH)
    return version if branch.startswith(_BRANCH) and is_release(version) else None


def _parts(version: str) -> "re.Match[str]":
    found = _RELEASE.fullmatch(version)
    if found is None:
        raise VersionInvalid(version)
    return found


def _magnitude(number: str) -> Magnitude:
    return Magnitude(len(number), number)


def _successor(number: str) -> str:
    """One more than a number of any length."""
    kept = number.rstrip("9")
    raised = kept[:-1] + str(int(kept[-1]) + 1) if kept else "1"
    return raised + "0" * (len(number) - len(kept))


def _named(ref: str) -> str:
    """The version that a name on the remote stands for: each addition is taken off once, in this order."""
    for addition in ("refs/heads/", "refs/tags/", _BRANCH):
        ref = ref.removeprefix(addition)
    if re.match("v[0-9]", ref):
        ref = ref[1:]
    return ref.removesuffix("^{}")
