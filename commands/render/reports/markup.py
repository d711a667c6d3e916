"""Small pieces of Markdown that nothing from outside can break out of, wherever they are shown.

Texts from outside stand in code spans and in preformatted blocks only. A job's log takes a line that begins with `::`,
and `##[` anywhere in one, for a command to it; neither can be in what is made here.
"""

import html
import re

from commands.render.words import clipped, safe

NAME_CHARACTERS, LINE_CHARACTERS, BLOCK_CHARACTERS = 400, 200, 4000


def code(text: str, most_characters: int = LINE_CHARACTERS) -> str:
    """A code span: its content is text to the letter, whatever it holds."""
    content = _harmless(clipped(safe(text), most_characters))
    fence = "`" * (max(map(len, re.findall("`+", content)), default=0) + 1)
    pad = " " if not content.strip() or content[0] in "` " or content[-1] in "` " else ""
    return f"{fence}{pad}{content or ' '}{pad}{fence}"


def preformatted(text: str) -> str:
    """A block of lines as they are, in HTML; of too many only the last, where a test says what went wrong."""
    kept = text if len(text) <= BLOCK_CHARACTERS else "…" + text[-BLOCK_CHARACTERS:]
    lines = (html.escape(_harmless(safe(line))).replace("::", "&#58;&#58;") for line in kept.splitlines())
    return "<pre>\n" + "\n".join(lines) + "\n</pre>"


def in_html(text: str, most_characters: int = NAME_CHARACTERS) -> str:
    """Text within an HTML element."""
    return html.escape(_harmless(clipped(safe(text), most_characters)))


def _harmless(text: str) -> str:
    return text.replace("##[", "## [")


def annotation(kind: str, message: str, *, title: str, file: str = "", line: int | None = None) -> str:
    """A workflow command of GitHub: `error`, `warning` or `notice`, at a line of a file where one is known."""
    places = {"file": file, "line": str(line or "") if file else "", "title": title}
    properties = ",".join(f"{name}={_property(value)}" for name, value in places.items() if value)
    return f"::{kind} {properties}::{_data(clipped(_harmless(message), 2 * NAME_CHARACTERS))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clipped(_harmless(text), NAME_CHARACTERS)).replace(":", "%3A").replace(",", "%2C")
