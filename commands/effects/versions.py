"""Reads versions out of tag names, well enough to order the releases of one repository."""

import re
from typing import NamedTuple

_TAG = re.compile(r"(?:(?![vV]?\d)\S*?[-_/@])?[vV]?(\d{1,18}(?:\.\d{1,18})+)(\S*)")
_SUFFIX = re.compile(r"[-._]?([a-z]+)[-._]?(\d{0,18}).*", re.DOTALL)

_FINAL = 0
_STAGES = {
    "dev": -4, "snapshot": -4, "nightly": -4,
    "a": -3, "alpha": -3,
    "b": -2, "beta": -2,
    "c": -1, "rc": -1, "pre": -1, "preview": -1,
    "final": _FINAL, "ga": _FINAL, "release": _FINAL,
    "post": 1,
}  # fmt: skip


class Version(NamedTuple):
    """A version in the order of releases: `1.2.0.dev1 < 1.2rc1 < 1.2 = 1.2.0 < 1.2.post1 < 1.10`."""

    release: tuple[int, ...]
    stage: int
    number: int


def parse_version(tag: str) -> Version | None:
    """The version that a tag names (`v1.2.3`, `1.2.3rc1`, `package-1.2.3`), or None when it names none.

    A version has at least two numbers, so that `v2` (a moving tag) and `build-17` are not taken for releases.
    As in semantic versioning, an unknown word after a dash makes a pre-release, and what follows a plus does
    not count.
    """
    found = _TAG.fullmatch(tag)
    if not found:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    suffix = found[2].partition("+")[0].lower()
    if not suffix:
        return Version(tuple(numbers), _FINAL, 0)
    word = _SUFFIX.fullmatch(suffix)
    stage = _STAGES.get(word[1]) if word else None
    if stage is None and suffix.startswith("-"):
        stage = min(_STAGES.values())
    if stage is None:
        return None
    return Version(tuple(numbers), stage, int(word[2] or 0) if word else 0)
