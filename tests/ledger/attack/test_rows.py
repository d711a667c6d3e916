"""Rows that are dropped, swapped, doubled, cut, moved or put in around the writer: each is found where it is."""

import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ledger.store.reader import Head
from tests.ledger.attack.ledgers import LEDGER_ID, OTHER_RUN, RUN, forged, rewrite, rows, run_sql, verified, write
from tests.ledger.stores import raw

LAST_OF_OTHER_RUN = 17
EARLIER = "2029-12-31T00:00:00.000000Z"
COLUMNS = ("stream", "position", "tag", "version", "header", "payload", "digest", "command", "command_index")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a ledger file with 22 events: @1, then @2 to @8 and @18 to @22 of one run, the rest of another."""
    return write(tmp_path_factory.mktemp("rows")).read_bytes()


@pytest.fixture
def place(original: bytes, tmp_path: Path) -> Path:
    """A copy of the ledger, to be attacked."""
    place = tmp_path / "ledger.sqlite"
    place.write_bytes(original)
    return place


def test_a_whole_ledger_has_no_findings(place: Path) -> None:
    said = verified(place)
    assert said.report.sound
    assert (said.report.events, said.report.streams, said.report.counts) == (22, 3, {})


@pytest.mark.parametrize("sequence", range(1, 22))
def test_a_dropped_row_is_missing_at_its_sequence(place: Path, sequence: int) -> None:
    run_sql(place, f"DELETE FROM events WHERE sequence = {sequence}")
    said = verified(place)
    assert said.at(sequence) == ["events-missing"]
    assert min(finding.sequence for finding in said.findings) == sequence


def test_several_dropped_rows_are_told_together_with_the_positions_that_they_leave_open(place: Path) -> None:
    run_sql(place, "DELETE FROM events WHERE sequence BETWEEN 4 AND 10")
    said = verified(place)
    assert [(f.code, f.sequence, f.stream, f.position) for f in said.findings] == [
        ("events-missing", 4, "", 0),
        ("positions-missing", 11, OTHER_RUN, 3),
        ("positions-missing", 18, RUN, 8),
    ]
    assert "@4 to @10 are missing (7)" in said.findings[0].what
    assert "#1 to #2" in said.findings[1].what
    assert "#3 to #7" in said.findings[2].what


def without(place: Path, sequence: int) -> None:
    """Drop a row and close up the sequences of those that follow."""
    rewrite(
        place,
        lambda all_rows: (
            (number - (number > sequence), *row[1:]) for number, row in all_rows.items() if number != sequence
        ),
    )


@pytest.mark.parametrize("sequence", [number for number in range(2, 22) if number != LAST_OF_OTHER_RUN])
def test_a_dropped_row_is_found_although_the_sequences_were_closed_up(place: Path, sequence: int) -> None:
    dropped = rows(place)[sequence]
    without(place, sequence)
    following = min(number for number, row in rows(place).items() if row[1] == dropped[1] and row[2] > dropped[2])
    assert "positions-missing" in verified(place).at(following)


def test_a_ledger_whose_first_event_was_dropped_does_not_begin_as_one(place: Path) -> None:
    without(place, 1)
    assert verified(place).at(1) == ["ledger-start"]


def test_a_last_event_of_a_stream_that_was_dropped_without_a_gap_is_found_with_a_head_that_was_noted(
    place: Path,
) -> None:
    noted = Head(22, rows(place)[22][7])
    without(place, LAST_OF_OTHER_RUN)
    assert verified(place).report.sound
    assert verified(place, noted=noted).codes == ["head-missing"]


@pytest.mark.parametrize("pair", random.Random(1).sample(list(combinations(range(1, 23), 2)), 40))
def test_two_swapped_rows_are_found_at_the_first_of_them(place: Path, pair: tuple[int, int]) -> None:
    one, other = pair
    rewrite(place, lambda all_rows: (
        (number, *all_rows[{one: other, other: one}.get(number, number)][1:]) for number in all_rows
    ))  # fmt: skip
    said = verified(place)
    assert said.findings
    streams = [row[1] for row in rows(place).values() if row[0] in pair]
    between = [row[1] for number, row in rows(place).items() if one < number < other]
    if streams[0] == streams[1] or set(streams) & set(between):
        assert {"positions-missing", "event-reordered"} & set(said.codes)
    assert min(finding.sequence for finding in said.findings) >= one


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sequence", [1, 2, 9, 22])
def test_a_changed_column_is_found_at_its_row_and_nowhere_else(place: Path, column: str, sequence: int) -> None:
    value = f"{column} + 100" if column in ("position", "version", "command_index") else f"{column} || ' '"
    run_sql(place, f"UPDATE events SET {column} = {value} WHERE sequence = {sequence}")
    said = verified(place)
    changed = column in ("header", "payload", "digest")
    assert said.at(sequence) == ["event-changed" if changed else "columns-differ"]
    assert len(said.findings) == 1


@pytest.mark.parametrize("column", ["header", "payload", "digest"])
@pytest.mark.parametrize("length", [0, 1, 40])
def test_a_cut_row_is_found(place: Path, column: str, length: int) -> None:
    run_sql(place, f"UPDATE events SET {column} = substr({column}, 1, {length}) WHERE sequence = 12")
    said = verified(place)
    assert (said.codes, said.findings[0].sequence, said.findings[0].stream) == (["event-changed"], 12, OTHER_RUN)


@pytest.mark.parametrize("sequence", range(1, 23))
def test_a_copy_of_an_event_is_called_a_copy_of_it(place: Path, sequence: int) -> None:
    with raw(place) as connection:
        connection.execute(
            "INSERT INTO events SELECT 23, stream, 99, tag, version, header, payload, digest, 'x', 0 FROM events"
            " WHERE sequence = ?",
            (sequence,),
        )
    said = verified(place)
    assert said.codes == ["event-duplicated"]
    assert (said.findings[0].sequence, said.findings[0].what) == (23, f"it is a copy of @{sequence}")


@pytest.mark.parametrize("sequence", [number for number in range(2, 22) if number != LAST_OF_OTHER_RUN])
def test_an_event_that_was_forged_with_a_right_digest_is_found_by_the_next_of_its_stream(
    place: Path, sequence: int
) -> None:
    row = rows(place)[sequence]
    rewrite(place, lambda all_rows: ({**all_rows, sequence: forged(row, sequence, time="2031-01-01")}).values())
    said = verified(place)
    following = min(n for n, other in rows(place).items() if other[1] == row[1] and other[2] > row[2])
    assert said.at(following) == ["link-broken"]
    assert [finding.doubtful_from for finding in said.findings] == [sequence]


def test_a_last_event_that_was_forged_is_found_with_a_head_that_was_noted(place: Path) -> None:
    """Without one it cannot be: whoever can write the file can write its end. With the head, it is found."""
    noted = Head(22, rows(place)[22][7])
    rewrite(place, lambda all_rows: ({**all_rows, 22: forged(all_rows[22], 22, time="2031-01-01")}).values())
    assert verified(place).report.sound
    said = verified(place, noted=noted)
    assert (said.codes, said.findings[0].sequence, said.findings[0].position) == (["head-differs"], 22, 12)


def test_a_tail_that_was_dropped_whole_is_found_with_a_head_that_was_noted(place: Path) -> None:
    noted, older = Head(22, rows(place)[22][7]), Head(9, rows(place)[9][7])
    run_sql(place, "DELETE FROM events WHERE sequence > 15")
    assert verified(place).report.sound
    said = verified(place, noted=noted)
    assert said.codes == ["head-missing"]
    assert "ends at @15" in said.findings[0].what
    assert verified(place, noted=older).report.sound


@pytest.mark.parametrize("sequence", range(2, 22))
def test_an_event_that_was_put_in_between_with_right_digest_and_link_is_found(place: Path, sequence: int) -> None:
    """It takes the place of an event, and all that follow move on by one."""
    before = rows(place)
    row = before[sequence]
    put_in = forged(row, sequence, command="put-in", index=0, time="2030-06-01")

    def moved(number: int, other: tuple[Any, ...]) -> tuple[Any, ...]:
        position = other[2] + 1 if other[1] == row[1] and other[2] >= row[2] else other[2]
        return (number + 1, other[1], position, *other[3:])

    rewrite(place, lambda all_rows: [
        *(other for number, other in all_rows.items() if number < sequence),
        put_in,
        *(moved(number, other) for number, other in all_rows.items() if number >= sequence),
    ])  # fmt: skip
    said = verified(place)
    assert min(finding.sequence for finding in said.findings) == sequence + 1
    assert {"columns-differ", "event-reordered"} <= set(said.at(sequence + 1))


def test_an_event_of_another_ledger_is_foreign(place: Path) -> None:
    rewrite(place, lambda all_rows: [
        *all_rows.values(), forged(all_rows[22], 23, ledger="2" * 32, position=13, previous=all_rows[22][7], index=0,
                                   command="foreign"),
    ])  # fmt: skip
    said = verified(place)
    assert (said.codes, said.findings[0].sequence) == (["event-foreign"], 23)
    assert LEDGER_ID in said.findings[0].what


def test_an_event_that_no_program_wrote_is_undecodable(place: Path) -> None:
    rewrite(place, lambda all_rows: ({**all_rows, 22: forged(all_rows[22], 22, b'{"verdict":7}')}).values())
    said = verified(place)
    assert (said.codes, said.findings[0].sequence) == (["event-undecodable"], 22)


def test_events_of_a_newer_program_are_noted_and_are_no_damage(place: Path) -> None:
    rewrite(place, lambda all_rows: [
        *all_rows.values(),
        forged(all_rows[22], 23, b'{"new":1}', position=13, previous=all_rows[22][7], index=0, command="a", tag="new"),
    ])  # fmt: skip
    said = verified(place)
    assert said.report.sound
    assert [(note.code, note.count, note.sequence) for note in said.report.notes] == [("event-unknown", 1, 23)]


def test_a_clock_that_went_back_is_noted_and_is_no_damage(place: Path) -> None:
    rewrite(place, lambda all_rows: [
        *all_rows.values(),
        forged(all_rows[22], 23, position=13, previous=all_rows[22][7], index=0, command="a", time=EARLIER),
    ])  # fmt: skip
    said = verified(place)
    assert said.report.sound
    assert [(note.code, note.count, note.sequence) for note in said.report.notes] == [("clock-back", 1, 23)]


def test_a_run_that_does_not_begin_with_its_start_is_found(place: Path) -> None:
    first = rows(place)[2]
    rewrite(place, lambda all_rows: [
        *all_rows.values(),
        forged(first, 23, stream="20300104-000000-0000", command="a"),
        forged(all_rows[22], 24, stream="20300105-000000-0000", command="b", index=0, position=1, previous=""),
    ])  # fmt: skip
    said = verified(place)
    assert [(finding.code, finding.sequence) for finding in said.findings] == [("run-start", 23), ("run-start", 24)]


def test_a_ledger_that_is_created_twice_is_found(place: Path) -> None:
    rewrite(place, lambda all_rows: [
        *all_rows.values(), forged(all_rows[1], 23, position=2, previous=all_rows[1][7], command="again"),
    ])  # fmt: skip
    assert [(finding.code, finding.sequence) for finding in verified(place).findings] == [("ledger-start", 23)]


def test_the_end_of_one_stream_that_was_cut_out_is_found_by_the_command_that_wrote_it(place: Path) -> None:
    """Its sequences are closed up and its stream is whole, but the command that wrote it also wrote what follows."""
    rewrite(place, lambda all_rows: [
        *((number, *row[1:]) for number, row in all_rows.items()),
        forged(all_rows[22], 23, stream="20300104-000000-0000", command="both", index=1, position=1, previous=""),
    ])  # fmt: skip
    assert "command-broken" in verified(place).at(23)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DROP TRIGGER events_are_not_changed", "events_are_not_changed is missing"),
        ("DROP TRIGGER events_are_not_replaced", "events_are_not_replaced is missing"),
        ("CREATE INDEX more ON events (tag)", "more is not of this program"),
        ("CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END", "more is not of this program"),
        ("ALTER TABLE events RENAME COLUMN command_index TO place", "events was changed"),
    ],
)
def test_a_schema_that_was_changed_is_found(place: Path, statement: str, what: str) -> None:
    with raw(place) as connection:
        connection.execute(statement)
    said = verified(place)
    assert "schema-differs" in said.codes
    assert what in [finding.what for finding in said.findings]


@pytest.mark.parametrize("mark", ["application_id", "user_version"])
@pytest.mark.parametrize("value", [0, 2, 7])
def test_a_mark_of_the_file_that_was_changed_is_found(place: Path, mark: str, value: int) -> None:
    with raw(place) as connection:
        connection.execute(f"PRAGMA {mark} = {value}")
    said = verified(place)
    assert said.codes == ["format-differs"]
    assert mark in said.findings[0].what
