"""docs/releases.md says what the program does: keys, codes, tables, commands, documents."""

import contextlib
import json
import re
import shlex
from pathlib import Path

import click
import msgspec
import pytest

from commands.causes import REFUSALS
from commands.cli.app import cli
from commands.cli.exits import ExitCode
from commands.cli.explain import every_error
from commands.config.keys import RULES
from commands.config.load import Loaded
from commands.config.settings import Settings
from commands.config.steps import StepKeys
from commands.decide.release.causes import RELEASE_REFUSALS
from commands.decide.release.healing_words import REROUTES
from commands.effects.release import repair
from commands.readers.archive_manifest import read_manifest
from commands.readers.step_result import judge, read_step
from commands.releasing import preparing
from ledger.errors import LedgerError
from ledger.events import TAGS
from projections.people.public_text import public_fault
from projections.release import graph, standing
from projections.reuse import partial
from tests.commands.releasing.projects import ReleaseProject

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "releases.md").read_text("utf-8")
README = (DOCS.parent / "README.md").read_text("utf-8")
LOOKS = """
    import json, os, pathlib, shutil
    place = pathlib.Path(os.environ["LEDGER_ARCHIVE"])
    shutil.copy(os.environ["LEDGER_CONTEXT"], place / "context.json")
    (place / "names.json").write_text(json.dumps([name for name in os.environ if name.startswith("LEDGER_")]))
"""
LOOKING = '[[step]]\nname = "look"\nuses = "prepare"\nrun = ["python3", "look.py"]\nmanifest = "write"\n'


def section(heading: str) -> str:
    """What stands below a heading."""
    found = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert found, heading
    return found


def table(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with this cell, as cells without what is around them."""
    lines = text[text.index(f"\n| {first} |") :].strip().partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def codes(cells: list[str]) -> set[str]:
    """What stands in backquotes in these cells."""
    return set(re.findall(r"`([\w.-]+)`", " ".join(cells)))


def rows_of(docstring: str | None) -> list[str]:
    """The rows of the tables in a docstring, as they stand on a page."""
    return [re.sub(" +", " ", line.strip()) for line in (docstring or "").splitlines() if line.strip().startswith("|")]


@pytest.mark.parametrize(
    ("heading", "docstring"),
    [
        ("What a command is told, and what it says", judge.__doc__),
        ("Where a step stands", standing.__doc__),
        ("The archive", preparing.__doc__),
        ("Resuming", partial.__doc__),
    ],
)
def test_the_tables_of_the_program_stand_on_the_page_row_by_row(heading: str, docstring: str | None) -> None:
    rows = rows_of(docstring)
    assert len(rows) >= 7
    assert "\n".join(rows) in section(heading)


def _plain(value: object) -> object:
    """A value as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def test_every_key_of_a_step_is_listed_with_its_default() -> None:
    listed = {key.strip("`"): default.strip("`") for key, default, _ in table(PAGE, "key of a `[[step]]`")}
    assert list(listed) == list(StepKeys.__struct_fields__)
    for field in msgspec.structs.fields(StepKeys):
        if field.default not in (msgspec.NODEFAULT, msgspec.UNSET):
            assert msgspec.json.decode(listed[field.name]) == _plain(field.default), field.name


def test_every_limit_of_a_release_is_listed_with_its_default() -> None:
    defaults = Loaded(Settings(), {})
    rows = table(section("The steps"), "key")
    assert [key for key, _, _ in rows] == [f"`{key}`" for key in RULES if key.startswith("release.")]
    for key, default, _ in rows:
        assert msgspec.json.decode(default.strip("`")) == _plain(defaults.value(key.strip("`"))), key


def test_every_contradiction_is_listed_and_no_other() -> None:
    known = set(re.findall(r'_said\("([a-z-]+)"', Path(graph.__file__).read_text("utf-8")))
    assert codes([first for first, _ in table(section("The steps"), "code")]) == known


def test_the_steps_of_the_page_can_be_released(tmp_path: Path) -> None:
    pages = "\n".join((DOCS / name).read_text("utf-8") for name in ("releases.md", "when-a-release-fails.md"))
    settings = re.findall(r"```toml\n(.*?)```", pages, re.DOTALL)
    assert len(settings) == 2
    for number, text in enumerate(settings):
        project = ReleaseProject(tmp_path / str(number))
        project.path.mkdir(parents=True)
        project.git("init", "--quiet")
        project.commit({"ledger.toml": text})
        answer = project.ledger("release", "check")
        assert (answer.code, answer.err) == (0, ""), answer.out


def test_every_refusal_about_releases_is_listed_and_no_other_code() -> None:
    resuming = section("Resuming")
    listed = codes([row[1] for row in table(resuming, "rule")] + [row[0] for row in table(resuming, "code")])
    assert {*RELEASE_REFUSALS, *REROUTES} <= listed
    assert listed <= {*REFUSALS, *(kind.code for kind in every_error())}


def test_every_refusal_of_a_repair_is_listed() -> None:
    kinds = [one for one in vars(repair).values() if isinstance(one, type) and issubclass(one, LedgerError)]
    own = {one.code for one in kinds if one.__module__ == repair.__name__}
    assert codes([first for first, _ in table(section("The branch: cut and repair"), "code")]) == own


def test_every_command_of_the_page_is_one() -> None:
    readme = README.partition("\n## Releases\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^    (ledger .*)$", PAGE + readme, re.MULTILINE)
    inline = [re.sub(r"\s+", " ", found) for found in re.findall(r"`(ledger [^`]+)`", PAGE)]
    assert len(lines) > 20
    assert len(inline) > 10
    for line in lines:
        _parse(cli, "ledger", shlex.split(line, comments=True)[1:])
    for line in inline:
        # In a sentence, a command may stand without what it needs.
        with contextlib.suppress(click.MissingParameter):
            _parse(cli, "ledger", shlex.split(line)[1:])


def _parse(command: click.Command, name: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse a command line as the program does, and run nothing."""
    context = command.make_context(name, arguments, parent=parent)
    if isinstance(command, click.Group):
        found, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert subcommand is not None
        _parse(subcommand, str(found), rest, context)


def test_a_step_is_told_what_the_page_says(tmp_path: Path) -> None:
    project = ReleaseProject.with_steps(tmp_path, {"look.py": LOOKS}, steps=LOOKING)
    assert project.ledger("release", "start", "1.1.0").code == 0
    archive = Path(project.show()["archives"][0]["place"])
    told = section("What a command is told, and what it says")
    keys = [key.strip("`") for key, _ in table(told, "key of the context")]
    assert sorted(keys) == sorted(json.loads((archive / "context.json").read_text()))
    variables = codes([first for first, _ in table(told, "variable")])
    assert variables == set(json.loads((archive / "names.json").read_text()))


def test_the_result_of_the_page_can_be_read() -> None:
    (line,) = re.findall(r"```json\n(.*)\n```", section("What a command is told, and what it says"))
    reading = read_step(line.encode(), "exited", 0)
    assert reading.outcome == "passed"
    assert [probe.name for probe in reading.probes] == ["fonts"]
    assert reading.keys == {"screens": 12}


def test_the_manifest_of_the_page_can_be_read() -> None:
    (manifest,) = re.findall(r"```json\n(.*)\n```", section("The archive"))
    assert read_manifest(manifest.encode()).version == "1.2.0"


def test_the_texts_for_the_public_on_the_page_are_fit_for_it() -> None:
    chapter = section("Waivers and known issues")
    (reason,) = re.findall(r'--reason "(.*)"', chapter)
    (issue,) = json.loads(re.findall(r"`(\[\{.*\}\])`", chapter)[0])
    assert public_fault(reason) == public_fault(issue["note"]) == ""


def test_every_exit_code_is_listed() -> None:
    left_out = {ExitCode.INTEGRITY, ExitCode.BUG}
    listed = [int(code) for code, _ in table(section("Exit codes"), "code")]
    assert listed == [code.value for code in ExitCode if code not in left_out]


def test_every_event_of_a_release_is_listed_and_no_other_tag() -> None:
    listed = codes([first for first, _ in table(section("What is recorded"), "event")])
    tags = {tag: kind.__module__ for kind, (tag, _) in TAGS.items()}
    assert listed <= tags.keys()
    assert {tag for tag, module in tags.items() if module == "ledger.events.release"} <= listed


@pytest.mark.parametrize("page", ["README.md", "docs/releases.md", "docs/when-a-release-fails.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    file = DOCS.parent / page
    text = file.read_text("utf-8")
    headings = [re.sub("[^a-z0-9 -]", "", one.lower()) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    anchors = {heading.replace(" ", "-") for heading in headings}
    for path, anchor in re.findall(r"\]\(([^)#:]*)#?([^)]*)\)", text):
        assert (file.parent / path).exists(), path
        assert path or anchor in anchors, anchor
