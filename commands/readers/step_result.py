"""Reads what the command of a step says about itself: from its last line and its end to what came of the step.

The result is the last line of standard output that is not empty (nor made of white space and terminal sequences only,
like the reset of a colour): a JSON object with

- `outcome`: `ok`, `fail`, `error` (exit codes 0, 1, 2), or `ask` (exit code 0) with a `question`, an object;
- `verdict`: `pass`, `flaky` or `fail`, which must go with the outcome;
- `summary`: a text, shown on one line;
- `probes`: a list of objects with `name`, `outcome` (`ok`, `warning`, `unmeasured`) and `detail`; they are shown, and
  never count;
- and any other key, which later steps may read.

A command that prints no such object is judged by its exit code alone.
"""

import json
import re
from typing import Any, Literal, NoReturn

from msgspec import Struct

from commands.executors.api import End

StepOutcome = Literal["passed", "failed", "unmeasured", "asked"]
StepVerdict = Literal["pass", "flaky", "fail", ""]
Said = Literal["ok", "fail", "error", "ask", "torn", "none", "invalid"]
"""What a result line says. `torn`: its outcome and its verdict contradict each other; `none`: there is no such line;
`invalid`: there is one, and it is not what the protocol asks for."""

LINE_BYTES_MAX = 1 << 20
SUMMARY_CHARACTERS = 500
PROBES_MAX, PROBE_CHARACTERS = 200, 200
DEPTH_MAX = 32

_INTEGER_MAX = 2**63
_WHITESPACE = b" \t\r\n\v\f"
_EMPTY = re.compile(rb"(?:[ \t\r\n\v\f]|\x1b\[[0-?]*[ -/]*[@-~])*")
_LINE_BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_PROTOCOL_KEYS = ("outcome", "verdict", "summary", "probes")

_EXIT_CODES: dict[Said, int] = {"ok": 0, "ask": 0, "fail": 1, "error": 2}
_VERDICTS: dict[str, tuple[StepVerdict, ...]] = {
    # The first is what an outcome means by itself.
    "ok": ("pass", "flaky"),
    "fail": ("fail",),
    # A program that fails inside its own work calls that a failure, which proves nothing about the candidate.
    "error": ("", "fail"),
    "ask": ("",),
}
_STATED: dict[Said, tuple[StepOutcome, str]] = {
    "ok": ("passed", ""),
    "fail": ("failed", "step-failed"),
    "error": ("unmeasured", "step-error"),
    "ask": ("asked", ""),
    "torn": ("unmeasured", "step-contradicts-itself"),
}
_ENDED: dict[End, str] = {
    # A command that exited with a code that nobody saw is as lost as one whose end nobody saw.
    "exited": "step-lost",
    "lost": "step-lost",
    "signalled": "step-signalled",
    "time-limit": "step-signalled",
    "memory-limit": "step-signalled",
    "idle-limit": "step-idle",
    "stopped": "step-stopped",
    "driver-died": "step-driver-died",
    "not-started": "step-not-started",
}


class Probe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a step looked at by the way. It is shown, and decides nothing."""

    name: str
    outcome: Literal["ok", "warning", "unmeasured"]
    detail: str = ""


class StepReading(Struct, frozen=True, kw_only=True):
    """What came of a step. `cause` is a reason code, "" where there is nothing to explain; `detail` says more of it.

    `verdict` is "" where nothing was measured. `question` is the object of a step that asks, as it was printed; `keys`
    are the free keys of the result. All values are JSON that can be stored: no NaN, no number beyond 64 bits.
    """

    outcome: StepOutcome
    verdict: StepVerdict = ""
    cause: str = ""
    detail: str = ""
    summary: str = ""
    probes: tuple[Probe, ...] = ()
    question: dict[str, Any] | None = None
    keys: dict[str, Any] = {}


class _Invalid(Exception):
    """Why a line is not a result."""


def read_step(printed: bytes, end: End, exit_code: int | None) -> StepReading:
    """Read the standard output of a step, or its last part (longer than `LINE_BYTES_MAX`), and how it ended. Total.

    A step that did not come to an end by itself has said only what it said in full: a last line without its line break
    does not count then.
    """
    exited = end == "exited" and exit_code is not None
    document: dict[str, Any] | None = None
    said: Said
    try:
        document = _result(printed, exited)
        said = "none" if document is None else _said(document)
        detail = ""
    except _Invalid as error:
        document, said, detail = None, "invalid", str(error)
    outcome, cause = judge(said, end, exit_code)
    if document is None:
        return StepReading(outcome=outcome, verdict=_default(outcome), cause=cause, detail=detail)
    if cause == "step-contradicts-exit":
        detail = f"it says {said!r} and exited with code {exit_code}"
    elif cause == "step-contradicts-itself":
        detail = f"outcome {document['outcome']!r}, verdict {document['verdict']!r}"
    asked = outcome == "asked"
    known = (*_PROTOCOL_KEYS, "question") if asked else _PROTOCOL_KEYS
    return StepReading(
        outcome=outcome,
        verdict=document.get("verdict", _default(outcome)) if outcome in ("passed", "failed") else "",
        cause=cause,
        detail=detail,
        summary=_one_line(document.get("summary", ""), SUMMARY_CHARACTERS),
        probes=_probes(document.get("probes", [])),
        question=document["question"] if asked else None,
        keys={key: value for key, value in document.items() if key not in known},
    )


def is_empty(lines: bytes) -> bool:
    """Whether nothing is to be read there: only white space, and sequences that colour or move what a terminal shows.

    Of a sequence that is cut in two, no part is empty.
    """
    return _EMPTY.fullmatch(lines) is not None


def judge(said: Said, end: End, exit_code: int | None) -> tuple[StepOutcome, str]:
    """What came of a step, and the reason code ("" for none): the whole table.

    | it says | exited as that says | exited otherwise | ended in another way |
    |---|---|---|---|
    | `ok` | passed | unmeasured `step-contradicts-exit` | passed |
    | `fail` | failed `step-failed` | unmeasured `step-contradicts-exit` | failed `step-failed` |
    | `error` | unmeasured `step-error` | unmeasured `step-contradicts-exit` | unmeasured `step-error` |
    | `ask` | asked | unmeasured `step-contradicts-exit` | asked |
    | torn | unmeasured `step-contradicts-itself`, however it ended | | |
    | invalid | unmeasured `step-result-invalid`, with any code | | unmeasured, for its end |
    | none | 0: passed | others: failed `step-exit` | unmeasured, for its end |

    What was never started has said nothing. What a step said before it was ended stands: a result and then a kill is a
    result. Without one, a kill is no failure.
    """
    exited = end == "exited" and exit_code is not None
    if end == "not-started":
        return "unmeasured", _ENDED[end]
    if said in _STATED:
        if exited and said != "torn" and exit_code != _EXIT_CODES[said]:
            return "unmeasured", "step-contradicts-exit"
        return _STATED[said]
    if not exited:
        return "unmeasured", _ENDED[end]
    if said == "invalid":
        return "unmeasured", "step-result-invalid"
    return ("passed", "") if exit_code == 0 else ("failed", "step-exit")


def _default(outcome: StepOutcome) -> StepVerdict:
    return "pass" if outcome == "passed" else "fail" if outcome == "failed" else ""


def _result(printed: bytes, exited: bool) -> dict[str, Any] | None:
    """The object of the last line, None when that is no result. Raises _Invalid when it is one that cannot be read."""
    # A progress bar goes back to the start of its line before the result is printed over it.
    whole = next((line for line in reversed(printed.splitlines(keepends=True)) if not is_empty(line)), b"")
    if not exited and not whole.endswith((b"\n", b"\r")):
        return None
    line = whole.strip(_WHITESPACE)
    if len(line) > LINE_BYTES_MAX:
        raise _Invalid(f"the last line is longer than {LINE_BYTES_MAX} bytes")
    if not line.startswith(b"{"):
        # Read as ordinary output, it would be judged by an exit code that does not know what it says.
        if b'"outcome"' in line:
            raise _Invalid("the result does not stand alone on its line")
        return None
    document = _decoded(line)
    if "outcome" in document:
        return document
    if "verdict" in document:
        raise _Invalid("it has a `verdict` and no `outcome`")
    return None


def _decoded(line: bytes) -> dict[str, Any]:
    """The object of a line that begins as one. Raises _Invalid for what JSON forbids, or leaves unclear."""
    try:
        document = json.loads(
            line.decode("utf-8", "strict"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError:
        raise _Invalid("it is not UTF-8") from None
    except RecursionError:
        raise _Invalid("it is nested too deeply") from None
    except ValueError as error:
        raise _Invalid(f"it is not JSON: {error}") from None
    _check(document)
    if not isinstance(document, dict):
        raise _Invalid("it is no object")
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise _Invalid("a key stands there twice")
    return document


def _constant(name: str) -> NoReturn:
    raise _Invalid(f"{name} is no JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _Invalid("a number is too large")
    return number


def _integer(digits: str) -> int:
    number = int(digits)
    if not -_INTEGER_MAX <= number < _INTEGER_MAX:
        raise _Invalid("a number is beyond 64 bits")
    return number


def _check(document: object) -> None:
    """Whether the values can be stored: bounded in depth, and texts that are Unicode."""
    level: list[object] = [document]
    for _ in range(DEPTH_MAX):
        deeper: list[object] = []
        for value in level:
            if isinstance(value, str) and not _is_unicode(value):
                raise _Invalid("a text holds half of a character")
            if isinstance(value, dict):
                deeper += [*value.keys(), *value.values()]
            elif isinstance(value, list):
                deeper += value
        level = deeper
    if level:
        raise _Invalid("it is nested too deeply")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _said(document: dict[str, Any]) -> Said:
    """What an object says that has an `outcome`. Raises _Invalid."""
    outcome, verdict = document["outcome"], document.get("verdict", "")
    if not isinstance(outcome, str) or outcome not in _EXIT_CODES:
        raise _Invalid("`outcome` is none of ok, fail, error, ask")
    if "verdict" in document and verdict not in ("pass", "flaky", "fail"):
        raise _Invalid("`verdict` is none of pass, flaky, fail")
    if not isinstance(document.get("summary", ""), str):
        raise _Invalid("`summary` is no text")
    if outcome == "ask" and not isinstance(document.get("question"), dict):
        raise _Invalid("a step that asks gives its `question` as an object")
    if "verdict" in document and verdict not in _VERDICTS[outcome]:
        return "torn"
    return next(said for said in _EXIT_CODES if said == outcome)


def _probes(stated: object) -> tuple[Probe, ...]:
    """The probes, those that cannot be read as unmeasured ones: they never count, so they never spoil a result."""
    if not isinstance(stated, list):
        return (_unread("probes", "`probes` is no list"),)
    probes = tuple(_probe(one) for one in stated[:PROBES_MAX])
    left = len(stated) - len(probes)
    return (*probes, _unread("probes", f"not shown, because there are too many: {left}")) if left else probes


def _probe(stated: object) -> Probe:
    if not isinstance(stated, dict) or not isinstance(stated.get("name"), str):
        return _unread("probes", "a probe has no name")
    name, outcome, detail = stated["name"], stated.get("outcome"), stated.get("detail", "")
    if outcome not in ("ok", "warning", "unmeasured") or not isinstance(detail, str):
        return _unread(name, "it is none of ok, warning, unmeasured")
    return Probe(name=_one_line(name, PROBE_CHARACTERS), outcome=outcome, detail=_one_line(detail, SUMMARY_CHARACTERS))


def _unread(name: str, detail: str) -> Probe:
    return Probe(name=_one_line(name, PROBE_CHARACTERS), outcome="unmeasured", detail=detail)


def _one_line(text: str, characters: int) -> str:
    line = _LINE_BREAKS.sub(" ", text).strip()
    return line if len(line) <= characters else line[: characters - 1] + "…"
