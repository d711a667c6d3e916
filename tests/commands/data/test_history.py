"""The history of all runs: it depends on nothing but the ledger, and can be lost at any time."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pytest

from commands.effects.history import cache, tables
from commands.effects.history.cache import FILE, History, open_history, remove
from ledger.errors import LedgerDamaged, NewerFormat
from ledger.events import STREAM, TYPES, AttemptRecorded, GatePolicy, StepStarted, VerdictDecided
from ledger.evidence import EvidenceStore
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.tables import CaseTable, decode_document
from tests.ledger.stores import edited, newer_program, place_file, run_python
from tests.support.gates import End, Suite
from tests.support.ledgers import ACTOR, SUITE, add_run, begin, make_ledger
from tests.support.sides import File

Answer = TypeVar("Answer")

FIXED = Suite(
    candidate={"a.py": File({"test_a": "passed"}), "c.py": File({"test_d": "passed"})},
    baseline={"a.py": File({"test_a": "failed"})},
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with three runs, of which others are copies."""
    directory = tmp_path_factory.mktemp("made")
    with begin(directory) as writer:
        add_run(writer, directory, "run-1")
        add_run(writer, directory, "run-2", FIXED)
        add_run(writer, directory, "run-3")
    return directory


@pytest.fixture
def ledger(made: Path, tmp_path: Path) -> Path:
    """A ledger with three runs."""
    return Path(shutil.copytree(made, tmp_path / "ledger"))


def see(directory: Path, look: Callable[[History], Answer], until: int | None = None) -> Answer:
    """What a look at the history gives."""
    evidence = EvidenceStore(directory / EVIDENCE)

    def load(digest: str) -> CaseTable:
        return decode_document(evidence.get(digest), CaseTable)

    with Reader.open(directory / LEDGER_FILE) as reader, open_history(directory, reader, load, until) as history:
        return look(history)


def everything(history: History) -> tuple[list[object], ...]:
    """All rows of the history, and how far it has come."""
    return list(history.runs()), list(history.targets()), list(history.outcomes()), [history.taken()]


def dump(directory: Path) -> list[str]:
    """The tables of the side file, as text."""
    connection = sqlite3.connect(directory / FILE)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def canonical(directory: Path) -> bytes:
    """The bytes of the side file, after SQLite has laid it out anew."""
    copy = directory / "canonical.sqlite"
    copy.unlink(missing_ok=True)
    connection = sqlite3.connect(directory / FILE)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    return copy.read_bytes()


def test_the_history_says_what_the_runs_say(ledger: Path) -> None:
    runs, targets, outcomes, _ = see(ledger, everything)
    assert [(row.run, row.status, row.verdict, row.blocking, row.cases) for row in runs] == [
        ("run-1", "finished", "failed", 2, 3),
        ("run-2", "finished", "passed", 0, 2),
        ("run-3", "finished", "failed", 2, 3),
    ]
    assert sorted({(row.run, row.target, row.side) for row in targets if row.run == "run-2"}) == [
        ("run-2", "a.py", "baseline"), ("run-2", "a.py", "candidate"), ("run-2", "c.py", "candidate"),
    ]  # fmt: skip
    assert [(row.run, row.side, row.outcome) for row in outcomes if row.test == "a.py::test_a"] == [
        ("run-1", "candidate", "passed"), ("run-1", "baseline", "passed"),
        ("run-2", "candidate", "passed"), ("run-2", "baseline", "failed"),
        ("run-3", "candidate", "passed"), ("run-3", "baseline", "passed"),
    ]  # fmt: skip


def test_the_rows_of_one_run_are_those_of_all_that_are_its_own(ledger: Path) -> None:
    def look(history: History) -> bool:
        for rows in (history.runs, history.targets, history.outcomes):
            all_rows, own = list(rows()), list(rows("run-2"))
            assert own == [row for row in all_rows if row.run == "run-2"]
            assert 0 < len(own) < len(all_rows)
        return True

    assert see(ledger, look)


@pytest.mark.parametrize("batch_events", [1, 7, 1000])
@pytest.mark.parametrize("batch_rows", [1, 100_000])
def test_it_is_the_same_in_whichever_steps_it_was_caught_up(
    ledger: Path, tmp_path: Path, batch_events: int, batch_rows: int
) -> None:
    see(ledger, everything)
    expected = dump(ledger), canonical(ledger)
    grown = tmp_path / "grown"
    with (
        begin(grown) as writer,
        patch.object(cache, "BATCH_EVENTS", batch_events),
        patch.object(cache, "BATCH_ROWS", batch_rows),
    ):
        for run, suite in (("run-1", SUITE), ("run-2", FIXED), ("run-3", SUITE)):
            add_run(writer, grown, run, suite)
            see(grown, everything)
    assert (dump(grown), canonical(grown)) == expected
    assert see(grown, everything) == see(ledger, everything)


def test_it_can_be_deleted_at_any_time(ledger: Path) -> None:
    before = see(ledger, everything)
    assert sorted(path.name for path in ledger.iterdir() if path.name.startswith("history")) == [FILE]
    remove(ledger / FILE)
    assert see(ledger, everything) == before


def test_what_was_taken_in_is_not_read_again(ledger: Path) -> None:
    before = see(ledger, everything)
    shutil.rmtree(ledger / EVIDENCE)
    assert see(ledger, everything) == before


def _truncate(file: Path) -> None:
    os.truncate(file, 5000)


def _overwrite_head(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"no database")


def _overwrite_pages(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _run(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement)
    connection.close()


def _older(file: Path) -> None:
    _run(file, f"PRAGMA user_version = {tables.HISTORY_VERSION - 1}")


def _of_another_program(file: Path) -> None:
    _run(file, "PRAGMA application_id = 1")


def _of_another_ledger(file: Path) -> None:
    _run(file, "UPDATE taken SET ledger = 'other'")


def _of_another_past(file: Path) -> None:
    _run(file, "UPDATE taken SET digest = 'other'")


def _ahead_of_the_ledger(file: Path) -> None:
    _run(file, "UPDATE taken SET sequence = 100000")


def _with_other_tags(file: Path) -> None:
    _run(file, "UPDATE taken SET shape = 'other'")


def _without_a_table(file: Path) -> None:
    _run(file, "DROP TABLE outcomes")


@pytest.mark.parametrize(
    "spoil",
    [
        _truncate, _overwrite_head, _overwrite_pages, _empty, _older, _of_another_program, _of_another_ledger,
        _of_another_past, _ahead_of_the_ledger, _with_other_tags,
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_made_again(ledger: Path, spoil: Callable[[Path], None]) -> None:
    before = see(ledger, everything)
    kept = dump(ledger)
    spoil(ledger / FILE)
    assert see(ledger, everything) == before
    assert dump(ledger) == kept


def test_damage_that_shows_only_later_is_told_once_and_then_gone(ledger: Path) -> None:
    before = see(ledger, everything)
    _without_a_table(ledger / FILE)
    with pytest.raises(cache.HistoryDamaged):
        see(ledger, everything)
    assert see(ledger, everything) == before


def test_a_shortened_ledger_has_a_shorter_history(ledger: Path) -> None:
    see(ledger, everything)
    runs = see(ledger, lambda history: list(history.runs("run-3")))
    shorter = edited(ledger / LEDGER_FILE, f"DELETE FROM events WHERE sequence >= {runs[0].first_sequence}")
    place_file(ledger / LEDGER_FILE, shorter.read_bytes())
    assert [row.run for row in see(ledger, lambda history: list(history.runs()))] == ["run-1", "run-2"]


def test_it_stops_where_the_ledger_is_damaged(ledger: Path) -> None:
    damaged = edited(ledger / LEDGER_FILE, "UPDATE events SET payload = '{}' WHERE sequence = 30")
    place_file(ledger / LEDGER_FILE, damaged.read_bytes())
    with pytest.raises(LedgerDamaged, match="@30"):
        see(ledger, everything)


def test_the_past_is_what_had_happened_then(ledger: Path) -> None:
    runs = see(ledger, lambda history: list(history.runs()))
    file = (ledger / FILE).read_bytes()
    then = see(ledger, everything, until=runs[1].first_sequence)
    assert [(row.run, row.status) for row in then[0]] == [("run-1", "finished"), ("run-2", "open")]
    assert {row.run for row in then[1]} == {"run-1"}
    assert see(ledger, everything, until=runs[2].sequence) == see(ledger, everything)
    assert (ledger / FILE).read_bytes() == file


def test_missing_evidence_leaves_a_gap_that_is_told(ledger: Path) -> None:
    with Reader.open(ledger / LEDGER_FILE) as reader:
        records = [one.event for one in reader.events("run-2") if isinstance(one.event, AttemptRecorded)]
    lost = next(record.table for record in records if record.table and record.side == "baseline")
    (ledger / EVIDENCE / lost[:2] / f"{lost}.gz").unlink()
    runs, targets, *_ = see(ledger, everything)
    assert [row.unreadable_tables for row in runs] == [0, 1, 0]
    assert [row.side for row in targets if row.run == "run-2"] == ["candidate", "candidate"]


def test_usage_is_what_was_measured_last_with_the_sequence_that_it_was_read_at(ledger: Path) -> None:
    with Reader.open(ledger / LEDGER_FILE) as reader:
        head = reader.head().sequence
    usage = see(ledger, lambda history: history.usage())
    assert usage.basis == head
    assert sorted(usage.targets) == ["a.py", "b.py", "c.py"]
    assert usage.targets["a.py"].measurements == 6
    assert usage.targets["c.py"].peak_memory_bytes == 2**20
    assert see(ledger, lambda history: history.usage().basis, until=30) == 30


def test_events_of_a_newer_program_are_counted_and_nothing_is_decided_on_them(ledger: Path) -> None:
    with newer_program(StepStarted), Writer.open(ledger / LEDGER_FILE) as writer:
        add_run(writer, ledger, "run-4")
    assert see(ledger, lambda history: [row.unknown_events for row in history.runs()]) == [0, 0, 0, 1]
    with pytest.raises(NewerFormat, match="run-4"):
        see(ledger, lambda history: history.usage())
    with newer_program(StepStarted):
        assert see(ledger, lambda history: [row.unknown_events for row in history.runs()]) == [0, 0, 0, 0]


def test_an_older_program_sees_a_run_without_what_it_does_not_know(ledger: Path) -> None:
    tag = "verdict-decided"
    with patch.dict(TYPES):
        del TYPES[tag]
        from ledger import codec

        codec._reader.cache_clear()
        runs = see(ledger, lambda history: list(history.runs()))
    codec._reader.cache_clear()
    assert {(row.cases, row.unknown_events) for row in runs} == {(0, 1)}
    assert VerdictDecided in tables.TAGS


def test_where_nothing_can_be_kept_it_is_made_for_once(ledger: Path) -> None:
    expected = see(ledger, everything)
    remove(ledger / FILE)
    (ledger / FILE).mkdir()
    assert see(ledger, everything) == expected
    assert list((ledger / FILE).iterdir()) == []


READER = """
import gzip, sys, filelock
from pathlib import Path
from commands.effects.history.cache import open_history
from ledger.evidence import EvidenceStore
from ledger.store.reader import Reader
from ledger.tables import CaseTable, decode_document
if sys.argv[2] == "without rights":
    drop_rights()
directory = Path(sys.argv[1])
evidence = EvidenceStore(directory / "evidence")
load = lambda digest: decode_document(evidence.get(digest), CaseTable)
with Reader.open(directory / "ledger.sqlite") as reader, open_history(directory, reader, load) as history:
    print(len(list(history.outcomes())), history.taken().sequence)
"""


def summed_up(history: History) -> str:
    """What the program above prints."""
    return f"{len(list(history.outcomes()))} {history.taken().sequence}"


def test_a_directory_that_may_only_be_read_is_enough(ledger: Path) -> None:
    expected = see(ledger, summed_up)
    remove(ledger / FILE)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        shared = Path(shutil.copytree(ledger, Path(name) / "ledger"))
        for path in (shared, *shared.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = run_python(READER, shared, "without rights", as_nobody=True)
        assert (done.stdout.strip(), done.stderr) == (expected, "")
        assert not (shared / FILE).exists()


def test_several_processes_catch_it_up_together(ledger: Path) -> None:
    expected = see(ledger, summed_up)
    remove(ledger / FILE)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(run_python, READER, ledger, "with rights") for _ in range(4)]
    assert {(reader.result().stdout.strip(), reader.result().stderr) for reader in readers} == {(expected, "")}
    kept = dump(ledger)
    remove(ledger / FILE)
    see(ledger, everything)
    assert dump(ledger) == kept


def test_a_ledger_without_runs_has_an_empty_history(tmp_path: Path) -> None:
    empty = make_ledger(tmp_path / "empty")
    assert see(empty, everything)[:3] == ([], [], [])
    with Reader.open(empty / LEDGER_FILE) as reader:
        assert [head.stream for head in reader.streams()] == [STREAM]


# Flakiness.


def test_a_test_of_which_one_commit_failed_and_passed_is_flaky_and_nothing_else_is(ledger: Path) -> None:
    (row,) = see(ledger, lambda history: list(history.flaky()))
    failed = see(ledger, lambda history: next(one for one in history.outcomes("run-2") if one.outcome == "failed"))
    assert (row.test, row.runs, row.flaky_runs, row.rate) == ("a.py::test_a", 3, 1, 0.3333)
    assert (row.reruns, row.retries, row.other_runs) == (0, 0, 1)
    assert (row.hosts, row.causes) == ({ACTOR.host: 1}, {"failed: it said so": 1})
    assert (row.last_run, row.last_sequence) == ("run-2", failed.sequence)
    assert see(ledger, lambda history: list(history.flaky("run-2"))) == []
    assert see(ledger, lambda history: list(history.flaky()), until=failed.sequence - 1) == []


@pytest.mark.parametrize(("ends", "seen"), [(("dies", "dies"), 1), (("blind", "blind"), 0)])
def test_what_may_have_been_another_tree_proves_no_flakiness(ledger: Path, ends: tuple[End, ...], seen: int) -> None:
    late = {"a.py": File({"test_a": "failed"}), "z.py": File({"test_z": "passed"})}
    suite = Suite(candidate=late, baseline=late, ends={"shard-1/candidate": ends})
    with Writer.open(ledger / LEDGER_FILE) as writer:
        add_run(writer, ledger, "run-4", suite, GatePolicy(rounds=2, shards=1))
    rows = see(ledger, lambda history: list(history.flaky()))
    observed = see(ledger, lambda history: history.observations("a.py::test_a"))
    mine = [one for one in observed if (one.run, one.side) == ("run-4", "candidate")]
    assert len(mine) == seen
    assert [row.test for row in rows] == ["a.py::test_a"]


def test_a_name_stands_for_its_variants_and_for_nothing_longer(ledger: Path) -> None:
    tests = dict.fromkeys(("test_n", "test_n[1]", "test_n[2]", "test_n2", "test_n\\[3\\]", "test_m[1]"), "passed")
    with Writer.open(ledger / LEDGER_FILE) as writer:
        add_run(writer, ledger, "run-4", Suite(candidate={"n.py": File(tests)}, baseline={"n.py": File(tests)}))

    def names(test: str) -> set[str]:
        return see(ledger, lambda history: {one.test for one in history.observations(test)})

    assert names("n.py::test_n") == {"n.py::test_n", "n.py::test_n[1]", "n.py::test_n[2]"}
    assert names("n.py::test_n[1]") == {"n.py::test_n[1]"}
    assert names("n.py") == names("n.py::test_") == names("") == set()
