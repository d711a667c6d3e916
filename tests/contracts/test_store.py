"""What every store promises, in a file and in memory."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ledger.errors import Conflict, LedgerDamaged, LedgerMissing
from ledger.events import STREAM, StepStarted, Unknown
from ledger.record import NewEvent
from ledger.store.api import CommandRepeated, Links, Place
from ledger.store.reader import Head, Reader, StreamHead
from ledger.store.writer import Writer
from tests.ledger.stores import OTHER_RUN, RUN, begin, created, fill, newer_program, on, raw, read, stamp, started


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a ledger may be; there is none yet."""
    return tmp_path / "new" / "ledger.db" if request.param == "file" else f"memory:{uuid4().hex}"


@pytest.fixture
def writer(place: Place) -> Iterator[Writer]:
    """A writer of a new ledger, without its first event."""
    with Writer.open(place, create=True) as writer:
        yield writer


@pytest.fixture
def filled(writer: Writer) -> Writer:
    """A writer of a ledger with nine events in three streams."""
    fill(writer)
    return writer


def test_events_come_back_in_order_and_counted_without_gaps(filled: Writer, place: Place) -> None:
    events = read(place)
    assert [event.sequence for event in events] == list(range(1, 10))
    for stream, length in ((STREAM, 1), (RUN, 5), (OTHER_RUN, 3)):
        of_stream = [event for event in events if event.header.stream == stream]
        assert [event.header.position for event in of_stream] == list(range(1, length + 1))
        assert read(place, stream) == of_stream


def test_what_append_returns_is_what_is_read(writer: Writer, place: Place) -> None:
    begin(writer)
    recorded = writer.append(on(RUN, started("a"), started("b")), {RUN: 0}, stamp())
    assert recorded == read(place, RUN)
    assert [event.event for event in recorded] == [started("a"), started("b")]


def test_the_header_says_who_when_and_where(writer: Writer, place: Place) -> None:
    first = begin(writer)
    one, two = writer.append(on(RUN, started(), started()), {RUN: 0}, stamp("command-7"))
    assert (one.header.previous, two.header.previous) == ("", one.digest)
    assert (one.header.index, two.header.index) == (0, 1)
    assert {one.header.command, two.header.command} == {"command-7"}
    assert one.header.ledger == two.header.ledger == first.header.ledger == created().ledger_id
    assert (one.header.time, one.header.actor) == (stamp().time, stamp().actor)
    assert (one.header.tag, one.header.version) == ("step-started", 1)


def test_a_stream_that_has_moved_on_is_a_conflict_and_nothing_is_written(filled: Writer, place: Place) -> None:
    before = read(place)
    for expected in (0, 4, 6):
        with pytest.raises(Conflict) as caught:
            filled.append(on(RUN, started()), {RUN: expected}, stamp("late"))
        assert (caught.value.stream, caught.value.expected, caught.value.actual) == (RUN, expected, 5)
    assert read(place) == before


def test_a_conflict_in_one_stream_keeps_back_the_events_of_the_other(filled: Writer, place: Place) -> None:
    before = read(place)
    with pytest.raises(Conflict, match=OTHER_RUN):
        filled.append([*on(RUN, started()), *on(OTHER_RUN, started())], {RUN: 5, OTHER_RUN: 2}, stamp("late"))
    assert read(place) == before


def test_a_stream_that_is_only_watched_guards_the_others(filled: Writer, place: Place) -> None:
    with pytest.raises(Conflict, match=STREAM):
        filled.append(on(RUN, started()), {RUN: 5, STREAM: 0}, stamp("guarded"))
    filled.append(on(RUN, started()), {RUN: 5, STREAM: 1, "run-of-nobody": 0}, stamp("guarded"))
    assert len(read(place, RUN)) == 6


def test_every_stream_that_is_written_has_to_be_named(filled: Writer) -> None:
    with pytest.raises(ValueError, match=OTHER_RUN):
        filled.append([*on(RUN, started()), *on(OTHER_RUN, started())], {RUN: 5}, stamp("unnamed"))


def test_appending_nothing_writes_nothing(filled: Writer, place: Place) -> None:
    assert filled.append([], {RUN: 5}, stamp("nothing")) == []
    assert len(read(place)) == 9


def test_a_repeated_command_is_refused_and_its_events_can_be_looked_up(filled: Writer, place: Place) -> None:
    with pytest.raises(CommandRepeated) as caught:
        filled.append(on(RUN, started()), {RUN: 5}, stamp("fill-3"))
    assert isinstance(caught.value, Conflict)
    assert "fill-3" in caught.value.message
    with Reader.open(place) as reader:
        assert [event.sequence for event in reader.by_command("fill-3")] == [5, 6, 7]
        assert reader.by_command("never") == []
    assert len(read(place)) == 9


@pytest.mark.parametrize("events", [on(RUN, started()), on(RUN, created()), [*on(STREAM, started())], []])
def test_a_ledger_begins_with_its_creation(writer: Writer, place: Place, events: list[NewEvent]) -> None:
    with pytest.raises(ValueError, match="ledger-created"):
        writer.append(events, {RUN: 0, STREAM: 0}, stamp())
    assert read(place) == []


def test_an_event_that_could_not_be_read_back_is_not_written(filled: Writer, place: Place) -> None:
    with pytest.raises(ValueError, match="step-started"):
        filled.append(on(RUN, started(), StepStarted(step=7)), {RUN: 5}, stamp("wrong"))  # type: ignore[arg-type]
    assert len(read(place)) == 9


def test_a_ledger_can_be_opened_again_and_goes_on(filled: Writer, place: Place) -> None:
    with Writer.open(place) as second:
        recorded = second.append(on(RUN, started()), {RUN: 5}, stamp("second"))
    third = filled.append(on(RUN, started()), {RUN: 6}, stamp("third"))
    assert [event.sequence for event in (*recorded, *third)] == [10, 11]
    assert read(place)[-2:] == [*recorded, *third]


def test_opening_for_creation_twice_keeps_what_is_there(filled: Writer, place: Place) -> None:
    before = read(place)
    with Writer.open(place, create=True):
        assert read(place) == before


def test_a_reader_beside_a_writer_sees_what_is_added(filled: Writer, place: Place) -> None:
    with Reader.open(place) as reader:
        pages = reader.pages(RUN, page_size=2)
        assert len(next(pages)) == 2
        version = reader.data_version()
        assert reader.data_version() == version
        filled.append(on(RUN, started("late")), {RUN: 5}, stamp("late"))
        assert reader.data_version() != version
        assert [event.header.position for page in pages for event in page] == [3, 4, 5, 6]


@pytest.mark.parametrize("page_size", [1, 2, 3, 9, 1000])
def test_pages_of_every_size_hold_the_same_events(filled: Writer, place: Place, page_size: int) -> None:
    with Reader.open(place) as reader:
        pages = list(reader.pages(page_size=page_size))
        assert [event for page in pages for event in page] == list(reader.events())
        assert [len(page) for page in pages[:-1]] == [page_size] * (len(pages) - 1)


@pytest.mark.parametrize("stream", [None, RUN])
@pytest.mark.parametrize("page_size", [1, 2, 1000])
def test_a_reading_from_and_to_a_place_is_that_part_of_the_whole(
    filled: Writer, place: Place, stream: str | None, page_size: int
) -> None:
    everything = read(place, stream)
    with Reader.open(place) as reader:
        for after in range(len(everything) + 2):
            for until in (None, *range(len(everything) + 2)):
                events = list(reader.events(stream, after, until, page_size))
                assert events == everything[after:until]


@pytest.mark.parametrize("stream", [None, RUN])
def test_a_reading_that_is_taken_up_again_with_its_links_is_complete(
    filled: Writer, place: Place, stream: str | None
) -> None:
    links: Links = {}
    with Reader.open(place) as reader:
        events = list(reader.events(stream, until=3, links=links))
        events += reader.events(stream, after=3, until=4, links=links)
        filled.append(on(RUN, started("late")), {RUN: 5}, stamp("late"))
        events += [event for page in reader.pages(stream, after=4, links=links) for event in page]
        assert events == read(place, stream)
        assert links[RUN] == (6, events[-1].digest)


@pytest.mark.parametrize("stream", [None, RUN])
def test_a_reading_that_was_broken_off_can_be_taken_up_again(filled: Writer, place: Place, stream: str | None) -> None:
    for taken in range(1, 5):
        for counted in (taken - 1, taken):
            links: Links = {}
            with Reader.open(place) as reader:
                for _ in zip(range(taken), reader.events(stream, links=links), strict=False):
                    pass
                assert list(reader.events(stream, after=counted, links=links)) == read(place, stream)[counted:]


def test_a_reading_with_links_of_another_ledger_is_refused(filled: Writer, place: Place) -> None:
    with Reader.open(place) as reader:
        for stream in (None, RUN):
            after = 5 if stream else 9
            with pytest.raises(LedgerDamaged):
                list(reader.events(stream, after=after, links={RUN: (5, "f" * 64)}))
            with pytest.raises(LedgerDamaged):
                list(reader.events(stream, after=50, links={RUN: (50, "f" * 64)}))


def test_the_summaries_of_a_ledger_are_those_of_its_events(filled: Writer, place: Place) -> None:
    events = read(place)
    with Reader.open(place) as reader:
        assert reader.head() == Head(9, events[-1].digest)
        assert reader.streams() == [StreamHead(STREAM, 1, 1), StreamHead(RUN, 5, 9), StreamHead(OTHER_RUN, 3, 8)]
        assert (reader.position(RUN), reader.position("run-of-nobody")) == (5, 0)
        assert reader.identity() == created()
        assert reader.format_version == 1


def test_an_empty_ledger_can_be_read(writer: Writer, place: Place) -> None:
    with Reader.open(place) as reader:
        assert (list(reader.events()), list(reader.events(RUN)), reader.streams()) == ([], [], [])
        assert (reader.head(), reader.identity(), reader.position(RUN)) == (Head(0, ""), None, 0)
        begin(writer)
        assert [event.event for event in reader.events()] == [created()]


def test_an_event_of_a_newer_program_is_read_as_unknown(filled: Writer, place: Place) -> None:
    with newer_program(StepStarted):
        filled.append(on(RUN, started("new")), {RUN: 5}, stamp("newer"))
    assert read(place)[-1].event == Unknown(tag="step-started", version=2, payload='{"step":"new"}')


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}' WHERE sequence = 3",
        "UPDATE events SET digest = digest",
        "DELETE FROM events WHERE sequence = 9",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE sequence = 9",
        (
            "REPLACE INTO events SELECT 10, stream, position, tag, version, header, payload, digest, 'x', 0"
            " FROM events WHERE sequence = 9"
        ),
        (
            "REPLACE INTO events SELECT 10, 'x', 1, tag, version, header, payload, digest, command, command_index"
            " FROM events WHERE sequence = 9"
        ),
        (
            "REPLACE INTO events SELECT 5, 'x', 1, tag, version, header, payload, digest, 'x', 0"
            " FROM events WHERE sequence = 9"
        ),
        "INSERT OR IGNORE INTO events SELECT * FROM events WHERE sequence = 1",
        "INSERT INTO events SELECT * FROM events WHERE sequence = 1 ON CONFLICT DO UPDATE SET payload = '{}'",
    ],
)
def test_nothing_is_changed_removed_or_replaced_by_sql(filled: Writer, place: Place, statement: str) -> None:
    before = read(place)
    with pytest.raises(sqlite3.IntegrityError, match="events are never"), raw(place) as connection:
        connection.execute(statement)
    assert read(place) == before


def test_where_there_is_no_ledger_none_is_made_unless_asked(place: Place) -> None:
    for opening in (Reader.open, Writer.open):
        with pytest.raises(LedgerMissing):
            opening(place)
    assert not isinstance(place, Path) or not place.parent.exists()


def test_streams_are_found_by_the_beginning_of_their_name(writer: Writer, place: Place) -> None:
    begin(writer)
    for number, stream in enumerate(("b-2", "a-1", "b-1", "b", "c")):
        writer.append(on(stream, started()), {stream: 0}, stamp(f"command {number}"))
    with Reader.open(place) as reader:
        assert [head.stream for head in reader.streams("b")] == ["b-2", "b-1", "b"]
        assert [head.stream for head in reader.streams("b-1")] == ["b-1"]
        assert reader.streams("b-1x") == reader.streams("x") == []
        assert len(reader.streams()) == 6


def test_the_newest_run_is_the_one_that_began_last(writer: Writer, place: Place) -> None:
    with Reader.open(place) as reader:
        assert reader.newest_run() is None
        begin(writer)
        assert reader.newest_run() is None
        writer.append(on("z", started()), {"z": 0}, stamp("first"))
        writer.append(on("a", started()), {"a": 0}, stamp("second"))
        writer.append(on("z", started()), {"z": 1}, stamp("third"))
        assert reader.newest_run() == "a"


def stored(place: Place, stream: str | None = None) -> list[tuple[bytes, bytes]]:
    """Header and payload of every event, as they are stored."""
    condition = "" if stream is None else f"WHERE stream = '{stream}'"
    with raw(place) as connection:
        rows = connection.execute(f"SELECT header, payload FROM events {condition} ORDER BY sequence").fetchall()
    return [(header.encode(), payload.encode()) for header, payload in rows]


def test_stored_events_are_taken_over_byte_for_byte(filled: Writer, place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Writer.open(copy, create=True) as writer:
        writer.append_stored(stored(place), {STREAM: 0, RUN: 0, OTHER_RUN: 0})
        assert read(copy) == read(place)
        assert stored(copy) == stored(place)
        writer.append(on(RUN, started()), {RUN: 5}, stamp("more"))


def test_a_run_that_is_taken_over_gets_sequences_of_its_own(filled: Writer, place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Writer.open(copy, create=True) as writer:
        begin(writer)
        writer.append_stored(stored(place, OTHER_RUN), {OTHER_RUN: 0})
    assert [(one.sequence, one.digest) for one in read(copy, OTHER_RUN)] == [
        (number, one.digest) for number, one in enumerate(read(place, OTHER_RUN), start=2)
    ]


def test_stored_events_that_do_not_link_are_refused_together(filled: Writer, place: Place, tmp_path: Path) -> None:
    events = stored(place, RUN)
    changed = [*events[:1], (events[1][0], b'{"step":"forged"}'), *events[2:]]
    foreign = [(header.replace(b"1" * 32, b"2" * 32), payload) for header, payload in events]
    with Writer.open(tmp_path / "copy.db", create=True) as writer:
        begin(writer)
        for wrong in (events[1:], [events[1], events[0]], [*events, events[-1]], changed, foreign, [(b"{", b"{}")]):
            with pytest.raises(LedgerDamaged):
                writer.append_stored(wrong, {RUN: 0})
        with pytest.raises(Conflict):
            writer.append_stored(events, {RUN: 1})
        with pytest.raises(ValueError, match="not given"):
            writer.append_stored(events, {OTHER_RUN: 0})
        assert len(read(tmp_path / "copy.db")) == 1


def test_a_ledger_cannot_begin_with_the_events_of_a_run(filled: Writer, place: Place, tmp_path: Path) -> None:
    with (
        Writer.open(tmp_path / "copy.db", create=True) as writer,
        pytest.raises(ValueError, match="ledger-created"),
    ):
        writer.append_stored(stored(place, RUN), {RUN: 0})
