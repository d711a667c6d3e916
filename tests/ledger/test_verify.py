"""Verification as a whole: what it reports of a ledger that is as it should be, and how it goes about it."""

import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ForeignLedger, LedgerMissing
from ledger.events import FORMAT_VERSION, STREAM, LedgerCreated
from ledger.proof import chain
from ledger.proof.evidence import NamedEvidence
from ledger.proof.findings import MEANING, NOTES, HeadMalformed, format_head, parse_head
from ledger.proof.verify import verify
from ledger.record import NewEvent
from ledger.store.reader import Head, Reader
from ledger.store.writer import Writer
from tests.ledger.attack.ledgers import LEDGER_ID, RUN, attempt, stamp, verified, write
from tests.ledger.stores import on, raw, started

DIGITS = st.text(string.digits + "abcdef", min_size=64, max_size=64)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A whole ledger of 22 events with its evidence."""
    return write(tmp_path)


def test_a_whole_ledger_is_reported_with_its_head(place: Path) -> None:
    report = verified(place, evidence=True).report
    assert (report.sound, report.ledger, report.project, report.format_version) == (True, LEDGER_ID, "demo", 1)
    assert (report.events, report.streams, report.evidence, report.counts) == (22, 3, 25, {})
    with Reader.open(place) as reader:
        assert report.head == format_head(reader.head())


def test_a_ledger_without_events_is_whole_and_has_no_head(tmp_path: Path) -> None:
    Writer.open(tmp_path / "ledger.sqlite", create=True).close()
    report = verified(tmp_path / "ledger.sqlite", evidence=True).report
    assert (report.sound, report.events, report.head, report.evidence) == (True, 0, "", 0)


def test_every_head_that_the_ledger_ever_had_is_still_held(place: Path) -> None:
    with Reader.open(place) as reader:
        heads = [Head(event.sequence, event.digest) for event in reader.events()]
    assert all(verified(place, noted=head).report.sound for head in heads)


def test_verifying_changes_nothing_and_needs_no_lock(place: Path) -> None:
    before = place.read_bytes()
    with raw(place) as writing:
        writing.execute("BEGIN IMMEDIATE")
        assert verified(place, evidence=True).report.sound
        writing.rollback()
    assert place.read_bytes() == before


def test_it_sees_one_state_however_much_is_written_meanwhile(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PROGRESS_EVENTS", 1)
    with Writer.open(place) as writer:

        def write_more(events: int) -> None:
            new = [NewEvent(RUN, event) for event in attempt(RUN, "candidate")]
            writer.append(new, {RUN: 10 + 2 * events}, stamp(f"meanwhile {events}"))

        report = verify(place, place.parent / "evidence", pytest.fail, write_more)
    assert (report.events, report.head.partition(":")[0]) == (22, "@22")
    assert verified(place, evidence=True).report.events == 66


def test_progress_counts_the_events(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PROGRESS_EVENTS", 5)
    told: list[int] = []
    verify(place, None, pytest.fail, told.append)
    assert told == [5, 10, 15, 20]


def test_the_ledger_of_a_newer_program_is_noted(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    newer = LedgerCreated(ledger_id=LEDGER_ID, project="demo", root_commit=None, format_version=FORMAT_VERSION + 1)
    with Writer.open(place, create=True) as writer:
        writer.append(on(STREAM, newer), {STREAM: 0}, stamp("begin"))
    with raw(place) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    report = verified(place).report
    assert (report.sound, [note.code for note in report.notes]) == (True, ["format-newer"])


def test_what_is_no_ledger_is_not_verified(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        verified(tmp_path / "missing.sqlite")
    with raw(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    with pytest.raises(ForeignLedger):
        verified(tmp_path / "other.sqlite")


def test_what_is_no_database_at_all_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"no database " * 1000)
    said = verified(tmp_path / "ledger.sqlite", evidence=True)
    assert not said.report.sound
    assert "file-damaged" in said.codes
    assert said.report.head == ""


def test_every_code_that_can_be_told_has_a_meaning() -> None:
    sources = Path(chain.__file__).parent.glob("*.py")
    told = {code for path in sources for code in codes_in(path.read_text())}
    assert told == MEANING.keys() | NOTES.keys()


def codes_in(text: str) -> Iterator[str]:
    """Every known code that stands between quotes in a source, but for the tables themselves."""
    for code in MEANING.keys() | NOTES.keys():
        if text.count(f'"{code}"') > text.count(f'"{code}": '):
            yield code


@given(st.integers(1, 10**18 - 1), DIGITS)
def test_a_head_is_read_as_it_was_printed(sequence: int, digest: str) -> None:
    assert parse_head(format_head(Head(sequence, digest))) == Head(sequence, digest)


@given(st.text() | st.from_regex(r"@?[0-9]{1,20}:?[0-9a-fA-F]{0,70}\n?", fullmatch=True))
def test_what_is_no_head_is_refused(text: str) -> None:
    try:
        head = parse_head(text)
    except HeadMalformed:
        return
    assert text == f"@{text[1:].partition(':')[0]}:{head.digest}"
    assert len(head.digest) == 64


@given(st.lists(st.tuples(DIGITS | st.sampled_from(["0" * 64, "", "x" * 64, "AB" * 32]), st.integers(1, 2**62))))
def test_named_evidence_comes_back_by_folder_with_the_event_that_names_it_first(names: list[tuple[str, int]]) -> None:
    named = NamedEvidence()
    expected: dict[str, int] = {}
    for digest, sequence in names:
        named.add(digest, sequence)
        expected.setdefault(digest, sequence)
    found = {digest: (folder, sequence) for folder, places in named.by_folder().items()
             for digest, sequence in named.at(places).items()}  # fmt: skip
    wrong = {digest: sequence for digest, sequence in expected.items() if digest in ("", "x" * 64, "AB" * 32)}
    assert found == {digest: (digest[:2], sequence) for digest, sequence in expected.items() if digest not in wrong}
    assert dict(named.malformed) == wrong


def test_a_reader_that_follows_and_a_verification_agree_on_a_growing_ledger(place: Path) -> None:
    with Writer.open(place) as writer:
        for number in range(5):
            writer.append(on(RUN, started()), {RUN: 12 + number}, stamp(f"more {number}"))
            with Reader.open(place) as reader:
                assert format_head(reader.head()) == verified(place).report.head
