"""The real project that gates are tried on: two releases of click, as commits, with the tests that they ship.

What comes from the package index is pinned by digest (`pins/`) and kept in the user's cache directory, so that only the
first time takes long.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path

from scripts.environment import digest_of

PINS = Path(__file__).with_name("pins")
LEDGER = Path(sys.executable).with_name("ledger")

RACES = ("--deselect=tests/test_utils.py::test_echo_via_pager",)
"""The test of both releases whose outcome nobody can know: how much a pager has written when its output is looked at is
a race. On a busy machine each of its variants fails now and then."""


class Release(NamedTuple):
    """A commit of the project: the version of its source, and that of its tests."""

    source: str
    tests: str


RELEASES = {
    "8.2.1": Release("8.2.1", "8.2.1"),
    "8.3.0": Release("8.3.0", "8.3.0"),
    # What the new source breaks of the promises that the old tests hold: regressions that nobody made up.
    "8.3.0-with-old-tests": Release("8.3.0", "8.2.1"),
}
"""The commits by their tags, in the order of the history."""


class Project(NamedTuple):
    """A checkout of the project, the interpreter that its tests run in, and the variables to run `ledger` with."""

    checkout: Path
    python: Path
    variables: dict[str, str]

    def ledger(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the ledger in the checkout to its end."""
        return subprocess.run(
            [LEDGER, *arguments], cwd=self.checkout, env=self.variables, capture_output=True, text=True, check=False
        )

    def told(self, ended: subprocess.CompletedProcess[str]) -> str:
        """What a command printed, with the crash reports that there are."""
        reports = Path(self.variables["TMPDIR"]).glob("ledger-crash-*")
        return "\n".join([ended.stdout, ended.stderr, *(report.read_text("utf-8") for report in reports)])


def make_project(home: Path, python: Path, gate: Mapping[str, int]) -> Project:
    """A repository of all releases in `home/checkout`, with the last one checked out; `gate` are settings of the gate.

    `ledger` keeps everything else below `home`, too.
    """
    checkout = home / "checkout"
    author = {"NAME": "A Tester", "EMAIL": "tester@example.org", "DATE": "2026-01-01T00:00:00Z"}
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in author.items()}
    variables = plain_variables(home) | {"LEDGER_WORK": str(home / "work"), **who}

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", checkout, *arguments], check=True, env=variables)

    checkout.mkdir(parents=True)
    git("init", "--quiet", "--initial-branch=main")
    for tag, release in RELEASES.items():
        git("rm", "-r", "--quiet", "--force", "--ignore-unmatch", ".")
        write_release(checkout, release)
        (checkout / "ledger.toml").write_text(_settings(python, gate), "utf-8")
        git("add", "--all", "--force")
        git("commit", "--quiet", "--message", tag)
        git("tag", tag)
    return Project(checkout, python, variables)


def plain_variables(home: Path) -> dict[str, str]:
    """The variables of a program that is to know nothing of the user's settings; its directories are made."""
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return kept | {"HOME": str(home), "TMPDIR": str(temporary), "GIT_CONFIG_NOSYSTEM": "1"}


def write_release(directory: Path, release: Release) -> None:
    """The files of a release, into a directory without any."""
    shutil.copytree(_source_tree(release.source), directory, dirs_exist_ok=True)
    if release.tests != release.source:
        shutil.rmtree(directory / "tests")
        shutil.copytree(_source_tree(release.tests) / "tests", directory / "tests")


def interpreter_of(pins: str) -> Path:
    """The interpreter of an environment with exactly what `pins/NAME.txt` names."""
    requirements = PINS / f"{pins}.txt"

    def make(place: Path) -> None:
        _run(sys.executable, "-m", "venv", str(place))
        install = ("install", "--only-binary=:all:", "--require-hashes", "--requirement", str(requirements))
        _run(str(place / "bin" / "python"), "-m", "pip", *install)

    return _made_once(pins, requirements.read_bytes(), make) / "bin" / "python"


def _source_tree(version: str) -> Path:
    """The unpacked source distribution of a version.

    pip asks the build backend for metadata before it hands a source distribution over, so the backend is pinned, too.
    """
    requirements, backend = PINS / f"click-{version}.txt", PINS / "build.txt"
    pip = (sys.executable, "-m", "pip")

    def make(place: Path) -> None:
        hashed = ("--no-deps", "--require-hashes", "--requirement")
        _run(*pip, "install", "--target", str(place / "backend"), *hashed, str(backend))
        options = ("--no-binary=click", "--no-build-isolation", "--dest", str(place))
        _run(*pip, "download", *options, *hashed, str(requirements), PYTHONPATH=str(place / "backend"))
        with tarfile.open(place / f"click-{version}.tar.gz") as archive:
            archive.extractall(place, filter="data")

    key = requirements.read_bytes() + backend.read_bytes()
    return _made_once(f"click-{version}", key, make) / f"click-{version}"


def _made_once(name: str, key: bytes, make: Callable[[Path], None]) -> Path:
    """A directory of the cache, made by whoever comes first; one whose making was cut short is made anew."""
    root = user_cache_path("release-ledger-development")
    root.mkdir(parents=True, exist_ok=True)
    place = root / f"{name}-{digest_of(key, sys.version.encode())[:12]}"
    stamp = place / "complete"
    with place.with_name(f"{place.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not stamp.exists():
            shutil.rmtree(place, ignore_errors=True)
            make(place)
            stamp.touch()
    return place


def _settings(python: Path, gate: Mapping[str, int]) -> str:
    """The `ledger.toml` of the project. That its source is below `src` is for the ledger to find out."""
    lines = ["[gate]", *(f"{key} = {value}" for key, value in gate.items())]
    lines += ["[runner]", f"python = {json.dumps(str(python))}", f"arguments = {json.dumps(RACES)}"]
    return "\n".join(lines) + "\n"


def _run(*argv: str, **variables: str) -> None:
    """Run a command that makes something; what it prints is of interest only when it fails."""
    ended = subprocess.run(
        argv, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"{argv} ended with exit code {ended.returncode}:\n{ended.stdout}")
