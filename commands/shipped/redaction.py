"""Keeps secrets out of a stream of bytes: by their values, wherever the stream is cut into chunks.

It runs beside the supervisor: Python 3.8, the standard library, and nothing of ours.
"""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing it takes a tenth of the time that a short job costs.
    from collections.abc import Mapping

ENCODED_FROM_CHARACTERS = 8
"""A shorter value is looked for as it is, but not in its encoded forms and not line by line."""

_KEY_BYTES = 4
"""Forms are found by so many of their first bytes: few places of a stream look like the beginning of any."""


def forms_of(value: bytes) -> set[bytes]:
    """The forms in which a secret is looked for.

    White space around it does not belong to it, because it is seldom printed. From a certain length on, these too: each
    of its lines; the whole, escaped as in JSON or URL-encoded; Base64 of anything that it stands in, wherever there.
    """
    value = value.strip()
    if not value:
        return set()
    if len(value) < ENCODED_FROM_CHARACTERS:
        return {value}
    lines = [line.strip() for line in value.splitlines()]
    forms = {value, *(line for line in lines if len(line) >= ENCODED_FROM_CHARACTERS)}
    text = value.decode("utf-8", "surrogateescape")
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for one in (escaped, escaped.replace("/", "\\/")):
            forms.add(one.encode("utf-8", "surrogateescape"))
    for encoded in (quote(value, safe=""), quote(value, safe="/"), quote_plus(value)):
        lower = re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), encoded)
        forms |= {encoded.encode(), lower.encode()}
    for shift in range(3):
        # Only whole groups of six bits that are of the secret alone; their neighbours hold bits of what is around it.
        inner = base64.b64encode(b"\0" * shift + value)
        begin, end = (0, 2, 3)[shift], (shift + len(value)) * 8 // 6
        forms |= _with_url_alphabet(inner[begin:end])
    return (
        forms | _with_url_alphabet(base64.b64encode(value)) | _with_url_alphabet(base64.b64encode(value).rstrip(b"="))
    )


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
            self._by_key.setdefault(form[:_KEY_BYTES], []).append(form)

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
            forms = self._by_key.get(data[start : start + _KEY_BYTES], ())
            if len(data) - start < _KEY_BYTES:
                forms = self._forms
            elif not forms:
                continue
            end = data[start:]
            if any(form.startswith(end) for form in forms):
                return start
        return len(data)
