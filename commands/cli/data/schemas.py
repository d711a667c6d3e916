"""The command `schema`: the JSON Schema of every event, of every row of a view, and of every document of a command.

They are made from the same types that write and read, so they cannot say anything else than what is done.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

import click
import msgspec
from msgspec import Struct

from commands.cli.common import emit_json, emit_lines, json_option, say
from commands.cli.exits import ExitCode
from commands.cli.explain import Code
from ledger.errors import LedgerError
from ledger.proof.findings import Finding, Report
from ledger.record import Header
from ledger.steps import StepGraph
from ledger.values import Digest
from projections.release.graph import Contradiction
from projections.release.summary import ArchiveRow, ReleaseRow

Kind = Literal["event", "row", "document"]

JSON_VERSION = 1
"""The version of rows and documents: keys are only added to them within it."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaUnknown(LedgerError):
    """There is no event, view or document of this name."""

    code = "schema-unknown"
    exit_code = 2


class Described(Struct, frozen=True):
    """Something that has a schema. `version` is that of the event's tag, or of all JSON."""

    name: str
    kind: Kind
    version: int
    type: Any


class LogLine(Struct, frozen=True, kw_only=True):
    """One line of `ledger log --json`. `event` holds the fields of the event that the header's tag names, or the
    payload as text when this version does not know the tag."""

    sequence: int
    header: Header
    digest: Digest
    event: Any


class Setting(Struct, frozen=True, kw_only=True):
    """The value of a key and where it comes from."""

    value: Any
    origin: str


class ConfigDocument(Struct, frozen=True, kw_only=True):
    """All settings by key, and the directory of the ledger."""

    settings: dict[str, Setting]
    store: str


class ErrorDetails(Struct, frozen=True, kw_only=True):
    """The stable code of an expected failure, what happened, and what to do next."""

    code: str
    message: str
    hint: str


class ErrorDocument(Struct, frozen=True, kw_only=True):
    """What a command prints instead of its document when it fails."""

    error: ErrorDetails


class QueryDocument(Struct, frozen=True, kw_only=True):
    """The rows of a view; `run` is null for all runs, `sequence` that of the last event that was taken into account."""

    view: str
    run: str | None
    sequence: int
    rows: tuple[dict[str, Any], ...]


class ExplainDocument(Struct, frozen=True, kw_only=True):
    """The stable codes that were asked for, each with what it means."""

    codes: tuple[Code, ...]


class ReleaseListDocument(Struct, frozen=True, kw_only=True):
    """The releases of a ledger, the newest first."""

    releases: tuple[ReleaseRow, ...]


class ReleaseCheckDocument(Struct, frozen=True, kw_only=True):
    """The steps of the settings, and what in them contradicts itself."""

    steps: StepGraph
    contradictions: tuple[Contradiction, ...]


class ArchivesDocument(Struct, frozen=True, kw_only=True):
    """The archives of a release: those that were set aside first, the one that counts last."""

    release: str
    archives: tuple[ArchiveRow, ...]


class VerifyDocument(Report, frozen=True, kw_only=True):
    """What `ledger verify --json` prints: every finding, and the report over them."""

    findings: tuple[Finding, ...]


@click.command(short_help="The JSON Schema of events, rows and documents.")
@click.argument("name", required=False, metavar="[NAME]")
@json_option
def schema(name: str | None, as_json: bool) -> ExitCode:
    """The JSON Schema of NAME: the tag of an event, a view of `ledger query`, or the document that a command prints
    with --json. Without NAME, what there is.
    """
    known = {described.name: described for described in everything_described()}
    if name is None:
        if as_json:
            emit_json([{"name": one.name, "kind": one.kind, "version": one.version} for one in known.values()])
        else:
            emit_lines([f"{one.kind:<9} {one.name:<18} version {one.version}" for one in known.values()])
            say("next: ledger schema NAME")
    elif name in known:
        emit_lines([schema_text(known[name])])
    else:
        raise SchemaUnknown(f"there is no event, view or document {name!r}", "`ledger schema` lists what there is")
    return ExitCode.PASSED


def schema_text(described: Described) -> str:
    """The schema as JSON, indented."""
    marks = {
        "$schema": _DIALECT,
        "$id": f"urn:release-ledger:{described.kind}:{described.name}:{described.version}",
        "version": described.version,
    }
    return json.dumps(marks | msgspec.json.schema(described.type), indent=2)


def everything_described() -> Iterator[Described]:
    """Everything that has a schema, each under a name of its own."""
    from ledger.events import TAGS
    from projections.queries.registry import QUERIES

    for event_type, (tag, version) in sorted(TAGS.items(), key=lambda item: item[1]):
        yield Described(tag, "event", version, event_type)
    for query in QUERIES.values():
        yield Described(query.name, "row", JSON_VERSION, query.row_type)
    for name, document_type in sorted(_documents().items()):
        yield Described(name, "document", JSON_VERSION, document_type)


def _documents() -> dict[str, type[Struct]]:
    """What each command prints with --json, by the name of the command."""
    from commands.cli.data.transfer import ExportedArchive, ImportedArchive
    from commands.cli.measures.read import ReadDocument
    from commands.initializing import Written
    from commands.messages import StartRelease
    from commands.planning_run import PlanAnswer
    from commands.reconsider import Reconsideration
    from commands.releasing.run import Repair
    from commands.render.reports.jsonl import ReportCase, ReportHeader
    from commands.replay import Report as ReplayReport
    from ledger.backup import Backup
    from ledger.events import Answered, Muted, Unmuted
    from ledger.proof.receipt import Receipt
    from projections.gate.why import Why
    from projections.history.needs import Needs
    from projections.people.listing import MuteList
    from projections.people.question_list import QuestionList
    from projections.release.resume import ReleasePlan
    from projections.release.summary import ReleaseSummary
    from projections.run.diff import RunDiff
    from projections.run.resume import ResumePlan
    from projections.run.story import RunStory
    from projections.run.summary import RunSummary
    from projections.run.timing import RunTiming

    return {
        "answer": Answered,
        "archives": ArchivesDocument,
        "backup": Backup,
        "config": ConfigDocument,
        "diff": RunDiff,
        "error": ErrorDocument,
        "explain": ExplainDocument,
        "export": ExportedArchive,
        "import": ImportedArchive,
        "init": Written,
        "log-line": LogLine,
        "mute": Muted,
        "mutes": MuteList,
        "plan": PlanAnswer,
        "query": QueryDocument,
        "questions": QuestionList,
        "read": ReadDocument,
        "recover": Receipt,
        "release": ReleaseSummary,
        "release-check": ReleaseCheckDocument,
        "release-list": ReleaseListDocument,
        "release-plan": ReleasePlan,
        "release-repair": Repair,
        "release-start": StartRelease,
        "replay": ReplayReport,
        "replay-current": Reconsideration,
        "report-case": ReportCase,
        "report-header": ReportHeader,
        "resume-plan": ResumePlan,
        "show": RunStory,
        "status": RunSummary,
        "timing": RunTiming,
        "unmute": Unmuted,
        "usage": Needs,
        "verify": VerifyDocument,
        "why": Why,
    }
