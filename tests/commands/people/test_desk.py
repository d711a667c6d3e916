"""The desk at which people decide: open while runs are driven, and never while a ledger is recovered."""

from pathlib import Path

import pytest

from commands.effects.locks import LockHeld, is_held
from commands.effects.people.mutes import with_mutes
from commands.messages import Judge, MuteTest
from commands.runners.api import EvidenceKey
from commands.wiring import Home, find_home, open_desk, open_workshop, standstill
from ledger.errors import ForeignLedger, LedgerMissing
from ledger.events import STREAM, Event, Muted
from ledger.evidence import EvidenceStore
from ledger.tables import encode_document
from projections.registry import RunViews
from tests.support.cli import Project
from tests.support.makers import RUN, attempt_recorded, attempt_started, muted, views_of

LATER = "9999-12-31"


@pytest.fixture
def home(project: Project, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The project with its ledger."""
    monkeypatch.setenv("HOME", str(project.root))
    for name in ("XDG_CONFIG_HOME", "LEDGER_STORE"):
        monkeypatch.delenv(name, raising=False)
    return find_home(project.path, {})


def test_people_decide_while_a_run_is_driven(home: Home) -> None:
    asked = MuteTest(
        stream=STREAM, test="a.py::t", owner="ann", reason="r", expires="2030-01-31", date="2030-01-15", count_max=1,
        days_max=30, known=1,
    )  # fmt: skip
    with open_workshop(home, RUN) as workshop, open_desk(home) as desk:
        (recorded,) = desk.loop.handle(asked)
        assert list(workshop.loop.views(STREAM).mutes.mutings) == ["mute-1"]
        assert (recorded.header.stream, recorded.header.actor.who) == (STREAM, desk.who)
    assert not is_held(home.run_lock(STREAM))


def test_nobody_decides_while_a_ledger_is_recovered_nor_the_other_way_round(home: Home) -> None:
    with standstill(home), pytest.raises(LockHeld, match="recover"), open_desk(home):
        pass
    with open_desk(home), pytest.raises(LockHeld, match=STREAM), standstill(home):
        pass
    with standstill(home):
        pass


def test_the_ledger_has_to_be_there_and_to_be_this_projects(home: Home, tmp_path: Path) -> None:
    other = Project.make(tmp_path / "other", {"README.txt": "another project\n"})
    with pytest.raises(ForeignLedger), open_desk(find_home(other.path, {"store": str(home.directory)})):
        pass
    with pytest.raises(LedgerMissing), open_desk(find_home(other.path, {})):
        pass
    assert not other.store.exists()


# What a verdict is given.


@pytest.fixture
def evidence(tmp_path: Path) -> EvidenceStore:
    """An empty store of evidence."""
    return EvidenceStore(tmp_path / "evidence")


def key(evidence: EvidenceStore, platform: str = "linux", **environment: str) -> str:
    """The evidence key of an attempt in such an environment, stored."""
    return evidence.put_bytes(
        encode_document(
            EvidenceKey(
                tree="t", adapter="a", runner=("pytest==8",), python="CPython 3.11.4", platform=platform,
                architecture="x86_64", command=("pytest",), lock="", distributions=(), environment=environment,
                memory_limit_bytes=0,
            )
        )
    )  # fmt: skip


def gathered(evidence: EvidenceStore, ledger: list[Event], *keys: str | None, side: str = "candidate") -> Judge:
    """What is gathered for a verdict on attempts with these evidence keys."""
    attempts = [
        event
        for number, digest in enumerate(keys, start=1)
        for event in (
            attempt_started("shard-1", side, number),  # type: ignore[arg-type]
            attempt_recorded("shard-1", side, number, evidence_key=digest),  # type: ignore[arg-type]
        )
    ]
    streams: dict[str, RunViews] = {STREAM: views_of(*ledger), RUN: views_of(*attempts)}
    return with_mutes(Judge(stream=RUN), streams.__getitem__, evidence, "2030-01-15")


CONDITIONS = {"platform": "linux", "CI": "1"}
MUTED: Muted = muted(expires=LATER, environment=CONDITIONS)


def test_without_a_valid_muting_nothing_is_gathered(evidence: EvidenceStore) -> None:
    assert gathered(evidence, [], key(evidence)) == Judge(stream=RUN)
    assert gathered(evidence, [muted(expires="2030-01-14")], "f" * 64) == Judge(stream=RUN)


def test_only_what_conditions_ask_for_is_gathered_and_where_the_ledger_stood(evidence: EvidenceStore) -> None:
    found = gathered(evidence, [MUTED], key(evidence, CI="1", SECRET="s"))
    assert (found.mutes, found.date, found.environment) == ((MUTED,), "2030-01-15", CONDITIONS)
    assert found.read_at() == found.basis == views_of(MUTED).run.sequence
    assert gathered(evidence, [muted()], key(evidence, SECRET="s")).environment == {}


def test_what_attempts_do_not_agree_on_or_nobody_recorded_is_not_known(evidence: EvidenceStore) -> None:
    both = (key(evidence, CI="1"), key(evidence, CI="2"), None)
    assert gathered(evidence, [MUTED], *both).environment == {"platform": "linux"}
    assert gathered(evidence, [MUTED], key(evidence), key(evidence, CI="1")).environment == {"platform": "linux"}
    assert gathered(evidence, [MUTED], None).environment == {}
    assert gathered(evidence, [MUTED], key(evidence, CI="1"), side="baseline").environment == {}
