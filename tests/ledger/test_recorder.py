"""Our recorder passes the test cases that the event-store library has for recorders, in a file and in memory."""

import json
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from uuid import uuid4

from eventsourcing.persistence import PersistenceError, StoredEvent
from eventsourcing.tests import persistence

from ledger.record import event_digest
from ledger.store.sqlite.connect import uri
from ledger.store.sqlite.recorder import LedgerDatastore, LedgerRecorder
from tests.ledger.stores import raw


class InMemory:
    """Recorders of a ledger in memory, one database for each test."""

    def setUp(self) -> None:
        """Choose the place of this test."""
        self.place: Path | str = f"memory:{uuid4().hex}"
        self.recorders: list[LedgerRecorder] = []

    def tearDown(self) -> None:
        """Close what the test has opened."""
        for recorder in self.recorders:
            recorder.datastore.close()

    def create_recorder(self) -> LedgerRecorder:
        """A recorder with its tables."""
        recorder = LedgerRecorder(LedgerDatastore(uri(self.place, "rwc")))
        self.recorders.append(recorder)
        recorder.create_table()
        return recorder

    def new_originator_id(self) -> str:
        """Our streams are named by text."""
        return str(uuid4())


class InFile(InMemory):
    """Recorders of a ledger in a file of its own for each test."""

    def setUp(self) -> None:
        """Choose the place of this test."""
        super().setUp()
        self.directory = TemporaryDirectory()
        self.place = Path(self.directory.name) / "ledger.db"

    def tearDown(self) -> None:
        """Close what the test has opened, and remove its place."""
        super().tearDown()
        self.directory.cleanup()


class TestRecorderInMemory(InMemory, persistence.ApplicationRecorderTestCase[LedgerRecorder]):
    """The library's contract, in memory."""


class TestRecorderInFile(InFile, persistence.ApplicationRecorderTestCase[LedgerRecorder]):
    """The library's contract, in a file."""


class TestOrderInMemory(InMemory, persistence.NonInterleavingNotificationIDsBaseCase):
    """The library's contract for the order of two writers, in memory."""


class TestOrderInFile(InFile, persistence.NonInterleavingNotificationIDsBaseCase):
    """The library's contract for the order of two writers, in a file."""


def test_what_comes_in_through_the_library_is_digested_and_linked_too(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    recorder = LedgerRecorder(LedgerDatastore(uri(path, "rwc")))
    recorder.create_table()
    recorder.insert_events([StoredEvent("a", 1, "x", b"{}"), StoredEvent("b", 1, "x", b"{}")])
    recorder.insert_events([StoredEvent("a", 2, "y", b"[]")])
    recorder.datastore.close()
    with raw(path) as connection:
        rows = connection.execute("SELECT header, payload, digest FROM events").fetchall()
    assert [event_digest(header.encode(), payload.encode()) for header, payload, _ in rows] == [row[2] for row in rows]
    assert [json.loads(header)["previous"] for header, _, _ in rows] == ["", "", rows[0][2]]


def test_a_recorder_that_is_closed_while_other_threads_use_it_lets_them_finish(tmp_path: Path) -> None:
    for number in range(20):
        recorder = LedgerRecorder(LedgerDatastore(uri(tmp_path / f"{number}.db", "rwc")))
        recorder.create_table()
        recorder.insert_events([StoredEvent("a", position, "x", b"{}") for position in range(500)])
        failures: list[Exception] = []

        def read_until_closed(recorder: LedgerRecorder, failures: list[Exception]) -> None:
            try:
                while True:
                    recorder.select_notifications(start=None, limit=500)
            except (PersistenceError, sqlite3.ProgrammingError) as error:
                failures.append(error)

        threads = [Thread(target=read_until_closed, args=(recorder, failures)) for _ in range(3)]
        for thread in threads:
            thread.start()
        recorder.datastore.close()
        for thread in threads:
            thread.join(timeout=30)
        assert len(failures) == 3
