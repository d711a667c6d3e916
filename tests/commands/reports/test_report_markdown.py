"""Reports in Markdown: what matters first, within GitHub's limits, and nothing from outside is taken for markup."""

import re

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from commands.render.reports.github import MOST_ANNOTATIONS, MOST_MESSAGES, annotations, summary_pieces
from commands.render.reports.groups import MOST_ENTRIES, failing_line, groups_of
from commands.render.reports.markdown import markdown_pieces
from commands.render.reports.markup import code, preformatted
from commands.render.reports.report import Report
from commands.render.words import safe
from ledger.events import JudgedCase
from ledger.values import TestId
from projections.queries.tries import UNDECIDED, TriedCase
from tests.commands.reports.conftest import TEXTS, TRICKY, cases, class_row, report, tried
from tests.support.makers import case

SUMMARY_MOST_BYTES = 900 * 1024
MARKDOWN = MarkdownIt("commonmark", {"html": True})
OURS = {
    "heading_open", "heading_close", "paragraph_open", "paragraph_close", "bullet_list_open", "bullet_list_close",
    "list_item_open", "list_item_close", "inline", "html_block", "text", "code_inline", "softbreak", "strong_open",
    "strong_close",
}  # fmt: skip
TAG = re.compile(r"</?(details|summary|code|pre)>")


def summary_of(told: Report) -> str:
    """The summary of the job."""
    return "".join(summary_pieces(told, groups_of(told)))


def commands_of(told: Report) -> list[str]:
    """The annotations."""
    return list(annotations(told, groups_of(told)))


def tokens_of(text: str) -> list[Token]:
    """Everything that a reader of Markdown finds."""
    tokens = MARKDOWN.parse(text)
    return tokens + [inner for token in tokens for inner in token.children or ()]


def is_command(line: str) -> bool:
    """Whether the log of a job might take a line for a command."""
    return line.lstrip().startswith("::") or "##[" in line


def many(
    number: int, candidate: str = "failed", baseline: str = "passed", *, of: str = "", line: str = ""
) -> list[TriedCase]:
    """Many cases of one class."""
    tests = (TestId(f"test_{place:06}.py", (f"test{of}",)) for place in range(number))
    return [tried(class_row(test, candidate, baseline, line=line), "failed", message="it said") for test in tests]


def titles(text: str) -> list[str]:
    """The headings below the first one."""
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


@given(cases(TRICKY))
def test_nothing_from_outside_is_markup(of: list[TriedCase]) -> None:
    for text in (summary_of(report(of)), "".join(markdown_pieces(report(of)))):
        tokens = tokens_of(text)
        assert {token.type for token in tokens} <= OURS
        for block in (token.content for token in tokens if token.type == "html_block"):
            assert "<" not in TAG.sub("", block)
        assert not [line for line in text.splitlines() if is_command(line)]


@given(TEXTS)
def test_a_code_span_is_text_to_the_letter(text: str) -> None:
    tokens = tokens_of(f"- before {code(text, 1000)} after")
    (span,) = (token for token in tokens if token.type == "code_inline")
    assert span.content.strip() == safe(text).replace("##[", "## [").strip()


@given(TEXTS)
def test_a_block_is_one_block_that_shows_its_lines(text: str) -> None:
    (block,) = tokens_of(preformatted(text))
    assert block.type == "html_block"
    assert block.content.count("</pre>") == 1
    assert block.content.rstrip().endswith("</pre>")


@given(cases())
def test_an_annotation_is_one_command_and_names_no_other(of: list[TriedCase]) -> None:
    for command in commands_of(report(of)):
        found = re.fullmatch(r"::(error|warning|notice) ([^:\n\r]+)::([^\n\r]*)", command)
        assert found, command
        properties = dict(pair.split("=", 1) for pair in found[2].split(","))
        assert {"title"} <= set(properties) <= {"title", "file", "line"}
        assert "##[" not in command


def test_what_an_annotation_says_is_what_was_meant() -> None:
    row = class_row(TestId("a,b:c%.py", ("test",)), line="100% wrong\nsecond")
    of = tried(row, "failed", message="a,b:c%.py:3: in helper\nother.py:9: x\na,b:c%.py:41: AssertionError")
    assert commands_of(report([of])) == [
        "::error file=a%2Cb%3Ac%25.py,line=41,title=introduced::a,b:c%25.py::test: 100%25 wrong%0Asecond"
    ]


def test_ten_annotations_of_a_kind_are_not_exceeded_and_the_rest_is_counted() -> None:
    assert len(commands_of(report(many(MOST_ANNOTATIONS)))) == MOST_ANNOTATIONS
    told = commands_of(report([*many(30), *many(12, "flaky", of="_flaky"), *many(3, "failed", "failed", of="_known")]))
    kinds = [command.split()[0] for command in told]
    assert [kinds.count(kind) for kind in ("::error", "::warning", "::notice")] == [10, 10, 3]
    assert told[9].endswith("::21 more are in the report")
    assert told[19].endswith("::3 more are in the report")


def test_a_gate_that_did_not_pass_has_an_error_even_without_a_case() -> None:
    (told,) = commands_of(report([], "unmeasured", reason="nothing-ran"))
    assert told == "::error title=release gate::unmeasured: not one test of the candidate ran to its result"
    judged = JudgedCase("collection/candidate", "unmeasured", "collection-aborted")
    (told,) = commands_of(report([], "unmeasured", unmeasured=(judged,)))
    assert told == "::error title=collection-aborted::collection/candidate: collection-aborted"
    assert commands_of(report([], "passed")) == []


def ranked() -> list[TriedCase]:
    """One case of many classes, in no order."""
    states = [
        ("passed", "passed"), ("passed", "failed"), ("failed", "failed"), ("flaky", "passed"), ("removed", "passed"),
        ("unmeasured", "passed"), ("skipped", "passed"), ("failed", "absent"), ("failed", "passed"),
        ("vanished", "passed"),
    ]  # fmt: skip
    rows = [class_row(case(f"test_{number}.py::test"), *pair) for number, pair in enumerate(states)]
    return [TriedCase(row, ()) for row in rows]


def test_what_blocks_comes_first() -> None:
    expected = [
        "Blocks: `introduced` (1)", "Blocks: `new-test-failing` (1)", "Blocks: `vanished` (1)",
        "Blocks: `newly-skipped` (1)", "Not measured: `unmeasured` (1)", "Flaky tests (1)", "Known failures (1)",
        "Fixed tests (1)", "Tests that are gone (1)",
    ]  # fmt: skip
    for text in (summary_of(report(ranked())), "".join(markdown_pieces(report(ranked())))):
        assert sorted(titles(text)) == sorted(expected)
        assert titles(text)[:5] == expected[:5]


def test_what_a_blocking_test_said_is_shown_for_the_first_ones() -> None:
    text = summary_of(report(many(MOST_MESSAGES + 5)))
    assert text.count("<pre>\nit said\n</pre>") == MOST_MESSAGES
    assert "<details>" not in "".join(markdown_pieces(report(many(3))))


def test_muted_tests_are_folded_and_have_no_annotations() -> None:
    row = class_row(case("a.py::test"), case_class="muted", effect="none", mute="mute-1", line="no")
    told = "## Muted tests (1)\n\nIt fails, and is muted.\n\n<details><summary>Which</summary>\n\n"
    told += "- `a.py::test` (`mute-1`): `no`\n\n</details>\n"
    of = report([TriedCase(row, ())], "passed")
    assert "".join(markdown_pieces(of)).endswith(told)
    assert summary_of(of).endswith(told)
    assert commands_of(of) == []


@pytest.mark.parametrize("name", ["x" * 400, "`" * 400, "\U0001f4a5" * 400, "\\" * 400])
def test_a_summary_stays_below_the_limit_and_says_what_it_cut(name: str) -> None:
    classes = [
        ("failed", "passed"),
        ("failed", "absent"),
        ("skipped", "passed"),
        ("failed", "failed"),
        ("flaky", "passed"),
    ]
    of = [one for number, pair in enumerate(classes) for one in many(1500, *pair, of=f"{number}{name}", line=name)]
    text = summary_of(report(of))
    assert 500 * 1024 < len(text.encode()) < SUMMARY_MOST_BYTES
    assert re.search(r"… and \d+ more; `ledger report \S+ --format jsonl` has all of them\.", text)
    assert titles(text)[0] == "Blocks: `introduced` (1500)"


def test_a_summary_of_too_many_lists_says_that_there_are_more() -> None:
    rows = [
        class_row(TestId(f"test_{place}.py", ("test",)), "unmeasured", cause=f"cause-{place:06}" * 10)
        for place in range(8000)
    ]
    text = summary_of(report([TriedCase(row, ()) for row in rows], "unmeasured"))
    assert len(text.encode()) < SUMMARY_MOST_BYTES
    assert text.splitlines()[-1].startswith("There is more than fits here; `ledger report")


def test_a_list_for_people_says_how_many_it_leaves_out() -> None:
    text = "".join(markdown_pieces(report(many(MOST_ENTRIES + 7))))
    assert text.count("\n- `test_0") == MOST_ENTRIES
    assert "… and 7 more; `ledger report" in text


def test_a_target_that_was_not_measured_is_listed_once_with_what_to_do() -> None:
    rows = [class_row(case(f"a.py::test_{number}"), "unmeasured", "passed", cause="signalled") for number in range(3)]
    text = "".join(markdown_pieces(report([TriedCase(row, ()) for row in rows], "unmeasured")))
    assert "## Not measured: `signalled` (1)\n\nThe test process was killed by a signal. Look for" in text
    assert text.endswith("\n- `a.py` (3 tests)\n")


def test_targets_that_are_left_out_are_not_taken_for_the_last_one_that_is_shown() -> None:
    rows = [
        class_row(TestId(f"test_{place:06}.py", (f"test_{number}",)), "unmeasured", cause="signalled")
        for place in range(MOST_ENTRIES + 1)
        for number in range(2)
    ]
    text = "".join(markdown_pieces(report([TriedCase(row, ()) for row in rows], "unmeasured")))
    assert text.count(" (2 tests)\n") == MOST_ENTRIES
    assert "… and 1 more;" in text


def test_without_a_verdict_that_is_said_first_and_only_failures_are_listed() -> None:
    values = {"case_class": "unmeasured", "effect": "unmeasured", "cause": UNDECIDED}
    rows = [
        class_row(case(f"a.py::test_{state}"), state, "unmeasured", rule="", **values) for state in ("passed", "failed")
    ]
    text = "".join(markdown_pieces(report([TriedCase(row, ()) for row in rows], None)))
    assert text.splitlines()[2].startswith("**There is no verdict yet.**")
    assert titles(text) == ["Failing so far (1)"]
    assert "test_passed" not in text


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("tests/a.py:12: AssertionError", 12),
        ("tests/a.py:12: in f\n\ntests/a.py:34: Error", 34),
        ("xtests/a.py:12: Error\n tests/a.py:13: Error", None),
        ("tests/aXpy:12: Error", None),
        ("tests/a.py:0: Error\ntests/a.py:99999999: Error", None),
        ("", None),
    ],
)
def test_the_line_of_a_failure_is_told_by_its_message_or_not_at_all(message: str, line: int | None) -> None:
    assert failing_line("tests/a.py", message) == line
