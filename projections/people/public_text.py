"""Whether a text is fit for the public: it ends up in the notes of a release, word for word."""

import re

_INTERNAL = r"\b(?!(?:UTF|SHA|ISO|CVE|MD|AES|RSA|BASE|WPA|IPV)-)[A-Z][A-Z0-9]+-\d"
"""A document or ticket (`RFC-12`, `ABC-7`). What has the same look and is known to everybody (`UTF-8`) is left out."""

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[^\x20-\x7e]"), "it holds something other than printable ASCII on one line"),
    (re.compile(r"^([-*+]|\d+[.)])(\s|$)"), "it begins like an item of a list"),
    (re.compile(r"[{}<>\[\]`]"), "it holds one of { } < > [ ] and the backtick"),
    (
        re.compile(r"#\d|\b(PRs?|MRs?|pull[- ]requests?|merge[- ]requests?|issues?) *#?\d", re.IGNORECASE),
        "it names a number of a pull request or an issue",
    ),
    (re.compile(r"(?<![\w/.:~-])(~[\w-]*/|/[\w.-]|\.{1,2}/)|\b[A-Za-z]:[\\/]|\\\\\w|\b[Ff]ile:"), "it holds a path"),
    (re.compile(r"\b(scripts|src|tests?)/\S", re.IGNORECASE), "it names a file of the source"),
    (re.compile(r"\.(test|spec)\.\w|\btest_\w+\.py\b|\w_test\.\w", re.IGNORECASE), "it names a file of tests"),
    (re.compile(r"\b(TC|MK|OP|UX)\b"), "it holds a mark of internal work"),
    (re.compile(_INTERNAL), "it names an internal document"),
    (re.compile(r"\b(fixed|fixes|resolved|resolves|no longer|addressed)\b", re.IGNORECASE), "it claims a repair"),
)  # fmt: skip
_LETTERS = re.compile(r"[A-Za-z]{3}")
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")


def public_fault(text: str) -> str:
    """What makes a text unfit for the public, as the end of a sentence; "" for one that is fit. Space around it does
    not count."""
    stripped = text.strip()
    if not stripped:
        return "it is empty"
    for pattern, fault in _RULES:
        if pattern.search(stripped):
            return fault
    if not _LETTERS.search(stripped):
        return "it has no word in it"
    return "it has more than two sentences" if len(_SENTENCE_END.findall(stripped)) > 2 else ""
