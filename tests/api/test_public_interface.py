"""The interface for other programs: a tool that uses nothing else, what is documented, and what it costs."""

import ast
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ledger as ledger_room
import projections as projections_room
from ledger import open_ledger
from ledger.errors import EvidenceDamaged, LedgerDamaged, LedgerMissing, NewerFormat, RunUnknown
from ledger.events import RunStarted, StepStarted
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.writer import Writer
from ledger.tables import ClassTable
from projections import summarize_run, view_run
from tests.ledger.stores import edited, newer_program, place_file
from tests.support.ledgers import add_run, make_ledger

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(__file__).with_name("slowest.py")
RUN = "run-1"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger with two runs."""
    return make_ledger(tmp_path_factory.mktemp("ledger"), "run-0", RUN)


def test_a_tool_is_written_with_the_documented_names_alone(directory: Path) -> None:
    done = subprocess.run([sys.executable, TOOL, directory], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines() == [
        "demo: 2 runs, head @47",
        *(line for run in ("run-0", RUN) for line in (
            f"{run} failed", "  0.25 s a.py::test_a", "  0.25 s a.py::test_b[=SUM(1),2]",
        )),
    ]  # fmt: skip
    imports = [node for node in ast.walk(ast.parse(TOOL.read_text())) if isinstance(node, ast.ImportFrom | ast.Import)]
    modules = {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    assert {module for module in modules if str(module).split(".")[0] not in sys.stdlib_module_names} == {
        "ledger",
        "projections",
    }


def test_what_is_documented_is_what_there_is() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    for room in (ledger_room, projections_room):
        documented = set(re.findall(rf"^\| `{room.__name__}\.(\w+)", page, re.MULTILINE))
        assert documented == set(room.__all__)
        for name in room.__all__:
            assert getattr(room, name).__doc__ or isinstance(getattr(room, name), dict)
        with pytest.raises(AttributeError, match="nothing"):
            room.nothing  # noqa: B018
    methods = {name for name, value in vars(ledger_room.Ledger).items() if not name.startswith("_") and callable(value)}
    assert methods == set(re.findall(r"^- `(\w+)\(", page, re.MULTILINE))


def test_events_views_summaries_and_evidence_come_typed_and_verified(directory: Path) -> None:
    with open_ledger(directory) as ledger:
        assert ledger.runs() == ["run-0", RUN]
        first = next(iter(ledger.events(RUN)))
        assert isinstance(first.event, RunStarted)
        assert next(iter(ledger.all_events(after=first.sequence - 1))) == first
        views = view_run(ledger.events(RUN))
        summary = summarize_run(views, datetime.now(UTC), alive=None)
        assert (summary.run, summary.verdict, summary.sequence) == (RUN, "failed", ledger.head().sequence)
        assert views.gate.verdict is not None
        table = ledger.document(views.gate.verdict.classes, ClassTable)
        assert sum(views.gate.verdict.counts.values()) == len(table.rows)
        with pytest.raises(EvidenceDamaged):
            ledger.document(views.gate.verdict.classes, type(first.header))
        with pytest.raises(EvidenceDamaged):
            ledger.evidence("0" * 64)
        for nothing in ("run-7", "ledger", ""):
            with pytest.raises(RunUnknown):
                list(ledger.events(nothing))


def test_what_is_damaged_or_newer_is_never_handed_out(directory: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(directory, tmp_path / "copy"))
    with newer_program(StepStarted), Writer.open(copy / LEDGER_FILE) as writer:
        add_run(writer, copy, "run-2")
    with open_ledger(copy) as ledger:
        with pytest.raises(NewerFormat, match="run-2 #"):
            list(ledger.events("run-2"))
        with pytest.raises(NewerFormat):
            list(ledger.all_events())
        assert len(list(ledger.events(RUN))) == 23
    changed = edited(copy / LEDGER_FILE, f"UPDATE events SET payload = '{{}}' WHERE stream = '{RUN}' AND position = 2")
    place_file(copy / LEDGER_FILE, changed.read_bytes())
    with open_ledger(copy) as ledger:
        events = ledger.events(RUN)
        assert next(events).header.position == 1
        with pytest.raises(LedgerDamaged, match="#2"):
            next(events)


def test_where_there_is_no_ledger_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        open_ledger(tmp_path)
    Writer.open(tmp_path / LEDGER_FILE, create=True).close()
    with pytest.raises(LedgerMissing, match="nothing yet"):
        open_ledger(str(tmp_path))


def test_reading_changes_nothing(directory: Path) -> None:
    files = [directory / LEDGER_FILE, *(directory / EVIDENCE).rglob("*.gz")]
    before = [file.read_bytes() for file in files]
    with open_ledger(directory) as ledger:
        for run in ledger.runs():
            view_run(ledger.events(run))
    assert [file.read_bytes() for file in files] == before


def test_the_packages_themselves_cost_nothing_to_import() -> None:
    code = (
        "import sys, ledger, projections; print(sorted(n for n in sys.modules if n.startswith(('msgspec', 'sqlite3'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
