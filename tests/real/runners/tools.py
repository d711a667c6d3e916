"""Test runners of other languages in pinned versions, installed once by their package managers into a cached folder."""

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

PINS = Path(__file__).parent
INSTALL_SECONDS = 600


class Tool(NamedTuple):
    """A runner that is installed: its place, the variables that `ledger` needs to find it, and the settings for it."""

    place: Path
    variables: Mapping[str, str]
    settings: str


GATE = """
    [gate]
    shards = 1
    rounds = 1
    rerun = "off"
"""


def bun() -> Tool:
    """Bun, whose binary is a package of its own."""
    place = _installed("bun", _npm)
    binaries = place / "node_modules" / "@oven" / "bun-linux-x64" / "bin"
    settings = (
        GATE
        + """
    [runner]
    runner = "command"
    command = ["bun", "test", "--reporter=junit", "--reporter-outfile={report}", "./{targets}"]
    targets = ["**/*.test.js"]
    dialect = "bun"
    version = ["bun", "--version"]
    """
    )
    return Tool(place, _path(binaries), settings)


def vitest() -> Tool:
    """Vitest, with what is installed linked into the tree."""
    place = _installed("vitest", _npm)
    settings = (
        GATE
        + f"""
    [runner]
    runner = "command"
    command = ["node_modules/.bin/vitest", "run", "--reporter=junit", "--outputFile={{report}}", "{{tree}}/{{targets}}"]
    targets = ["**/*.test.js"]
    dialect = "vitest"
    version = ["node_modules/.bin/vitest", "--version"]
    links = {{ node_modules = "{place}/node_modules" }}
    """
    )
    return Tool(place, {}, settings)


def gotestsum() -> Tool:
    """Go's own test command with gotestsum around it. Its builds are kept in the cached folder."""
    if _program("go") is None:
        pytest.skip("gotestsum cannot be had: there is no go on PATH")
    place = _installed("gotestsum", _go)
    listed = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\\t{{.Dir}}{{end}}"
    settings = (
        GATE
        + f"""
    [runner]
    runner = "command"
    command = ["gotestsum", "--junitfile={{report}}", "--", "-count=1", "{{targets}}"]
    list = ["go", "list", "-f", "{listed}", "./..."]
    dialect = "gotestsum"
    version = ["go", "version"]
    set_environment = {{ GOCACHE = "{place}/build", GOTOOLCHAIN = "local", GOFLAGS = "-mod=mod", GOPROXY = "off" }}
    """
    )
    return Tool(place, _path(place, Path(str(_program("go"))).parent), settings)


def _path(*directories: Path) -> dict[str, str]:
    """PATH with these directories, behind what `ledger` itself needs and before what the system has."""
    from tests.support.cli import LEDGER

    return {"PATH": os.pathsep.join([str(LEDGER.parent), *map(str, directories), os.defpath])}


def _program(name: str) -> str | None:
    usual = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/go/bin"])
    return shutil.which(name, path=usual)


def _npm(place: Path) -> None:
    if _program("npm") is None:
        pytest.skip(f"{place.name} cannot be had: there is no npm on PATH")
    if platform.machine() != "x86_64":
        pytest.skip(f"{place.name} is pinned for x86-64 only")
    _install(place, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")


def _go(place: Path) -> None:
    _install(place, str(_program("go")), "build", "-o", "gotestsum", "gotest.tools/gotestsum")


def _install(place: Path, *argv: str) -> None:
    """Run an installation; what cannot be had makes no test fail, and says so in a line."""
    try:
        ended = subprocess.run(
            argv,
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{argv[0]} took more than {INSTALL_SECONDS} s")
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip().splitlines() or ["nothing"]
        pytest.skip(f"{argv[0]} could not install what is pinned: {said[-1][:200]}")


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder with what the pins name, made by whoever comes first; one whose making was cut short is made anew."""
    pins = sorted(path for path in (PINS / name).iterdir() if path.is_file())
    digest = sha256(b"\0".join(path.read_bytes() for path in pins)).hexdigest()[:12]
    root = Path(tempfile.gettempdir()) / f"ledger-test-runners-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    place = root / f"{name}-{digest}"
    with (root / f"{place.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(PINS / name, place)
            install(place)
            (place / "complete").touch()
    return place
