"""Keeps secrets out of a stream of bytes: by their values, wherever the stream is cut into chunks.

It runs beside the supervisor: Python 3.8, the standard library, and nothing of ours.
"""

from __future__ import annotations

import base64
import json
import re
from itertools import product
from urllib.parse import quote, quote_plus

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing it takes a tenth of the time that a short job costs.
    from collections.abc import Mapping

ENCODED_FROM_CHARACTERS = 8
"""A shorter value is looked for as it is, but not in its encoded forms and not line by line."""

PIECE_CHARACTERS = 16
"""A shorter piece of an encoding that is broken into lines is found only together with the lines before it."""

BASE64_WIDTHS, HEX_WIDTH = (64, 76), 60
"""After how many characters the usual programs break their lines: `openssl`, MIME and `base64`; `xxd -p`."""

_KEY_BYTES = 4
"""Forms are found by so many of their first bytes, or fewer: few places of a stream look like the beginning of any."""


def forms_of(value: bytes) -> set[bytes]:
    """The forms in which a secret is looked for.

    White space around it does not belong to it, because it is seldom printed. From a certain length on, these too: each
    of its lines; the whole, escaped as in JSON, HTML or a URL; Base64 of anything that it stands in, wherever that is;
    and Base64 and hexadecimal digits of it alone, or with the line break that `echo` adds, also when broken into lines.
    """
    value = value.strip()
    if not value:
        return set()
    if len(value) < ENCODED_FROM_CHARACTERS:
        return {value}
    lines = [line.strip() for line in value.splitlines()]
    forms = {value, *(line for line in lines if len(line) >= ENCODED_FROM_CHARACTERS)}
    text = value.decode("utf-8", "surrogateescape")
    forms |= {one.encode("utf-8", "surrogateescape") for one in _json_forms(text) | _html_forms(text)}
    for encoded in (quote(value, safe=""), quote(value, safe="/"), quote_plus(value)):
        lower = re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), encoded)
        forms |= {encoded.encode(), lower.encode()}
    for shift in range(3):
        # Only whole groups of six bits that are of the secret alone; their neighbours hold bits of what is around it.
        inner = base64.b64encode(b"\0" * shift + value)
        begin, end = (0, 2, 3)[shift], (shift + len(value)) * 8 // 6
        forms |= _with_url_alphabet(inner[begin:end])
    forms |= _with_url_alphabet(base64.b64encode(value).rstrip(b"="))
    for printed in (value, value + b"\n"):
        digits = printed.hex().encode()
        forms |= _in_lines(digits, HEX_WIDTH) | _in_lines(digits.upper(), HEX_WIDTH)
        for letters in _with_url_alphabet(base64.b64encode(printed)):
            forms = forms.union(*(_in_lines(letters, width) for width in BASE64_WIDTHS))
    return forms


def _json_forms(text: str) -> set[str]:
    """A text inside of JSON: with and without escapes for what is not ASCII, for slashes, and, as Go has them, for what
    has a meaning in HTML.
    """
    forms = set()
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for one in (escaped, escaped.replace("/", "\\/")):
            for amp, lt, gt in product(("&", "\\u0026"), ("<", "\\u003c", "\\u003C"), (">", "\\u003e", "\\u003E")):
                forms.add(one.replace("&", amp).replace("<", lt).replace(">", gt))
    return forms


def _html_forms(text: str) -> set[str]:
    """A text inside of HTML or XML; programs differ in what they make of quotation marks, and of `>`."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    greaters, doubles, singles = (">", "&gt;"), ('"', "&quot;", "&#34;"), ("'", "&#x27;", "&#39;", "&apos;")
    return {
        escaped.replace(">", greater).replace('"', double).replace("'", single)
        for greater, double, single in product(greaters, doubles, singles)
    }


def _in_lines(encoded: bytes, width: int) -> set[bytes]:
    """As one line, broken into lines of this width, and each of those lines that is long enough to tell something."""
    lines = [encoded[begin : begin + width] for begin in range(0, len(encoded), width)]
    return {encoded, b"\n".join(lines), b"\r\n".join(lines), *(one for one in lines if len(one) >= PIECE_CHARACTERS)}


def _with_url_alphabet(encoded: bytes) -> set[bytes]:
    return {encoded, encoded.replace(b"+", b"-").replace(b"/", b"_")}


class Redactor:
    """Replaces every secret in a stream by `[secret NAME]`; longer forms are preferred where several begin."""

    def __init__(self, secrets: Mapping[str, bytes]) -> None:
        self._names: dict[bytes, bytes] = {}
        for name in sorted(secrets):
            for form in forms_of(secrets[name]):
                self._names.setdefault(form, b"[secret " + name.encode() + b"]")
        self._forms = sorted(self._names, key=lambda form: (-len(form), form))
        self._longest = max(map(len, self._forms), default=0)
        self._any = re.compile(b"|".join(map(re.escape, self._forms)))
        self._held = b""
        self._by_key: dict[bytes, list[bytes]] = {}
        for form in self._forms:
            # The last bytes of what is known may be fewer than a key.
            for key in {form[:length] for length in range(1, _KEY_BYTES + 1)}:
                self._by_key.setdefault(key, []).append(form)

    def take(self, chunk: bytes, *, last: bool = False) -> bytes:
        """What can be told of the stream so far, beyond what was told before.

        Only an end that may be the beginning of a secret is held back, until more is known or this is the `last` chunk.
        """
        if not self._forms:
            return chunk
        data, self._held = self._held + chunk, b""
        told = []
        begin, open_from = 0, len(data) if last else self._open_from(data, 0)
        for match in self._matches(data):
            if match.start() >= open_from:
                break
            told += [data[begin : match.start()], self._names[match.group()]]
            begin = match.end()
            if begin > open_from:
                open_from = self._open_from(data, begin)
        self._held = data[open_from:]
        return b"".join([*told, data[begin:open_from]])

    def _matches(self, data: bytes) -> list[re.Match[bytes]]:
        # Searching for each form alone is far faster than for all of them at once, and mostly finds nothing.
        return list(self._any.finditer(data)) if any(form in data for form in self._forms) else []

    def _open_from(self, data: bytes, begin: int) -> int:
        """Where the end begins, from `begin` on, that is the beginning of a form: a longer one may still come."""
        for start in range(max(begin, len(data) - self._longest), len(data)):
            if forms := self._by_key.get(data[start : start + _KEY_BYTES]):
                end = data[start:]
                if any(form.startswith(end) for form in forms):
                    return start
        return len(data)
