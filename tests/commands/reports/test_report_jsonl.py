"""JSON lines: one line a case, whatever it is called, with all that is known of it."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from commands.render.reports.jsonl import ReportCase, ReportHeader, jsonl_pieces
from ledger.values import TestId
from projections.queries.tries import TriedCase
from tests.commands.reports.conftest import cases, class_row, report, tried
from tests.support.makers import case

LEGAL = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""What JSON that is read strictly can hold: no halves of pairs, which evidence cannot hold either."""


@given(cases())
def test_every_case_is_one_line_of_its_own(of: list[TriedCase]) -> None:
    pieces = list(jsonl_pieces(report(of)))
    assert all(piece.isascii() and piece.count("\n") == 1 and piece.endswith("\n") for piece in pieces)
    told = [json.loads(piece) for piece in pieces]
    assert [one["kind"] for one in told] == ["header", *["case"] * len(of)]
    assert [(one["test"], one["case_class"], len(one["tries"])) for one in told[1:]] == [
        (one.row.test.text(), one.row.case_class, len(one.tries)) for one in of
    ]


@given(st.builds(TestId, LEGAL, st.lists(LEGAL, max_size=3).map(tuple), st.none() | LEGAL), LEGAL)
def test_the_identity_of_a_test_and_its_texts_come_back(test: TestId, line: str) -> None:
    of = tried(class_row(test, line=line), "failed", message=line)
    header, told = jsonl_pieces(report([of]))
    read = msgspec.json.decode(told, type=ReportCase)
    assert TestId(read.target, read.path, read.variant) == TestId.parse(read.test) == test
    assert (read.line, read.tries[0].message, read.tries[0].outcome) == (line, line, "failed")
    assert msgspec.json.decode(header, type=ReportHeader).table == "classes/1"


def test_a_try_that_reported_nothing_says_so() -> None:
    of = tried(class_row(case("a.py::test"), "unmeasured", cause="signalled"), "failed", cause="signalled")
    silent = TriedCase(of.row, tuple(msgspec.structs.replace(one, row=None) for one in of.tries))
    _, told = jsonl_pieces(report([silent]))
    (one,) = msgspec.json.decode(told, type=ReportCase).tries
    assert (one.outcome, one.duration_seconds, one.cause, one.line) == (None, None, "signalled", "")
