"""Text for people: the right words for each state, and nothing from outside that could take the terminal over."""

import unicodedata
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from commands.causes import CAUSES
from commands.render.events import describe, event_line
from commands.render.resume import resume_lines
from commands.render.summary import CLASS_ORDER, MOST_ENTRIES, headline, state_lines, summary_lines
from commands.render.why import MOST_MESSAGE_LINES, why_lines
from commands.render.words import clipped, count, counted, moment, safe, seconds, short, wrapped
from ledger.events import (
    TYPES,
    Answered,
    Assumed,
    AutoRecommended,
    Collected,
    DriverReplaced,
    DriverStarted,
    Event,
    FailureLine,
    GatePolicy,
    JudgedCase,
    LedgerCreated,
    LostEvents,
    Parked,
    Quarantined,
    QuestionDeferred,
    RerunsPlanned,
    ResumeStarted,
    RunFinished,
    RunStopped,
    StepFinished,
    StepStarted,
    Unknown,
    Unmuted,
)
from projections.gate.classes import CaseClass
from projections.gate.why import Why, WhyAttempt
from projections.run.resume import plan_resume
from projections.run.summary import RunSummary, summarize_run
from tests.commands.render.release_events import RELEASE_EVENTS
from tests.support.makers import (
    COMMITS,
    RUN,
    attempt_recorded,
    attempt_started,
    begun,
    collections,
    driver_started,
    measured,
    muted,
    placed,
    planned,
    question,
    question_asked,
    recorded,
    run_started,
    verdict_decided,
    views_of,
)

NOW = datetime(2030, 1, 2, 4, 0, 0, tzinfo=UTC)
POLICY = GatePolicy(rounds=1)
READY: list[Event] = [*begun(POLICY), *collections(), planned(), *placed("shard-1")]
MEASURED: list[Event] = [
    attempt_started(), attempt_recorded(), attempt_started(side="baseline"), attempt_recorded(side="baseline"),
]  # fmt: skip
PARTIAL: list[Event] = [attempt_started(), attempt_recorded(missing={"b.py": "time-limit"}, cause="time-limit")]
HOSTILE = "a\x1b[31mred\x1b[0m\r\n\x07\x00\x9b2J\u202ereversed\u2066\u061c\u200f\ufeff\x85\u2028\U000e0041\udc80.py"
REORDERS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u200e\u200f\u061c"
INVISIBLE = "\xad\u180e\u200b\u200c\u200d\u2060\ufeff\U000e0041"


def is_raw(character: str) -> bool:
    """Whether a terminal would do something with this character, or nothing at all, instead of showing it."""
    obeyed = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return obeyed or unicodedata.bidirectional(character) in REORDERS or character in MARKS + INVISIBLE


def assert_safe(lines: list[str]) -> None:
    raw = {f"U+{ord(one):04X}" for line in lines for one in line if is_raw(one)}
    assert not raw, raw


def finished(verdict: str, **changes: Any) -> list[Event]:
    decided = verdict_decided(verdict, **changes)
    return [decided, StepFinished(step="gate", outcome=decided.verdict), RunFinished(verdict=decided.verdict)]


def summary(*events: Event, alive: bool | None = None) -> RunSummary:
    return summarize_run(views_of(*events), NOW, alive=alive)


INTRODUCED = JudgedCase("a.py::test_a", "introduced", "assert 1 == 2")
LOST = JudgedCase("b.py", "unmeasured", "time-limit")
FAILED = finished(
    "failed", reason="regression", counts={"introduced": 1, "passed": 3, "unmeasured": 2}, blocking=(INTRODUCED,),
    unmeasured=(LOST,),
)  # fmt: skip
UNMEASURED = finished("unmeasured", reason="cases-unmeasured", counts={"unmeasured": 2}, unmeasured=(LOST,))
STATES = {
    "running": summary(*READY, attempt_started(), alive=True),
    "interrupted": summary(*READY, attempt_started(), alive=False),
    "stopped": summary(*READY, *PARTIAL, RunStopped(reason="asked", term=1)),
    "stopped by a signal": summary(*READY, RunStopped(reason="interrupted", term=1)),
    "passed": summary(*READY, *MEASURED, *finished("passed", counts={"passed": 3, "fixed": 1})),
    "failed": summary(*READY, *PARTIAL, *MEASURED[2:], *FAILED),
    "unmeasured": summary(*READY, *PARTIAL, *MEASURED[2:], *UNMEASURED),
    "resumed": summary(*READY, *PARTIAL, *UNMEASURED, ResumeStarted(step="gate", number=2, owed=()), alive=True),
}


# Small words.


def test_nothing_that_a_terminal_obeys_is_left_of_any_character() -> None:
    shown = safe("".join(map(chr, range(0x110000))))
    assert_safe([shown])
    assert "\n" not in shown


@given(st.text())
def test_text_that_a_terminal_only_shows_is_left_as_it_is(text: str) -> None:
    harmless = "".join(one for one in text if unicodedata.category(one)[0] in "LMNPSZ" and not is_raw(one))
    assert safe(harmless) == harmless


def test_what_was_made_safe_can_still_be_recognised() -> None:
    assert safe("\x1b[31m") == "\\x1b[31m"
    assert safe("a\nb\tc") == "a\\nb c"
    assert safe("a\u202eb") == "a\\x202eb"


@pytest.mark.parametrize(
    ("duration_seconds", "text"),
    [
        (0.0, "0 ms"), (0.25, "250 ms"), (1.0, "1.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (59.4, "59 s"),
        (59.6, "1 min 0 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min"), (90061, "25 h 1 min"),
    ],
)  # fmt: skip
def test_a_duration_is_told_in_the_units_that_matter(duration_seconds: float, text: str) -> None:
    assert seconds(duration_seconds) == text


def test_numbers_and_their_nouns_agree() -> None:
    assert [count(number, "case") for number in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
    assert count(2, "process", "processes") == "2 processes"
    assert counted({"passed": 9, "error": 0, "failed": 3}) == "3 failed, 9 passed"
    assert counted({}) == ""


def test_a_moment_is_told_to_the_second_and_an_unknown_one_as_unknown() -> None:
    assert moment("2030-01-02T03:04:05.678901+00:00") == "2030-01-02 03:04:05 UTC"
    assert moment("") == "?"
    assert short(COMMITS["candidate"]) == "c" * 12


@given(text=st.text(max_size=60), width=st.integers(1, 50))
def test_what_is_clipped_fits_and_says_that_it_was_cut(text: str, width: int) -> None:
    cut = clipped(text, width)
    assert len(cut) <= max(width, 1)
    assert cut == text or cut == text[: width - 1] + "…"


@given(
    words=st.lists(st.text(st.characters(categories=["L", "Cf"]), min_size=1, max_size=30)), width=st.integers(40, 90)
)
def test_what_is_wrapped_fits_is_safe_and_keeps_every_word_whole(words: list[str], width: int) -> None:
    lines = wrapped(" ".join(words), width, "    ")
    assert_safe(lines)
    assert " ".join(lines).split() == " ".join(map(safe, words)).split()
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


# Events.

EVERY_EVENT: list[Event] = [
    LedgerCreated(ledger_id="1", project="p", root_commit=None, format_version=1), run_started(), driver_started(),
    DriverReplaced(term=2, previous_term=1, host="here", pid=8, reason="died"), StepStarted(step="gate"),
    StepFinished(step="gate", outcome="failed"), ResumeStarted(step="gate", number=1, owed=("a", "b")),
    RunStopped(reason="asked", term=1), RunFinished(verdict="failed"),
    Collected(side="candidate", commit="c" * 40, attempt=1, inventory="1", targets=2, cases=9, errors=("a.py",)),
    planned(), *placed("shard-1"), attempt_started(targets=("a.py",)),
    attempt_recorded(missing={"a.py": "lost"}, detail="in a.py::t", counts={"failed": 1, "passed": 2}),
    measured(), verdict_decided("failed", counts={"introduced": 1}),
    RerunsPlanned(commit="c" * 40, stopped="same-failure"),
    muted(environment={"CI": "1"}), Unmuted(mute="mute-1", by="someone", reason="repaired"),
    question_asked(), QuestionDeferred(question="question-2", content=question(), reason="budget-used"),
    Assumed(question="question-3", content=question(), choice="stable", reason="low-impact"),
    Answered(question="question-1", by="someone", outcome="text", text="neither"),
    AutoRecommended(question="question-1", choice="stable"), Parked(question="question-1"),
    Quarantined(what="ledger", place="quarantine/1", digest="1", size_bytes=9, reason="event-changed",
                kept_sequence=4, lost=(LostEvents(stream="a", first=1, last=2, tags={"placed": 2}),)),
    *RELEASE_EVENTS,
]  # fmt: skip


def test_every_registered_event_is_among_those_that_are_told_here() -> None:
    assert {type(event) for event in EVERY_EVENT} == set(TYPES.values())


@pytest.mark.parametrize(
    "event", [*EVERY_EVENT, Unknown(tag="dreamt", version=2, payload="{}")], ids=lambda e: type(e).__name__
)
def test_every_event_has_words_in_one_safe_line(event: Event) -> None:
    line = event_line(recorded([event], start=17)[0])
    assert line.startswith("#17   @133   2030-01-02 03:04:17 UTC")
    assert line.endswith(describe(event))
    assert describe(event)
    assert_safe([line])


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (EVERY_EVENT[3], "term 2, process 8 on here; the driver of term 1 died"),
        (EVERY_EVENT[6], "from gate, number 1, 2 jobs owed"),
        (EVERY_EVENT[9], "candidate: 9 cases in 2 targets, 1 target with errors"),
        (planned(), "2 targets in 1 shard"),
        (
            structs.replace(planned(), makespan_seconds=90.0, origins={"measured": 2, "aged": 0}),
            "2 targets in 1 shard, the longest 1 min 30 s; 2 measured",
        ),
        (
            measured(exceeded=("a.py",)),
            "shard-1/candidate attempt 1: 2 targets in 1.0 s, the session 500 ms; 2 MiB (pss); out of memory: a.py",
        ),
        (attempt_started(targets=("a.py",)), "shard-1/candidate attempt 1 on local, 1 target still owed"),
        (attempt_recorded(counts={"passed": 2}), "shard-1/candidate attempt 1 complete; 2 passed; 1.5 s"),
        (attempt_recorded(cause="lost", measured=0), "shard-1/candidate attempt 1 unmeasured (lost); 1.5 s"),
        (verdict_decided(), "passed (no-regression) by classes/1: 2 passed"),
    ],
)  # fmt: skip
def test_events_are_told_in_plain_words(event: Event, words: str) -> None:
    assert describe(event) == words


def test_an_event_type_without_words_is_a_bug_and_not_an_empty_line() -> None:
    class Dreamt(Event, frozen=True, kw_only=True):
        """An event that nobody wrote words for."""

    with pytest.raises(KeyError):
        describe(Dreamt())


# The summary.


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("running", "running: 2 of 4 jobs done"),
        ("interrupted", "interrupted: 2 of 4 jobs done, nothing is decided, and the process that drove the run "),
        ("stopped", "stopped on request: 3 of 4 jobs done, nothing is decided"),
        ("stopped by a signal", "stopped by a signal: 2 of 4 jobs done, nothing is decided"),
        ("passed", "passed: no regression in 4 cases"),
        ("failed", "failed: 1 case that the candidate broke; 2 cases could not be measured"),
        ("unmeasured", "unmeasured: 2 cases could not be measured"),
        ("resumed", "running: 2 of 4 jobs done"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_answer(state: str, words: str) -> None:
    assert headline(STATES[state]).startswith(words)
    assert summary_lines(STATES[state], 200)[0] == headline(STATES[state])
    assert words in state_lines(STATES[state], 200)[0]


@pytest.mark.parametrize(
    ("reason", "words"),
    [("nothing-ran", "not one test of the candidate ran to its result"), ("nothing-collected", "no tests were found")],
)
def test_an_unmeasured_gate_in_which_no_case_is_unmeasured_says_what_was_wrong(reason: str, words: str) -> None:
    assert headline(summary(*READY, *finished("unmeasured", reason=reason, counts={}))) == f"unmeasured: {words}"


def test_only_a_passed_verdict_begins_with_the_word_passed() -> None:
    assert [state for state, held in STATES.items() if headline(held).startswith("passed")] == ["passed"]


def test_a_failed_gate_names_what_blocks_what_is_unmeasured_what_is_owed_and_what_to_type() -> None:
    text = "\n".join(summary_lines(STATES["failed"], 200))
    for expected in (
        "introduced: a.py::test_a", "assert 1 == 2", "b.py", CAUSES["time-limit"].meaning,
        "1 introduced, 2 unmeasured, 3 passed", "still owed", "shard-1/candidate: 1 target, time-limit",
        f"next: ledger resume {RUN} --from gate",
    ):  # fmt: skip
        assert expected in text
    assert state_lines(STATES["failed"], 200)[-1] == f"next: ledger resume {RUN} --from gate"


def test_a_passed_gate_that_owes_nothing_has_nothing_next() -> None:
    text = "\n".join(summary_lines(STATES["passed"], 200))
    assert "next:" not in text
    assert "still owed" not in text
    assert "1 fixed, 3 passed" in text


def test_a_failure_whose_message_looks_like_a_reason_code_is_not_explained_as_one() -> None:
    case = JudgedCase("a.py::t", "introduced", "lost")
    text = "\n".join(summary_lines(summary(*READY, *finished("failed", blocking=(case,))), 200))
    assert CAUSES["lost"].meaning not in text


def test_what_was_not_tested_and_how_often_a_run_was_resumed_is_said() -> None:
    dirty = summary(run_started(dirty=True), alive=True)
    assert any("uncommitted changes" in line for line in summary_lines(dirty, 200))
    assert any("resumed twice" in line for line in summary_lines(STATES["resumed"], 200))


def test_failures_that_were_seen_are_not_called_regressions_before_the_verdict() -> None:
    failing = attempt_recorded(failures=(FailureLine("a.py::t", "no"),))
    text = "\n".join(summary_lines(summary(*READY, attempt_started(), failing, alive=True), 200))
    assert "1 failure seen on the candidate" in text


def test_long_lists_are_cut_and_say_how_many_are_left_out() -> None:
    blocking = tuple(JudgedCase(f"a.py::test_{number}", "introduced", "no") for number in range(MOST_ENTRIES + 7))
    lines = summary_lines(summary(*READY, *MEASURED, *finished("failed", blocking=blocking)), 100)
    assert sum("introduced: " in line for line in lines) == MOST_ENTRIES
    assert any("7 more" in line for line in lines)


def test_every_class_has_its_place_and_an_unknown_one_is_shown_all_the_same() -> None:
    assert set(CLASS_ORDER) == {*get_args(CaseClass), "muted"}
    lines = summary_lines(summary(*READY, *finished("passed", counts={"dreamt": 1, "passed": 2})), 100)
    assert any("2 passed, 1 dreamt" in line for line in lines)


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("state", STATES)
def test_no_line_is_wider_than_the_terminal_but_a_command_to_copy(state: str, width: int) -> None:
    for line in summary_lines(STATES[state], width):
        assert len(line) <= width or line.startswith("next: "), line


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_hostile_in_refs_hosts_names_and_messages_reaches_the_terminal(width: int) -> None:
    start = run_started(candidate_ref=HOSTILE, baseline_ref=HOSTILE, baseline_reason=HOSTILE, policy=POLICY)
    events = [
        start, DriverStarted(term=1, host=HOSTILE, pid=7), *READY[2:],
        attempt_started(), attempt_recorded(missing={HOSTILE: "time-limit"}, cause="time-limit", detail=HOSTILE),
    ]  # fmt: skip
    cases = (JudgedCase(HOSTILE, "introduced", HOSTILE),)
    doubts = (JudgedCase(HOSTILE, "unmeasured", HOSTILE),)
    decided = finished("failed", blocking=cases, unmeasured=doubts)
    for found in (summary(*events, alive=True), summary(*events, alive=False), summary(*events, *decided)):
        assert_safe(summary_lines(found, width))
    assert_safe([event_line(one) for one in recorded([*events, *decided])])
    assert_safe(resume_lines(plan_resume(views_of(*events), "gate", driven=False), width))
    assert_safe([describe(Unknown(tag="x", version=1, payload=HOSTILE))])
    assert_safe([event_line(recorded([Unknown(tag=HOSTILE, version=1, payload="")])[0])])


# Why, and resuming.


def explained(**changes: Any) -> Why:
    tried = WhyAttempt(
        shard="shard-1", side="candidate", attempt=2, sequence=117, member="local", outcome="failed", cause="",
        detail="", duration_seconds=1.5, message="Traceback\n  assert 1 == 2", log="9" * 64, record=None,
    )  # fmt: skip
    values: dict[str, Any] = {
        "test": "a.py::test_a", "case_class": "introduced", "effect": "failed", "rule": "failed x passed",
        "table": "classes/1", "cause": "", "line": "assert 1 == 2", "verdict_sequence": 131, "attempts": (tried,),
    }  # fmt: skip
    return Why(**values | changes)


def test_an_explanation_names_the_class_the_effect_the_rule_and_each_attempt() -> None:
    text = "\n".join(why_lines(explained(), {}, 200))
    for expected in (
        "introduced: a.py::test_a", "this blocks the release", "candidate, shard-1 attempt 2 on local, @117",
        "candidate failed, baseline passed -> introduced (classes/1)", "@131", "failed in 1.5 s",
        "    Traceback\n      assert 1 == 2",
    ):  # fmt: skip
        assert expected in text


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        ("failed", "this blocks the release"), ("none", "no effect"), ("unmeasured", "this leaves the gate unmeasured")
    ],
)  # fmt: skip
def test_each_effect_has_its_words(effect: str, words: str) -> None:
    assert words in why_lines(explained(effect=effect), {}, 100)


def test_a_reason_code_comes_with_its_meaning_and_what_to_do_and_an_unknown_one_stands_alone() -> None:
    text = " ".join(why_lines(explained(effect="unmeasured", cause="time-limit"), {}, 500))
    assert CAUSES["time-limit"].meaning in text
    assert CAUSES["time-limit"].next_step in text
    assert any(line.endswith("dreamt") for line in why_lines(explained(cause="dreamt"), {}, 100))


def test_a_long_message_keeps_its_end() -> None:
    (attempt,) = explained().attempts
    message = "\n".join(f"line {number}" for number in range(MOST_MESSAGE_LINES + 5))
    lines = why_lines(explained(attempts=(_with(attempt, message=message),)), {}, 100)
    assert any("5 lines before" in line for line in lines)
    assert sum(line.strip().startswith("line ") for line in lines) == MOST_MESSAGE_LINES
    assert f"    line {MOST_MESSAGE_LINES + 4}" in lines


def _with(attempt: WhyAttempt, **changes: Any) -> WhyAttempt:
    return WhyAttempt(**{name: getattr(attempt, name) for name in attempt.__struct_fields__} | changes)


def test_the_end_of_an_attempts_output_is_shown_with_it() -> None:
    lines = why_lines(explained(), {"9" * 64: ["Killed", HOSTILE]}, 100)
    assert "    Killed" in lines
    assert_safe(lines)


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_hostile_in_an_explanation_reaches_the_terminal(width: int) -> None:
    (attempt,) = explained().attempts
    hostile = _with(attempt, message=HOSTILE, detail=HOSTILE, cause="signalled", member=HOSTILE)
    assert_safe(why_lines(explained(test=HOSTILE, line=HOSTILE, attempts=(hostile,)), {}, width))


@settings(max_examples=60, deadline=None)
@given(name=st.text(max_size=30), width=st.integers(40, 120))
def test_no_name_of_a_test_can_reach_the_terminal_raw(name: str, width: int) -> None:
    found = summary(*READY, *finished("failed", blocking=(JudgedCase(name, "introduced", name),)))
    assert_safe([*summary_lines(found, width), *why_lines(explained(test=name), {}, width)])


def resumption(*events: Event, driven: bool = False, width: int = 100) -> list[str]:
    return resume_lines(plan_resume(views_of(*events), "gate", driven=driven), width)


def test_a_plan_to_resume_says_what_would_be_settled_and_what_would_be_run() -> None:
    text = "\n".join(resumption(*READY, *PARTIAL, attempt_started(side="baseline")))
    assert f"resuming run {RUN} from gate would" in text
    assert "settle what the last driver left of\n  shard-1/baseline" in text
    assert "shard-1/candidate: 1 target, time-limit" in text
    assert "shard-1/baseline: all of its targets" in text


def test_a_plan_to_resume_says_when_there_is_nothing_to_do_to_measure_or_when_it_would_be_refused() -> None:
    assert any("nothing is owed" in line for line in resumption(*READY, *MEASURED, *finished("passed")))
    assert any("only the verdict is owed" in line for line in resumption(*READY, *MEASURED))
    assert any("refused" in line for line in resumption(*READY, driven=True))
