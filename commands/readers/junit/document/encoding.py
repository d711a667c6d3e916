"""From the bytes of a report to UTF-8 without a declaration: the one form that the parser is given.

Parsers disagree about byte order marks and lying declarations, and may expand what a DOCTYPE defines before anybody
can refuse it. So both are settled here, before a parser sees a byte.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

HEAD_BYTES = 64 * 1024
"""The beginning of a report, up to its root element, must fit into this."""

REPORT_BYTES = 2**30

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMES = {
    "utf-8": "utf-8", "utf8": "utf-8", "utf-16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
    "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1",
}  # fmt: skip
_DECLARATION = re.compile(
    r"""<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(["'])1\.[0-9]+\1"""
    r"""([ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(["'])(?P<encoding>[A-Za-z][A-Za-z0-9._-]*)\3)?"""
    r"""([ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(["'])(yes|no)\6)?[ \t\r\n]*\?>"""
)
_SPACE = " \t\r\n"


class Unreadable(Exception):
    """The report as a whole cannot be trusted. `code` is a reason code, `detail` the place and the words for it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


def recoded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The document as UTF-8, without byte order mark and XML declaration. Raises Unreadable."""
    source = _limited(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    if not head.strip(b" \t\r\n\0"):
        raise Unreadable("report-empty", "it holds nothing but white space" if head else "it is empty")
    encoding, mark = _encoding_of(head)
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        # A chunk may end inside a character; the decoder keeps the rest for the next one.
        text = decoder.decode(head[mark:])
        if text.startswith("\ufeff"):
            raise Unreadable("report-malformed", "a second byte order mark")
        text = _without_declaration(text)
        _refuse_doctype(text, whole=len(head) < HEAD_BYTES)
        yield text.encode()
        for chunk in source:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", True).encode()
    except UnicodeError as error:
        raise Unreadable("report-encoding", f"the bytes are not {encoding}: {error}"[:200]) from None


def _limited(chunks: Iterable[bytes]) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > REPORT_BYTES:
            raise Unreadable("report-too-large", f"more than {REPORT_BYTES} bytes")
        yield chunk


def _encoding_of(head: bytes) -> tuple[str, int]:
    """The encoding, and the length of the byte order mark. Mark and declaration must not contradict each other."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Unreadable("report-encoding", "UTF-32 is not read")
    marked, mark = next(((name, len(bom)) for bom, name in _MARKS if head.startswith(bom)), ("", 0))
    declared = _declared(head[mark:].decode(marked or "latin-1", "ignore"))
    if declared is None:
        return marked or "utf-8", mark
    known = _NAMES.get(declared.lower())
    if known is None:
        raise Unreadable("report-encoding", f"the encoding {declared[:40]!r} is not one that reports are read in")
    if marked and not marked.startswith(known):
        raise Unreadable("report-encoding", f"the byte order mark says {marked}, the declaration {declared[:40]}")
    if not marked and known.startswith("utf-16"):
        raise Unreadable("report-encoding", f"declared as {declared[:40]}, but there is no byte order mark")
    return marked or known, mark


def _declared(text: str) -> str | None:
    """The encoding that the XML declaration names, None where none does."""
    found = _DECLARATION.match(text)
    return None if found is None else found["encoding"]


def _without_declaration(text: str) -> str:
    found = _DECLARATION.match(text)
    if found is not None:
        # The lines before the root keep their numbers.
        return "\n" * found.group().count("\n") + text[found.end() :]
    if text.startswith("<?xml") and text[5:6] in _SPACE:
        raise Unreadable("report-malformed", "the XML declaration is not well-formed")
    return text


def _refuse_doctype(text: str, *, whole: bool) -> None:
    """Look at what stands before the root element: only comments, instructions and white space may."""
    place = 0
    while True:
        while text[place : place + 1] and text[place] in _SPACE:
            place += 1
        if text.startswith("<!--", place):
            end, length = text.find("-->", place + 4), 3
        elif text.startswith("<?", place):
            end, length = text.find("?>", place + 2), 2
        elif text.startswith("<!", place):
            raise Unreadable("report-doctype", "the report has a DOCTYPE, which no producer writes")
        elif place < len(text) or whole:
            return
        else:
            end, length = -1, 0
        if end < 0:
            if whole:
                return
            raise Unreadable("report-too-large", f"no root element in the first {HEAD_BYTES} bytes")
        place = end + length
