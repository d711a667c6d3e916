"""Evidence files that are changed, cut, swapped or taken away: each is found, with the event that names it first."""

import gzip
import shutil
import zlib
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from ledger.record import NewEvent
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from tests.ledger.attack.ledgers import OTHER_RUN, RUN, Verified, digest_of, stamp, verified, write
from tests.support.makers import run_started

ORPHAN = digest_of(f"message {OTHER_RUN} 4")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with 25 pieces of evidence that are named, and one that is not; each test leaves it as it was."""
    return write(tmp_path_factory.mktemp("evidence"))


def files(place: Path) -> list[Path]:
    """The files of the evidence that is named."""
    return sorted(path for path in (place.parent / "evidence").rglob("*.gz") if path.stem != ORPHAN)


def first_naming(place: Path) -> dict[str, tuple[str, int, int]]:
    """For each digest where it is named first, found by looking for its text in the stored events."""
    with Reader.open(place) as reader:
        events = list(reader.events())
    named = {}
    for path in files(place):
        first = next(event for event in events if path.stem in f"{event.event} {event.header.message}")
        named[path.stem] = (first.header.stream, first.header.position, first.sequence)
    return named


def only_finding(said: Verified, code: str, digest: str, where: tuple[str, int, int]) -> None:
    """It was this one finding, and it is at the right place."""
    assert said.codes == [code]
    finding = said.findings[0]
    assert (finding.evidence, finding.stream, finding.position, finding.sequence) == (digest, *where)


def content(data: bytes) -> bytes | None:
    """What a compressed file holds; None when it holds nothing that could be read."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


def test_whole_evidence_is_counted_and_what_no_event_names_is_noted(place: Path) -> None:
    said = verified(place, evidence=True)
    assert said.report.sound
    assert said.report.evidence == len(files(place)) == 25
    assert [(note.code, note.count) for note in said.report.notes] == [("evidence-unreferenced", 1)]


def test_without_the_evidence_nothing_is_said_about_it(place: Path) -> None:
    said = verified(place)
    assert (said.report.evidence, said.report.notes) == (None, ())


def test_what_was_set_aside_or_never_finished_is_noted(place: Path) -> None:
    left = [files(place)[0].with_suffix(".gz.damaged-1234"), place.parent / "evidence" / "0123.tmp"]
    for path in left:
        path.touch()
    said = verified(place, evidence=True)
    assert said.report.sound
    assert ("evidence-leftover", 2) in [(note.code, note.count) for note in said.report.notes]
    for path in left:
        path.unlink()


def test_a_file_that_was_taken_away_is_missing(place: Path, tmp_path: Path) -> None:
    named = first_naming(place)
    for path in files(place):
        shutil.move(path, tmp_path / path.name)
        only_finding(verified(place, evidence=True), "evidence-missing", path.stem, named[path.stem])
        shutil.move(tmp_path / path.name, path)


def test_evidence_that_was_taken_away_whole_is_missing_piece_by_piece(place: Path, tmp_path: Path) -> None:
    evidence = place.parent / "evidence"
    shutil.move(evidence, tmp_path / "evidence")
    said = verified(place, evidence=True)
    assert said.report.counts == {"evidence-missing": 25}
    shutil.move(tmp_path / "evidence", evidence)


def test_two_files_that_were_swapped_are_both_altered(place: Path) -> None:
    for one, other in list(combinations(files(place), 2))[:40]:
        before = one.read_bytes(), other.read_bytes()
        one.write_bytes(before[1])
        other.write_bytes(before[0])
        said = verified(place, evidence=True)
        assert said.codes == ["evidence-altered"] * 2
        assert {finding.evidence for finding in said.findings} == {one.stem, other.stem}
        one.write_bytes(before[0])
        other.write_bytes(before[1])


def test_a_file_that_was_cut_anywhere_is_altered(place: Path) -> None:
    path = files(place)[0]
    where, whole = first_naming(place)[path.stem], path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        only_finding(verified(place, evidence=True), "evidence-altered", path.stem, where)
    path.write_bytes(whole)


@pytest.mark.slow
def test_every_byte_of_every_file_that_is_flipped_is_found_or_changes_no_content(place: Path) -> None:
    named = first_naming(place)
    counts: Counter[str] = Counter()
    for path in files(place):
        whole = path.read_bytes()
        for offset in range(len(whole)):
            changed = bytearray(whole)
            changed[offset] ^= 0xFF
            path.write_bytes(changed)
            said = verified(place, evidence=True)
            if content(bytes(changed)) == content(whole):
                assert said.codes == []
                counts["the content is the same"] += 1
            else:
                only_finding(said, "evidence-altered", path.stem, named[path.stem])
                counts["found"] += 1
        path.write_bytes(whole)
    # Ten bytes at the head of a file say when and where it was compressed; eight of them are not looked at.
    assert counts["found"] > 10 * counts["the content is the same"] > 0, counts


def test_an_event_that_names_no_digest_is_found(tmp_path: Path) -> None:
    place = write(tmp_path)
    run = "20300104-000000-0000"
    with Writer.open(place) as writer:
        for number, config in enumerate(("no digest", digest_of("config").upper(), RUN)):
            event = run_started(run=f"{run}{number}", config=config)
            writer.append([NewEvent(f"{run}{number}", event)], {f"{run}{number}": 0}, stamp(f"command-{number}"))
    said = verified(place, evidence=True)
    assert said.codes == ["evidence-missing"] * 3
    assert [finding.sequence for finding in said.findings] == [23, 24, 25]
