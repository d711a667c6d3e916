"""Views as rows: each says what its view says, and conditions choose among them."""

import csv
import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from commands.render.rows import CELL_MAX, MEASURED_ROWS, csv_pieces, json_lines, json_pieces, table_lines
from ledger.tables import decode_document
from projections.queries.conditions import ColumnUnknown, ConditionMalformed, cell_text, matching, parse_conditions
from projections.queries.registry import QUERIES, ViewUnknown, find_query
from projections.queries.rows import RunSource
from projections.registry import view_run
from projections.run.summary import owed_entries
from tests.support.ledgers import SUITE
from tests.support.replays import Past, past_of

PAST = past_of(SUITE)


def source_of(past: Past, position: int | None = None) -> RunSource:
    """What the rows of this run are made of, after an event."""
    events = past.events[:position]
    return RunSource(view_run(events), lambda: events, lambda digest, kind: decode_document(past.load(digest), kind))


def rows_of(view: str, *conditions: str, position: int | None = None) -> list[Any]:
    """The rows of a view."""
    query = find_query(view)
    assert query.rows is not None
    return list(matching(query.rows(source_of(PAST, position)), parse_conditions(conditions, query.row_type)))


def test_events_are_all_there_in_order() -> None:
    rows = rows_of("events")
    assert [(row.position, row.tag, row.event) for row in rows] == [
        (one.header.position, one.header.tag, one.event) for one in PAST.events
    ]


def test_attempts_come_in_the_order_of_their_start_with_what_their_record_says() -> None:
    rows = rows_of("attempts")
    assert [(row.shard, row.side, row.attempt, row.complete) for row in rows[:2]] == [
        ("collection", "candidate", 1, True),
        ("collection", "baseline", 1, True),
    ]
    assert [row.sequence for row in rows] == sorted(row.sequence for row in rows)
    assert sum(row.measured_targets for row in rows if row.side == "candidate" and row.shard != "collection") == 2


def test_an_attempt_without_a_record_says_nothing_about_its_end() -> None:
    first = next(row for row in rows_of("events") if row.tag == "attempt-started")
    rows = rows_of("attempts", position=first.position)
    assert [(row.complete, row.recorded_at, row.targets, row.table) for row in rows] == [(None, None, None, None)]


def test_cases_are_what_the_reports_say() -> None:
    told = {(row.test, row.side): row.outcome for row in rows_of("cases")}
    assert told == {
        ("a.py::test_a", "candidate"): "passed",
        ("a.py::test_a", "baseline"): "passed",
        ("a.py::test_b[=SUM(1),2]", "candidate"): "failed",
        ("a.py::test_b[=SUM(1),2]", "baseline"): "passed",
        ("b.py::test_c", "candidate"): "skipped",
        ("b.py::test_c", "baseline"): "passed",
    }


def test_classes_and_what_blocks_are_those_of_the_verdict() -> None:
    assert {row.test: row.case_class for row in rows_of("classes")} == {
        "a.py::test_a": "passed",
        "a.py::test_b[=SUM(1),2]": "introduced",
        "b.py::test_c": "newly-skipped",
    }
    assert [(row.case_class, row.effect) for row in rows_of("blocking")] == [
        ("introduced", "failed"),
        ("newly-skipped", "failed"),
    ]


@pytest.mark.parametrize("view", ["classes", "blocking", "inventory", "cases", "attempts"])
def test_before_anything_was_measured_there_is_nothing_to_tell(view: str) -> None:
    assert rows_of(view, position=1) == []


def test_the_inventory_has_each_test_of_each_side() -> None:
    candidate = [row.test for row in rows_of("inventory", "side=candidate")]
    assert candidate == ["a.py::test_a", "a.py::test_b[=SUM(1),2]", "b.py::test_c"]


def test_shards_say_how_much_is_missing() -> None:
    first = next(row for row in rows_of("events") if row.tag == "planned")
    before = rows_of("shards", "shard!=collection", position=first.position)
    assert {(row.status, row.missing, row.attempts) for row in before} == {("pending", None, 0)}
    assert {(row.status, row.missing) for row in rows_of("shards")} == {("measured", 0)}
    assert sum(row.targets for row in before if row.side == "candidate") == 2


@pytest.mark.parametrize("position", range(1, len(PAST.events) + 1))
def test_what_is_owed_is_what_the_summary_says_at_every_moment(position: int) -> None:
    rows = rows_of("owed", position=position)
    shown = owed_entries(source_of(PAST, position).views)
    assert [(f"{row.shard}/{row.side}", row.status, row.detail) for row in rows] == [
        (entry.what, entry.status, entry.detail) for entry in shown
    ]


@pytest.mark.parametrize("view", [name for name, query in QUERIES.items() if query.rows])
def test_rows_are_of_the_type_that_is_documented(view: str) -> None:
    row_type = find_query(view).row_type
    for row in rows_of(view):
        assert type(row) is row_type
        encoded = msgspec.to_builtins(row)
        assert msgspec.to_builtins(msgspec.convert(encoded, row_type)) == encoded


def test_several_conditions_must_all_hold() -> None:
    assert len(rows_of("cases", "side=candidate")) == 3
    assert len(rows_of("cases", "side=candidate", "outcome!=passed")) == 2
    assert [row.test for row in rows_of("cases", "test~[=SUM", "side=baseline")] == ["a.py::test_b[=SUM(1),2]"]
    assert rows_of("cases", "side=candidate", "side=baseline") == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("text=a=b", True), ("text=a", False), ("text~=", True), ("text!=a=b", False), ("nothing=", True),
        ("nothing!=", False), ("yes=true", True), ("yes=True", False), ("number=3", True), ("number=3.0", False),
        ("real=0.5", True), ('names=["x"]', True), ("names~x", True),
    ],
)  # fmt: skip
def test_conditions_compare_the_text_of_a_cell(condition: str, expected: bool) -> None:
    class Row(Struct):
        text: str = "a=b"
        nothing: str | None = None
        yes: bool = True
        number: int = 3
        real: float = 0.5
        names: tuple[str, ...] = ("x",)

    assert list(matching([Row()], parse_conditions([condition], Row))) == [Row()] * expected


def test_what_does_not_exist_is_told_with_what_does() -> None:
    with pytest.raises(ViewUnknown) as view:
        find_query("nothing")
    assert all(name in view.value.hint for name in QUERIES)
    with pytest.raises(ColumnUnknown) as column:
        parse_conditions(["nothing=1"], find_query("blocking").row_type)
    assert "case_class" in column.value.hint
    for malformed in ("", "effect", "effect>1", "!"):
        with pytest.raises(ConditionMalformed):
            parse_conditions([malformed], find_query("blocking").row_type)


class Cell(Struct):
    """One cell of text and one of anything."""

    text: str
    other: Any = None


TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.lists(st.tuples(TEXTS, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)), max_size=5))
def test_machine_formats_are_exact(cells: list[tuple[str, object]]) -> None:
    rows = [Cell(*cell) for cell in cells]
    parsed = list(csv.reader(io.StringIO("".join(csv_pieces(("text", "other"), rows)), newline="")))
    assert parsed == [["text", "other"], *([row.text, cell_text(row.other)] for row in rows)]
    document = json.loads("".join(json_pieces("view", None, 7, rows)))
    assert document == {"view": "view", "run": None, "sequence": 7, "rows": msgspec.to_builtins(rows)}
    assert [json.loads(line) for line in json_lines(rows)] == document["rows"]
    assert all(line.isascii() and line.count("\n") == 1 for line in json_lines(rows))


def test_csv_is_that_of_the_standard() -> None:
    rows = [Cell('say "a", b\nc'), Cell("x", None)]
    assert "".join(csv_pieces(("text", "other"), rows)) == 'text,other\r\n"say ""a"", b\nc",\r\nx,\r\n'


@given(TEXTS)
def test_a_table_never_controls_the_terminal(text: str) -> None:
    heading, line = table_lines(("text", "other"), [Cell(text, 1)])
    assert heading.split() == ["text", "other"]
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in line)


def test_a_table_is_aligned_and_shortens_only_what_is_long() -> None:
    lines = list(table_lines(("text", "other"), [Cell("a", 1), Cell("abcdef", 2), Cell("x" * 200, 3)]))
    assert [line.index(number) for line, number in zip(lines[1:], "123", strict=True)] == [CELL_MAX + 2] * 3
    assert lines[3].startswith("x" * (CELL_MAX - 1) + "…")


def test_a_table_that_is_wider_than_the_terminal_is_a_block_for_each_row() -> None:
    rows = [Cell("a", 1), Cell(" ".join(["word"] * 12), None)]
    assert list(table_lines(("text", "other"), rows, 66)) == list(table_lines(("text", "other"), rows))
    assert list(table_lines(("text", "other"), rows, 30)) == [
        "text   a", "other  1", "", "text   word word word word", *["       word word word word"] * 2,
    ]  # fmt: skip
    assert list(table_lines(("text", "other"), [], 5)) == ["no rows"]


@given(TEXTS, st.integers(1, 60))
def test_a_block_never_controls_the_terminal(text: str, width: int) -> None:
    lines = list(table_lines(("text", "other"), [Cell(text, 1), Cell("x" * 61, 2)], width))
    assert [line for line in lines if line.startswith("other  ")] == ["other  1", "other  2"]
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for line in lines for character in line)


def test_a_long_table_is_not_held_back() -> None:
    taken = 0

    def rows() -> Any:
        nonlocal taken
        for number in range(10 * MEASURED_ROWS):
            taken += 1
            yield Cell(str(number))

    next(table_lines(("text",), rows()))
    assert taken == MEASURED_ROWS
    next(table_lines(("text",), rows(), 2))
    assert taken == 2 * MEASURED_ROWS
