"""Records what a pytest session does, one JSON line per fact, so that a killed session leaves a readable record.

It runs in the project's interpreter (Python >= 3.8, pytest >= 7), needs nothing but pytest, and only looks on: it
changes no outcome. Every process of a session has a record file of its own, `record.jsonl` or, in a worker of
pytest-xdist, `record-gw0.jsonl`. Each line is an array: kind, process, number of the line in the process from 1, and

    process     format, pytest version, Python version; always the first line
    worker      the name of a process that this one starts
    items       index of the first item, target, [[path, variant], ...] of items that follow each other
    collection  target, path, outcome, first line, message: a collector that failed or was skipped
    loaded      target, began, ended: a file that was imported and searched for tests
    start       index of the item that begins, time
    case        index, [phase, ...] of the item that ended; a phase is [when, outcome, duration in seconds] and, unless
                it simply passed, [..., reason of the expected failure or null, first line, message, is a subtest]; time
    crash       outcome, first line, message: a process died under a test
    trouble     first line, message: an internal error, an interrupt, or a conftest that cannot be imported
    wrong-tree  [[module, file], ...]: some of the modules that were loaded from outside the tree under test
    end         exit status, whether the loop over the tests came to its end

Times are seconds of the machine's monotonic clock.

The settings come in the environment and are taken out of it at once, so that a pytest which a test starts records
nothing: LEDGER_RECORD_DIRECTORY (without it the plug-in does nothing), LEDGER_TARGETS_FILE (a JSON object: `targets`,
the files to run, relative to the tree, `last`, those of them that run after the others, and `cases`, for files of which
not all is to run the [path, variant] of what is; without it nothing is left out), LEDGER_TREE, LEDGER_CHECKOUT,
LEDGER_OTHER_TREE and LEDGER_FIRST_PARTY (top-level names, separated by commas).
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import platform
import sys
import time
from collections.abc import Generator, Iterable
from typing import Any

import pytest

FORMAT = 2
MAIN = "main"
SETTINGS = ("RECORD_DIRECTORY", "TARGETS_FILE", "TREE", "CHECKOUT", "OTHER_TREE", "FIRST_PARTY")
WORKER_INPUT = "release_ledger"

LINE_CHARACTERS = 200
MESSAGE_CHARACTERS = 4000
WRONG_TREE_EXAMPLES = 5

# What stands for the target itself; the names of a test begin below it. Before pytest 8 there was no `Directory`, and
# a package was collected by way of its file.
CONTAINERS = (pytest.Session, pytest.File, getattr(pytest, "Directory", pytest.File))
PACKAGE_FILE = None if hasattr(pytest, "Directory") else "__init__.py"


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, None]:
    """The earliest hook: the record begins here, so that a session which cannot even start is recorded."""
    settings = {name: os.environ.pop("LEDGER_" + name, "") for name in SETTINGS}
    recorder = Recorder(settings, MAIN) if settings["RECORD_DIRECTORY"] else None
    if recorder:
        early_config.pluginmanager.register(recorder)
    outcome = yield
    if recorder and outcome.excinfo:
        recorder.record_failed_start(outcome.excinfo[1])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A worker of pytest-xdist gets the settings from its controller."""
    worker_input = getattr(config, "workerinput", {})
    if WORKER_INPUT in worker_input:
        config.pluginmanager.register(Recorder(worker_input[WORKER_INPUT], worker_input["workerid"]))


class Recorder:
    """Writes the record of one process."""

    def __init__(self, settings: dict[str, str], process: str) -> None:
        self._settings = settings
        self._owner = os.getpid()
        name = "record.jsonl" if process == MAIN else "record-" + process + ".jsonl"
        self._path = os.path.join(os.path.abspath(settings["RECORD_DIRECTORY"]), name)
        # The project may replace functions of os and json while its tests run; these stay the real ones.
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        self._quoted_process = self._encode(process)
        self._open, self._write, self._fstat, self._getpid = os.open, os.write, os.fstat, os.getpid
        self._clock = time.monotonic
        self._descriptor, self._identity = -1, (0, 0)
        self._number = 0
        self._indexes: dict[pytest.Item, int] = {}
        self._phases: list[str] | None = None
        self._loop_ended = False
        self._targets: Targets | None = None
        self._tree = Tree(settings)
        self._record("process", FORMAT, pytest.__version__, platform.python_version())

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Read the targets. A file that the command line names is collected whatever any hook says, so it goes here."""
        if self._settings["TARGETS_FILE"]:
            with open(self._settings["TARGETS_FILE"], encoding="utf-8") as file:
                self._targets = Targets(**json.load(file))
            places = [(argument, config.invocation_params.dir / argument.split("::")[0]) for argument in config.args]
            config.args = [argument for argument, path in places if not path.is_file() or self._is_needed(str(path))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: pathlib.Path) -> bool | None:
        """Collect targets only.

        They are not arguments: thousands of them exceed the limit of a command line and take pytest quadratic time, and
        pytest chooses its configuration by its arguments. This way every session of a tree has the same one, and
        the order of the tests is the one that the project is used to.
        """
        return None if self._is_needed(str(collection_path)) else True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run targets only. Before pytest 8 a package brings its own file along, which may hold tests too."""
        targets = self._targets
        if targets:
            paths = [(self._tree.relative(str(item.path)), item) for item in items]
            held = [(targets.is_last(path), item) for path, item in paths if targets.take(path, item)]
            items[:] = [item for _, item in sorted(held, key=lambda pair: pair[0])]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[WORKER_INPUT] = self._settings
        self._record("worker", node.workerinput["workerid"])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        began = self._clock()
        outcome = yield
        if isinstance(collector, pytest.File) and not isinstance(collector, pytest.Package):
            self._write_line("loaded", f"{self._encode(self._target(collector))},{began:.4f},{self._clock():.4f}]")
        if outcome.excinfo is None:
            report = outcome.get_result()
            if report.outcome != "passed":
                message = message_of(report.longrepr)
                self._record("collection", self._target(collector), path_of(collector), report.outcome, *message)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._record_items(session.items)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, Any, None]:
        outcome = yield
        self._loop_ended = outcome.excinfo is None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, None]:
        index = self._indexes.get(item)
        if index is None:
            self._record_items([item])
            index = self._indexes[item]
        phases: list[str] = []
        self._phases = phases
        self._write_line("start", f"{index},{self._clock():.4f}]")
        yield
        self._phases = None
        # The modules come first: a case that is on record as ended has always been checked for its tree.
        if nextitem is None or nextitem.path is not item.path:
            self._record_wrong_tree()
        self._write_line("case", f"{index},[{','.join(phases)}],{self._clock():.4f}]")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call", "teardown"):
            self._record("crash", report.outcome, *message_of(report.longrepr))
        elif self._phases is not None:
            if type(report) is pytest.TestReport and report.outcome == "passed" and not hasattr(report, "wasxfail"):
                # Nearly every phase. The encoder would take ten times as long, for each of the thousands of them.
                self._phases.append(f'["{report.when}","passed",{max(0.0, report.duration):.6f}]')
                return
            subtest = type(report).__name__.lower() == "subtestreport"
            if report.failed or not subtest:
                self._phases.append(self._encode(phase_of(report, subtest)))

    def pytest_internalerror(self, excrepr: Any) -> None:
        self._record("trouble", *message_of(excrepr))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._record("trouble", *message_of(excinfo.exconly()))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, None]:
        yield
        self._record_wrong_tree()
        self._record("end", int(session.exitstatus), self._loop_ended)

    def record_failed_start(self, error: BaseException) -> None:
        """Record why pytest could not start; an import error of a conftest names the error behind it."""
        cause = error.__cause__ or error
        path = getattr(error, "path", None)
        where = "" if path is None else self._tree.relative(str(path)) + ": "
        self._record("trouble", *message_of(where + type(cause).__name__ + ": " + str(cause)))

    def _is_needed(self, path: str) -> bool:
        return self._targets is None or self._targets.need(self._tree.relative(path))

    def _target(self, collector: pytest.Collector) -> str:
        path = collector.path
        # Before pytest 8 a package is a file node, whose path is that of its `__init__.py`.
        if isinstance(collector, pytest.Package) and path.name == "__init__.py":
            path = path.parent
        return self._tree.relative(str(path))

    def _record_items(self, items: Iterable[pytest.Item]) -> None:
        for path, group in itertools.groupby(dict.fromkeys(items), lambda item: item.path):
            members = [item for item in group if item not in self._indexes]
            first = len(self._indexes)
            self._indexes.update((item, first + offset) for offset, item in enumerate(members))
            self._record("items", first, self._tree.relative(str(path)), names_of(members))

    def _record_wrong_tree(self) -> None:
        modules = self._tree.new_foreign_modules()
        if modules:
            self._record("wrong-tree", modules)

    def _record(self, kind: str, *fields: Any) -> None:
        """Write one line with these fields."""
        self._write_line(kind, self._encode(fields)[1:])

    def _write_line(self, kind: str, rest: str) -> None:
        """Write one line, of which `rest` is what follows the number, with one call, so that a process that is killed
        leaves whole lines.

        A line that cannot be written must not disturb the tests. It leaves a gap in the numbers, which the reader
        reports. The child of a fork is not this process, and stays silent.
        """
        if self._getpid() != self._owner:
            return
        self._number += 1
        line = f'["{kind}",{self._quoted_process},{self._number},{rest}\n'
        try:
            self._write(self._writable(), line.encode("ascii"))
        except OSError:
            return

    def _writable(self) -> int:
        """The descriptor of the record, opened anew if the project has closed it or put another file in its place."""
        try:
            status = self._fstat(self._descriptor)
            if (status.st_dev, status.st_ino) == self._identity:
                return self._descriptor
        except OSError:
            pass
        self._descriptor = self._open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        status = self._fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)
        return self._descriptor


class Targets:
    """The files that are to be run (a whole directory can be one), and the directories that lead to them.

    Those of `last` run after all others: they are suspected to kill the process. Of the files in `cases` only the
    tests with these names run.
    """

    def __init__(self, targets: list[str], last: list[str], cases: dict[str, list[Any]] | None = None) -> None:
        self._targets = frozenset(targets)
        self._cases = {
            target: {(tuple(path), variant) for path, variant in names} for target, names in (cases or {}).items()
        }
        self._last = frozenset(last)
        self._directories = {"."}
        for target in targets:
            self._directories.update(parents_of(target))

    def hold(self, path: str) -> bool:
        """Whether the path is a target or below one."""
        return path in self._targets or any(parent in self._targets for parent in parents_of(path))

    def take(self, path: str, item: pytest.Item) -> bool:
        """Whether this item of a file is to run."""
        names = self._cases.get(path)
        if names is None:
            return self.hold(path)
        ((inner, variant),) = names_of([item])
        return (tuple(inner), variant) in names

    def is_last(self, path: str) -> bool:
        """Whether the path is to run after the others."""
        return path in self._last

    def need(self, path: str) -> bool:
        """Whether the path is a target, below one, or on the way to one."""
        directory, _, name = path.rpartition("/")
        on_the_way = path in self._directories or (name == PACKAGE_FILE and (directory or ".") in self._directories)
        return on_the_way or self.hold(path)


class Tree:
    """The tree under test: names files relative to it, and finds modules that come from somewhere else."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._root = os.path.abspath(settings["TREE"] or os.getcwd())
        self._real_root = os.path.realpath(self._root)
        self._first_party = frozenset(filter(None, settings["FIRST_PARTY"].split(",")))
        roots = [settings[name] for name in ("CHECKOUT", "OTHER_TREE") if settings[name]]
        others = [os.path.realpath(root) for root in roots]
        self._suspect_prefixes = tuple(root + os.sep for root in (*roots, *others))
        # An environment that surrounds a checkout, like /usr around /usr/src, does not excuse the checkout's modules.
        prefixes = {os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)}
        self._environments = [prefix for prefix in prefixes if not any(is_inside(other, prefix) for other in others)]
        self._checked: set[str] = set()
        self._examples = 0

    def relative(self, path: str) -> str:
        """The path from the root of the tree, with `/`; a path outside of it stays absolute."""
        if not is_inside(path, self._root):
            path, root = os.path.realpath(path), self._real_root
        else:
            root = self._root
        if is_inside(path, root):
            path = path[len(root) + 1 :]
        return "." if path == root else plain(path.replace(os.sep, "/"))

    def new_foreign_modules(self) -> list[list[str]]:
        """A few of the modules, imported since the last call, that belong to the project but not to this tree."""
        names = set(sys.modules) - self._checked
        self._checked |= names
        found = []
        for name in sorted(names):
            file = module_file(sys.modules.get(name))
            if file and self._is_foreign(name, file) and self._examples < WRONG_TREE_EXAMPLES:
                self._examples += 1
                found.append([plain(name), plain(file)])
        return found

    def _is_foreign(self, name: str, file: str) -> bool:
        first_party = name.partition(".")[0] in self._first_party
        if not first_party and not file.startswith(self._suspect_prefixes):
            return False
        path = os.path.realpath(file)
        if path == os.path.realpath(__file__) or is_inside(path, self._real_root):
            return False
        if first_party:
            return True
        parts = path.split(os.sep)
        installed = "site-packages" in parts or "dist-packages" in parts
        return not installed and not any(is_inside(path, environment) for environment in self._environments)


def parents_of(path: str) -> list[str]:
    """The directories that lead to a path, relative like it."""
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def path_of(node: pytest.Item | pytest.Collector) -> list[str]:
    """The names that lead from the target of a node to the node; empty for the target itself."""
    names: list[str] = []
    for parent in reversed(node.listchain()):
        if isinstance(parent, CONTAINERS):
            break
        names.insert(0, plain(parent.name))
    return names


def names_of(items: Iterable[pytest.Item]) -> list[tuple[list[str], str | None]]:
    """The path and the variant of each item. A parametrised function has a name without its parameters."""
    names: list[tuple[list[str], str | None]] = []
    parent, path = None, []
    for item in items:
        # Neighbours mostly have the same parent, and to look for its names takes longer than all the rest.
        if item.parent is not parent:
            parent = item.parent
            path = [] if parent is None else path_of(parent)
        call = getattr(item, "callspec", None)
        name = item.name if call is None else getattr(item, "originalname", None) or item.name
        names.append(([*path, plain(name)], None if call is None else plain(call.id)))
    return names


def is_inside(path: str, directory: str) -> bool:
    """Whether an absolute path lies below a directory."""
    return path.startswith(directory.rstrip(os.sep) + os.sep)


def module_file(module: Any) -> str | None:
    """The file of a module, read without waking up a module that loads itself on the first use of an attribute."""
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")
    except AttributeError:
        return None
    return os.path.abspath(file) if isinstance(file, str) else None


def phase_of(report: pytest.TestReport, subtest: bool) -> list[Any]:
    """One report as it stands in a line `case`."""
    phase = [report.when, report.outcome, max(0.0, round(float(report.duration), 6))]
    expected_failure = getattr(report, "wasxfail", None)
    if report.outcome == "passed" and expected_failure is None:
        return phase
    reason = None if expected_failure is None else plain(str(expected_failure))[:MESSAGE_CHARACTERS]
    return [*phase, reason, *message_of(report.longrepr), subtest]


def message_of(longrepr: Any) -> tuple[str, str]:
    """The line that says most about a failure, and the message around it, both bounded."""
    if isinstance(longrepr, tuple):
        text = line = str(longrepr[2])
    else:
        try:
            text = "" if longrepr is None else str(longrepr)
        except Exception as error:
            text = "this message cannot be shown: " + type(error).__name__
        crash = getattr(longrepr, "reprcrash", None)
        line = text if crash is None else str(crash.message)
        errors = [shown for shown in text.splitlines() if shown.startswith("E  ")]
        if crash is None and errors:
            line = errors[-1][1:]
    first = line.strip().splitlines()[:1]
    return plain("".join(first))[:LINE_CHARACTERS], shortened(plain(text))


def shortened(text: str) -> str:
    """The beginning and, since a traceback ends with what went wrong, the longer end of a text."""
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    head = MESSAGE_CHARACTERS // 4
    return text[:head] + "\n...\n" + text[head + 5 - MESSAGE_CHARACTERS :]


def plain(text: str) -> str:
    """Text that every JSON reader takes: half a character (a lone surrogate) is written out as an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
