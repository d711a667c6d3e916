"""The nouns that events are made of: sides, outcomes, verdicts, digests and the identity of a test."""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

Commit = str
"""A full commit id in lower-case hexadecimal."""

Digest = str
"""SHA-256 of uncompressed bytes, 64 lower-case hexadecimal digits."""

EvidenceDigest = Annotated[str, Meta(description="The SHA-256 of a document or file in the evidence store.")]
"""A digest that names evidence: what it names must be there and intact for the event to be proved."""

Side = Literal["candidate", "baseline"]
SIDES: tuple[Side, ...] = ("candidate", "baseline")

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""What one test reported: `error` is a failure outside the test's own call (setup, teardown, collection)."""

Verdict = Literal["passed", "failed", "unmeasured"]

_SPECIAL = re.compile(r"\\|:(?=:)|(?<=:):|^:|:$|\[|\]|[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)", re.DOTALL)


class TestId(Struct, frozen=True, array_like=True):
    """Identity of one test: its target, the names that lead to it, and its variant.

    `target` is the schedulable group (a file for pytest, as a path from the root of the tree, with `/`);
    `path` the names inside it, outermost first; `variant` the parameter set, None when the test has none.
    An empty `path` stands for the collection of the target itself.
    """

    __test__ = False

    target: str
    path: tuple[str, ...] = ()
    variant: str | None = None

    def sort_key(self) -> tuple[str, tuple[str, ...], bool, str]:
        """Order by code point, which is the byte order of UTF-8; no variant comes before any variant."""
        return (self.target, self.path, self.variant is not None, self.variant or "")

    def text(self) -> str:
        """The reversible text form, `target::name::name[variant]`, with special characters escaped."""
        parts = "::".join(_escape(part) for part in (self.target, *self.path))
        return parts if self.variant is None else f"{parts}[{_escape(self.variant)}]"

    def plain(self) -> str:
        """The text form without any escapes, as runners write it. Other tests may have the same."""
        parts = "::".join((self.target, *self.path))
        return parts if self.variant is None else f"{parts}[{self.variant}]"

    @classmethod
    def parse(cls, text: str) -> "TestId":
        """Read what `text` wrote. Raises ValueError for text that `text` cannot have written."""
        pieces, variant = _split(text)
        parsed = cls(pieces[0], tuple(pieces[1:]), variant)
        if parsed.text() != text:
            raise ValueError(f"not a test id: {text!r}")
        return parsed


def _escape(part: str) -> str:
    def quoted(match: re.Match[str]) -> str:
        found = match.group()
        return f"\\u{ord(found):04x}" if found < " " or ord(found[0]) >= 0x7F else f"\\{found}"

    return _SPECIAL.sub(quoted, part)


def _unescape(part: str) -> str:
    def plain(match: re.Match[str]) -> str:
        found = match.group(1)
        return chr(int(found[1:], 16)) if len(found) == 5 else found

    return _ESCAPED.sub(plain, part)


def _split(text: str) -> tuple[list[str], str | None]:
    """Cut at the separators that are not escaped."""
    pieces, start, index, variant = [], 0, 0, None
    while index < len(text):
        if text[index] == "\\":
            index += 2
        elif text.startswith("::", index):
            pieces.append(_unescape(text[start:index]))
            index = start = index + 2
        elif text[index] == "[":
            variant = _unescape(text[index + 1 : -1])
            break
        else:
            index += 1
    pieces.append(_unescape(text[start:index]))
    return pieces, variant
