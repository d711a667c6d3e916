"""Small pieces of text: safe strings, lines that fit, durations, memory, counts, times."""

import re
import textwrap
from collections.abc import Iterable, Mapping

from ledger.events import JudgedCase

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """Text from outside, with everything that could move a cursor, colour a terminal or reorder a line made visible."""
    return _UNSAFE.sub(lambda match: f"\\x{ord(match.group()):02x}", text).replace("\n", "\\n").replace("\t", " ")


def clipped(text: str, width: int) -> str:
    """At most `width` characters; what was cut is marked."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Safe lines of at most `width` characters, all but the first indented.

    A word that is longer (a path, the name of a test) stays whole, so that it can still be copied.
    """
    return textwrap.wrap(
        safe(text), max(width, len(indent) + 20), subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def short(commit: str) -> str:
    """A commit id as people write it."""
    return commit[:12]


def seconds(duration_seconds: float) -> str:
    """A duration in the two units that matter."""
    if duration_seconds < 1:
        return f"{round(duration_seconds * 1000)} ms"
    if duration_seconds < 10:
        return f"{duration_seconds:.1f} s"
    whole = round(duration_seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def memory(memory_bytes: int) -> str:
    """An amount of memory in the unit that matters."""
    mebibytes = memory_bytes / 2**20
    return f"{round(mebibytes)} MiB" if mebibytes < 1024 else f"{mebibytes / 1024:.1f} GiB"


def size(size_bytes: int) -> str:
    """How large files are, in the unit that matters: an archive may hold a few bytes."""
    if size_bytes < 1 << 10:
        return count(size_bytes, "byte")
    return f"{round(size_bytes / (1 << 10))} KiB" if size_bytes < 1 << 20 else memory(size_bytes)


def moment(time: str) -> str:
    """A stored time, to the second."""
    return time[:19].replace("T", " ") + " UTC" if time else "?"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 test`, `2 tests`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def told_class(case_class: str, effect: str) -> str:
    """The name of a class, for people: tests that are gone may block or not, and the name alone does not tell which."""
    return "vanished (shown)" if case_class == "vanished" and effect == "none" else case_class


def told_counts(counts: Mapping[str, int], blocking: Iterable[JudgedCase]) -> dict[str, int]:
    """The counts per class, for people, in their order: those of `vanished` by what they do to the verdict."""
    blocks = sum(case.case_class == "vanished" for case in blocking)
    told: dict[str, int] = {}
    for name, number in counts.items():
        parts = {"vanished": blocks, "vanished (shown)": number - blocks} if name == "vanished" else {name: number}
        told |= {part: many for part, many in parts.items() if many}
    return told


def counted(counts: Mapping[str, int]) -> str:
    """`3 failed, 9 passed`: what there is of each kind, in the order of the names; "" for nothing."""
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number)
