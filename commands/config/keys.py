"""Every key of the configuration: what it means, what it may hold, how what was written becomes its value."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from commands.config.settings import CommandSettings, MuteSettings, NotifySettings, ReleaseSettings, Settings
from commands.config.steps import steps_of
from ledger.events import GatePolicy, MachinePolicy, PlanPolicy, QuestionPolicy
from projections.people.questions import DEADLINE_MINUTES_MAX, DEADLINE_MINUTES_MIN

TARGETS = "{targets}"
"""What stands for the targets in `runner.command`."""

TABLES = ("gate", "plan", "machine", "mutes", "questions", "notify", "release", "runner")
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


def _is_command(argv: tuple[str, ...]) -> bool:
    return not argv or _are_commands((argv,))


def _is_test_command(argv: tuple[str, ...]) -> bool:
    return not argv or (_are_commands((argv,)) and [TARGETS in part for part in argv[1:]].count(True) == 1)


def _is_glob(value: str) -> bool:
    return _are_inner_paths((value,))


def _are_globs(values: tuple[str, ...]) -> bool:
    return all(map(_is_glob, values))


def _is_report_glob(value: str) -> bool:
    # Python knows `**` as a whole part of a path only; git, which answers the globs of targets, is less strict.
    return _is_glob(value) and all(part == "**" or "**" not in part for part in value.split("/"))


def _is_dialect(value: str) -> bool:
    from commands.readers.junit.dialects import DIALECTS

    return not value or value in DIALECTS


def _is_profile(value: str) -> bool:
    from commands.readers.junit.profiles import PROFILES

    return not value or value in PROFILES


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
    "gate.rerun": Rule(
        "Whether tests that newly fail are run again, alone and then among the same others, before the verdict.",
        '"on" or "off"',
        _anything,
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
    "plan.split_seconds": Rule(
        "A test file that takes longer than this, and longer than an even share of all time, is run in several parts, "
        "each with some of its tests; 0 never does that. Only for files whose tests do not depend on each other.",
        _TIME_OR_NONE,
        _is_limit,
    ),
    "plan.durations_file": Rule(
        "A file of the repository with times of tests, such as pytest-split's `.test_durations`; for what no gate has "
        "measured yet. Empty for none.",
        "a path inside the repository",
        lambda value: not value or _are_inner_paths((value,)),
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
    "mutes.count_max": Rule(
        "How many tests may be muted at a time.", "a whole number from 0 to 1000", _between(0, 1000)
    ),
    "mutes.days_max": Rule(
        "For how many days a test may be muted at most.", "a whole number from 1 to 30", _between(1, 30)
    ),
    "mutes.passes": Rule(
        "After how many runs in a row in which a muted test passed it is proposed to take the muting back.",
        "a whole number from 1 to 1000",
        _between(1, 1000),
    ),
    "questions.intake_max": Rule(
        "How often a run may ask people while it takes in what is wanted; critical questions are always asked.",
        "a whole number from 0 to 100",
        _between(0, 100),
    ),
    "questions.planning_max": Rule(
        "How often it may ask while it plans.", "a whole number from 0 to 100", _between(0, 100)
    ),
    "questions.execution_max": Rule(
        "How often it may ask while it runs its steps.", "a whole number from 0 to 100", _between(0, 100)
    ),
    "questions.deadline_minutes": Rule(
        "How long people have for an answer, unless the question says otherwise.",
        "a whole number from 1 to 35791",
        _between(DEADLINE_MINUTES_MIN, DEADLINE_MINUTES_MAX),
    ),
    "release.remote": Rule(
        "The remote on which the branches of releases are.", "the name of a remote of the repository", _is_line
    ),
    "release.main": Rule(
        "The branch of the remote that repairs of a release are picked from.", "the name of a branch", _is_line
    ),
    "release.attempts_max": Rule(
        "How often a release may be taken up again.", "a whole number from 1 to 1000", _between(1, 1000)
    ),
    "release.may_waive": Rule("Who may waive a step; empty for anybody.", "a list of names of users", _are_texts),
    "release.may_approve": Rule("Who may approve; empty for anybody.", "a list of names of users", _are_texts),
    "release.separate_duties": Rule(
        "Whether who has waived something of a release may not approve it.", "true or false", _anything
    ),
    "release.autoheal": Rule(
        "Whether a gate that did not pass is begun again by the program itself, as far as the table in "
        "docs/autoheal.md allows.",
        "true or false",
        _anything,
    ),
    "step": Rule("The steps of a release, in order; see docs/releases.md.", "a list of `[[step]]` tables", _anything),
    "notify.hooks": Rule(
        "Commands that are run when a run waits for a person; each reads one JSON document on its standard input.",
        "a list of commands, each a list of texts that begins with a program",
        _are_commands,
    ),
    "runner.runner": Rule(
        "The test runner: pytest, or any command that writes JUnit reports.", '"pytest" or "command"', _anything
    ),
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
    "runner.may_change": Rule(
        "Files of the repository that tests may change, such as snapshots. They are put back before each run of tests; "
        "a change of any other file makes a run unmeasured.",
        "a list of globs such as tests/**/*.snap",
        _are_globs,
    ),
    "runner.command": Rule(
        "For `command`: what runs tests. The argument with {targets} is given once for each target; {report} is the "
        "path for the report, {directory} that for several; {tree} and {cache} are as in `prepare`.",
        "a list of texts that begins with a program, {targets} in one of the others",
        _is_test_command,
    ),
    "runner.targets": Rule("For `command`: the test files.", "a list of globs such as tests/**/*.test.js", _are_globs),
    "runner.list": Rule(
        "For `command`: instead of `targets`, what prints the targets, one a line; after a tab, a line may name the "
        "file or directory that holds the target.",
        "a list of texts that begins with a program",
        _is_command,
    ),
    "runner.report": Rule(
        "For `command`: the reports, in the directory that an attempt has to itself.",
        "a glob inside that directory",
        _is_report_glob,
    ),
    "runner.report_in_tree": Rule(
        "For `command`, instead of `report`: the reports of a program that can write only into the tree. They are "
        "moved out of it after each run, so parts run one at a time.",
        "a glob inside the repository",
        lambda value: not value or _is_report_glob(value),
    ),
    "runner.dialect": Rule(
        "For `command`: how its reports are written; empty to recognise it.",
        "the name of a dialect, such as vitest or gotestsum (`ledger read --help` lists them)",
        _is_dialect,
    ),
    "runner.profile": Rule(
        "For `command`: what its counts mean; empty for what they say.",
        "the name of a profile (`ledger read --help` lists them)",
        _is_profile,
    ),
    "runner.exit_codes": Rule(
        "For `command`: what its exit codes mean, in place of what the dialect says.",
        'a table such as { 0 = "passed", 1 = "failed" }',
        lambda codes: all(code.isdecimal() and code.isascii() and int(code) < 256 for code in codes),
    ),
    "runner.version": Rule(
        "For `command`: what prints the version of the test runner.",
        "a list of texts that begins with a program",
        _is_command,
    ),
    "runner.links": Rule(
        "For `command`: paths of the repository that are made to lead to what `prepare` installed.",
        'a table such as { node_modules = "{cache}/node_modules" }',
        lambda links: _are_inner_paths(tuple(links)) and all(value and _is_text(value) for value in links.values()),
    ),
}
"""Every key with its rule. A key in a table is written `table.key`."""


_TYPES: dict[str, Any] = {
    **{field.name: field.type for field in msgspec.structs.fields(Settings) if field.name not in TABLES},
    **{f"gate.{field.name}": field.type for field in msgspec.structs.fields(GatePolicy)},
    **{f"plan.{field.name}": field.type for field in msgspec.structs.fields(PlanPolicy)},
    **{f"machine.{field.name}": field.type for field in msgspec.structs.fields(MachinePolicy)},
    **{f"mutes.{field.name}": field.type for field in msgspec.structs.fields(MuteSettings)},
    **{f"questions.{field.name}": field.type for field in msgspec.structs.fields(QuestionPolicy)},
    **{f"notify.{field.name}": field.type for field in msgspec.structs.fields(NotifySettings)},
    **{f"release.{field.name}": field.type for field in msgspec.structs.fields(ReleaseSettings)},
    **{f"runner.{field.name}": field.type for field in msgspec.structs.fields(CommandSettings)},
}

SCALARS = tuple(name for name in RULES if not name.startswith(("runner.", "notify.", "release.may_", "step")))
"""The keys that can also be given by a variable `LEDGER_...`."""


def convert(key: str, found: object) -> Any:
    """The value of a key from what a file, a variable or a flag gave. Raises ValueError, saying why not."""
    if key == "step":
        return steps_of(found, lambda text: _quantity(text, _SECONDS))
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
