"""What a step says about itself: every way in which it can speak and end, and everything that is no answer."""

import json
from itertools import product
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commands.causes import CAUSES
from commands.executors.api import End
from commands.readers.step_causes import STEP_CAUSES
from commands.readers.step_result import (
    DEPTH_MAX,
    LINE_BYTES_MAX,
    PROBES_MAX,
    SUMMARY_CHARACTERS,
    Said,
    StepReading,
    judge,
    read_step,
)

ENDS: tuple[End, ...] = get_args(End)
SAID: tuple[Said, ...] = get_args(Said)
EXIT_CODES = (None, 0, 1, 2, 3, 127, 137, 255)


def line(outcome: object = "ok", **keys: object) -> bytes:
    """A result line."""
    return json.dumps({"outcome": outcome, **keys}).encode() + b"\n"


def read(printed: bytes, exit_code: int | None = 0, end: End = "exited") -> StepReading:
    """Read what a step printed that exited with this code, unless it is said how it ended."""
    return read_step(printed, end, exit_code)


# The table


SENTENCES = """
exited 0 and said nothing: passed
exited 0 and said ok: passed
exited 0 and said ask: asked
exited 0 and said fail: unmeasured step-contradicts-exit
exited 0 and said error: unmeasured step-contradicts-exit
exited 0 and said nonsense: unmeasured step-result-invalid
exited 1 and said nothing: failed step-exit
exited 1 and said ok: unmeasured step-contradicts-exit
exited 1 and said ask: unmeasured step-contradicts-exit
exited 1 and said fail: failed step-failed
exited 1 and said error: unmeasured step-contradicts-exit
exited 1 and said nonsense: unmeasured step-result-invalid
exited 2 and said nothing: failed step-exit
exited 2 and said ok: unmeasured step-contradicts-exit
exited 2 and said ask: unmeasured step-contradicts-exit
exited 2 and said fail: unmeasured step-contradicts-exit
exited 2 and said error: unmeasured step-error
exited 2 and said nonsense: unmeasured step-result-invalid
exited else and said nothing: failed step-exit
exited else and said ok: unmeasured step-contradicts-exit
exited else and said ask: unmeasured step-contradicts-exit
exited else and said fail: unmeasured step-contradicts-exit
exited else and said error: unmeasured step-contradicts-exit
exited else and said nonsense: unmeasured step-result-invalid
killed and said ok: passed
killed and said ask: asked
killed and said fail: failed step-failed
killed and said error: unmeasured step-error
exited 0 and said both: unmeasured step-contradicts-itself
exited 1 and said both: unmeasured step-contradicts-itself
exited 2 and said both: unmeasured step-contradicts-itself
exited else and said both: unmeasured step-contradicts-itself
killed and said both: unmeasured step-contradicts-itself
"""
WITHOUT_A_WORD = {
    "exited": "step-lost",
    "signalled": "step-signalled",
    "time-limit": "step-signalled",
    "memory-limit": "step-signalled",
    "idle-limit": "step-idle",
    "stopped": "step-stopped",
    "driver-died": "step-driver-died",
    "not-started": "step-not-started",
    "lost": "step-lost",
}
ORACLE = dict(sentence.split(": ") for sentence in SENTENCES.strip().splitlines())


def expected(said: Said, end: End, exit_code: int | None) -> str:
    """The answer, from the sentences."""
    if end == "not-started":
        return "unmeasured step-not-started"
    word = {"none": "nothing", "invalid": "nonsense", "torn": "both"}.get(said, said)
    if end == "exited" and exit_code is not None:
        code = exit_code if exit_code in (0, 1, 2) else "else"
        return ORACLE[f"exited {code} and said {word}"]
    return ORACLE.get(f"killed and said {word}", f"unmeasured {WITHOUT_A_WORD[end]}")


@pytest.mark.parametrize(("said", "end"), list(product(SAID, ENDS)))
def test_the_table_is_total_and_says_what_the_sentences_say(said: Said, end: End) -> None:
    for exit_code in EXIT_CODES:
        outcome, cause = judge(said, end, exit_code)
        assert f"{outcome} {cause}".rstrip() == expected(said, end, exit_code), exit_code


def test_every_code_of_the_table_is_explained_and_none_else() -> None:
    codes = {judge(said, end, code)[1] for said, end, code in product(SAID, ENDS, EXIT_CODES)} - {""}
    assert codes == set(STEP_CAUSES)
    assert codes <= set(CAUSES)


def test_only_what_says_so_or_exits_with_0_passes() -> None:
    for said, end, code in product(SAID, ENDS, EXIT_CODES):
        if judge(said, end, code)[0] == "passed":
            assert said == "ok" or (said, end, code) == ("none", "exited", 0)


# The line


@pytest.mark.parametrize(
    ("printed", "exit_code", "answer"),
    [
        (b"", 0, "passed"),
        (b"\n\n", 3, "failed"),
        (b"built\n", 0, "passed"),
        (b'built\n{"outcome":"ok"}', 0, "passed"),
        (b'built\n{"outcome":"fail"}\n\n \r\n\t\n', 1, "failed"),
        (b'  {"outcome":"error"}  \n', 2, "unmeasured"),
        (b'12%\r34%\r{"outcome":"ok"}\r\n', 0, "passed"),
        (b'{"outcome":"fail"}\n\x1b[0m', 1, "failed"),
        (b'{"outcome":"fail"}\n\x1b[0m\x1b[K\n \x1b[1;31m\t\x1b[?25h\r\n', 1, "failed"),
        (b'{"outcome":"fail"}\r\x1b[2K\x1b[1G', 0, "unmeasured"),
        (b"\x1b[0m\n", 3, "failed"),
        (b'{"outcome":"fail"}\n\x1b[0mlast words\n', 0, "passed"),
        (b'{"outcome":"fail"}\nlast words\n', 0, "passed"),
        (b'{\n  "outcome": "fail"\n}\n', 0, "passed"),
        (b'{"status":"healthy"}\n', 0, "passed"),
        (b'[{"a":1}]\n', 1, "failed"),
        (b"\xff\xfe\x00binary", 0, "passed"),
    ],
)
def test_the_last_line_that_is_not_empty_is_the_result_if_it_is_one(
    printed: bytes, exit_code: int, answer: str
) -> None:
    assert read(printed, exit_code).outcome == answer


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (b'{"outcome":"ok"', "not JSON"),
        (b'{"outcome":"ok"} {"outcome":"ok"}', "not JSON"),
        (b"{outcome: ok}", "not JSON"),
        (b'{"outcome":"ok","outcome":"fail"}', "twice"),
        (b'{"outcome":"ok","a":{"b":1,"b":1}}', "twice"),
        (b'{"a":1,"a":2}', "twice"),
        (b'{"outcome":"ok","seconds":NaN}', "NaN"),
        (b'{"outcome":"ok","seconds":-Infinity}', "Infinity"),
        (b'{"outcome":"ok","seconds":1e999}', "too large"),
        (b'{"outcome":"ok","size":9223372036854775808}', "64 bits"),
        (b'{"outcome":"ok","size":' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"outcome":"ok","text":"\xff"}', "not UTF-8"),
        (b'{"outcome":"ok","text":"\\ud800"}', "half of a character"),
        (b'{"outcome":"ok","\\udc00":1}', "half of a character"),
        (b'{"outcome":"ok","text":"\t"}', "not JSON"),
        (b'{"outcome":"ok","text":"\x00"}', "not JSON"),
        (b'{"outcome":"okay"}', "`outcome`"),
        (b'{"outcome":["ok"]}', "`outcome`"),
        (b'{"outcome":null}', "`outcome`"),
        (b'{"outcome":"ok","verdict":"passed"}', "`verdict`"),
        (b'{"outcome":"ok","verdict":null}', "`verdict`"),
        (b'{"outcome":"ok","verdict":{}}', "`verdict`"),
        (b'{"outcome":"ok","summary":5}', "`summary`"),
        (b'{"verdict":"fail"}', "no `outcome`"),
        (b'{"outcome":"ask"}', "`question`"),
        (b'{"outcome":"ask","question":"which?"}', "`question`"),
        (b'result: {"outcome":"fail"}', "alone"),
        (b'\x1b[0m{"outcome":"fail"}', "alone"),
        (b'{"outcome":"fail"}\x1b[0m', "not JSON"),
        (b'\xef\xbb\xbf{"outcome":"fail"}', "alone"),
        (b'{"outcome":"ok","a":' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}", "deeply"),
        (b'{"outcome":"ok","a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "deeply"),
        (b'{"outcome":"ok","a":"' + b"x" * LINE_BYTES_MAX + b'"}', "longer"),
        (b"x" * (LINE_BYTES_MAX + 1), "longer"),
    ],
    ids=range(34),
)
def test_what_is_meant_as_a_result_and_is_none_is_never_judged_by_its_exit_code(printed: bytes, why: str) -> None:
    for code in (0, 1, 2):
        reading = read(printed, code)
        assert (reading.outcome, reading.cause, reading.verdict) == ("unmeasured", "step-result-invalid", "")
        assert why in reading.detail


def test_the_longest_line_and_the_deepest_value_are_read() -> None:
    filler = b"x" * (LINE_BYTES_MAX - len(b'{"outcome":"ok","a":""}'))
    assert read(b'{"outcome":"ok","a":"' + filler + b'"}\n').outcome == "passed"
    nested: Any = 1
    for _ in range(DEPTH_MAX - 2):
        nested = [nested]
    assert read(line(a=nested)).outcome == "passed"
    assert read(line(a=[nested])).cause == "step-result-invalid"


# Ends that are no exits


@pytest.mark.parametrize("end", [end for end in ENDS if end not in ("exited", "not-started")])
def test_a_printed_verdict_followed_by_a_kill_is_a_verdict(end: End) -> None:
    assert read_step(b"working\n" + line("ok"), end, None).outcome == "passed"
    assert read_step(line("fail", summary="2 hosts down"), end, 143).summary == "2 hosts down"
    assert read_step(line("ask", question={"text": "go on?"}), end, None).question == {"text": "go on?"}


@pytest.mark.parametrize("end", [end for end in ENDS if end not in ("exited", "not-started")])
def test_a_line_without_its_end_is_no_verdict_of_a_step_that_was_killed(end: End) -> None:
    for torn in (line("ok").rstrip(), line("ok") + b'{"outcome":"fa', line("fail") + b"one more thing"):
        reading = read_step(torn, end, None)
        assert (reading.outcome, reading.cause) == ("unmeasured", WITHOUT_A_WORD[end])


def test_what_was_never_started_has_said_nothing() -> None:
    assert read_step(line("ok"), "not-started", None).outcome == "unmeasured"


# Verdict, summary, probes, keys


@pytest.mark.parametrize(
    ("outcome", "verdict", "answer"),
    [
        ("ok", None, ("passed", "pass")),
        ("ok", "pass", ("passed", "pass")),
        ("ok", "flaky", ("passed", "flaky")),
        ("ok", "fail", ("unmeasured", "")),
        ("fail", None, ("failed", "fail")),
        ("fail", "fail", ("failed", "fail")),
        ("fail", "flaky", ("unmeasured", "")),
        ("fail", "pass", ("unmeasured", "")),
        ("error", None, ("unmeasured", "")),
        ("error", "fail", ("unmeasured", "")),
        ("error", "pass", ("unmeasured", "")),
        ("ask", None, ("asked", "")),
        ("ask", "pass", ("unmeasured", "")),
    ],
)
def test_a_verdict_goes_with_its_outcome_or_nothing_is_measured(
    outcome: str, verdict: str | None, answer: tuple[str, str]
) -> None:
    keys = {} if verdict is None else {"verdict": verdict}
    code = {"ok": 0, "ask": 0, "fail": 1, "error": 2}[outcome]
    reading = read(line(outcome, question={}, **keys), code)
    assert (reading.outcome, reading.verdict) == answer


def test_a_contradiction_says_what_contradicts_what_and_keeps_what_was_said() -> None:
    reading = read(line("ok", summary="all well"), 1)
    assert (reading.detail, reading.summary) == ("it says 'ok' and exited with code 1", "all well")
    assert read(line("ok", verdict="fail")).detail == "outcome 'ok', verdict 'fail'"


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("  one\r\n  two \n\n three ", "one two three"),
        ("one\u2028two\x85three", "one two three"),
        ("tab\tstays  and spaces", "tab\tstays  and spaces"),
        ("x" * 600, "x" * (SUMMARY_CHARACTERS - 1) + "…"),
        ("", ""),
    ],
)
def test_a_summary_is_one_short_line(summary: str, shown: str) -> None:
    assert read(line(summary=summary)).summary == shown


def test_probes_are_shown_and_one_that_cannot_be_read_counts_as_unmeasured_and_spoils_nothing() -> None:
    stated = [
        {"name": "screen", "outcome": "warning", "detail": "two\nlines"},
        {"name": "menu", "outcome": "ok"},
        {"name": "icon", "outcome": "failed"},
        {"name": "sound", "outcome": "ok", "detail": 5},
        {"outcome": "ok"},
        "what?",
    ]
    reading = read(line(probes=stated))
    assert reading.outcome == "passed"
    assert [(probe.name, probe.outcome) for probe in reading.probes] == [
        ("screen", "warning"),
        ("menu", "ok"),
        ("icon", "unmeasured"),
        ("sound", "unmeasured"),
        ("probes", "unmeasured"),
        ("probes", "unmeasured"),
    ]
    assert reading.probes[0].detail == "two lines"
    assert [probe.outcome for probe in read(line(probes={"screen": "ok"})).probes] == ["unmeasured"]


def test_of_too_many_probes_the_first_are_shown_and_the_rest_is_counted() -> None:
    probes = read(line(probes=[{"name": "one", "outcome": "ok"}] * (PROBES_MAX + 7))).probes
    assert len(probes) == PROBES_MAX + 1
    assert (probes[-1].outcome, probes[-1].detail) == ("unmeasured", "not shown, because there are too many: 7")


def test_free_keys_are_kept_as_they_are() -> None:
    keys = {"version": "8.3.0", "files": [1, 2.5, None, True, {"a": "ü"}], "question": {"not": "asked"}}
    reading = read(line(verdict="pass", summary="done", **keys))
    assert (reading.keys, reading.question) == (keys, None)
    asked = read(line("ask", question={"text": "go on?"}, version="8.3.0"))
    assert (asked.keys, asked.question) == ({"version": "8.3.0"}, {"text": "go on?"})


# Anything


@given(st.binary(max_size=300), st.sampled_from(ENDS), st.sampled_from(EXIT_CODES))
@example(b'{"outcome":"ok","a":' + b'{"a":' * 1000, "exited", 0)
@example(b'{"outcome":"ok","a":1' + b"0" * 400 + b".5}", "exited", 0)
def test_no_bytes_are_too_strange(printed: bytes, end: End, exit_code: int | None) -> None:
    reading = read_step(printed, end, exit_code)
    assert reading.outcome != "passed" or exit_code == 0 or b'"outcome"' in printed


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PROTOCOL = st.fixed_dictionaries(
    {},
    optional={
        "outcome": st.sampled_from(["ok", "fail", "error", "ask"]) | VALUES,
        "verdict": st.sampled_from(["pass", "flaky", "fail"]) | VALUES,
        "summary": VALUES,
        "probes": VALUES | st.lists(st.fixed_dictionaries({"name": VALUES, "outcome": VALUES})),
        "question": VALUES,
    },
)


@given(PROTOCOL, st.dictionaries(st.text(), VALUES, max_size=3), st.sampled_from(ENDS), st.sampled_from(EXIT_CODES))
def test_whatever_a_result_holds_the_reading_can_be_stored(
    protocol: dict[str, Any], keys: dict[str, Any], end: End, exit_code: int | None
) -> None:
    reading = read_step(json.dumps({**keys, **protocol}).encode() + b"\n", end, exit_code)
    assert msgspec.json.decode(msgspec.json.encode(reading), type=StepReading) == reading
    assert len(reading.summary) <= SUMMARY_CHARACTERS
    assert "\n" not in reading.summary
    assert (reading.outcome == "asked") == (reading.question is not None)
    assert reading.outcome != "passed" or protocol.get("outcome") == "ok" or "outcome" not in protocol


EMPTY = [
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\x1b[m",
    b"\x1b[0m",
    b"\x1b[38;5;196m",
    b"\x1b[2K",
    b"\x1b[?25l",
    b"\x1b[0 q",
]


@given(
    st.sampled_from([b"working\n", line("ok"), line("fail"), line("error"), b'{"outcome":"fa\n', b"\xff\n"]),
    st.lists(st.sampled_from(EMPTY), max_size=9).map(b"".join),
    st.sampled_from(ENDS),
    st.sampled_from(EXIT_CODES),
)
def test_lines_without_anything_to_read_say_nothing(
    printed: bytes, empty: bytes, end: End, exit_code: int | None
) -> None:
    assert read_step(printed + empty, end, exit_code) == read_step(printed, end, exit_code)
    assert read_step(empty, end, exit_code) == read_step(b"", end, exit_code)


@given(st.sampled_from(["ok", "fail", "error"]), st.text(), st.data())
def test_a_line_that_is_cut_anywhere_never_says_something_else(outcome: str, summary: str, data: st.DataObject) -> None:
    whole = line(outcome, summary=summary)
    cut = data.draw(st.integers(0, len(whole) - 1))
    code = {"ok": 0, "fail": 1, "error": 2}[outcome]
    killed = read_step(b"working\n" + whole[:cut], "signalled", None)
    assert killed.outcome == "unmeasured"
    # Of a step that exited, what it says in whole stands even when its line break is missing.
    assert read_step(whole[:-1], "exited", code) == read_step(whole, "exited", code)
