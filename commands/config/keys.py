"""Every key of the configuration: what it means, what it may hold, how what was written becomes its value."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from commands.config.settings import RunnerSettings, Settings
from ledger.events import GatePolicy, MachinePolicy, PlanPolicy

TABLES = ("gate", "plan", "machine", "runner")
"""The tables of the configuration file; all other keys are at its top."""

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]+)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Rule(NamedTuple):
    """`meaning` is for people; `allowed` tells them what `accepts` is true for."""

    meaning: str
    allowed: str
    accepts: Callable[[Any], bool]


def _between(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: low <= value <= high


def _anything(value: object) -> bool:
    return True


def _is_limit(value: float) -> bool:
    # Beyond 2**53 a number changes its value on the way through other programs' JSON.
    return math.isfinite(value) and 0 <= value <= 2**53


def _is_line(value: str) -> bool:
    return value.isprintable()


def _is_text(value: str) -> bool:
    # No argument and no variable of a process can hold the character 0.
    return "\0" not in value


def _are_texts(values: tuple[str, ...]) -> bool:
    return all(map(_is_text, values))


def _are_commands(commands: tuple[tuple[str, ...], ...]) -> bool:
    return all(command and command[0] and _are_texts(command) for command in commands)


def _are_inner_paths(values: tuple[str, ...]) -> bool:
    return all(value and not value.startswith("/") and ".." not in value.split("/") for value in values) and (
        _are_texts(values)
    )


def _are_modules(values: tuple[str, ...]) -> bool:
    return all(value.isidentifier() for value in values)


def _are_patterns(values: tuple[str, ...]) -> bool:
    return all(_VARIABLE.fullmatch(value.removesuffix("*")) for value in values)


def _are_variables(values: dict[str, str]) -> bool:
    return all(_VARIABLE.fullmatch(name) and _is_text(value) for name, value in values.items())


_TIME = 'seconds, or a time such as "90s", "10m" or "1.5h"; 0 for no limit'
_SIZE = 'bytes, or a size such as "512MiB" or "2GiB"; 0 for no limit'
_TIME_OR_NONE, _SIZE_OR_NONE = 'seconds, or a time such as "90s" or "10m"', 'bytes, or a size such as "512MiB"'
_PATHS = "a list of paths inside the repository"

RULES: dict[str, Rule] = {
    "project": Rule("Name of the project.", "one line of text", _is_line),
    "store": Rule("Where the ledger is kept; empty for the repository's own git directory.", "a path", _is_line),
    "work": Rule("Where tests get their own checkouts; empty for your cache directory.", "a path", _is_line),
    "gate.baseline": Rule(
        "Test the baseline always, or only where the candidate failed, skipped or lost tests.",
        '"always" or "on-failure"',
        _anything,
    ),
    "gate.rounds": Rule(
        "How often a part of the tests may be tried until it is measured.",
        "a whole number from 1 to 100",
        _between(1, 100),
    ),
    "gate.shards": Rule(
        "How many parts the tests are cut into; 0 lets the planner choose.",
        "a whole number from 0 to 10000",
        _between(0, 10000),
    ),
    "gate.parallel": Rule(
        "How many parts run at a time on this machine; by default one for each usable processor.",
        "a whole number from 1 to 1024",
        _between(1, 1024),
    ),
    "gate.flaky": Rule(
        "Whether a test that fails and then passes is a warning or blocks.", '"warn" or "block"', _anything
    ),
    "gate.time_limit_seconds": Rule("How long one part may take.", _TIME, _is_limit),
    "gate.idle_limit_seconds": Rule("How long one part may show no sign of life.", _TIME, _is_limit),
    "gate.memory_limit_bytes": Rule("How much memory the processes of one part may use.", _SIZE, _is_limit),
    "plan.budget_bytes": Rule(
        "How much memory one part may be planned to need; 0 takes `gate.memory_limit_bytes` or, without one, an even "
        "part of this machine's memory.",
        _SIZE_OR_NONE,
        _is_limit,
    ),
    "plan.target_seconds": Rule(
        "Cut into as few parts as end within this time; 0 for one for each that runs at a time.",
        _TIME_OR_NONE,
        _is_limit,
    ),
    "plan.heavy_percent": Rule(
        "A test file that needs more than so many percent of a part's memory has a part to itself.",
        "a whole number from 1 to 100",
        _between(1, 100),
    ),
    "plan.spawn_targets": Rule("Test files that share parts of their own with no others.", _PATHS, _are_inner_paths),
    "plan.spawn_shards": Rule("How many parts they share.", "a whole number from 1 to 1000", _between(1, 1000)),
    "plan.deadline_floor_seconds": Rule(
        "A part is never given up before this time, unless `gate.time_limit_seconds` is shorter.",
        _TIME_OR_NONE,
        _is_limit,
    ),
    "plan.deadline_percent": Rule(
        "A part is given up after so many percent of its planned time, unless that is below the floor.",
        "a whole number from 100 to 10000",
        _between(100, 10000),
    ),
    "machine.reservation_bytes": Rule(
        "The least memory that is set aside for a part that runs.", _SIZE_OR_NONE, _is_limit
    ),
    "machine.headroom_percent": Rule(
        "A part is ended when it needs more than so many percent of the memory that it is planned to need.",
        "a whole number from 100 to 10000",
        _between(100, 10000),
    ),
    "machine.start_wait_seconds": Rule(
        "How long a part that finds no room on this machine is waited for, while no other part of the run is running.",
        _TIME_OR_NONE,
        _is_limit,
    ),
    "runner.runner": Rule("The test runner.", '"pytest"', _anything),
    "runner.python": Rule(
        "The interpreter of the project; empty for the active environment, .venv, or the one on PATH.",
        "a path or a name on PATH; {tree} and {cache} are replaced",
        _is_line,
    ),
    "runner.arguments": Rule("Added to the command line of pytest.", "a list of texts", _are_texts),
    "runner.paths": Rule("What is collected; empty for what pytest itself would collect.", _PATHS, _are_inner_paths),
    "runner.prepare": Rule(
        "Commands that install what the tests need, run once for each content of the lock files: "
        "{tree} is the checkout that is tested, {cache} a directory to install into.",
        "a list of commands, each a list of texts that begins with a program",
        _are_commands,
    ),
    "runner.lock": Rule("The files that pin the dependencies.", _PATHS, _are_inner_paths),
    "runner.import_paths": Rule("Directories that are put on PYTHONPATH first.", _PATHS, _are_inner_paths),
    "runner.first_party": Rule(
        "The project's own top-level packages; empty to find them.", "a list of module names", _are_modules
    ),
    "runner.pass_environment": Rule(
        "Variables that the tests get from your environment.",
        "a list of names of variables, or of beginnings such as DJANGO_*",
        _are_patterns,
    ),
    "runner.set_environment": Rule("Variables that the tests get.", "a table of names and texts", _are_variables),
}
"""Every key with its rule. A key in a table is written `table.key`."""


_TYPES: dict[str, Any] = {
    **{field.name: field.type for field in msgspec.structs.fields(Settings) if field.name not in TABLES},
    **{f"gate.{field.name}": field.type for field in msgspec.structs.fields(GatePolicy)},
    **{f"plan.{field.name}": field.type for field in msgspec.structs.fields(PlanPolicy)},
    **{f"machine.{field.name}": field.type for field in msgspec.structs.fields(MachinePolicy)},
    **{f"runner.{field.name}": field.type for field in msgspec.structs.fields(RunnerSettings)},
}

SCALARS = tuple(name for name in RULES if not name.startswith("runner."))
"""The keys that can also be given by a variable `LEDGER_...`."""


def convert(key: str, found: object) -> Any:
    """The value of a key from what a file, a variable or a flag gave. Raises ValueError, saying why not."""
    given = found
    if isinstance(found, str) and key.endswith("_seconds"):
        given = _quantity(found, _SECONDS)
    if isinstance(found, str) and key.endswith("_bytes"):
        given = round(_quantity(found, _BYTES))
    try:
        value = msgspec.convert(given, _TYPES[key], strict=not isinstance(given, str))
    except msgspec.ValidationError:
        value = None
    rule = RULES[key]
    if value is None or not rule.accepts(value):
        # The content of a table is not shown, because it may hold secrets.
        shown = "a table" if isinstance(found, dict) else repr(found)[:80]
        raise ValueError(f"`{key}` is {shown}; allowed: {rule.allowed}")
    return value


def _quantity(text: str, units: dict[str, float]) -> float:
    """A number with or without a unit; minus one, which no key accepts, for anything else."""
    found = _QUANTITY.fullmatch(text)
    if found and found[2] in units:
        return float(found[1]) * units[found[2]]
    return float(text) if text.isdecimal() and text.isascii() else -1.0
