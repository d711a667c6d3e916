"""What is fit for the public: one text for each way to be unfit, and what looks like one and is fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.people.public_text import public_fault

UNFIT: dict[str, list[str]] = {
    "it is empty": ["", "   ", "\n"],
    "it holds something other than printable ASCII on one line": [
        "Hilfe schließt nicht", "one line\nand another", "a tab\there", "an escape \x1b[31m", "nothing \x00 more", "é",
    ],
    "it begins like an item of a list": ["- slow", "* slow", "+ slow", "1. slow", "2) slow", "-"],
    "it holds one of { } < > [ ] and the backtick": [
        "a {b} c", "run `make`", "[x] is slow", "List<Item> is slow", "see <b>", "}", "]", ">",
    ],
    "it names a number of a pull request or an issue": [
        "see #123", "since PR 12", "since PR12", "since pr #7", "pull request 12 is late", "Pull Request #9", "MR 5",
        "issue 7 stays", "merge requests 3 and 4",
    ],
    "it holds a path": [
        "see ~/notes", "see ~ada/notes", "in /srv/ada", "in /etc/passwd now", "(/tmp/x)", "at C:\\Users", "at D:/data",
        "file:///tmp/x", "in ./notes", "in ../notes", "on \\\\server",
    ],
    "it names a file of the source": [
        "fails in src/index.ts", "see scripts/run", "test/unit is slow", "tests/a is slow",
    ],
    "it names a file of tests": ["a.test.ts is slow", "a.spec.js", "test_a.py fails", "help_test.go fails"],
    "it holds a mark of internal work": ["TC track", "the MK seat", "for OP", "late in UX"],
    "it names an internal document": ["RFC-12 text", "see ADR-3", "ABC-7 is open"],
    "it claims a repair": [
        "This is fixed", "Fixed", "it was resolved", "it no longer fails", "it was addressed", "this fixes it",
    ],
    "it has no word in it": ["1 2 3", "a b", "...", "ok"],
    "it has more than two sentences": ["One. Two. Three.", "What? No! Yes.", "e.g. Version 1.2. Works. Fine"],
}  # fmt: skip
FIT = [
    "Help does not close when requested", "and/or is slow", "see http://x.y/z", "see https://example.org/a/b",
    "PRs remain slow", "test/ path", "src is slow", "Unfixed issue stays", "Unresolved names stay", "Two. Sentences.",
    "Version 1.2.3 is slow", "UTF-8 text is cut", "SHA-256 is slow", "the octopus stays", "24/7 service stops",
    "an issue with help", "one - two", "What?! No...", "  space around it  ", "the profile is slow", "it is 5% slower",
    "tc is not a mark", "OPEN is not one either", "a line in the end\n",
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), [(text, fault) for fault, texts in UNFIT.items() for text in texts])
def test_what_is_unfit_is_told_why(text: str, fault: str) -> None:
    assert public_fault(text) == fault


@pytest.mark.parametrize("text", FIT)
def test_what_is_fit_is_let_pass(text: str) -> None:
    assert public_fault(text) == ""


@given(st.text(max_size=80))
def test_whatever_is_fit_is_one_line_of_printable_ascii(text: str) -> None:
    if not public_fault(text):
        assert text.strip().isascii()
        assert text.strip().isprintable()
        assert not set(text) & set("{}<>[]`")
