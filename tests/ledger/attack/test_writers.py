"""Eight processes write eight runs, and readers look on: no event is lost or doubled, and no gap is ever seen."""

from pathlib import Path

import pytest

from ledger.store.api import Links
from ledger.store.reader import Reader
from tests.ledger.attack.killing import Program
from tests.ledger.attack.ledgers import verified, write

WRITERS, COMMANDS = 8, 25
RUNS = [f"2030020{number}-000000-0000" for number in range(WRITERS)]


@pytest.mark.slow
@pytest.mark.real
def test_many_processes_write_at_the_same_time_and_every_reading_is_whole(tmp_path: Path) -> None:
    place = write(tmp_path)
    writers = [Program("one_write.py", tmp_path, "run", run, COMMANDS).start() for run in RUNS]
    links: Links = {}
    followed, seen_growing = 0, 0
    with Reader.open(place) as reader:
        while any(writer.poll() is None for writer in writers):
            events = list(reader.events(after=followed, links=links))
            seen_growing += bool(events)
            followed += len(events)
            said = verified(place, evidence=True)
            assert said.codes == []
            assert said.report.events >= followed
        followed += len(list(reader.events(after=followed, links=links)))
    acknowledged = [line.split() for writer in writers for line in writer.communicate()[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    assert seen_growing > 1
    with Reader.open(place) as reader:
        stored = {str(event.sequence): event.digest for event in reader.events()}
    assert len(acknowledged) == WRITERS * COMMANDS
    assert [line for line in acknowledged if stored.get(line[0]) != line[1]] == []
    assert len(stored) == followed == 22 + WRITERS * (1 + 2 * COMMANDS)
    assert verified(place, evidence=True).report.sound
