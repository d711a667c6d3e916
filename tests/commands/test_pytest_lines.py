"""The reader of pytest records against made-up records: every exit, every truncation, every kind of damage."""

import json
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.causes import CAUSES
from commands.executors.api import End, JobEnd
from commands.readers.pytest_lines import READER, AttemptReading, read_attempt, read_collection
from commands.readers.pytest_record import Phase, row_of
from ledger.tables import CaseTable, Inventory, InventoryTarget, decode_document, encode_document
from ledger.values import TestId
from tests.commands.sessions import COMMIT, ended, outcomes, unmeasured

PASSED = [["setup", "passed", 0.1], ["call", "passed", 0.2], ["teardown", "passed", 0.3]]
FAILED = [["setup", "passed", 0.1], ["call", "failed", 0.2, None, "the line", "the message", False], PASSED[2]]
CUT = PASSED[:2]

A, B = TestId("a.py", ("test_a",)), TestId("b.py", ("TestB", "test_b"), "1-é")
INVENTORY = Inventory(
    side="candidate",
    commit=COMMIT,
    targets=(
        InventoryTarget(target="a.py", blob=None, cases=(A,)),
        InventoryTarget(target="b.py", blob=None, cases=(B,)),
    ),
)


class Record:
    """The lines of one process, numbered as they are added."""

    def __init__(self, process: str = "main") -> None:
        self.process = process
        self.lines: list[str] = []
        self.add("process", 1, "9.0.0", "3.11.0")

    def add(self, kind: str, *fields: Any) -> "Record":
        self.lines.append(json.dumps([kind, self.process, len(self.lines) + 1, *fields]))
        return self

    def items(self, *tests: TestId) -> "Record":
        for index, test in enumerate(tests):
            self.add("items", index, test.target, [[test.path, test.variant]])
        return self

    def case(self, index: int, phases: list[list[Any]]) -> "Record":
        return self.add("start", index).add("case", index, phases)

    def data(self) -> bytes:
        return "".join(line + "\n" for line in self.lines).encode()


def read(
    record: bytes | Record, end: JobEnd | int = 0, *requested: str, inventory: Inventory = INVENTORY
) -> AttemptReading:
    """Read a record as that of an attempt at all targets of the inventory."""
    return read_attempt(
        record.data() if isinstance(record, Record) else record,
        ended(end) if isinstance(end, int) else end,
        side="candidate",
        commit=COMMIT,
        requested=requested or tuple(target.target for target in inventory.targets),
        inventory=inventory,
    )


def whole_session() -> Record:
    return Record().items(A, B).case(0, PASSED).case(1, FAILED).add("end", 1, True)


def test_a_whole_session_is_complete_and_its_table_is_sorted_and_can_be_stored() -> None:
    reading = read(whole_session(), 1, "b.py", "a.py")
    assert (reading.complete, reading.cause, reading.detail, reading.missing) == (True, None, "", ())
    assert reading.measured_targets == 2
    assert reading.attention == ("b.py",)
    assert reading.counts == {"failed": 1, "passed": 1}
    assert [(line.test, line.line) for line in reading.failures] == [(B.text(), "the line")]
    table = reading.table
    assert (table.reader, table.side, table.commit) == (READER, "candidate", COMMIT)
    assert [row.target for row in table.targets] == ["a.py", "b.py"]
    assert [row.test for row in table.cases] == [A, B]
    assert [round(row.duration_seconds, 3) for row in table.targets] == [0.6, 0.6]
    assert decode_document(encode_document(table), CaseTable) == table


# The exit map as a table of another shape: exit code and how far the session came give the reason code.
# Columns: everything passed; something failed; the loop broke off after the first target; it broke off after a failure.
EXIT_MAP = """
code  passed                  failed                  cut-short              cut-short-failed
0     complete                exit-contradicts-cases  session-ended-early    exit-contradicts-cases
1     exit-contradicts-cases  complete                session-ended-early    session-ended-early
2     interrupted             interrupted             interrupted            interrupted
3     runner-internal-error   runner-internal-error   runner-internal-error  runner-internal-error
4     runner-usage-error      runner-usage-error      runner-usage-error     runner-usage-error
5     nothing-collected       nothing-collected       nothing-collected      nothing-collected
6     exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
120   exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
255   exit-code-unexpected    exit-code-unexpected    exit-code-unexpected   exit-code-unexpected
"""
STANDING = ("session-ended-early", "interrupted", "complete")
FINISHED = {"passed": 2, "failed": 2, "cut-short": 1, "cut-short-failed": 1}


def session(state: str) -> Record:
    record = Record().items(A, B).case(0, FAILED if "failed" in state else PASSED)
    return record if state.startswith("cut-short") else record.case(1, PASSED)


def exit_map() -> list[tuple[int, str, str]]:
    header, *lines = (line.split() for line in EXIT_MAP.strip().splitlines())
    return [(int(line[0]), state, cause) for line in lines for state, cause in zip(header[1:], line[1:], strict=True)]


@pytest.mark.parametrize(("code", "state", "cause"), exit_map())
def test_the_exit_code_and_the_cases_have_to_agree(code: int, state: str, cause: str) -> None:
    record = session(state).add("end", code, not state.startswith("cut-short"))
    reading = read(record, code)
    assert (reading.cause or "complete") == cause
    assert reading.complete is (cause == "complete")
    assert reading.measured_targets == (FINISHED[state] if cause in STANDING else 0)
    for other in range(256):
        if other != code:
            changed = read(record, other)
            assert (changed.cause, changed.measured_targets) == ("exit-contradicts-record", 0)


@pytest.mark.parametrize(("code", "state"), list(product((0, 1, 2, 3, 4, 5, 77), FINISHED)))
def test_without_the_end_of_the_session_no_exit_code_makes_it_complete(code: int, state: str) -> None:
    reading = read(session(state), code)
    assert (reading.complete, reading.cause) == (False, "session-ended-early")
    assert reading.measured_targets == FINISHED[state]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (0, "session-ended-early"),
        (1, "session-ended-early"),
        (2, "interrupted"),
        (3, "runner-internal-error"),
        (4, "runner-usage-error"),
        (5, "session-ended-early"),
        (9, "session-ended-early"),
    ],
)
def test_an_end_before_the_first_test_is_told_by_its_exit_code(code: int, cause: str) -> None:
    reading = read(Record().items(A, B).add("trouble", "conftest.py: it broke", ""), code)
    assert (reading.cause, reading.measured_targets) == (cause, 0)
    assert "conftest.py: it broke" in reading.detail


@pytest.mark.parametrize("code", range(8))
def test_an_empty_record_measures_nothing(code: int) -> None:
    reading = read(b"", code)
    expected = {3: "runner-internal-error", 4: "runner-usage-error"}.get(code, "record-missing")
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, expected, 0)


ENDS = [end for end in get_args(End) if end != "exited"]


@pytest.mark.parametrize("end", ENDS)
def test_a_death_leaves_what_was_finished_and_names_what_was_running(end: str) -> None:
    record = Record().items(A, B).case(0, PASSED).add("start", 1)
    dead = replace(ended(0), end=end, exit_code=None, signal=9, detail="a note of the supervisor")
    reading = read(record, dead)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, end, 1)
    assert [(missing.target, missing.cause) for missing in reading.missing] == [("b.py", end)]
    assert B.text() in reading.detail
    assert "a note of the supervisor" in reading.detail
    not_reached = read(Record().items(A, B).case(0, PASSED), dead)
    assert [(missing.target, missing.cause) for missing in not_reached.missing] == [("b.py", "not-run")]
    nothing = read(b"", dead)
    assert (nothing.cause, nothing.measured_targets, nothing.missing) == (end, 0, ())


@pytest.mark.parametrize("end", ENDS)
def test_a_death_after_the_end_of_the_session_is_never_complete(end: str) -> None:
    reading = read(whole_session(), replace(ended(1), end=end, exit_code=None, signal=9))
    assert not reading.complete
    if end == "signalled":
        assert (reading.cause, reading.measured_targets) == ("exit-contradicts-record", 0)
    else:
        assert (reading.cause, reading.measured_targets) == (end, 2)


def test_exit_five_is_complete_only_where_nothing_was_planned_and_nothing_collected() -> None:
    nothing = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="a.py", blob=None, cases=(), skipped="why"),)
    )
    skipped = ("collection", "a.py", [], "skipped", "Skipped: why", "")
    reading = read(Record().add(*skipped).add("end", 5, True), 5, inventory=nothing)
    assert (reading.complete, reading.measured_targets, reading.attention) == (True, 1, ("a.py",))
    assert read(Record().add("end", 5, True), 5, "a.py", inventory=nothing).complete
    assert read(Record().items(A).add("end", 5, True), 5, "a.py", inventory=nothing).cause == "nothing-collected"
    assert read(Record().add("end", 5, True), 5).cause == "nothing-collected"


def test_a_test_that_was_collected_now_but_not_planned_has_to_end_too() -> None:
    new = TestId("a.py", ("test_new",))
    record = Record().items(A, B, new).case(0, PASSED).case(1, PASSED)
    assert unmeasured(read(Record().items(A, B).case(0, PASSED).case(1, PASSED).add("end", 0, True))) == {}
    assert unmeasured(read(record.add("end", 0, True))) == {"a.py": "cases-missing"}


def test_a_collector_that_failed_stands_for_the_tests_below_it_and_for_no_other() -> None:
    inner, outer = TestId("a.py", ("TestA", "test_inner")), TestId("a.py", ("test_outer",))
    inventory = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="a.py", blob=None, cases=(inner, outer)),)
    )
    failed = ("collection", "a.py", ["TestA"], "failed", "ImportError: no", "")
    reading = read(Record().add(*failed).items(outer).case(0, PASSED).add("end", 1, True), 1, inventory=inventory)
    assert reading.complete
    assert outcomes(reading) == {"a.py::TestA": "error", "a.py::test_outer": "passed"}
    reading = read(Record().add(*failed).add("end", 1, True), 1, inventory=inventory)
    assert unmeasured(reading) == {"a.py": "cases-missing"}


def test_tests_of_other_files_void_the_attempt() -> None:
    foreign = TestId("c.py", ("test_c",))
    reading = read(Record().items(A, B, foreign).case(0, PASSED).case(1, PASSED).case(2, PASSED).add("end", 0, True))
    assert (reading.cause, reading.measured_targets) == ("foreign-tests", 0)
    assert "c.py" in reading.detail
    assert "c.py::test_c" in outcomes(reading)
    error = ("collection", "c.py", [], "failed", "ImportError", "")
    assert read(Record().add(*error).items(A, B).add("end", 1, True), 1).cause == "foreign-tests"


def test_an_error_of_a_directory_above_a_target_is_not_foreign_but_leaves_the_target_unmeasured() -> None:
    deep = TestId("d/e/a.py", ("test_a",))
    inventory = Inventory(
        side="candidate", commit=COMMIT, targets=(InventoryTarget(target="d/e/a.py", blob=None, cases=(deep,)),)
    )
    error = ("collection", "d/e", [], "failed", "ImportError: conftest", "")
    reading = read(Record().add(*error).add("end", 1, True), 1, inventory=inventory)
    assert (reading.cause, reading.measured_targets) == ("cases-missing", 0)
    assert outcomes(reading) == {"d/e": "error"}


def test_a_collection_that_failed_as_a_whole_voids_everything() -> None:
    record = Record().add("collection", ".", [], "failed", "ImportError: conftest", "").items(A, B)
    record.case(0, PASSED).case(1, PASSED).add("end", 1, True)
    reading = read(record, 1)
    assert (reading.cause, reading.detail, reading.measured_targets) == (
        "collection-aborted",
        "ImportError: conftest",
        0,
    )
    assert read_collection(record.data(), ended(1)).cause == "collection-aborted"


def test_code_from_another_tree_voids_the_attempt_and_the_collection() -> None:
    record = Record().items(A, B).case(0, PASSED).case(1, PASSED)
    record.add("wrong-tree", [["product", "/elsewhere/product.py"]]).add("end", 0, True)
    reading = read(record)
    assert (reading.cause, reading.measured_targets) == ("wrong-tree", 0)
    assert "/elsewhere/product.py" in reading.detail
    assert read_collection(record.data(), ended(0)).cause == "wrong-tree"


def distributed(*workers: Record, code: int = 0) -> bytes:
    return b"\n".join(record.data() for record in (*workers, controller(*workers).add("end", code, True)))


def controller(*workers: Record) -> Record:
    main = Record()
    for worker in workers:
        main.add("worker", worker.process)
    return main


def test_the_records_of_workers_are_put_together() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).add("end", 0, True)
    second = Record("gw1").items(A, B).case(1, FAILED).add("end", 1, True)
    reading = read(distributed(first, second, code=1), 1)
    assert reading.complete
    assert [row.worker for row in reading.table.cases] == ["gw0", "gw1"]


def test_a_test_that_two_workers_report_has_the_worse_result() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).case(1, FAILED).add("end", 1, True)
    second = Record("gw1").items(A, B).case(0, FAILED).case(1, PASSED).add("end", 1, True)
    reading = read(distributed(first, second, code=1), 1)
    assert set(outcomes(reading).values()) == {"failed"}


@pytest.mark.parametrize("again", [PASSED, FAILED])
def test_a_crash_under_a_test_is_not_mended_by_a_result_from_elsewhere(again: list[list[Any]]) -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).add("start", 1)
    second = Record("gw1").items(A, B).case(1, again).add("end", 0, True)
    main = controller(first, second).add("crash", "failed", "worker 'gw0' crashed", "").add("end", 1, True)
    reading = read(b"\n".join((first.data(), second.data(), main.data())), 1)
    assert (reading.cause, reading.measured_targets) == ("worker-crashed", 1)
    assert unmeasured(reading) == {"b.py": "worker-crashed"}
    assert f"{B.text()} in gw0" in reading.detail


def test_a_worker_that_vanishes_between_tests_is_never_complete() -> None:
    first = Record("gw0").items(A, B).case(0, PASSED).case(1, PASSED)
    reading = read(distributed(first))
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "worker-crashed", 2)
    silent = controller(first.add("end", 0, True), Record("gw1")).add("end", 0, True)
    reading = read(b"\n".join((first.data(), silent.data())))
    assert (reading.complete, reading.cause) == (False, "worker-crashed")
    assert "gw1" in reading.detail


def shown(*phases: list[Any]) -> tuple[str, int, int]:
    row = row_of(A, tuple(Phase(*phase) for phase in phases))
    return row.outcome, row.reruns, row.subtests_failed


def test_the_phases_of_a_test_give_one_outcome() -> None:
    setup, call, teardown = PASSED
    bad_call, bad_teardown = FAILED[1], ["teardown", "failed", 0.0]
    subtest = ["call", "failed", 0.0, None, "", "", True]
    assert shown(setup, call, teardown) == ("passed", 0, 0)
    assert shown(setup, bad_call, teardown) == ("failed", 0, 0)
    assert shown(["setup", "failed", 0.0], teardown) == ("error", 0, 0)
    assert shown(setup, call, bad_teardown) == ("error", 0, 0)
    assert shown(setup, bad_call, bad_teardown) == ("failed", 0, 0)
    assert shown(setup, ["call", "skipped", 0.0], teardown) == ("skipped", 0, 0)
    assert shown(setup, ["call", "skipped", 0.0], bad_teardown) == ("error", 0, 0)
    assert shown(setup, call, ["teardown", "skipped", 0.0]) == ("skipped", 0, 0)
    assert shown(["setup", "skipped", 0.0, "", "", "", False], teardown) == ("xfailed", 0, 0)
    assert shown(setup, ["call", "passed", 0.0, "known"], teardown) == ("xpassed", 0, 0)
    assert shown(setup, ["call", "strange", 0.0], teardown) == ("failed", 0, 0)
    assert shown(setup, subtest, subtest, call, teardown) == ("failed", 0, 2)
    assert shown(setup, ["call", "rerun", 0.0], setup, call, teardown) == ("passed", 1, 0)
    assert shown(["setup", "rerun", 0.0], setup, ["call", "rerun", 0.0], setup, bad_call, teardown) == ("failed", 2, 0)
    assert shown(setup, bad_call, ["teardown", "rerun", 0.0], setup, call, teardown) == ("passed", 1, 0)


def test_a_test_without_the_end_of_its_teardown_has_no_result_unless_it_failed() -> None:
    record = Record().items(A, B).case(0, CUT).case(1, FAILED[:2])
    reading = read(record.add("end", 2, False), 2)
    assert outcomes(reading) == {B.text(): "failed"}
    assert reading.measured_targets == 0


def test_texts_are_bounded_whatever_the_record_holds() -> None:
    long = ["call", "failed", 0.0, None, "l" * 5000, "m" * 50000, False]
    record = Record().items(A, B).case(0, [PASSED[0], long, PASSED[2]]).case(1, PASSED).add("end", 1, True)
    row = read(record, 1).table.cases[0]
    assert (len(row.line), len(row.message)) == (200, 4000)


WHOLE = whole_session().lines


@pytest.mark.parametrize("index", range(len(WHOLE) - 1))
@pytest.mark.parametrize(
    "garbage",
    [b"", b"{", b"[]", b"[" * 100_000, b"\xff\xfe", b"null", b'["start","main",1e999,0]', b'["strange","main",4,0]'],
    ids=["missing", "brace", "empty", "deep", "bytes", "null", "huge", "strange"],
)
def test_a_line_that_cannot_be_read_or_is_missing_in_the_middle_voids_everything(index: int, garbage: bytes) -> None:
    lines = [line.encode() for line in WHOLE]
    reading = read(b"\n".join([*lines[:index], garbage, *lines[index + 1 :]]), 1)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "record-damaged", 0)


@pytest.mark.parametrize("first", range(len(WHOLE)))
@pytest.mark.parametrize("second", range(len(WHOLE)))
def test_lines_that_are_repeated_or_exchanged_void_everything(first: int, second: int) -> None:
    repeated = [*WHOLE[: first + 1], WHOLE[second], *WHOLE[first + 1 :]]
    assert read("\n".join(repeated).encode(), 1).cause == "record-damaged"
    if first != second:
        exchanged = list(WHOLE)
        exchanged[first], exchanged[second] = exchanged[second], exchanged[first]
        assert read("\n".join(exchanged).encode(), 1).cause == "record-damaged"


@pytest.mark.parametrize(
    "line",
    [
        ["start", "main", 3, 2],
        ["start", "main", 3, -1],
        ["start", "gw0", 3, 0],
        ["case", "main", 3, 0, []],
        ["items", "main", 3, 1, "b.py", []],
        ["process", "main", 3, 1, "9", "3"],
        ["process", "gw0", 1, 2, "9", "3"],
        ["case", "main", 3, 0, [["call", "passed", "long"]]],
        ["collection", "main", 3, 5, [], "failed", "", ""],
        ["end", "main", 3, "0", True],
    ],
    ids=json.dumps,
)
def test_a_line_that_contradicts_the_lines_before_it_voids_everything(line: list[Any]) -> None:
    record = Record().add("items", 0, "a.py", [[["test_a"], None], [["test_b"], None]])
    data = record.data() + json.dumps(line).encode() + b"\n"
    following = json.dumps(["end", "main", 4, 0, True]).encode()
    assert read(data + following).cause == "record-damaged"


def test_half_characters_in_a_record_are_damage_not_a_crash() -> None:
    reading = read(Record().items(TestId("a.py", ("\udc80",)), B).add("end", 0, True))
    assert reading.cause == "record-damaged"


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read_and_none_is_complete(data: bytes) -> None:
    for record in (data, whole_session().data() + data.replace(b"\n", b"") + b"x"):
        reading = read(record, 1)
        assert not reading.complete
        assert reading.cause in CAUSES


names = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=4)
identities = st.builds(
    TestId,
    target=st.sampled_from(["a.py", "b/c.py", "d.py"]),
    path=st.lists(names, min_size=1, max_size=2).map(tuple),
    variant=st.none() | names,
)
results = st.sampled_from(
    [
        PASSED,
        FAILED,
        [["setup", "failed", 0.5], PASSED[2]],
        [PASSED[0], ["call", "skipped", 0.1, None, "Skipped: why", "", False], PASSED[2]],
        [PASSED[0], ["call", "rerun", 0.1], *PASSED],
    ]
)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Inventory, list[bytes], int]:
    """An inventory, the records of the processes that ran all of it, and the exit code that belongs to them."""
    tests = draw(st.lists(identities, min_size=1, max_size=5, unique=True))
    tests.sort(key=TestId.sort_key)
    workers = draw(st.sampled_from([(), ("gw0",), ("gw0", "gw1")]))
    records = [Record(name).items(*tests) for name in workers or ("main",)]
    failed = False
    for index in draw(st.permutations(range(len(tests)))):
        phases = draw(results)
        failed = failed or any(phase[1] == "failed" for phase in phases)
        draw(st.sampled_from(records)).case(index, phases)
    if workers:
        for record in records:
            record.add("end", 0, True)
        records.append(controller(*records))
    records[-1].add("end", int(failed), True)
    targets = tuple(
        InventoryTarget(target=target, blob=None, cases=tuple(test for test in tests if test.target == target))
        for target in sorted({test.target for test in tests})
    )
    inventory = Inventory(side="candidate", commit=COMMIT, targets=targets)
    return inventory, [record.data() for record in records], int(failed)


def finished_targets(record: bytes, inventory: Inventory) -> set[str]:
    """The targets whose every test has its teardown on a whole line; the whole lines alone, read another way."""
    items: dict[str, dict[int, tuple[str, str]]] = {}
    done = set()
    for text in record.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if line[0] == "items":
            items.setdefault(line[1], {})[line[3]] = (line[4], json.dumps(line[5][0]))
        elif line[0] == "case" and line[4][-1][0] == "teardown":
            done.add(items[line[1]][line[3]])
    return {
        target.target
        for target in inventory.targets
        if all((target.target, json.dumps([case.path, case.variant])) in done for case in target.cases)
    }


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(sessions(), st.data())
def test_no_truncation_is_complete_or_measures_a_target_whose_tests_did_not_all_end(
    made: tuple[Inventory, list[bytes], int], data: st.DataObject
) -> None:
    inventory, records, code = made
    assert read(b"\n".join(records), code, inventory=inventory).complete
    position = data.draw(st.integers(0, len(records) - 1))
    for length in range(len(records[position])):
        cut = [*records[:position], records[position][:length], *records[position + 1 :]]
        record = b"\n".join(cut)
        reading = read(record, code, inventory=inventory)
        whole = length == len(records[position]) - 1
        assert reading.complete is whole
        measured = {row.target for row in reading.table.targets if row.cause is None}
        assert measured <= finished_targets(record, inventory)
        assert reading.measured_targets == len(measured)


def test_every_reason_that_the_reader_gives_is_explained() -> None:
    given_causes = {cause for _, _, cause in exit_map()} - {"complete"}
    others = {"exit-contradicts-record", "record-missing", "record-damaged", "record-truncated", "wrong-tree"}
    others |= {"collection-aborted", "foreign-tests", "cases-missing", "worker-crashed", "not-run"}
    assert given_causes | others | set(ENDS) <= set(CAUSES)
    for cause in CAUSES.values():
        assert cause.meaning.endswith(".")
        assert cause.next_step.endswith(".")
