"""The commands for other programs and machines, as a user types them, far from any repository."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands.cli.data.schemas import Described, LogLine, everything_described, schema_text
from ledger.events import TAGS
from ledger.store.api import EVIDENCE, LEDGER_FILE
from projections.queries.registry import QUERIES
from tests.support.cli import LEDGER, Answer
from tests.support.ledgers import make_ledger

RUN = "run-1"
DESCRIBED = {described.name: described for described in everything_described()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a ledger with two runs."""
    return make_ledger(tmp_path_factory.mktemp("store"), "run-0", RUN)


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[..., Answer]:
    """Runs `ledger` in an empty directory that is in no repository."""
    here = tmp_path / "here"
    here.mkdir()

    def run(*arguments: str | Path, **variables: str) -> Answer:
        environment = {"PATH": os.defpath, "HOME": str(tmp_path), "COLUMNS": "120", **variables}
        ended = subprocess.run(
            [LEDGER, *arguments], cwd=here, env=environment, check=False, capture_output=True, timeout=60
        )
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


@pytest.mark.parametrize("view", QUERIES)
def test_every_view_has_every_format_and_all_say_the_same(
    ledger: Callable[..., Answer], store: Path, view: str
) -> None:
    answers = {
        form: ledger("query", view, "--store", store, "--format", form, COLUMNS="9999")
        for form in ("json", "jsonl", "csv", "table")
    }
    assert {answer.code for answer in answers.values()} == {0}
    document = json.loads(answers["json"].out)
    rows = document["rows"]
    assert [json.loads(line) for line in answers["jsonl"].out.splitlines()] == rows
    cells = list(csv.reader(io.StringIO(answers["csv"].out, newline="")))
    assert cells[0] == list(QUERIES[view].row_type.__struct_fields__)
    assert len(cells) == len(answers["table"].out.splitlines()) == len(rows) + 1
    assert ledger("query", view, "--store", store, "--json").out == answers["json"].out
    assert document["run"] == (None if QUERIES[view].rows is None else RUN)
    msgspec.convert(rows, tuple[QUERIES[view].row_type, ...])  # type: ignore[name-defined]


@pytest.mark.parametrize("view", ["runs", "outcomes", "attempts", "classes"])
def test_a_narrow_terminal_shows_every_row_in_lines_that_fit(
    ledger: Callable[..., Answer], store: Path, view: str
) -> None:
    rows = json.loads(ledger("query", view, "--store", store, "--json").out)["rows"]
    lines = ledger("query", view, "--store", store, COLUMNS="60").out.splitlines()
    key = QUERIES[view].row_type.__struct_fields__[0]
    assert rows
    assert [line.split()[1] for line in lines if line.startswith(f"{key}  ")] == [row[key] for row in rows]
    # What cannot be broken, such as a digest, stays whole so that it can be copied.
    assert all(len(line) <= 60 or len(line.split()) <= 2 for line in lines)


def test_conditions_and_moments_choose_rows(ledger: Callable[..., Answer], store: Path) -> None:
    chosen = ledger(
        "query", "classes", "run-0", "--store", store, "--where", "effect=failed", "--where", "test~a.py", "--json"
    )
    assert [row["test"] for row in json.loads(chosen.out)["rows"]] == ["a.py::test_b[=SUM(1),2]"]
    then = json.loads(ledger("query", "events", RUN, "--store", store, "--at", "#3", "--json").out)
    assert [row["position"] for row in then["rows"]] == [1, 2, 3]
    of_one = json.loads(ledger("query", "runs", RUN, "--store", store, "--at", "#3", "--json").out)
    assert [(row["run"], row["status"], row["attempts"]) for row in of_one["rows"]] == [(RUN, "open", 0)]
    runs = json.loads(ledger("query", "runs", "--store", store, "--at", "@5", "--json").out)
    assert (runs["sequence"], [row["run"] for row in runs["rows"]]) == (5, ["run-0"])
    late = json.loads(ledger("query", "runs", "--store", store, "--at", "2031-01-01", "--json").out)
    assert [row["run"] for row in late["rows"]] == ["run-0", RUN]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing",), "view-unknown"),
        (("runs", "--where", "nothing=1"), "column-unknown"),
        (("runs", "--where", "nothing"), "condition-malformed"),
        (("runs", "--at", "#3"), "moment-unknown"),
        (("runs", "--at", "@9999"), "moment-unknown"),
        (("runs", "--at", "@0"), "moment-unknown"),
        (("runs", "--at", "2001-01-01"), "moment-unknown"),
        (("events", "run-7"), "run-unknown"),
        (("events", "run-"), "run-unknown"),
        (("events", "ledger"), "run-unknown"),
        (("runs", "--format", "yaml"), "usage-invalid"),
    ],
)
def test_what_cannot_be_answered_is_told(
    ledger: Callable[..., Answer], store: Path, arguments: tuple[str, ...], code: str
) -> None:
    answer = ledger("query", *arguments, "--store", store)
    assert (answer.code, answer.error_code, answer.out) == (2, code, "")


def test_reading_needs_a_repository_only_to_find_the_ledger(ledger: Callable[..., Answer], store: Path) -> None:
    for command in (("status",), ("log",), ("show",), ("why", "test_c"), ("replay",), ("diff", "run-0"), ("config",)):
        assert ledger(*command, "--store", store).code == 0, command
    assert ledger("status", LEDGER_STORE=str(store)).code == 0
    assert ledger("status").error_code == "no-repository"
    for command in (("gate",), ("resume", "--from", "gate")):
        assert ledger(*command, "--store", store).error_code == "no-repository"


def test_a_run_goes_to_another_machine_and_tells_the_same_story(
    ledger: Callable[..., Answer], store: Path, tmp_path: Path
) -> None:
    exported = ledger("export", RUN, "--store", store)
    assert exported.code == 0, exported.err
    archive, there = tmp_path / "here" / f"{RUN}.ledger.tar", tmp_path / "there"
    assert json.loads(ledger("import", archive, "--check", "--json").out)["outcome"] == "proved"
    outcomes = [json.loads(ledger("import", archive, "--store", there, "--json").out)["outcome"] for _ in range(2)]
    assert outcomes == ["imported", "already-there"]
    for command in (("why", "test_c"), ("query", "cases"), ("query", "classes"), ("query", "outcomes", RUN)):
        told = [json.loads(ledger(*command, "--json", "--store", place).out) for place in (store, there)]
        for one in told:
            _forget_sequences(one)
        assert told[0] == told[1], command
    assert ledger("replay", "--store", there).code == 0


def _forget_sequences(value: Any) -> None:
    """Leave out what is outside of the digest."""
    if isinstance(value, dict):
        for name in [name for name in value if name.endswith("sequence")]:
            del value[name]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _forget_sequences(inner)


def test_a_damaged_archive_is_refused_with_its_code(ledger: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"x" * 2000)
    for arguments in (("--check",), ("--store", tmp_path / "there")):
        answer = ledger("import", tmp_path / "a.tar", *arguments, "--json")
        assert (answer.code, json.loads(answer.out)["error"]["code"]) == (7, "archive-invalid")
    assert not (tmp_path / "there").exists()
    assert ledger("import", tmp_path / "missing.tar").code == 2


def test_a_backup_says_what_it_holds_and_what_it_could_not_save(ledger: Callable[..., Answer], tmp_path: Path) -> None:
    store = make_ledger(tmp_path / "store", RUN)
    assert ledger("backup", tmp_path / "copy", "--store", store).code == 0
    assert ledger("status", "--store", tmp_path / "copy").code == 0
    piece = next((store / EVIDENCE).glob("*/*.gz"))
    piece.unlink()
    answer = ledger("backup", tmp_path / "second", "--store", store, "--json")
    assert (answer.code, json.loads(answer.out)["damaged"]) == (7, [piece.stem])
    assert (tmp_path / "second" / LEDGER_FILE).exists()
    assert ledger("backup", store, "--store", store).error_code == "destination-occupied"


@pytest.mark.parametrize("name", DESCRIBED)
def test_schemas_are_what_was_agreed(golden: Callable[[str, str], None], name: str) -> None:
    golden(f"schemas/{DESCRIBED[name].kind}-{name}.json", schema_text(DESCRIBED[name]) + "\n")


def test_every_schema_that_was_agreed_is_still_there() -> None:
    recorded = (Path(__file__).parents[2] / "golden" / "schemas").iterdir()
    assert sorted(file.name for file in recorded) == sorted(
        f"{described.kind}-{name}.json" for name, described in DESCRIBED.items()
    )


def test_names_of_schemas_are_unique_and_complete() -> None:
    everything = [described.name for described in everything_described()]
    assert len(everything) == len(set(everything))
    assert {tag for tag, _ in TAGS.values()} | set(QUERIES) <= set(everything)


def test_the_program_prints_the_schemas_and_what_there_is(ledger: Callable[..., Answer]) -> None:
    assert ledger("schema", "attempt-recorded").out == schema_text(DESCRIBED["attempt-recorded"]) + "\n"
    assert [one["name"] for one in json.loads(ledger("schema", "--json").out)] == list(DESCRIBED)
    assert len(ledger("schema").out.splitlines()) == len(DESCRIBED)
    answer = ledger("schema", "nothing")
    assert (answer.code, answer.error_code) == (2, "schema-unknown")


def conforms(document: object, described: Described) -> None:
    """Whether a document has exactly the fields of its type, all the way down."""
    converted = msgspec.convert(document, described.type)
    assert json.loads(msgspec.json.encode(converted)) == document


def test_what_the_commands_print_is_what_the_schemas_say(
    ledger: Callable[..., Answer], store: Path, tmp_path: Path
) -> None:
    printed = {
        "status": ("status",), "why": ("why", "test_c"), "show": ("show",), "diff": ("diff", "run-0"),
        "config": ("config",), "replay": ("replay",), "resume-plan": ("resume", "--from", "gate", "--dry-run"),
        "error": ("status", "run-7"), "query": ("query", "runs"), "export": ("export", "-o", str(tmp_path / "a.tar")),
        "backup": ("backup", str(tmp_path / "copy")), "verify": ("verify",),
        "replay-current": ("replay", "--policy", "current"),
    }  # fmt: skip
    for name, command in printed.items():
        conforms(json.loads(ledger(*command, "--json", "--store", store).out), DESCRIBED[name])
    conforms(json.loads(ledger("import", tmp_path / "a.tar", "--check", "--json").out), DESCRIBED["import"])
    conforms(json.loads(ledger("explain", "--json").out), DESCRIBED["explain"])
    types = {tag: event_type for event_type, (tag, _) in TAGS.items()}
    for line in ledger("log", "--json", "--store", store).out.splitlines():
        conforms(json.loads(line), DESCRIBED["log-line"])
        told = msgspec.json.decode(line, type=LogLine)
        msgspec.convert(told.event, types[told.header.tag])
