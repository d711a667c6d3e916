"""Where settings come from: flags, variables, and files; each source knows where it has a key from."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from commands.config.keys import RULES, SCALARS, TABLES, convert
from ledger.errors import LedgerError

_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)$")
_PATHS = ("store", "work")
_VARIABLES = {f"LEDGER_{key.replace('.', '_').upper()}": key for key in SCALARS}


class ConfigInvalid(LedgerError):
    """The configuration cannot be used: names the place, the key, what was found and what is allowed."""

    code = "config-invalid"
    exit_code = 2

    def __init__(self, message: str, hint: str = "`ledger config` lists every key with its value") -> None:
        super().__init__(message, hint)


class Source(NamedTuple):
    """Checked values by key, and for each of them the place that it comes from, for people."""

    values: dict[str, Any]
    origin: Callable[[str], str]


def from_flags(flags: Mapping[str, object], directory: Path) -> Source:
    """What the command line gave; None stands for a flag that was not used. Raises ConfigInvalid."""
    given = {key: found for key, found in flags.items() if found is not None}
    return _checked(given, directory, lambda _: "flag")


def from_environment(environment: Mapping[str, str], directory: Path) -> Source:
    """What `LEDGER_...` variables give; an empty one counts as not set. Raises ConfigInvalid.

    Other programs' LEDGER_ variables are no concern of ours, but a misspelt LEDGER_GATE_ one would be lost.
    """
    for name in environment:
        if name.startswith("LEDGER_GATE_") and name not in _VARIABLES:
            raise ConfigInvalid(f"environment {name}: unknown variable{_nearest(name, _VARIABLES)}")
    names = {key: name for name, key in _VARIABLES.items()}
    given = {key: environment[name] for key, name in names.items() if environment.get(name)}
    return _checked(given, directory, lambda key: f"environment {names[key]}")


def from_repository(toplevel: Path) -> Source | None:
    """What `ledger.toml`, or else `[tool.ledger]` of `pyproject.toml`, gives; None when there is neither.

    Raises ConfigInvalid: also when there are both, since it would not be plain which one is in force.
    """
    own = from_file(toplevel / "ledger.toml", "file ledger.toml")
    shared = from_file(toplevel / "pyproject.toml", "file pyproject.toml", ("tool", "ledger"))
    if own and shared:
        raise ConfigInvalid(f"{toplevel} has both ledger.toml and [tool.ledger] in pyproject.toml", "keep one of them")
    return own or shared


def from_file(path: Path, name: str, table: tuple[str, ...] = ()) -> Source | None:
    """What a TOML file gives in a table (its top when empty); None without the file, or without the table."""
    text = _read(path, name)
    # Other tools own most pyproject.toml files; one that cannot concern us need not even be sound.
    if text is None or not all(part in text for part in table):
        return None
    document: Any = _parse(text, name)
    for part in table:
        document = document.get(part) if isinstance(document, dict) else None
    if document is None:
        return None

    def origin(key: str) -> str:
        line = _line_of(text, (*table, *filter(None, key.split("."))))
        return f"{name}:{line}" if line else name

    return _checked(_flat(document, origin), path.parent, origin)


def _read(path: Path, name: str) -> str | None:
    try:
        # As in TOML itself, both kinds of line ends are one.
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as failure:
        line = failure.object[: failure.start].count(b"\n") + 1
        raise ConfigInvalid(f"{name}:{line}: the file is not UTF-8: {failure.reason}") from failure
    except OSError as failure:
        raise ConfigInvalid(f"{name}: cannot be read: {failure.strerror}") from failure


def _parse(text: str, name: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        said = str(failure)
        position = _POSITION.search(said)
        place = f"{name}:{position[1]}:{position[2]}" if position else f"{name}:{text.count(chr(10)) + 1}"
        raise ConfigInvalid(f"{place}: broken TOML: {_POSITION.sub('', said)}") from failure


def _flat(document: object, origin: Callable[[str], str]) -> dict[str, object]:
    """The values by dotted key, as they stand in the top and in the tables that we have."""
    flat: dict[str, object] = {}
    for name, found in {"": document, **(document if isinstance(document, dict) else {})}.items():
        if name and name not in TABLES:
            flat[name] = found
        elif not isinstance(found, dict):
            raise ConfigInvalid(f"{origin(name)}: `{name or 'tool.ledger'}` is {found!r:.80}; allowed: a table")
        elif name:
            flat |= {f"{name}.{inner}": value for inner, value in found.items()}
    return flat


def _checked(given: Mapping[str, object], base: Path, origin: Callable[[str], str]) -> Source:
    """The source with every value converted; relative paths start at `base`."""
    values = {}
    for key, found in given.items():
        if key not in RULES:
            raise ConfigInvalid(f"{origin(key)}: unknown key `{key}`{_nearest(key, RULES)}")
        try:
            value = convert(key, found)
        except ValueError as problem:
            raise ConfigInvalid(f"{origin(key)}: {problem}") from problem
        if key in _PATHS and value and "://" not in value:
            value = os.path.normpath(base / os.path.expanduser(value))
        values[key] = value
    return Source(values, origin)


def _nearest(name: str, known: Mapping[str, object]) -> str:
    import difflib

    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _line_of(text: str, path: tuple[str, ...]) -> int:
    """The line on which a key of a sound document is set; 0 when it is not written as it is spelt.

    It is the last line that names the key and before which the document is whole and does not have it yet.
    """
    lines, found = text.split("\n"), 0
    for number, line in enumerate(lines):
        if path[-1] in line and not _may_have("\n".join(lines[:number]), path):
            found = number + 1
    return found


def _may_have(beginning: str, path: tuple[str, ...]) -> bool:
    import tomllib

    try:
        value: Any = tomllib.loads(beginning)
    except ValueError:
        return True
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
