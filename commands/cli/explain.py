"""`ledger explain`: what the stable codes mean, those of reasons and those of errors."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

import click
from msgspec import Struct

from commands.causes import CAUSES, DOUBTS, FULL, HEALED, NOTES, QUESTIONS, REFUSALS, UNKNOWNS
from commands.cli.common import emit_json, emit_lines, json_option, width
from commands.cli.exits import ExitCode
from commands.cli.failures import CodeUnknown
from commands.render.words import wrapped
from ledger.errors import LedgerError
from ledger.proof import findings


class Code(Struct, frozen=True, kw_only=True):
    """One stable code. `exit_code` is that of the program for an error; a reason, which lies in events, has none."""

    code: str
    meaning: str
    next_step: str
    exit_code: int | None


@click.command()
@click.argument("code", default="", metavar="[CODE]")
@json_option
def explain(code: str, as_json: bool) -> ExitCode:
    """What CODE means and what to do about it; without CODE, all codes."""
    known = sorted((*_reasons(), *_errors()), key=lambda one: one.code)
    chosen = [one for one in known if code in ("", one.code)]
    if not chosen:
        near = ", ".join(difflib.get_close_matches(code, dict.fromkeys(one.code for one in known)))
        hint = f"did you mean {near}?" if near else "`ledger explain` lists them all"
        raise CodeUnknown(f"no reason and no error has the code {code!r}", hint)
    if as_json:
        emit_json({"codes": chosen})
    else:
        emit_lines([line for one in chosen for line in _lines(one, whole=bool(code))])
    return ExitCode.PASSED


def _lines(one: Code, *, whole: bool) -> Iterable[str]:
    indent = " " * 25
    kind = "" if one.exit_code is None else f" (exit code {one.exit_code})"
    yield from wrapped(f"{one.code:<24} {one.meaning}{kind}", width(), indent)
    if whole and one.next_step:
        yield from wrapped(f"{'':<24} {one.next_step}", width(), indent)


def _reasons() -> Iterable[Code]:
    for code, cause in {**HEALED, **CAUSES, **DOUBTS, **FULL, **NOTES, **QUESTIONS, **UNKNOWNS}.items():
        yield Code(code=code, meaning=cause.meaning, next_step=cause.next_step, exit_code=None)
    for code, meaning in {**findings.MEANING, **findings.NOTES}.items():
        yield Code(code=code, meaning=f"Of `ledger verify`: {meaning}.", next_step="", exit_code=None)


def _errors() -> Iterable[Code]:
    for error in every_error():
        meaning = " ".join((error.__doc__ or "").split())
        yield Code(code=error.code, meaning=meaning, next_step="", exit_code=error.exit_code)
    for code, refusal in REFUSALS.items():
        yield Code(code=code, meaning=refusal.meaning, next_step=refusal.next_step, exit_code=ExitCode.REFUSED)


def every_error() -> Iterable[type[LedgerError]]:
    """Every kind of expected failure, wherever in the program it is defined."""
    for room in ("ledger", "projections", "commands"):
        for found in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            # What is shipped runs in other programs and may not even be importable in this one.
            if not found.name.startswith("commands.shipped"):
                module = importlib.import_module(found.name)
                yield from (value for value in vars(module).values() if _is_error_of(value, module))


def _is_error_of(value: object, module: ModuleType) -> bool:
    return isinstance(value, type) and issubclass(value, LedgerError) and value.__module__ == module.__name__
