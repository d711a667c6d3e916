"""Which runner a repository is tested with, as far as its files tell, and the settings to begin with."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from commands.config.settings import CommandSettings, RunnerSettings
from commands.runners import pytest as adapter

_SCRIPTS = (".[jt]s", ".[jt]sx", ".[cm][jt]s")
_VITEST = tuple(f"**/*.{kind}{script}" for kind in ("test", "spec") for script in _SCRIPTS)
_BUN = tuple(f"**/*{kind}{script}" for kind in (".test", "_test", ".spec", "_spec") for script in _SCRIPTS)
_PACKAGES = "node_modules"
_GO_TARGETS = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"


class Recognised(NamedTuple):
    """A runner by name, the settings to begin with, and why it was taken to be the project's."""

    name: str
    settings: RunnerSettings
    reason: str


def recognised(toplevel: Path) -> Recognised | None:
    """The first runner that the files of a directory speak for; None if nothing does."""
    return next(_found(toplevel), None)


def _found(toplevel: Path) -> Iterator[Recognised]:
    reason = adapter.detect(toplevel)
    if reason is not None:
        yield Recognised("pytest", RunnerSettings(), reason)
    if "vitest" in _dependencies(toplevel / "package.json"):
        yield Recognised("vitest", _vitest(toplevel), "package.json names vitest")
    for lock in ("bun.lock", "bun.lockb"):
        if (toplevel / lock).is_file():
            yield Recognised("bun", _bun(toplevel, lock), f"there is {lock}")
    if (toplevel / "go.mod").is_file():
        yield Recognised("gotestsum", _gotestsum(toplevel), "there is go.mod")


def _vitest(toplevel: Path) -> CommandSettings:
    vitest = f"{_PACKAGES}/.bin/vitest"
    lock = "package-lock.json"
    is_locked = (toplevel / lock).is_file()
    return CommandSettings(
        command=(vitest, "run", "--reporter=junit", "--outputFile={report}", "{tree}/{targets}"),
        targets=_VITEST,
        dialect="vitest",
        version=(vitest, "--version"),
        prepare=(_copied(lock), ("npm", "ci", "--prefix", "{cache}")) if is_locked else (),
        lock=(lock,) if is_locked else (),
        links={_PACKAGES: f"{{cache}}/{_PACKAGES}"} if is_locked else {},
    )


def _bun(toplevel: Path, lock: str) -> CommandSettings:
    has_packages = bool(_dependencies(toplevel / "package.json"))
    return CommandSettings(
        command=("bun", "test", "--reporter=junit", "--reporter-outfile={report}", "./{targets}"),
        targets=_BUN,
        dialect="bun",
        version=("bun", "--version"),
        prepare=(_copied(lock), ("bun", "install", "--frozen-lockfile", "--cwd={cache}")) if has_packages else (),
        lock=(lock,),
        links={_PACKAGES: f"{{cache}}/{_PACKAGES}"} if has_packages else {},
    )


def _gotestsum(toplevel: Path) -> CommandSettings:
    return CommandSettings(
        command=("gotestsum", "--junitfile={report}", "--", "-count=1", "{targets}"),
        list=("go", "list", "-f", _GO_TARGETS, "./..."),
        dialect="gotestsum",
        version=("go", "version"),
        lock=tuple(name for name in ("go.sum",) if (toplevel / name).is_file()),
        # The home of each attempt is its own, and empty, so that what Go builds and downloads is kept elsewhere.
        set_environment={"GOCACHE": "{cache}/go-build", "GOMODCACHE": "{cache}/go-mod"},
    )


def _copied(lock: str) -> tuple[str, ...]:
    return ("cp", "package.json", lock, "{cache}")


def _dependencies(package: Path) -> set[str]:
    """The names of the packages that a package.json asks for; none when there is no such file that can be read."""
    try:
        document: Any = json.loads(package.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    groups = (document.get(key) for key in ("dependencies", "devDependencies")) if isinstance(document, dict) else ()
    return {name for group in groups if isinstance(group, dict) for name in group}
