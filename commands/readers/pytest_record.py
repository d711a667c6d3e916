"""Reads the record that the pytest plug-in writes: bytes to a `Session`, with every line checked.

The record of a session is the files of all its processes, joined by line feeds. The plug-in describes the lines.
"""

from typing import Literal

import msgspec
from msgspec import Struct, field

from ledger.tables import CaseRow
from ledger.values import Outcome, TestId

FORMAT = 2
MAIN = "main"

LINE_CHARACTERS = 200
MESSAGE_CHARACTERS = 4000

_RANK: dict[Outcome, int] = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "error": 4, "failed": 5}


class Phase(Struct, frozen=True, array_like=True, gc=False):
    """One report about a test. `expected` is the reason of an expected failure, None where none was expected."""

    when: Literal["setup", "call", "teardown"]
    outcome: str
    duration_seconds: float
    expected: str | None = None
    line: str = ""
    message: str = ""
    subtest: bool = False


class _Line(Struct, frozen=True, array_like=True, gc=False):
    process: str
    number: int


class _ProcessLine(_Line, frozen=True, tag="process"):
    format: int
    pytest: str
    python: str


class _WorkerLine(_Line, frozen=True, tag="worker"):
    name: str


class _ItemsLine(_Line, frozen=True, tag="items"):
    first: int
    target: str
    names: tuple[tuple[tuple[str, ...], str | None], ...]


class _CollectionLine(_Line, frozen=True, tag="collection"):
    target: str
    path: tuple[str, ...]
    outcome: str
    line: str
    message: str


class _LoadedLine(_Line, frozen=True, tag="loaded"):
    target: str
    began: float
    ended: float


class _StartLine(_Line, frozen=True, tag="start"):
    index: int
    time: float


class _CaseLine(_Line, frozen=True, tag="case"):
    index: int
    phases: tuple[Phase, ...]
    time: float


class _CrashLine(_Line, frozen=True, tag="crash"):
    outcome: str
    line: str
    message: str


class _TroubleLine(_Line, frozen=True, tag="trouble"):
    line: str
    message: str


class _WrongTreeLine(_Line, frozen=True, tag="wrong-tree"):
    modules: tuple[tuple[str, str], ...]


class _EndLine(_Line, frozen=True, tag="end"):
    status: int
    loop_ended: bool


_AnyLine = (
    _ProcessLine
    | _WorkerLine
    | _ItemsLine
    | _CollectionLine
    | _LoadedLine
    | _StartLine
    | _CaseLine
    | _CrashLine
    | _TroubleLine
    | _WrongTreeLine
    | _EndLine
)
_decoder = msgspec.json.Decoder(_AnyLine)


class _Process(Struct):
    """What is known of one process: its items by index, the indexes that have begun but not ended with the times of
    their beginning, its own end."""

    name: str
    number: int = 0
    items: list[TestId] = field(default_factory=list)
    known: set[TestId] = field(default_factory=set)
    running: dict[int, float] = field(default_factory=dict)
    ended: bool = False


class Span(Struct, frozen=True, gc=False):
    """From `began` to `ended`, in seconds of a monotonic clock, a process worked on `target`; `loading` its file or
    running a test of it. `ended` is None when it did not come to an end."""

    target: str
    began: float
    ended: float | None
    loading: bool = False


class Session(Struct):
    """What a record says.

    `workers` are the processes that the main one started; `collected` the tests in the order of collection; `started`
    those that began; `ended` those that ran and whose teardown is on record. `rows` are the results, also of tests that
    failed without coming to their end; `collection` the collectors that failed or were skipped (a test id with the
    path of the collector). `status` and `loop_ended` are those of the main process, None and False before its end.
    `spans` are the times at which a target was at work in a process, loading its file or running one of its tests.
    `damage` says why the record cannot be trusted, "" if it can; `truncated` that a process broke off inside a line.
    """

    processes: dict[str, _Process] = field(default_factory=dict)
    workers: list[str] = field(default_factory=list)
    collected: dict[TestId, None] = field(default_factory=dict)
    started: set[TestId] = field(default_factory=set)
    ended: set[TestId] = field(default_factory=set)
    rows: dict[TestId, CaseRow] = field(default_factory=dict)
    collection: dict[TestId, CaseRow] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    failed_crashes: int = 0
    troubles: list[str] = field(default_factory=list)
    wrong_modules: list[tuple[str, str]] = field(default_factory=list)
    status: int | None = None
    loop_ended: bool = False
    damage: str = ""
    truncated: bool = False

    def running(self) -> list[tuple[str, TestId]]:
        """The process and the identity of every test that began and did not end."""
        return [
            (process.name, process.items[index]) for process in self.processes.values() for index in process.running
        ]

    def spans_of_work(self) -> list[Span]:
        """The spans on record, and those of the tests that began and did not end."""
        unfinished = [
            Span(process.items[index].target, began, None)
            for process in self.processes.values()
            for index, began in process.running.items()
        ]
        return [*self.spans, *unfinished]

    def vanished_workers(self) -> list[str]:
        """The workers that did not come to their end, or left no record at all."""
        return [name for name in self.workers if name not in self.processes or not self.processes[name].ended]

    def has_failures(self) -> bool:
        """Whether pytest, by what is on record, must have counted a failure."""
        rows = (*self.rows.values(), *self.collection.values())
        return self.failed_crashes > 0 or any(row.outcome in ("failed", "error") for row in rows)


def read_session(record: bytes) -> Session:
    """Read a whole record. Never raises: what is wrong with it is in `damage` and `truncated`."""
    session = Session()
    process: _Process | None = None
    broken = 0
    for position, text in enumerate(record.split(b"\n"), start=1):
        if not text:
            continue
        line = _decoded(text)
        if line is None and not broken:
            broken = position
        elif line is None or (broken and not isinstance(line, _ProcessLine)):
            session.damage = f"line {broken} cannot be read"
            return session
        else:
            broken, session.truncated = 0, session.truncated or bool(broken)
            process = _next_process(session, process, line)
            if process is None or not _take(session, process, line):
                session.damage = session.damage or f"line {position} does not follow from the lines before it"
                return session
    session.truncated = session.truncated or bool(broken)
    return session


def _decoded(text: bytes) -> _AnyLine | None:
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _next_process(session: Session, process: _Process | None, line: _AnyLine) -> _Process | None:
    """The process that wrote the line, None if it cannot be its next line."""
    if isinstance(line, _ProcessLine):
        if line.process in session.processes:
            return None
        if line.format != FORMAT:
            session.damage = f"the record has format {line.format}; this program reads format {FORMAT}"
            return None
        process = session.processes[line.process] = _Process(line.process)
    if process is None or line.process != process.name or line.number != process.number + 1:
        return None
    process.number += 1
    return process


def _take(session: Session, process: _Process, line: _AnyLine) -> bool:
    """Add one line to what is known; False if it contradicts it."""
    match line:
        case _ItemsLine():
            return _take_items(session, process, line)
        case _StartLine():
            if not 0 <= line.index < len(process.items):
                return False
            process.running[line.index] = line.time
            session.started.add(process.items[line.index])
        case _LoadedLine():
            session.spans.append(Span(line.target, line.began, line.ended, loading=True))
        case _CaseLine():
            return _take_case(session, process, line)
        case _CollectionLine():
            test = TestId(line.target, line.path)
            outcome: Outcome = "skipped" if line.outcome == "skipped" else "error"
            _keep_worst(session.collection, _row(test, outcome, 0.0, line.line, line.message, process.name))
        case _CrashLine():
            session.crashes.append(line.line)
            session.failed_crashes += line.outcome == "failed"
        case _TroubleLine():
            session.troubles.append(line.line[:LINE_CHARACTERS])
        case _WrongTreeLine():
            session.wrong_modules.extend(line.modules)
        case _EndLine():
            process.ended = True
            if process.name == MAIN:
                session.status, session.loop_ended = line.status, line.loop_ended
        case _WorkerLine():
            session.workers.append(line.name)
        case _ProcessLine():
            pass
    return True


def _take_items(session: Session, process: _Process, line: _ItemsLine) -> bool:
    """Add items. Tests with one and the same identity are told apart by their order: the second gets `#2`."""
    if line.first != len(process.items):
        return False
    for path, variant in line.names:
        test, number = TestId(line.target, path, variant), 1
        while test in process.known:
            number += 1
            test = TestId(line.target, path, f"{variant or ''}#{number}")
        process.known.add(test)
        process.items.append(test)
        session.collected[test] = None
    return True


def _take_case(session: Session, process: _Process, line: _CaseLine) -> bool:
    if line.index not in process.running:
        return False
    test = process.items[line.index]
    row = row_of(test, line.phases, process.name)
    if any(phase.when == "teardown" and phase.outcome != "rerun" for phase in line.phases):
        session.spans.append(Span(test.target, process.running.pop(line.index), line.time))
        if row.outcome != "passed" or _was_called(line.phases):
            session.ended.add(test)
    if test in session.ended or row.outcome in ("failed", "error"):
        _keep_worst(session.rows, row)
    return True


def _was_called(phases: tuple[Phase, ...]) -> bool:
    """Whether the test itself ran. With `--setup-plan` or `--setup-only` in `addopts` nothing but its fixtures does."""
    return any(phase.when == "call" and phase.outcome != "rerun" and not phase.subtest for phase in phases)


def row_of(test: TestId, phases: tuple[Phase, ...], process: str = MAIN) -> CaseRow:
    """The one result of a test, from its phases.

    A try that the project's own plug-in repeated counts as a rerun only. Of the last try the worst phase wins: a failed
    call, then a failure outside the call (error), a skip, an expected failure, an unexpected pass, a pass.
    """
    start, reruns = 0, 0
    for index, phase in enumerate(phases):
        if phase.outcome == "rerun":
            start, reruns = index + 1, reruns + 1
    last_try = phases[start:]
    worst = max(last_try, key=lambda phase: _RANK[_outcome(phase)], default=None)
    outcome: Outcome = "passed" if worst is None else _outcome(worst)
    row = _row(
        test,
        outcome,
        sum(phase.duration_seconds for phase in phases if not phase.subtest),
        "" if worst is None else worst.line,
        "" if worst is None else worst.message,
        process,
    )
    expected = "" if worst is None or worst.expected is None else worst.expected
    return msgspec.structs.replace(
        row,
        reason=row.reason or expected[:LINE_CHARACTERS],
        reruns=reruns,
        subtests_failed=sum(phase.subtest for phase in last_try),
    )


def _outcome(phase: Phase) -> Outcome:
    if phase.outcome == "passed":
        return "passed" if phase.expected is None else "xpassed"
    if phase.outcome == "skipped":
        return "skipped" if phase.expected is None else "xfailed"
    return "failed" if phase.when == "call" else "error"


def _row(test: TestId, outcome: Outcome, duration_seconds: float, line: str, message: str, process: str) -> CaseRow:
    """A row with bounded texts. The text of a skip is its reason, not a message of failure."""
    skipped = outcome == "skipped"
    return CaseRow(
        test=test,
        outcome=outcome,
        duration_seconds=max(0.0, duration_seconds),
        line="" if skipped else line[:LINE_CHARACTERS],
        message="" if skipped else message[:MESSAGE_CHARACTERS],
        reason=line.removeprefix("Skipped: ")[:LINE_CHARACTERS] if skipped else "",
        worker="" if process == MAIN else process,
    )


def _keep_worst(rows: dict[TestId, CaseRow], row: CaseRow) -> None:
    """Two results of one test are one result: the worse one."""
    known = rows.get(row.test)
    if known is None or _RANK[row.outcome] > _RANK[known.outcome]:
        rows[row.test] = row
