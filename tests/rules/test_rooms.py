"""Who may import whom, and which code stays pure: the rules of the three rooms, from one table."""

import ast
import sys
from dataclasses import dataclass

import pytest

from tests.rules.sources import (
    PRODUCT_ROOMS,
    Source,
    Violation,
    imports_at_load,
    imports_of,
    listing,
    python_sources,
    within,
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A row of the table: what the modules at or below `name` may import besides the standard library.

    The row with the longest matching name holds. `ours` and `not_ours` are dotted prefixes of our modules;
    `pure` places have no clock, no chance, no input or output.
    """

    name: str
    ours: tuple[str, ...]
    not_ours: tuple[str, ...] = ()
    third_parties: tuple[str, ...] = ("msgspec",)
    pure: bool = False


LEDGER_WITH_FILES = ("ledger.store", "ledger.evidence")
STORE_ENGINES = ("ledger.store.sqlite",)
STORE_WRITING = ("ledger.store.writer", *STORE_ENGINES)
# How a job ended is what a reader is told about it, so pure code may know the shapes that executors hand over.
EXECUTOR_SHAPES = "commands.executors.api"
PORTS = ("commands.effects.ports", EXECUTOR_SHAPES)
PURE_COMMANDS = (
    "commands.messages",
    "commands.decide",
    "commands.readers",
    "commands.render",
    "commands.config.settings",
    "commands.causes",
    # Taking decisions again must not be able to do anything.
    "commands.replay",
    "commands.reconsider",
)
BELOW_LOOP = ("ledger", "projections", *PURE_COMMANDS, *PORTS, "commands.config", "commands.runners")
BELOW_WIRING = (*BELOW_LOOP, "commands.loop", "commands.driver")
USE_CASES = (
    "commands.gating",
    "commands.initializing",
    "commands.people",
    "commands.planning_run",
    "commands.querying",
    "commands.stopping",
)

TABLE = (
    Place(name="ledger", ours=("ledger",)),
    Place(name="ledger.events", ours=("ledger.events", "ledger.values"), pure=True),
    Place(name="ledger.store.writer", ours=("ledger",), third_parties=("msgspec", "eventsourcing")),
    Place(name="ledger.store.sqlite", ours=("ledger",), third_parties=("msgspec", "eventsourcing")),
    Place(name="projections", ours=("ledger", "projections"), not_ours=LEDGER_WITH_FILES, pure=True),
    Place(name="commands", ours=()),
    *(
        Place(
            name=name,
            ours=("ledger", "projections", *PURE_COMMANDS, EXECUTOR_SHAPES),
            not_ours=LEDGER_WITH_FILES,
            third_parties=("msgspec", "rich") if name == "commands.render" else ("msgspec",),
            pure=True,
        )
        for name in PURE_COMMANDS
    ),
    Place(
        name="commands.readers.junit.document",
        ours=("ledger", "commands.readers.junit"),
        not_ours=LEDGER_WITH_FILES,
        third_parties=("lxml",),
        pure=True,
    ),
    Place(
        name="commands.config",
        ours=(*PURE_COMMANDS, "ledger", "projections", "commands.config", *PORTS),
        not_ours=LEDGER_WITH_FILES,
        third_parties=("msgspec", "platformdirs"),
    ),
    Place(name="commands.runners", ours=(*BELOW_LOOP, "commands.shipped"), not_ours=STORE_WRITING),
    Place(
        name="commands.effects",
        ours=(*BELOW_LOOP, "commands.effects"),
        not_ours=STORE_WRITING,
        third_parties=("msgspec", "psutil", "filelock", "platformdirs"),
    ),
    # A step's process is a job of this machine, with a supervisor of its own.
    Place(
        name="commands.effects.steps",
        ours=(*BELOW_LOOP, "commands.effects", "commands.executors.local", "commands.shipped"),
        not_ours=STORE_WRITING,
    ),
    Place(
        name="commands.executors",
        ours=(*BELOW_LOOP, "commands.executors", "commands.shipped"),
        not_ours=STORE_WRITING,
        third_parties=("msgspec", "psutil"),
    ),
    Place(name="commands.loop", ours=(*BELOW_LOOP, "commands.loop"), not_ours=STORE_ENGINES),
    Place(name="commands.driver", ours=BELOW_WIRING, not_ours=STORE_WRITING),
    Place(
        name="commands.wiring",
        ours=(*BELOW_WIRING, "commands.wiring", "commands.effects", "commands.executors"),
        third_parties=("msgspec", "platformdirs"),
    ),
    # What a verb of the command line does as a whole: the wiring is asked, implementations are not named.
    *(
        Place(name=name, ours=(*BELOW_WIRING, "commands.wiring", *USE_CASES), not_ours=STORE_WRITING)
        for name in USE_CASES
    ),
    # A step of a release is carried out with the real thing: git, a process, files, a person. None has a second kind.
    Place(
        name="commands.releasing",
        ours=(*BELOW_WIRING, "commands.wiring", "commands.gating", "commands.effects", "commands.releasing"),
        not_ours=STORE_WRITING,
    ),
    Place(
        name="commands.cli",
        ours=(*BELOW_WIRING, "commands.wiring", *USE_CASES, "commands.releasing", "commands.cli"),
        not_ours=STORE_WRITING,
        third_parties=("msgspec", "click", "rich"),
    ),
    # These files run in the user's interpreter, where neither we nor our requirements are installed.
    Place(name="commands.shipped", ours=(), third_parties=()),
    # As a program it has no package around it, and finds its neighbour by its bare name.
    Place(name="commands.shipped.supervisor", ours=("commands.shipped.process_tree",), third_parties=("process_tree",)),
    Place(
        name="commands.shipped.step_supervisor",
        ours=("commands.shipped.redaction", "commands.shipped.supervisor"),
        third_parties=("redaction", "supervisor"),
    ),
    Place(name="commands.shipped.pytest_plugin", ours=(), third_parties=("pytest",)),
)

IMPURE_MODULES = (
    "asyncio",
    "concurrent",
    "fcntl",
    "getpass",
    "glob",
    "http",
    "importlib",
    "logging",
    "mmap",
    "multiprocessing",
    "os",
    "platform",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
    "uuid",
)
# Modules that are pure but for these names; a value of type `PurePath` does what a view needs of a path.
IMPURE_NAMES = (
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "io.FileIO",
    "io.open",
    "pathlib.Path",
    "pathlib.PosixPath",
    "sys.argv",
    "sys.stderr",
    "sys.stdin",
    "sys.stdout",
)
IMPURE_BUILTINS = ("__import__", "breakpoint", "eval", "exec", "input", "open")

OLDEST_SHIPPED = (3, 8)
NEWER_MODULES = ("graphlib", "tomllib", "zoneinfo")


def place_of(module: str) -> Place:
    """The row that holds for a module: the one with the longest name that covers it."""
    return max((place for place in TABLE if within(module, (place.name,))), key=lambda place: len(place.name))


def forbidden_imports(source: Source) -> list[Violation]:
    """The imports of a file that its row does not allow."""
    place = place_of(source.module)
    violations = []
    for found in imports_of(source):
        top = found.module.split(".")[0]
        if top in sys.stdlib_module_names:
            continue
        if top not in PRODUCT_ROOMS:
            allowed = top in place.third_parties
        else:
            # What is taken from a package may be a module of its own, so the full name is what counts.
            allowed = within(found.full, place.ours) and not within(found.full, place.not_ours)
        if not allowed:
            reason = f"`{place.name}` may not import `{found.full}`"
            violations.append(Violation(source.path, found.line, reason))
    return violations


def impurities(source: Source) -> list[Violation]:
    """Each use of a clock, of chance, or of input and output in a file that has to be pure."""
    violations = []
    meanings: dict[str, str] = {}
    for found in imports_of(source):
        if within(found.module, IMPURE_MODULES) or found.full in (*IMPURE_MODULES, *IMPURE_NAMES):
            violations.append(Violation(source.path, found.line, f"impure import of `{found.full}`"))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            meanings |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            meanings |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and dotted(node, meanings) in IMPURE_NAMES:
            violations.append(Violation(source.path, node.lineno, f"impure `{dotted(node, meanings)}`"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_BUILTINS:
            violations.append(Violation(source.path, node.lineno, f"impure `{node.func.id}()`"))
    return violations


def too_new_for_shipping(source: Source) -> list[Violation]:
    """The syntax and the standard modules that the oldest supported interpreter of a user does not have."""
    try:
        ast.parse(source.text, feature_version=OLDEST_SHIPPED)
    except SyntaxError as error:
        return [Violation(source.path, error.lineno or 1, error.msg)]
    return [
        Violation(source.path, found.line, f"`{found.module}` is newer than Python 3.8")
        for found in imports_of(source)
        if found.module in NEWER_MODULES
    ]


def dotted(node: ast.expr, meanings: dict[str, str]) -> str:
    """The full name that an expression like `datetime.now` stands for, given what the file imported."""
    if isinstance(node, ast.Name):
        return meanings.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, meanings)}.{node.attr}"
    return ""


def loaded_with(start: Source, sources: dict[str, Source]) -> set[str]:
    """Every module name that is loaded when `start` is imported, as far as our own sources tell."""
    seen: set[str] = set()
    waiting = [start.module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        if name in sources:
            for found in imports_at_load(sources[name]):
                waiting.append(found.module)
                if found.full in sources:
                    waiting.append(found.full)
    return seen


PRODUCT = python_sources(*PRODUCT_ROOMS)
PURE = [source for source in PRODUCT if place_of(source.module).pure]
# Where a view is read or shown; what only writes is imported when it is needed, so that looking stays fast.
READING = ("ledger.store.reader", "projections", "commands.render", "commands.wiring", "commands.cli")


def by_path(source: Source) -> str:
    """Name a test's case after the file that it looks at."""
    return source.path


@pytest.mark.parametrize("source", PRODUCT, ids=by_path)
def test_a_file_imports_only_what_its_place_allows(source: Source) -> None:
    violations = forbidden_imports(source)
    assert not violations, listing(violations)


@pytest.mark.parametrize("source", PURE, ids=by_path)
def test_a_pure_place_has_no_clock_no_chance_and_no_input_or_output(source: Source) -> None:
    violations = impurities(source)
    assert not violations, listing(violations)


@pytest.mark.parametrize("source", [source for source in PRODUCT if within(source.module, READING)], ids=by_path)
def test_reading_never_loads_the_event_store_library(source: Source) -> None:
    loaded = loaded_with(source, {one.module: one for one in PRODUCT})
    assert not [name for name in loaded if within(name, ("eventsourcing",))]


@pytest.mark.parametrize(
    "source", [source for source in PRODUCT if within(source.module, ("commands.shipped",))], ids=by_path
)
def test_what_is_shipped_runs_on_an_old_interpreter(source: Source) -> None:
    violations = too_new_for_shipping(source)
    assert not violations, listing(violations)


def test_every_row_of_the_table_names_a_place_that_exists() -> None:
    modules = {source.module for source in PRODUCT}
    named = {place.name for place in TABLE} | {prefix for place in TABLE for prefix in (*place.ours, *place.not_ours)}
    assert [name for name in sorted(named) if not any(within(module, (name,)) for module in modules)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ledger/record.py", "from projections import fold"),
        ("ledger/record.py", "import commands.loop"),
        ("ledger/record.py", "from eventsourcing.persistence import StoredEvent"),
        ("ledger/store/reader.py", "import eventsourcing"),
        ("ledger/events/gate.py", "from ledger.store.api import Store"),
        ("projections/fold.py", "from commands.messages import Resume"),
        ("projections/fold.py", "from ledger import store"),
        ("projections/fold.py", "from ledger.store.reader import read"),
        ("projections/fold.py", "import click"),
        ("projections/gate/classes.py", "def late():\n    from commands import loop"),
        ("projections/gate/classes.py", "from ...commands import loop"),
        ("commands/decide/gate.py", "from commands.effects.ports import Clock"),
        ("commands/decide/gate.py", "from commands.executors.local import Local"),
        ("commands/decide/gate.py", "import rich"),
        ("commands/messages/gate.py", "from commands.loop import handle"),
        ("commands/readers/usage_file.py", "from commands import wiring"),
        ("commands/readers/usage_file.py", "from lxml import etree"),
        ("commands/readers/junit/read.py", "from lxml import etree"),
        ("commands/render/status.py", "import click"),
        ("commands/loop.py", "from commands.effects import git"),
        ("commands/loop.py", "from commands.effects.git import Git"),
        ("commands/loop.py", "from commands.driver import drive"),
        ("commands/loop.py", "from ledger.store.sqlite import SQLiteStore"),
        ("commands/driver.py", "from ledger.store.writer import Writer"),
        ("commands/driver.py", "from commands.executors.local import Local"),
        ("commands/driver.py", "from .wiring import build"),
        ("commands/driver.py", "import psutil"),
        ("commands/executors/local.py", "from commands.effects.git import Git"),
        ("commands/executors/local.py", "import filelock"),
        ("commands/effects/git.py", "import click"),
        ("commands/wiring.py", "from commands.cli import main"),
        ("commands/cli/gate.py", "from commands.effects.git import Git"),
        ("commands/cli/gate.py", "import psutil"),
        ("commands/shipped/plugin.py", "import msgspec"),
        ("commands/shipped/plugin.py", "import pytest"),
        ("commands/shipped/plugin.py", "from commands.messages import Resume"),
        ("commands/shipped/plugin.py", "from . import supervisor"),
        ("commands/shipped/pytest_plugin/plugin.py", "import msgspec"),
        ("commands/unheard_of.py", "import ledger.values"),
        ("commands/wiring.py", "from tests.fakes import Clock"),
        ("commands/wiring.py", "import scripts.environment"),
    ],
)
def test_a_forbidden_import_is_found_with_its_line(path: str, text: str) -> None:
    violations = forbidden_imports(Source(path, f"import json\n{text}\n"))
    assert [str(one).rpartition(":")[0] for one in violations] == [f"{path}:{1 + len(text.splitlines())}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ledger/store/writer.py", "from eventsourcing.persistence import StoredEvent"),
        ("projections/fold.py", "from ledger.events import Event"),
        ("projections/fold.py", "from .gate import classes"),
        ("commands/decide/gate.py", "from commands.messages.gate import Measure"),
        ("commands/readers/junit/read.py", "from commands.executors.api import JobEnd"),
        ("commands/readers/junit/document/parser.py", "def late():\n    from lxml import etree"),
        ("commands/loop.py", "from commands.effects.ports import Clock"),
        ("commands/loop.py", "from commands.effects import ports"),
        ("commands/loop.py", "from ledger.store.writer import Writer"),
        ("commands/executors/local.py", "from commands.shipped import supervisor"),
        ("commands/wiring.py", "from commands.effects import git, files"),
        ("commands/render/status.py", "from rich.table import Table"),
        ("commands/shipped/plugin.py", "import os, subprocess, json"),
        ("commands/shipped/pytest_plugin/plugin.py", "import pytest"),
    ],
)
def test_an_allowed_import_is_let_through(path: str, text: str) -> None:
    assert forbidden_imports(Source(path, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "import os.path",
        "from os import environ",
        "import time as clock",
        "from urllib import request",
        "from pathlib import Path",
        "import pathlib\nhere = pathlib.Path()",
        "from datetime import datetime\nnow = datetime.now()",
        "from datetime import datetime as moment\nnow = moment.now",
        "import datetime as dates\nnow = dates.datetime.utcnow()",
        "import datetime\nnow = datetime.date.today()",
        "text = open('file').read()",
        "import sys\nsys.stdout.write('seen')",
        "def late():\n    import random",
    ],
)
def test_an_impurity_is_found(text: str) -> None:
    assert len(impurities(Source("projections/fold.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime, time\nmoment = datetime.fromisoformat('2026-01-01')",
        "from pathlib import PurePosixPath",
        "import io\nbuffer = io.BytesIO()",
        "from urllib.parse import quote",
        "class Door:\n    def open(self): ...\nDoor().open()",
    ],
)
def test_pure_code_is_let_through(text: str) -> None:
    assert impurities(Source("projections/fold.py", text)) == []


@pytest.mark.parametrize("text", ["match 1:\n    case 1: ...", "import tomllib", "with (a as b, c as d): ..."])
def test_what_is_too_new_for_shipping_is_found(text: str) -> None:
    assert len(too_new_for_shipping(Source("commands/shipped/plugin.py", text))) == 1


def test_what_is_loaded_follows_imports_and_their_packages_but_not_those_in_functions() -> None:
    sources = [
        Source("ledger/__init__.py", ""),
        Source("ledger/store/__init__.py", "from ledger.store import api"),
        Source("ledger/store/api.py", "def late():\n    import filelock"),
        Source(
            "ledger/store/reader.py",
            "import sqlite3\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import click",
        ),
    ]
    loaded = loaded_with(sources[-1], {source.module: source for source in sources})
    assert loaded == {
        "ledger",
        "ledger.store",
        "ledger.store.api",
        "ledger.store.reader",
        "sqlite3",
        "typing",
    }
