"""The pytest adapter: command lines, the plug-in's settings, what belongs to the project, and the key of evidence."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from commands.config.settings import RunnerSettings
from commands.runners.api import EvidenceKey
from ledger.values import Digest, TestId

ADAPTER = "pytest/1"

_SHIPPED = Path(__file__).resolve().parent.parent / "shipped"
PROBE = _SHIPPED / "probe.py"
PLUGIN_DIRECTORY = _SHIPPED / "pytest_plugin"
_PLUGIN = "release_ledger_pytest"
_CACHE_OPTION = "cache_dir="
_REPEATED = re.compile(r"(.*)#\d+", re.DOTALL)

_SIGNS = (
    ("pyproject.toml", r"^\s*\[\s*tool\.pytest\b", "configures pytest"),
    ("tox.ini", r"^\[pytest\]", "configures pytest"),
    ("setup.cfg", r"^\[tool:pytest\]", "configures pytest"),
    ("pyproject.toml", r"""["']pytest\b""", "names pytest"),
)
# At the root of a repository these are not packages of the product, and installed packages often have the same names.
_NOT_PRODUCT = frozenset(
    {
        "benchmark", "benchmarks", "build", "ci", "conftest", "dist", "doc", "docs", "example", "examples", "noxfile",
        "script", "scripts", "setup", "tasks", "test", "testing", "tests", "tools",
    }
)  # fmt: skip


class Probe(Struct, frozen=True, kw_only=True):
    """What `shipped/probe.py` says about an interpreter; the fields are described there."""

    python: str
    implementation: str
    platform: str
    architecture: str
    executable: str
    prefix: str
    path: tuple[str, ...]
    distributions: tuple[tuple[str, str, str], ...]
    path_entries: tuple[str, ...]
    mappings: dict[str, str]
    local_names: dict[str, str]
    pytest: str
    pytest_plugins: tuple[tuple[str, str], ...]


def collect_command(settings: RunnerSettings, python: Path, cache_directory: Path) -> tuple[str, ...]:
    """The command that collects what the settings name, and runs nothing."""
    return _command(settings, python, cache_directory, "--collect-only", "-q")


def run_command(settings: RunnerSettings, python: Path, cache_directory: Path) -> tuple[str, ...]:
    """The command that runs targets, whatever their number: the variable LEDGER_TARGETS_FILE names a file that holds
    their `targets_document`."""
    return _command(settings, python, cache_directory)


def targets_document(
    targets: Sequence[str], last: Sequence[str] = (), tests: Mapping[str, Iterable[TestId]] | None = None
) -> str:
    """What the plug-in reads of the targets: their paths relative to the tree, and those that run after all others.

    Of a target in `tests` only these tests run. Tests of one name are told apart by their order, so all of them run
    together.
    """
    cases: dict[str, list[tuple[tuple[str, ...], str | None]]] = {}
    for target, chosen in (tests or {}).items():
        names = cases.setdefault(target, [])
        for test in chosen:
            names.append((test.path, test.variant))
            if test.variant is not None and (repeated := _REPEATED.fullmatch(test.variant)):
                names += [(test.path, repeated[1]), *([] if repeated[1] else [(test.path, None)])]
    return json.dumps({"targets": targets, "last": last, **({"cases": cases} if cases else {})})


def _command(settings: RunnerSettings, python: Path, cache_directory: Path, *more: str) -> tuple[str, ...]:
    """The project's own arguments come first, so that its `-x` cannot stop the session."""
    forced = ("--continue-on-collection-errors", "--maxfail=0", "--color=no", "-o", f"{_CACHE_OPTION}{cache_directory}")
    return (str(python), "-m", "pytest", "-p", _PLUGIN, *settings.arguments, *forced, *more, *settings.paths)


def plugin_environment(
    *,
    record_directory: Path,
    tree: Path,
    checkout: Path,
    other_tree: Path,
    first_party: tuple[str, ...],
) -> dict[str, str]:
    """The settings of the plug-in; a run needs LEDGER_TARGETS_FILE besides.

    `tree` is the side's worktree, where the command has to be run; code from `checkout` (the user's own), from
    `other_tree` and, by its top-level name in `first_party`, from anywhere else is reported as of the wrong tree.
    """
    return {
        "LEDGER_RECORD_DIRECTORY": str(record_directory),
        "LEDGER_TREE": str(tree),
        "LEDGER_CHECKOUT": str(checkout),
        "LEDGER_OTHER_TREE": str(other_tree),
        "LEDGER_FIRST_PARTY": ",".join(first_party),
    }


def detect(toplevel: Path) -> str | None:
    """Why this directory is tested with pytest, None if nothing says so."""
    for name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if (toplevel / name).is_file():
            return f"there is {name}"
    for name, pattern, reason in _SIGNS:
        if re.search(pattern, _text(toplevel / name), re.MULTILINE):
            return f"{name} {reason}"
    for directory in (toplevel, toplevel / "tests", toplevel / "test"):
        for pattern in ("conftest.py", "test_*.py", "*_test.py"):
            for path in sorted(directory.glob(pattern)):
                return f"there is {path.relative_to(toplevel).as_posix()}"
    return None


def _text(path: Path) -> str:
    """The text of a file; "" when there is none that can be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def first_party_names(tracked: Iterable[str]) -> tuple[str, ...]:
    """The top-level packages (with an `__init__.py`) and modules below `src/` and at the root, in byte order.

    What the root holds besides the product (tests, documentation, scripts) is left out.
    """
    names = set()
    for path in tracked:
        parts = PurePosixPath(path).parts
        in_source = parts[0] == "src"
        below = parts[1:] if in_source else parts
        if len(below) == 2 and below[1] == "__init__.py":
            name = below[0]
        elif len(below) == 1 and below[0].endswith(".py"):
            name = below[0].removesuffix(".py")
        else:
            continue
        is_test = name.startswith("test_") or name.endswith("_test")
        if name.isidentifier() and (in_source or not (name in _NOT_PRODUCT or is_test)):
            names.add(name)
    return tuple(sorted(names))


def copied_names(probe: Probe, checkout: Path, tree: Path, work: Path, *, by_tree: bool) -> tuple[str, ...]:
    """The modules that are installed as copies of some state of this project, which need not be the side's.

    A copy of the checkout is one. Of the copies that `prepare` made below `work`, those of this side's `tree` are not,
    and none is when they are kept for one git tree only (`by_tree`).
    """
    names = []
    for name, source in sorted(probe.local_names.items()):
        place = Path(os.path.realpath(source))
        if place.is_relative_to(os.path.realpath(work)):
            other = not (by_tree or place.is_relative_to(os.path.realpath(tree)))
        else:
            other = place.is_relative_to(os.path.realpath(checkout))
        if other:
            names.append(name)
    return tuple(names)


def import_paths(settings: RunnerSettings, tracked: Iterable[str], probe: Probe, checkout: Path) -> tuple[str, ...]:
    """The directories of the tree, relative to it, that come first on PYTHONPATH.

    They are those of the settings. Else, since an editable installation would lead to the user's own checkout, they are
    the directories inside the checkout that installations added, as far as the tree has them. Else `src`, when
    there is Python code in it. The root itself is on the path of `python -m pytest` anyway.
    """
    if settings.import_paths:
        return settings.import_paths
    files = list(tracked)
    real_checkout = os.path.realpath(checkout)
    parents = (os.path.dirname(target) for target in probe.mappings.values())
    found = []
    for entry in (*probe.path_entries, *parents):
        relative = os.path.relpath(os.path.realpath(entry), real_checkout).replace(os.sep, "/")
        if relative == "." or any(path.startswith(relative + "/") for path in files):
            found.append(relative)
    if found:
        return tuple(dict.fromkeys(found))
    return ("src",) if any(path.startswith("src/") and path.endswith(".py") for path in files) else ()


def evidence_key(
    tree_id: str,
    probe: Probe,
    command: tuple[str, ...],
    lock: Digest,
    environment: Mapping[str, str],
    memory_limit_bytes: int = 0,
) -> EvidenceKey:
    """The key of what `command`, one of this adapter's, gives; `environment` is the part that can change a result."""
    options = tuple(argument for argument in command[1:] if not argument.startswith(_CACHE_OPTION))
    plugins = (f"{name}=={version}" for name, version in probe.pytest_plugins)
    return EvidenceKey(
        tree=tree_id,
        adapter=ADAPTER,
        runner=(f"pytest=={probe.pytest}", *plugins),
        python=f"{probe.implementation} {probe.python}",
        platform=probe.platform,
        architecture=probe.architecture,
        command=options,
        lock=lock,
        distributions=() if lock else tuple("==".join(filter(None, found)) for found in probe.distributions),
        environment=dict(sorted(environment.items())),
        memory_limit_bytes=memory_limit_bytes,
    )
