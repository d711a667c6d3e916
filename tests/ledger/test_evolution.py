"""Old and new: data of an older program in this one, data of a newer one in this one, on every way to read.

An older program is played by data that it would have stored, a newer one by types that are registered for a moment.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from msgspec import structs

from commands.effects.clock import Clock
from commands.effects.history.cache import open_history
from commands.loop import Loop
from commands.messages import StopRun
from commands.render.events import event_line
from ledger import codec, open_ledger
from ledger.archive import check_archive
from ledger.codec import Fields, encode_header
from ledger.errors import LedgerDamaged, NewerFormat
from ledger.events import FORMAT_VERSION, TAGS, TYPES, Event, StepStarted, Unknown
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding, Report
from ledger.proof.verify import verify
from ledger.record import Header, NewEvent, event_digest
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.tables import CaseTable, decode_document
from ledger.transfer import export_run, import_run
from projections import view_run
from tests.ledger.stores import on, raw, stamp
from tests.support.ledgers import ACTOR, make_ledger

RUN = "run-1"
TAG, VERSION = "step-started", 1
Change = Callable[[Header, Fields], tuple[Header, Fields]]


class StepStartedBefore(Event, frozen=True, kw_only=True):
    """The start of a step, as an older program had it."""

    name: str


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that this program has written."""
    return make_ledger(tmp_path_factory.mktemp("present"), RUN)


def rewritten(directory: Path, target: Path, change: Change) -> Path:
    """The same ledger, had another program written its steps: with digests and links that fit."""
    shutil.copytree(directory / EVIDENCE, target / EVIDENCE)
    last: dict[str, str] = {}

    def stored() -> Iterator[tuple[bytes, bytes]]:
        with raw(directory / LEDGER_FILE) as connection:
            rows = connection.execute("SELECT header, payload FROM events ORDER BY sequence").fetchall()
        for header_text, payload_text in rows:
            header, fields = msgspec.json.decode(header_text, type=Header), msgspec.json.decode(payload_text)
            if header.tag == TAG:
                header, fields = change(header, fields)
            header = structs.replace(header, previous=last.get(header.stream, ""))
            bytes_pair = encode_header(header), msgspec.json.encode(fields, order="deterministic")
            last[header.stream] = event_digest(*bytes_pair)
            yield bytes_pair

    with Writer.open(target / LEDGER_FILE, create=True) as writer:
        writer.append_stored(stored(), {"ledger": 0, RUN: 0})
    return target


def old_shape(header: Header, fields: Fields) -> tuple[Header, Fields]:
    """What an older program stored: it called the field by another name."""
    return header, {"name": fields["step"]}


def of_next_version(header: Header, fields: Fields) -> tuple[Header, Fields]:
    """What a newer program stores: a later version of the tag."""
    return structs.replace(header, version=VERSION + 1), {"stage": fields["step"]}


def of_new_tag(header: Header, fields: Fields) -> tuple[Header, Fields]:
    """What a newer program stores: a tag that there is not yet."""
    return structs.replace(header, tag="stage-began"), fields


def with_new_field(header: Header, fields: Fields) -> tuple[Header, Fields]:
    """What a newer program stores: a field more, which has a default, under the same version."""
    return header, fields | {"why": "asked"}


@contextmanager
def registered(types: dict[str, type[Event]], tags: dict[type[Event], tuple[str, int]]) -> Iterator[None]:
    """Within it, this is a program that knows these types besides."""
    with patch.dict(TYPES, types), patch.dict(TAGS, tags):
        codec._reader.cache_clear()
        yield
    codec._reader.cache_clear()


@contextmanager
def later_program(upcast: Callable[[Fields], Fields] = lambda fields: {"step": fields["name"]}) -> Iterator[None]:
    """This program, had it changed the shape of its steps since, with the step from the old shape to the new."""
    with registered({}, {StepStarted: (TAG, VERSION + 1)}), patch.dict(codec.UPCASTERS, {(TAG, VERSION): upcast}):
        yield


def read_events(directory: Path, scratch: Path) -> list[Event]:
    """By the reader."""
    with Reader.open(directory / LEDGER_FILE) as reader:
        return [one.event for one in reader.events(RUN)]


def read_interface(directory: Path, scratch: Path) -> list[Event]:
    """By the interface for other programs."""
    with open_ledger(directory) as ledger:
        return [one.event for one in ledger.events(RUN)]


def read_archive(directory: Path, scratch: Path) -> list[Event]:
    """In a ledger that the run was imported into."""
    export_run(directory, RUN, scratch / "a.tar")
    import_run(scratch / "a.tar", scratch / "imported")
    return read_events(scratch / "imported", scratch)


READ_PATHS = [read_events, read_interface, read_archive]


def report(directory: Path) -> tuple[Report, list[Finding]]:
    """What a verification says."""
    found: list[Finding] = []
    return verify(directory / LEDGER_FILE, directory / EVIDENCE, found.append), found


def unknown_in_history(directory: Path) -> list[tuple[str, int]]:
    """The status of each run in the history, and how many of its events are not known."""
    evidence = EvidenceStore(directory / EVIDENCE)

    def load(digest: str) -> CaseTable:
        return decode_document(evidence.get(digest), CaseTable)

    with Reader.open(directory / LEDGER_FILE) as reader, open_history(directory, reader, load) as history:
        return [(row.status, row.unknown_events) for row in history.runs()]


def stored_rows(directory: Path) -> list[Any]:
    """The rows of the ledger."""
    with raw(directory / LEDGER_FILE) as connection:
        return connection.execute("SELECT * FROM events ORDER BY sequence").fetchall()


@pytest.mark.parametrize("read", READ_PATHS)
def test_old_data_is_brought_up_to_date_wherever_it_is_read(
    present: Path, tmp_path: Path, read: Callable[[Path, Path], list[Event]]
) -> None:
    expected = read_events(present, tmp_path)
    with registered({TAG: StepStartedBefore}, {StepStartedBefore: (TAG, VERSION)}):
        old = rewritten(present, tmp_path / "old", old_shape)
    before = stored_rows(old)
    with later_program():
        assert read(old, tmp_path) == expected
        assert StepStarted(step="gate") in expected
        assert report(old)[1] == []
        assert [note.code for note in report(old)[0].notes] == []
        assert unknown_in_history(old) == [("finished", 0)]
    assert stored_rows(old) == before


def test_old_data_that_nothing_brings_up_to_date_is_damage_and_not_silence(present: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(present, tmp_path / "copy"))
    with registered({}, {StepStarted: (TAG, VERSION + 1)}), pytest.raises(LedgerDamaged, match="version 1"):
        read_events(copy, tmp_path)


def test_an_archive_keeps_the_old_bytes(present: Path, tmp_path: Path) -> None:
    export_run(present, RUN, tmp_path / "before.tar")
    with later_program(lambda fields: fields):
        export_run(present, RUN, tmp_path / "after.tar")
    assert (tmp_path / "after.tar").read_bytes() == (tmp_path / "before.tar").read_bytes()


@pytest.mark.parametrize("change", [of_next_version, of_new_tag])
def test_new_data_is_shown_and_nothing_is_decided_on_it(present: Path, tmp_path: Path, change: Change) -> None:
    new = rewritten(present, tmp_path / "new", change)
    events = read_events(new, tmp_path)
    unknown = next(event for event in events if isinstance(event, Unknown))
    assert unknown.payload in ('{"stage":"gate"}', '{"step":"gate"}')
    with Reader.open(new / LEDGER_FILE) as reader:
        lines = [event_line(one) for one in reader.events(RUN)]
    assert sum("newer version" in line for line in lines) == 1
    told, found = report(new)
    assert (told.sound, found) == (True, [])
    assert [note.code for note in told.notes] == ["event-unknown"]
    assert unknown_in_history(new) == [("finished", 1)]
    for refused in (read_interface, read_archive):
        with pytest.raises(NewerFormat):
            refused(new, tmp_path)


@pytest.mark.parametrize("change", [of_next_version, of_new_tag])
def test_an_older_program_does_not_write_behind_new_data(present: Path, tmp_path: Path, change: Change) -> None:
    new = rewritten(present, tmp_path / "new", change)
    before = stored_rows(new)
    with Reader.open(new / LEDGER_FILE) as reader, Writer.open(new / LEDGER_FILE) as writer:
        loop = Loop(reader, writer, EvidenceStore(new / EVIDENCE), Clock(), ACTOR)
        with pytest.raises(NewerFormat):
            loop.handle(StopRun(stream=RUN, reason="asked"))
    assert stored_rows(new) == before


def test_a_field_that_was_added_is_no_obstacle_in_either_direction(present: Path, tmp_path: Path) -> None:
    class StepStartedWhy(Event, frozen=True, kw_only=True):
        step: str
        why: str = "not told"

    new = rewritten(present, tmp_path / "new", with_new_field)
    assert read_events(new, tmp_path) == read_events(present, tmp_path)
    with registered({TAG: StepStartedWhy}, {StepStartedWhy: (TAG, VERSION)}):
        assert StepStartedWhy(step="gate", why="asked") in read_events(new, tmp_path)
        assert StepStartedWhy(step="gate") in read_events(present, tmp_path)


def test_what_a_newer_program_wrote_is_whole_again_when_this_one_is_newer(present: Path, tmp_path: Path) -> None:
    new = rewritten(present, tmp_path / "new", of_new_tag)
    assert unknown_in_history(new) == [("finished", 1)]

    class StageBegan(Event, frozen=True, kw_only=True):
        step: str

    with registered({"stage-began": StageBegan}, {StageBegan: ("stage-began", 1)}):
        assert StageBegan(step="gate") in read_interface(new, tmp_path)
        assert unknown_in_history(new) == [("finished", 0)]


def test_a_newer_archive_is_proved_by_an_older_program(present: Path, tmp_path: Path) -> None:
    new = rewritten(present, tmp_path / "new", of_new_tag)

    class StageBegan(Event, frozen=True, kw_only=True):
        step: str

    with registered({"stage-began": StageBegan}, {StageBegan: ("stage-began", 1)}):
        export_run(new, RUN, tmp_path / "a.tar")
    with (tmp_path / "a.tar").open("rb") as file:
        assert check_archive(file).run == RUN
    import_run(tmp_path / "a.tar", tmp_path / "imported")
    assert report(tmp_path / "imported")[1] == []


def test_a_ledger_of_a_newer_format_is_read_and_not_written(present: Path, tmp_path: Path) -> None:
    newer = Path(shutil.copytree(present, tmp_path / "newer"))
    connection = sqlite3.connect(newer / LEDGER_FILE)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    connection.close()
    assert read_interface(newer, tmp_path) == read_events(present, tmp_path)
    with open_ledger(newer) as ledger:
        assert view_run(ledger.events(RUN)).run.verdict == "failed"
    with pytest.raises(NewerFormat):
        Writer.open(newer / LEDGER_FILE)


def test_the_program_of_now_writes_the_newest_version_only(tmp_path: Path) -> None:
    directory = make_ledger(tmp_path / "ledger")
    with later_program(lambda fields: fields), Writer.open(directory / LEDGER_FILE) as writer:
        new: list[NewEvent] = on(RUN, StepStarted(step="gate"))
        assert writer.append(new, {RUN: 0}, stamp())[0].header.version == VERSION + 1
