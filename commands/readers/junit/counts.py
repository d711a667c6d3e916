"""What a suite declares beside what is in it."""

from collections.abc import Iterator
from typing import Any

from commands.readers.junit.document.elements import BENIGN_ATTRIBUTES, VERDICT_ATTRIBUTES, count_of, unclear
from commands.readers.junit.profiles import STRICT, Allowance, Profile

MEANINGS: dict[str, tuple[str, ...]] = {
    "tests": ("cases",),
    "failures": ("failed", "failure_elements"),
    "errors": ("errored", "error_elements", "errored_only"),
    "skipped": ("skipped", "skip_elements"),
    "disabled": ("not_run", "skipped"),
    "flakes": ("reran",),
}
"""The attributes that are counts, and the tallies of which each may be the number: producers differ in whether they
count cases or elements."""


class Tally:
    """How many there are of what: cases by what is in them, and elements (a case may have several)."""

    __slots__ = (
        "cases", "error_elements", "errored", "errored_only", "failed", "failure_elements", "idle", "not_run",
        "repeated", "reran", "skip_elements", "skipped",
    )  # fmt: skip

    def __init__(self) -> None:
        self.cases = 0
        self.failed = self.failure_elements = 0
        self.errored = self.errored_only = self.error_elements = 0
        self.skipped = self.skip_elements = 0
        self.not_run = self.reran = self.idle = self.repeated = 0

    def add(self, other: "Tally") -> None:
        """Add every number of another tally."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Suite:
    """An element `testsuite` or `testsuites` while it is read.

    `direct` counts what stands in it, `inner` what stands in the suites in it; `claimed` sums up what those declare,
    or hold where they declare nothing. `targets` are the planned targets that have cases in it. `spots` are where the
    listener found the cases of a `file` and a `classname` to belong.
    """

    __slots__ = ("attributes", "claimed", "direct", "file", "inner", "name", "outermost", "spots", "targets")

    def __init__(self, attributes: dict[str, str], *, outermost: bool) -> None:
        self.attributes, self.outermost = attributes, outermost
        self.name = attributes.get("name", "")
        self.file = attributes.get("file", "") or attributes.get("filepath", "")
        self.direct, self.inner = Tally(), Tally()
        self.claimed: dict[str, int] = {}
        self.targets: set[str] = set()
        self.spots: dict[tuple[str, str], Any] = {}


def absorb(parent: Suite, suite: Suite, profile: Profile) -> None:
    """Count a suite that has ended, and what it declares, in the suite around it."""
    declared = _declared(suite, profile)
    for key, fields in MEANINGS.items():
        claim = count_of(declared.get(key, ""))
        if claim is None:
            claim = getattr(suite.direct, fields[0]) + suite.claimed.get(key, 0)
        parent.claimed[key] = parent.claimed.get(key, 0) + claim
    parent.inner.add(suite.direct)
    parent.inner.add(suite.inner)
    parent.targets |= suite.targets


def troubles_of(suite: Suite, profile: Profile) -> Iterator[tuple[str, str]]:
    """What the attributes of a suite say that is no number, or that nobody knows the meaning of: code and detail."""
    for name, text in _declared(suite, profile).items():
        told = f'{_title(suite)} has {name[:40]}="{text[:40]}"'
        if name in MEANINGS:
            if count_of(text) is None:
                yield "count-invalid", told
        elif name in VERDICT_ATTRIBUTES:
            if unclear(name, text):
                yield "status-unclear", told
        elif unclear(name, text) or (name not in BENIGN_ATTRIBUTES and "}" not in name and count_of(text.strip())):
            yield "count-unknown", told


def disagreement(suite: Suite, profile: Profile) -> str:
    """The first count of a suite that its cases do not agree with, in words; "" when all agree."""
    if profile.skips_unwritten and suite.outermost and not {"tests", "skipped"} <= suite.attributes.keys():
        return f"{_title(suite)} does not declare how many tests there are without an element"
    for name, text in _declared(suite, profile).items():
        number = count_of(text) if name in MEANINGS else None
        if number is None:
            continue
        accepted = _accepted(suite, name, profile)
        above, below = _allowed(suite, profile, name)
        if not any(one - below <= number <= one + above for one in accepted):
            counted = " or ".join(str(one) for one in sorted(accepted))
            return f"{_title(suite)} declares {name}={number}, but holds {counted}"
    return ""


def surplus(suite: Suite) -> int:
    """By how much `tests` exceeds the cases; negative when it falls short; 0 when it agrees in one of its meanings."""
    number = count_of(suite.attributes.get("tests", ""))
    if number is None:
        return 0
    return number - min(_accepted(suite, "tests", STRICT), key=lambda one: abs(one - number))


def _accepted(suite: Suite, name: str, profile: Profile) -> set[int]:
    accepted = set()
    for field in MEANINGS[name]:
        direct = getattr(suite.direct, field)
        accepted |= {direct, direct + getattr(suite.inner, field)}
        # What has no element is bounded by what is around it, so what is around it cannot be explained by it.
        if not profile.skips_unwritten:
            accepted.add(direct + suite.claimed.get(name, 0))
    return accepted


def _allowed(suite: Suite, profile: Profile, name: str) -> tuple[float, float]:
    """By how much a count may be above and below what there is."""
    if profile.skips_unwritten:
        skips = suite.attributes.get("skipped")
        unwritten = float("inf") if skips is None or name == "skipped" else count_of(skips) or 0
        return (unwritten, 0) if name in ("tests", "skipped") else (0, 0)
    if name == "tests":
        return _allowance(suite, profile.tests_above), _allowance(suite, profile.tests_below)
    if name in ("failures", "errors"):
        return _allowance(suite, profile.failures_above), 0
    return 0, 0


def _allowance(suite: Suite, allowance: Allowance) -> float:
    if allowance == "any":
        return float("inf")
    return 0 if allowance == "none" else getattr(suite.direct, allowance) + getattr(suite.inner, allowance)


def _declared(suite: Suite, profile: Profile) -> dict[str, str]:
    renamed = dict(profile.renamed)
    return {renamed.get(name, name): text for name, text in suite.attributes.items()} if renamed else suite.attributes


def _title(suite: Suite) -> str:
    return f"the suite {suite.name[:80]!r}"
