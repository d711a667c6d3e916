"""Reads collections and attempts of pytest: the record and the end of the process give a reading, strictly.

Nothing is measured that is not on record as ended, and a contradiction anywhere makes nothing measured.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from commands.executors.api import JobEnd
from commands.readers.attempt import AttemptReading, CollectionReading
from commands.readers.attempt_usage import AttemptUsage, usage_of
from commands.readers.pytest_record import MAIN, Session, read_session
from ledger.events import FailureLine, MissingTarget
from ledger.tables import CaseRow, CaseTable, Inventory, InventoryTarget, TargetRow
from ledger.values import Commit, Side, TestId
from projections.gate.ladder import rung

READER = "pytest-lines/1"

_NAMED_IN_DETAIL = 3

_EXIT_CAUSES = {2: "interrupted", 3: "runner-internal-error", 4: "runner-usage-error", 5: "nothing-collected"}


class _Trouble(Struct, frozen=True):
    """Why an attempt as a whole is not as it should be. `voids`: not even what had ended by then is measured."""

    cause: str
    detail: str
    voids: bool


def read_collection(record: bytes, end: JobEnd) -> CollectionReading:
    """Read a collection. A target that cannot be collected is part of it, with its error; other trouble voids it."""
    session = read_session(record)
    targets = _inventory_targets(session)
    trouble = _trouble(session, end, planned=True, foreign=())
    if trouble is None and not any(target.cases or target.error is not None for target in targets):
        trouble = _Trouble("nothing-collected", "not one test was collected", voids=True)
    if trouble is not None:
        return CollectionReading(complete=False, cause=trouble.cause, detail=trouble.detail, targets=())
    return CollectionReading(complete=True, cause=None, detail="", targets=targets)


def read_attempt(
    record: bytes,
    end: JobEnd,
    *,
    side: Side,
    commit: Commit,
    requested: tuple[str, ...],
    inventory: Inventory,
    tests: Mapping[str, tuple[TestId, ...]] | None = None,
) -> AttemptReading:
    """Read an attempt at the `requested` targets, whose tests are those that the side's `inventory` plans.

    Of a target in `tests` nothing but these tests was asked for.
    A target is measured when each of its tests, the planned ones and those that this attempt collected, came to the
    end of its teardown, or when its collection failed, which is a case of its own (an empty path, outcome `error`).
    """
    session = read_session(record)
    asked = set(requested)
    planned = {target.target: target.cases for target in inventory.targets if target.target in asked}
    planned.update(tests or {})
    trouble = _trouble(session, end, planned=any(planned.values()), foreign=_foreign(session, requested))
    rows = _rows(session)
    causes = _causes(session, requested, planned, trouble)
    measured = [target for target in causes if causes[target] is None]
    cause, detail = _whole(session, causes, trouble)
    missing = tuple(MissingTarget(target, why) for target, why in causes.items() if why is not None)
    failed = [row for row in rows if row.outcome in ("failed", "error")]
    usage = usage_of(session, end, requested)
    return AttemptReading(
        complete=cause is None,
        cause=cause,
        detail=detail,
        table=_table(side, commit, causes, rows, usage),
        missing=missing if measured or len({entry.cause for entry in missing}) > 1 else _all_missing(requested, cause),
        attention=_attention(session, measured, planned, rows),
        counts=dict(sorted(Counter(row.outcome for row in rows).items())),
        failures=tuple(FailureLine(row.test.text(), row.line) for row in failed),
        measured_targets=len(measured),
        usage=usage,
    )


def _all_missing(requested: tuple[str, ...], cause: str | None) -> tuple[MissingTarget, ...]:
    """What is missing where nothing was measured and one reason holds for all.

    The cause of the attempt says it already. They are named all the same where they may be told apart next: only what
    is named can be.
    """
    if cause is None or not rung(cause).isolated:
        return ()
    return tuple(MissingTarget(target, cause) for target in sorted(requested))


def _trouble(session: Session, end: JobEnd, *, planned: bool, foreign: Iterable[str]) -> _Trouble | None:
    """What is wrong with the attempt as a whole; contradictions come before the ways to end early."""
    return _contradiction(session, end, planned, tuple(foreign)) or _early_end(session, end)


def _contradiction(session: Session, end: JobEnd, planned: bool, foreign: tuple[str, ...]) -> _Trouble | None:
    """What makes the whole record untrustworthy, the first that applies."""
    if session.damage:
        return _Trouble("record-damaged", session.damage, voids=True)
    if session.wrong_modules:
        examples = _named(f"{name} from {file}" for name, file in session.wrong_modules)
        return _Trouble("wrong-tree", f"loaded from outside the tree: {examples}", voids=True)
    whole = session.collection.get(TestId("."))
    if whole is not None:
        return _Trouble("collection-aborted", whole.line or whole.reason, voids=True)
    if foreign:
        return _Trouble("foreign-tests", f"tests of files that were not asked for: {_named(foreign)}", voids=True)
    if session.status is None:
        return _refusal_to_start(session, end)
    if end.end in ("exited", "signalled") and end.exit_code != session.status:
        told = f"pytest said it would exit with {session.status}, but the process {_ended(end)}"
        return _Trouble("exit-contradicts-record", told, voids=True)
    if end.end == "exited":
        return _exit_contradiction(session, session.status, planned)
    return None


def _refusal_to_start(session: Session, end: JobEnd) -> _Trouble | None:
    """An end before the first test, without the end of a session, that is not an ordinary death."""
    if end.end != "exited" or session.started:
        return None
    if end.exit_code in (3, 4):
        detail = _sentences(f"pytest exited with {end.exit_code}", *session.troubles)
        return _Trouble(_EXIT_CAUSES[end.exit_code], detail, voids=True)
    if not session.processes and not session.truncated:
        return _Trouble("record-missing", f"the process {_ended(end)} and left no record", voids=True)
    return None


def _exit_contradiction(session: Session, status: int, planned: bool) -> _Trouble | None:
    """The exit codes of pytest against what is on record.

    | exit | meaning              | accepted                                                        |
    |------|----------------------|-----------------------------------------------------------------|
    | 0    | all passed           | without any failure                                             |
    | 1    | some failed          | with a failure, or when the session was cut short               |
    | 2    | interrupted          | as an early end                                                 |
    | 3, 4 | internal, usage      | never                                                           |
    | 5    | no tests             | when none were planned and none collected                       |
    | else | not one of pytest's  | never                                                           |
    """
    if status == 0 and session.has_failures():
        return _Trouble("exit-contradicts-cases", "exit code 0 although something failed", voids=True)
    if status == 1 and session.loop_ended and not session.has_failures():
        return _Trouble("exit-contradicts-cases", "exit code 1 although nothing failed", voids=True)
    if status in (3, 4) or (status == 5 and (planned or session.collected)):
        detail = _sentences(f"pytest exited with {status}", *session.troubles)
        return _Trouble(_EXIT_CAUSES[status], detail, voids=True)
    if status not in (0, 1, 2, 5):
        return _Trouble("exit-code-unexpected", f"exit code {status} is not one of pytest's", voids=True)
    return None


def _early_end(session: Session, end: JobEnd) -> _Trouble | None:
    """A death or an interruption: what had ended before it stands."""
    running = [test.text() for _, test in session.running()]
    circumstances = (f"running: {_named(running)}" if running else "", *session.troubles, end.detail)
    if end.end != "exited":
        return _Trouble(end.end, _sentences(f"the process {_ended(end)}", *circumstances), voids=False)
    if session.status is None and session.truncated:
        cause = "record-truncated"
    elif session.status == 2 or (session.status is None and not session.started and end.exit_code == 2):
        cause = "interrupted"
    elif session.status is None or not session.loop_ended:
        cause = "session-ended-early"
    elif session.truncated:
        cause = "record-truncated"
    else:
        return None
    return _Trouble(cause, _sentences(f"the process {_ended(end)}", *circumstances), voids=False)


def _causes(
    session: Session,
    requested: tuple[str, ...],
    planned: dict[str, tuple[TestId, ...]],
    trouble: _Trouble | None,
) -> dict[str, str | None]:
    """For each requested target, in byte order, None when it was measured, else the reason code."""
    if trouble is not None and trouble.voids:
        return dict.fromkeys(sorted(requested), trouble.cause)
    required = {target: set(planned.get(target, ())) for target in sorted(requested)}
    for test in session.collected:
        required[test.target].add(test)
    collection: dict[str, list[CaseRow]] = {target: [] for target in required}
    for row in session.collection.values():
        collection.setdefault(row.test.target, []).append(row)
    running = {test.target: process != MAIN or bool(session.crashes) for process, test in session.running()}
    reached = {test.target for test in session.started}
    causes: dict[str, str | None] = {}
    for target, tests in required.items():
        settled = trouble is None or bool(tests) or bool(collection[target])
        if settled and target not in running and not _owed(session, tests, collection[target]):
            causes[target] = None
        elif trouble is not None:
            causes[target] = trouble.cause if target in reached else "not-run"
        else:
            causes[target] = "worker-crashed" if running.get(target) else "cases-missing"
    return causes


def _owed(session: Session, required: set[TestId], collection: list[CaseRow]) -> set[TestId]:
    """The tests of a target that did not end, less the planned ones below a collector that failed this time."""
    failed = [row.test.path for row in collection if row.outcome == "error"]
    return {
        test
        for test in required - session.ended
        if test in session.collected or not any(test.path[: len(path)] == path for path in failed)
    }


def _whole(session: Session, causes: dict[str, str | None], trouble: _Trouble | None) -> tuple[str | None, str]:
    """The cause and the detail of the attempt as a whole."""
    if trouble is not None:
        return trouble.cause, trouble.detail
    missing = [target for target, why in causes.items() if why is not None]
    gone = session.vanished_workers()
    if gone or "worker-crashed" in causes.values():
        running = [f"{test.text()} in {process}" for process, test in session.running()]
        return "worker-crashed", _sentences(
            f"workers that did not come to their end: {_named(gone)}" if gone else "",
            f"running: {_named(running)}" if running else "",
        )
    if missing:
        return "cases-missing", f"tests of {_named(missing)} did not report an end"
    return None, ""


def _foreign(session: Session, requested: tuple[str, ...]) -> list[str]:
    """The targets on record that were not asked for. The directories of a requested file belong to it."""
    directories = {"."}
    for target in requested:
        parts = target.split("/")
        directories.update("/".join(parts[:length]) for length in range(1, len(parts)))
    foreign = {test.target for test in session.collected}
    foreign |= {test.target for test in session.collection} - directories
    return sorted(foreign - set(requested))


def _rows(session: Session) -> list[CaseRow]:
    """The results and the collection errors, in byte order. A target that skips itself has no case."""
    errors = [row for row in session.collection.values() if row.outcome == "error"]
    return sorted((*session.rows.values(), *errors), key=lambda row: row.test.sort_key())


def _table(
    side: Side, commit: Commit, causes: dict[str, str | None], rows: list[CaseRow], usage: AttemptUsage
) -> CaseTable:
    needs = ((target, cause, usage.targets[target]) for target, cause in causes.items())
    targets = tuple(
        TargetRow(
            target=target,
            cause=cause,
            duration_seconds=need.seconds,
            memory_bytes=need.memory_bytes,
            memory_basis=need.memory_basis,
        )
        for target, cause, need in needs
    )
    return CaseTable(reader=READER, side=side, commit=commit, targets=targets, cases=tuple(rows))


def _attention(
    session: Session, measured: list[str], planned: dict[str, tuple[TestId, ...]], rows: list[CaseRow]
) -> tuple[str, ...]:
    """The measured targets whose cases failed, skipped or are gone; an expected failure hides as much as a skip."""
    notable = {row.test.target for row in rows if row.outcome in ("failed", "error", "skipped", "xfailed")}
    notable |= {test.target for test in session.collection}
    notable |= {test.target for cases in planned.values() for test in cases if test not in session.rows}
    return tuple(target for target in measured if target in notable)


def _inventory_targets(session: Session) -> tuple[InventoryTarget, ...]:
    cases: dict[str, list[TestId]] = {test.target: [] for test in session.collection}
    for test in session.collected:
        cases.setdefault(test.target, []).append(test)
    errors: dict[str, str] = {}
    skips: dict[str, str] = {}
    for test, row in session.collection.items():
        if row.outcome == "error":
            errors.setdefault(test.target, row.line)
        elif not test.path:
            skips[test.target] = row.reason
    return tuple(
        InventoryTarget(
            target=target,
            blob=None,
            cases=tuple(cases[target]),
            error=errors.get(target),
            skipped=skips.get(target),
        )
        for target in sorted(cases)
    )


def _ended(end: JobEnd) -> str:
    if end.end == "exited":
        return f"exited with {end.exit_code}"
    if end.end == "signalled":
        return f"was killed by signal {end.signal}"
    return f"ended by: {end.end}"


def _sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _named(names: Iterable[str]) -> str:
    """A few of the names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - _NAMED_IN_DETAIL} more" if len(every) > _NAMED_IN_DETAIL else ""
    return ", ".join(every[:_NAMED_IN_DETAIL]) + more
