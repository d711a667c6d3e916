"""The streaming parser: chunks of a document to cases and suites, each handed on as it ends."""

from collections.abc import Iterable
from typing import Protocol

from commands.readers.junit.counts import MEANINGS, Suite
from commands.readers.junit.document.elements import (
    BENIGN_ATTRIBUTES,
    CASE,
    FLAKY,
    OUTPUT,
    RETRIED,
    SUITES,
    local,
    unclear,
    verdict_like,
)
from commands.readers.junit.document.encoding import HEAD_BYTES, Unreadable

DEPTH = 256
NAME_CHARACTERS = 16 * 1024
PATH_CHARACTERS = 4096
MESSAGE_CHARACTERS = 4000
PIECE_BYTES = 8 * 2**20
ATTRIBUTES = 64
WORDS = 1000
VALUE_CHARACTERS = 200

_IDENTITY = ("name", "file", "filepath")

# How libxml2 words an error of size, not of form: its limits for CDATA, comments, instructions, buffers and names.
_SIZE_WORDS = ("too big", "too long", "Resource limit", "Excessive depth")


class Case:
    """An element `testcase`. `failures`, `errors`, `skips` and `reruns` count the elements in it; `retried`: among the
    reruns are some that only a failed case has; `unknown` is the first element in it of an unknown name; `skip_type`
    the type of its last skip. `plain`: there is none of these."""

    # Most cases need none of these, so they are values of the class until one of them is set.
    failures = errors = skips = reruns = 0
    retried = False
    message = reason = skip_type = unknown = ""
    plain = True

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes


class Listener(Protocol):
    """Takes what is read. `suites` are those around it, outermost first."""

    def case(self, case: Case, suites: list[Suite]) -> None:
        """A case has ended."""

    def suite_failure(self, kind: str, message: str, suites: list[Suite]) -> None:
        """A `failure` or `error` that stands outside of any case has ended."""

    def suite_ended(self, suite: Suite, suites: list[Suite]) -> None:
        """A suite has ended; `suites` are those around it."""

    def unknown_element(self, name: str, suites: list[Suite]) -> None:
        """An element outside of any case that may say something about a verdict, but nobody knows what."""


def parse(chunks: Iterable[bytes], listener: Listener) -> None:
    """Read a whole document of UTF-8. Raises Unreadable when it is not well-formed to its last byte, or too large."""
    from lxml import etree  # type: ignore[import-untyped]

    target = _Target(listener)
    parser = etree.XMLParser(
        target=target, encoding="utf-8", resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        silent = 0
        for chunk in chunks:
            target.moved = False
            parser.feed(chunk)
            # The parser keeps what has not ended, such as an attribute, and has no limit of its own for that.
            silent = 0 if target.moved else silent + len(chunk)
            if silent > PIECE_BYTES:
                raise Unreadable("report-too-large", f"an attribute, text or comment of over {PIECE_BYTES} bytes")
        parser.close()
    except etree.XMLSyntaxError as error:
        words = " ".join(str(error.msg or "no element found").split())[:200]
        too_large = any(phrase in words for phrase in _SIZE_WORDS)
        raise Unreadable("report-too-large" if too_large else "report-malformed", words) from None


def first_values(chunks: Iterable[bytes]) -> list[str]:
    """The values of the attributes of the first elements, as far as a document can be read up to them: those of the
    root, of the first suite, and of a property that follows."""
    from lxml import etree

    target = _Beginning()
    parser = etree.XMLParser(target=target, encoding="utf-8", resolve_entities="internal", no_network=True)
    try:
        fed = 0
        for chunk in chunks:
            parser.feed(chunk)
            fed += len(chunk)
            if target.elements >= _BEGINNING or fed >= HEAD_BYTES:
                break
    except (etree.XMLSyntaxError, Unreadable):
        # Whoever reads the whole says why.
        pass
    return target.values


# The root, its first suite, the list of its properties and the first of them.
_BEGINNING = 4


class _Beginning:
    """The target of the parser that looks at the first elements only."""

    def __init__(self) -> None:
        self.elements = 0
        self.values: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements <= 2 or (self.elements <= _BEGINNING and tag == "property"):
            self.values += attributes.values()

    def close(self) -> None:
        """Nothing is left to hand on."""


_SUITE, _VERDICT, _SKIP, _QUIET, _OTHER = range(5)


class _Target:
    """The target of the parser. A case has no frame on the stack; every other open element has one."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.hand_on = listener.case
        self.suites: list[Suite] = []
        self.frames: list[int] = []
        self.moved = False
        self.words: set[str] = set()
        self.found: Case | None = None
        self.found_at = 0
        self.text: list[str] | None = None
        self.room = 0
        self.message = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.moved = True
        if tag[0] == "{":
            tag = local(tag)
        if not BENIGN_ATTRIBUTES.issuperset(attributes):
            self._meet(attributes)
        if tag == CASE and self.found is None and self.frames and self.frames[-1] == _SUITE:
            self.found, self.found_at = Case(attributes), len(self.frames)
            return
        if len(self.frames) >= DEPTH:
            raise Unreadable("report-too-large", f"elements are nested more than {DEPTH} deep")
        self.frames.append(self._open(tag, attributes))

    def end(self, tag: str) -> None:
        if self.found is not None and self.found_at == len(self.frames):
            case, self.found = self.found, None
            self.hand_on(case, self.suites)
            return
        kind = self.frames.pop()
        if kind == _SUITE:
            suite = self.suites.pop()
            self.listener.suite_ended(suite, self.suites)
        elif kind in (_VERDICT, _SKIP):
            self._close_verdict(local(tag))

    def data(self, text: str) -> None:
        self.moved = True
        if self.text is not None and self.room > 0:
            self.text.append(text[: self.room])
            self.room -= len(text)

    def pi(self, target: str, _data: str | None) -> None:
        self._meet((target,))

    def start_ns(self, prefix: str, _uri: str) -> None:
        self._meet((prefix,))

    def close(self) -> None:
        """Nothing is left to hand on."""

    def _meet(self, words: Iterable[str]) -> None:
        """The parser keeps every name that it ever meets, so there may only be so many."""
        self.words.update(words)
        if len(self.words) > WORDS:
            raise Unreadable("report-too-large", f"more than {WORDS} different names of elements and attributes")

    def _open(self, tag: str, attributes: dict[str, str]) -> int:
        if tag in ("failure", "error", "skipped"):
            return self._open_verdict(tag, attributes)
        if tag in SUITES and (not self.frames or (self.frames[-1] == _SUITE and self.found is None)):
            self.suites.append(Suite(_bounded(attributes), outermost=not self.suites))
            return _SUITE
        if not self.frames:
            raise Unreadable("report-not-junit", f"the root element is {tag[:80]!r}")
        if (tag in FLAKY or tag in RETRIED) and self.found is not None:
            self.found.plain = False
            self.found.reruns += 1
            self.found.retried = self.found.retried or tag in RETRIED
            return _QUIET
        self._meet((tag,))
        if tag != CASE and tag not in SUITES and (tag in OUTPUT or self.frames[-1] in (_QUIET, _VERDICT, _SKIP)):
            return _QUIET
        self._unknown(tag, attributes)
        return _OTHER

    def _unknown(self, tag: str, attributes: dict[str, str]) -> None:
        """A name that is not known. Beside the cases it may be decoration, unless it looks like more."""
        if self.found is not None:
            self.found.unknown = self.found.unknown or tag
            self.found.plain = False
        elif tag == CASE or tag in SUITES or verdict_like(tag) or any(map(_says_more, attributes, attributes.values())):
            self.listener.unknown_element(tag, self.suites)

    def _open_verdict(self, tag: str, attributes: dict[str, str]) -> int:
        if not self.suites:
            raise Unreadable("report-not-junit", f"the root element is {tag!r}")
        case = self.found
        if case is not None:
            case.plain = False
            if tag == "failure":
                case.failures += 1
            elif tag == "error":
                case.errors += 1
            else:
                case.skips += 1
                case.skip_type = attributes.get("type", "")
        self.message = attributes.get("message", "")[:MESSAGE_CHARACTERS]
        self.text, self.room = [], MESSAGE_CHARACTERS
        return _SKIP if tag == "skipped" else _VERDICT

    def _close_verdict(self, tag: str) -> None:
        text = "".join(self.text or ()).strip()
        self.text = None
        whole = "\n".join(part for part in (self.message, text) if part)[:MESSAGE_CHARACTERS]
        case = self.found
        if case is None:
            if tag == "skipped":
                self.listener.unknown_element(tag, self.suites)
            else:
                self.listener.suite_failure(tag, whole, self.suites)
        elif tag == "skipped":
            case.reason = case.reason or self.message or text
        else:
            case.message = case.message or whole


def _bounded(attributes: dict[str, str]) -> dict[str, str]:
    """The attributes of a suite, which are kept while it is open: many, or long ones, are nothing that is counted."""
    if len(attributes) > ATTRIBUTES:
        raise Unreadable("report-too-large", f"a suite has more than {ATTRIBUTES} attributes")
    for name in _IDENTITY:
        refuse_long(attributes.get(name, ""), PATH_CHARACTERS)
    return {name: text if name in _IDENTITY else text[:VALUE_CHARACTERS] for name, text in attributes.items()}


def refuse_long(text: str, most: int) -> None:
    """Raise Unreadable for an identity that is longer than any name of its kind."""
    if len(text) > most:
        raise Unreadable("report-too-large", f"a name of over {most} characters: {text[:80]!r}...")


def _says_more(name: str, text: str) -> bool:
    """Whether an attribute of an unknown element is a count, or may speak of a verdict."""
    return unclear(name, text) or (name in MEANINGS and text != "0")
