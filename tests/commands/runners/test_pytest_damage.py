"""Damaged and truncated records: whatever is done to one, nothing becomes complete or measured that is not."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.causes import CAUSES
from ledger.tables import Inventory, InventoryTarget
from ledger.values import TestId
from tests.commands.runners.records import FAILED, PASSED, B, Record, controller, read, whole_session
from tests.commands.runners.sessions import COMMIT

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
        ["start", "main", 3, 2, 1.0],
        ["start", "main", 3, -1, 1.0],
        ["start", "gw0", 3, 0, 1.0],
        ["case", "main", 3, 0, [], 1.0],
        ["items", "main", 3, 1, "b.py", []],
        ["loaded", "main", 3, "a.py", 1.0],
        ["loaded", "main", 3, "a.py", "early", 1.0],
        ["start", "main", 3, 0],
        ["process", "main", 3, 2, "9", "3"],
        ["process", "gw0", 1, 1, "9", "3"],
        ["case", "main", 3, 0, [["call", "passed", "long"]], 1.0],
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
