"""Small pieces of XML 1.0: attributes and texts that no content can break out of, of bounded size."""

import re

MOST_CHARACTERS = 16_000
"""Of a text, and of an attribute; readers refuse longer names."""

_CUT = "…"
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_ATTRIBUTE = _IN_TEXT | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


def visible(text: str) -> str:
    """The text without what XML cannot hold: such a character is written as pytest does it, `#x1B`."""
    return _ILLEGAL.sub(lambda match: f"#x{ord(match.group()):02X}", text)


def text(content: str) -> str:
    """The content of an element."""
    return _bounded(visible(content)).translate(_IN_TEXT)


def attributes(**values: str) -> str:
    """Attributes, each with a blank before it."""
    return "".join(f' {name}="{_attribute(value)}"' for name, value in values.items())


def _attribute(value: str) -> str:
    return _bounded(visible(value)).translate(_IN_ATTRIBUTE)


def _bounded(content: str) -> str:
    """At most MOST_CHARACTERS. The middle is cut: names differ at their ends, and messages say there what is wrong."""
    if len(content) <= MOST_CHARACTERS:
        return content
    half = (MOST_CHARACTERS - len(_CUT)) // 2
    return content[:half] + _CUT + content[-half:]
