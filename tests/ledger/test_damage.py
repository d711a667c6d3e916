"""Whatever is changed in a ledger's file around the writer, the reader finds it, and says where."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from ledger.errors import LedgerDamaged, LedgerError
from ledger.record import RecordedEvent
from ledger.store.api import Links
from ledger.store.reader import Reader
from ledger.store.sqlite.recorder import make_row
from ledger.store.writer import Writer
from tests.ledger.stores import OTHER_RUN, RUN, edited, fill, on, place_file, raw, read, stamp, started


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger of nine events; run-1 has the sequences 2, 3, 5, 7 and 9, run-2 has 4, 6 and 8."""
    path = tmp_path_factory.mktemp("damage") / "ledger.db"
    with Writer.open(path, create=True) as writer:
        fill(writer)
    return path


@pytest.fixture(scope="module")
def original(ledger: Path) -> list[RecordedEvent]:
    """What a reading of the undamaged ledger gives."""
    return read(ledger)


def events_before(path: Path, stream: str | None) -> list[RecordedEvent]:
    """What a reading gives before it finds the damage."""
    events: list[RecordedEvent] = []
    with Reader.open(path) as reader, pytest.raises(LedgerDamaged):
        events.extend(reader.events(stream))
    return events


SWAP_3_AND_5 = (
    "CREATE TEMP TABLE swapped AS SELECT * FROM events WHERE sequence IN (3, 5)",
    (
        "UPDATE events SET (header, payload, digest) = (SELECT header, payload, digest FROM swapped WHERE"
        " swapped.sequence = 8 - events.sequence) WHERE sequence IN (3, 5)"
    ),
)

# What somebody does to event @5, which is run-1 #3, and the place where a reading of the whole ledger and one of the
# stream notice it.
DAMAGES = {
    "the payload": (['UPDATE events SET payload = \'{"step":"x"}\' WHERE sequence = 5'], 5, 3),
    "a blank in the payload": (["UPDATE events SET payload = payload || ' ' WHERE sequence = 5"], 5, 3),
    "the header": (["UPDATE events SET header = replace(header, 'someone', 'nobody') WHERE sequence = 5"], 5, 3),
    "the digest": (["UPDATE events SET digest = replace(digest, substr(digest, 1, 1), 'g') WHERE sequence = 5"], 5, 3),
    "an empty digest": (["UPDATE events SET digest = '' WHERE sequence = 5"], 5, 3),
    "the tag": (["UPDATE events SET tag = 'run-finished' WHERE sequence = 5"], 5, 3),
    "the version": (["UPDATE events SET version = 2 WHERE sequence = 5"], 5, 3),
    "the position": (["UPDATE events SET position = 99 WHERE sequence = 5"], 5, 4),
    "the command": (["UPDATE events SET command = 'x' WHERE sequence = 5"], 5, 3),
    "the index in the command": (["UPDATE events SET command_index = 9 WHERE sequence = 5"], 5, 3),
    "the stream": (["UPDATE events SET stream = 'run-3' WHERE sequence = 5"], 5, 4),
    "a row that was removed": (["DELETE FROM events WHERE sequence = 5"], 6, 4),
    "two rows that were swapped": (list(SWAP_3_AND_5), 3, 2),
    "bytes that are not text": (["UPDATE events SET tag = CAST(x'ff' AS TEXT) WHERE sequence = 5"], 5, 3),
}


@pytest.mark.parametrize("page_size", [1, 3, 200])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_found_and_its_place_is_named(ledger: Path, damage: str, page_size: int) -> None:
    statements, sequence, position = DAMAGES[damage]
    copy = edited(ledger, *statements)
    with Reader.open(copy) as reader:
        with pytest.raises(LedgerDamaged) as caught:
            list(reader.events(page_size=page_size))
        assert caught.value.sequence == sequence
        with pytest.raises(LedgerDamaged) as caught:
            list(reader.events(RUN, page_size=page_size))
        assert (caught.value.stream, caught.value.position) == (RUN, position)
    untouched, untouched_in_run = (2, 1) if damage == "two rows that were swapped" else (4, 2)
    assert events_before(copy, None) == read(ledger)[:untouched]
    assert events_before(copy, RUN) == read(ledger, RUN)[:untouched_in_run]


@pytest.mark.parametrize("page_size", [1, 2, 200])
def test_an_event_that_was_moved_to_another_sequence_is_found(ledger: Path, page_size: int) -> None:
    copy = edited(ledger, "UPDATE events SET sequence = 99 WHERE sequence = 5")
    with Reader.open(copy) as reader:
        for stream, sequence in ((None, 6), (RUN, 7)):
            with pytest.raises(LedgerDamaged, match="missing or moved") as caught:
                list(reader.events(stream, page_size=page_size))
            assert caught.value.sequence == sequence


def test_an_added_copy_of_an_event_is_found(ledger: Path) -> None:
    copy = edited(
        ledger,
        "INSERT INTO events SELECT 10, stream, 6, tag, version, header, payload, digest, 'x', 0"
        " FROM events WHERE sequence = 9",
    )
    assert events_before(copy, None) == read(ledger)
    assert events_before(copy, RUN) == read(ledger, RUN)


def rewritten(path: Path, sequence: int, **changes: Any) -> Path:
    """A copy in which an event was replaced by one that is right in itself: its header with changes, a new digest."""
    event = read(path)[sequence - 1]
    row, _ = make_row(sequence, structs.replace(event.header, **changes), b'{"step":"forged"}')
    copy = edited(path, f"DELETE FROM events WHERE sequence = {sequence}")
    with raw(copy) as connection:
        connection.execute(f"INSERT INTO events VALUES ({','.join('?' * len(row))})", row)
    return copy


def test_an_event_that_was_forged_with_a_right_digest_breaks_the_link_of_the_next(ledger: Path) -> None:
    copy = rewritten(ledger, 5)
    assert [event.sequence for event in events_before(copy, None)] == [1, 2, 3, 4, 5, 6]
    assert [event.sequence for event in events_before(copy, RUN)] == [2, 3, 5]
    with Reader.open(copy) as reader, pytest.raises(LedgerDamaged, match="link"):
        list(reader.events(RUN, after=3))


def test_a_last_event_that_was_forged_is_found_by_who_has_read_it_before(ledger: Path) -> None:
    copy = rewritten(ledger, 9)
    links: Links = {}
    with Reader.open(ledger) as reader:
        list(reader.events(links=links))
    for stream, after in ((None, 9), (RUN, 5)):
        with Reader.open(copy) as reader, pytest.raises(LedgerDamaged, match="read here before"):
            list(reader.events(stream, after=after, links=links))


def test_an_end_that_was_cut_off_is_found_by_who_has_read_it_before(ledger: Path) -> None:
    copy = edited(ledger, "DELETE FROM events WHERE sequence = 9")
    links: Links = {}
    with Reader.open(ledger) as reader:
        list(reader.events(links=links))
    for stream, after in ((None, 9), (RUN, 5)):
        with Reader.open(copy) as reader, pytest.raises(LedgerDamaged, match="gone"):
            list(reader.events(stream, after=after, links=links))


def test_an_event_of_another_ledger_is_found(ledger: Path) -> None:
    copy = rewritten(ledger, 9, ledger="2" * 32)
    assert len(events_before(copy, RUN)) == 4
    with Reader.open(copy) as reader, pytest.raises(LedgerDamaged, match="another ledger"):
        list(reader.events())


@pytest.mark.parametrize("page_size", [1, 2, 200])
def test_a_stream_whose_beginning_was_removed_is_found_in_every_page(ledger: Path, page_size: int) -> None:
    """The sequences are closed up, so that only the stream itself can tell."""
    moves = [f"UPDATE events SET sequence = {number - 1} WHERE sequence = {number}" for number in range(5, 10)]
    copy = edited(ledger, "DELETE FROM events WHERE sequence = 4", *moves)
    with Reader.open(copy) as reader:
        for stream in (None, OTHER_RUN):
            with pytest.raises(LedgerDamaged, match="#0 is missing") as caught:
                list(reader.events(stream, page_size=page_size))
            assert (caught.value.stream, caught.value.position) == (OTHER_RUN, 2)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM events WHERE sequence = 1", "UPDATE events SET payload = '{}' WHERE sequence = 1"]
)
def test_a_ledger_without_its_first_event_gives_nothing(ledger: Path, statement: str) -> None:
    copy = edited(ledger, statement)
    assert events_before(copy, None) == events_before(copy, RUN) == []
    with Writer.open(copy) as writer, pytest.raises(LedgerDamaged):
        writer.append(on("run-9", started()), {"run-9": 0}, stamp("late"))


def test_a_ledger_that_does_not_begin_at_the_beginning_gives_nothing(ledger: Path) -> None:
    copy = edited(ledger, "UPDATE events SET sequence = sequence + 100", "UPDATE events SET sequence = sequence - 99")
    assert events_before(copy, None) == events_before(copy, RUN) == []


def test_a_command_of_which_an_event_was_removed_is_not_given_in_part(ledger: Path) -> None:
    for command, sequence in (("fill-3", 5), ("fill-3", 6), ("fill-4", 8)):
        copy = edited(ledger, f"DELETE FROM events WHERE sequence = {sequence}")
        with Reader.open(copy) as reader, pytest.raises(LedgerDamaged):
            reader.by_command(command)


@pytest.mark.parametrize("column", ["payload", "header", "digest", "tag", "command"])
def test_nothing_is_appended_to_a_stream_whose_last_event_is_damaged(ledger: Path, column: str) -> None:
    copy = edited(ledger, f"UPDATE events SET {column} = {column} || ' ' WHERE sequence = 9")
    with Writer.open(copy) as writer:
        with pytest.raises(LedgerDamaged) as caught:
            writer.append(on(RUN, started()), {RUN: 5}, stamp("late"))
        assert (caught.value.stream, caught.value.position, caught.value.sequence) == (RUN, 5, 9)
        writer.append(on(OTHER_RUN, started()), {OTHER_RUN: 3}, stamp("elsewhere"))


def test_a_file_whose_table_is_another_one_is_damaged(ledger: Path) -> None:
    copy = edited(ledger)
    with raw(copy) as connection:
        connection.execute("ALTER TABLE events RENAME COLUMN payload TO body")
    with Reader.open(copy) as reader, pytest.raises(LedgerDamaged):
        list(reader.events())
    with Writer.open(copy) as writer, pytest.raises(LedgerDamaged):
        writer.append(on(RUN, started()), {RUN: 5}, stamp("late"))


@pytest.fixture(scope="module")
def content(ledger: Path) -> bytes:
    """The bytes of a file in which nothing stands in the way of a change."""
    return edited(ledger).read_bytes()


def test_a_failure_that_quotes_bytes_of_the_file_which_are_no_text_is_damage(ledger: Path) -> None:
    copy = edited(ledger)
    with raw(copy) as connection:
        connection.execute("CREATE TABLE extra (x)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE' WHERE name = 'extra'")
    for opening in (Reader.open, Writer.open):
        with pytest.raises(LedgerDamaged, match="not a readable ledger"):
            opening(copy)


def test_streams_in_another_order_than_ours_are_damage_and_no_endless_search(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Writer.open(path, create=True) as writer:
        fill(writer)
        writer.append([*on("a", started()), *on("B", started())], {"a": 0, "B": 0}, stamp("names"))
    with raw(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'TEXT NOT NULL', 'TEXT COLLATE NOCASE NOT NULL')"
        )
    with raw(path) as connection:
        connection.execute("REINDEX")
    with Reader.open(path) as reader, pytest.raises(LedgerDamaged, match="out of order"):
        reader.streams()


def assert_prefix_or_failure(damaged: Path, original: list[RecordedEvent]) -> None:
    """A reading gives the original events, or fewer of them and an expected failure; never others."""
    events: list[RecordedEvent] = []
    try:
        with Reader.open(damaged) as reader:
            for event in reader.events():
                events.append(event)
    except LedgerError:
        assert events == original[: len(events)]
    else:
        assert events == original


def assert_summaries_or_failures(damaged: Path) -> None:
    """Every other question is answered, or fails as expected."""
    for question in (
        Reader.streams,
        Reader.head,
        Reader.identity,
        lambda reader: reader.position(RUN),
        lambda reader: reader.by_command("fill-3"),
        lambda reader: list(reader.events(RUN, after=2)),
    ):
        with suppress(LedgerError), Reader.open(damaged) as reader:
            question(reader)
    with suppress(LedgerError), Writer.open(damaged) as writer:
        writer.append(on(RUN, started()), {RUN: 5}, stamp("late"))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300, deadline=None)
def test_bytes_that_rot_in_the_file_are_never_read_as_events(
    ledger: Path, content: bytes, original: list[RecordedEvent], data: st.DataObject
) -> None:
    rotten = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        rotten[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    place = place_file(ledger.with_name("rotten.db"), rotten)
    assert_prefix_or_failure(place, original)
    assert_summaries_or_failures(place)


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=50, deadline=None)
def test_a_file_that_was_cut_short_is_never_read_as_whole(
    ledger: Path, content: bytes, original: list[RecordedEvent], share: float
) -> None:
    cut = content[: int(share * len(content))]
    assert_prefix_or_failure(place_file(ledger.with_name("cut.db"), cut), original)
