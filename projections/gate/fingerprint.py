"""The fingerprint of a failure: its message without what changes from run to run, so that two runs can be compared."""

import re

MOST_CHARACTERS = 500
"""What is looked at of a message; a failure says at its beginning what it is."""

_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!\w)'(?:[^'\\\n]|\\.)*'(?!\w)|(?<!\w)\"(?:[^\"\\\n]|\\.)*\"(?!\w)"), "<text>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.~+-]*[/\\])+[\w.~+-]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b(?:-[0-9a-fA-F]{4,}\b)*"), "<hex>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<number>"),
    (re.compile(r"\s+"), " "),
)


def fingerprint(message: str) -> str:
    """The message with quoted texts, paths, addresses, hexadecimal names and numbers replaced by what they are."""
    found = message[:MOST_CHARACTERS].strip()
    for varying, name in _VARYING:
        found = varying.sub(name, found)
    return found
