"""What a side needs before its tests can run: an interpreter, and what the configured commands install."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from commands.config.settings import RunnerSettings
from commands.effects import processes
from commands.effects.locks import OwnedLock
from ledger.errors import LedgerError, StoreUnwritable
from ledger.values import Digest

_LOG_TAIL_BYTES = 4000


class PrepareFailed(LedgerError):
    """A command of `prepare` failed, so that the tests of this side cannot be measured."""

    code = "prepare-failed"
    exit_code = 3

    def __init__(self, argv: Sequence[str], what: str, log: Path) -> None:
        with log.open("rb") as written:
            written.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
            tail = written.read(_LOG_TAIL_BYTES).decode("utf-8", "replace").strip()
        super().__init__(f"{list(argv)} of `prepare` {what}; it ended with:\n{tail}", f"all of it: {log}")
        self.argv, self.log, self.log_tail = tuple(argv), log, tail


class PythonMissing(LedgerError):
    """There is no interpreter to run the tests with."""

    code = "python-missing"
    exit_code = 2


class Prepared(NamedTuple):
    """What `prepare` left: its directory (`{cache}`), the key of its content, and whether it was made now."""

    cache: Path
    key: Digest
    made: bool


class Python(NamedTuple):
    """The interpreter of the project, and why it is this one."""

    path: Path
    reason: str


def prepare_side(
    settings: RunnerSettings,
    *,
    tree: Path,
    tree_id: str,
    cache_root: Path,
    version: str,
    environment: Mapping[str, str],
    owner: Mapping[str, object],
    timeout_seconds: float = 3600.0,
) -> Prepared:
    """Run the `prepare` commands in the side's worktree, unless they have run for these dependencies before.

    The same means: the bytes of the `lock` files, the commands and the `version` of what they are run with; without
    lock files the whole tree (`tree_id`). A directory whose commands did not all succeed is left aside and never used
    again, because a program of the interrupted attempt may still be writing there. A lock per key lets one process
    prepare while the others wait. Raises PrepareFailed, LockHeld and StoreUnwritable.
    """
    key = _key(settings, tree, tree_id, version)
    place = cache_root / key
    if not settings.prepare:
        return Prepared(place, key, made=False)
    lock = OwnedLock(cache_root / f"{key}.lock", owner)
    lock.acquire(timeout_seconds)
    try:
        done = _completed(place)
        cache = done or _fresh(place)
        for argv in () if done else settings.prepare:
            _execute(expand(argv, tree, cache), tree, environment, cache.with_suffix(".log"), timeout_seconds)
        if not done:
            _complete(place, cache)
    except OSError as failure:
        raise StoreUnwritable(f"{place} cannot be prepared: {failure}", "free space, or set LEDGER_WORK") from failure
    finally:
        lock.release()
    return Prepared(cache, key, made=done is None)


def expand(argv: Sequence[str], tree: Path, cache: Path) -> tuple[str, ...]:
    """The command with the side's worktree for `{tree}` and its prepared directory for `{cache}`."""
    return tuple(part.replace("{tree}", str(tree)).replace("{cache}", str(cache)) for part in argv)


def find_python(
    settings: RunnerSettings, *, tree: Path, cache: Path, checkout: Path, parent: Mapping[str, str]
) -> Python:
    """The configured interpreter, else the active environment's, else the checkout's, else one on PATH.

    Links are not followed: the link is what makes an interpreter that of its environment.
    Raises PythonMissing, naming what was looked at.
    """
    if settings.python:
        (configured,) = expand((settings.python,), tree, cache)
        place = _executable(checkout / configured if "/" in configured else Path(configured), parent)
        if place is None:
            raise PythonMissing(
                f"`python` in [runner] names {configured}, which is no program that can be run",
                "correct it, or let `prepare` make it",
            )
        return Python(place, "configured")
    active = parent.get("VIRTUAL_ENV")
    candidates = [(Path(active, "bin/python"), "VIRTUAL_ENV")] if active else []
    candidates += [(checkout / name / "bin/python", f"{name} in the checkout") for name in (".venv", "venv")]
    candidates += [(Path(name), f"{name} on PATH") for name in ("python3", "python")]
    for candidate, reason in candidates:
        if place := _executable(candidate, parent):
            return Python(place, reason)
    looked_at = ", ".join(reason for _, reason in candidates)
    raise PythonMissing(
        f"no Python interpreter was found (looked at: {looked_at})",
        "activate the project's environment, or name its interpreter with `python` in [runner]",
    )


def _executable(program: Path, parent: Mapping[str, str]) -> Path | None:
    found = shutil.which(str(program), path=parent.get("PATH", os.defpath))
    return Path(os.path.abspath(found)) if found else None


def _key(settings: RunnerSettings, tree: Path, tree_id: str, version: str) -> Digest:
    """The digest of all that decides what the commands install."""
    locks = {name: _digest(tree / name) for name in settings.lock}
    document = {
        "prepare": settings.prepare,
        "python": version,
        "locks": locks,
        "tree": "" if any(locks.values()) else tree_id,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> Digest | None:
    """The digest of a file of the tree; None when the tree has no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _completed(place: Path) -> Path | None:
    """The directory in which all commands succeeded, if there is one."""
    try:
        name = (place / "complete").read_text("ascii", errors="replace")
    except FileNotFoundError:
        return None
    cache = place / name
    return cache if name.isdecimal() and cache.is_dir() else None


def _fresh(place: Path) -> Path:
    """A new directory below the place, numbered after those that earlier attempts have left."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    taken = [int(path.name) for path in place.iterdir() if path.name.isdecimal()]
    cache = place / str(max(taken, default=0) + 1)
    cache.mkdir()
    return cache


def _complete(place: Path, cache: Path) -> None:
    """Name the finished directory, in one step, so that a crash leaves either no name or the whole one."""
    temporary = place / "complete.new"
    temporary.write_text(cache.name, "ascii")
    temporary.replace(place / "complete")


def _execute(
    argv: Sequence[str], tree: Path, environment: Mapping[str, str], log: Path, timeout_seconds: float
) -> None:
    with log.open("ab") as output:
        try:
            ended = processes.run(
                argv, directory=tree, environment=environment, timeout_seconds=timeout_seconds, output=output
            )
        except subprocess.TimeoutExpired as late:
            raise PrepareFailed(argv, f"took more than {timeout_seconds:g} s", log) from late
        except OSError as failure:
            raise PrepareFailed(argv, f"could not be started: {failure}", log) from failure
    if ended.returncode:
        raise PrepareFailed(argv, f"failed with exit code {ended.returncode}", log)
