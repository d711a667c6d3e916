"""Events as stored bytes: the same event comes back, old shapes are brought up, and no bytes break the reader."""

import json
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from ledger import codec
from ledger.codec import UPCASTERS, decode, decode_stored, encode, encode_header
from ledger.errors import LedgerDamaged
from ledger.events import TAGS, TYPES, AttemptRecorded, Event, StepStarted, Unknown
from ledger.record import Actor, Header

TEXT = st.text(st.characters(codec="utf-8"))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: INTEGERS,
    float: FLOATS,
    bool: st.booleans(),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type, for every kind of annotation that an event may have."""
    if annotation in PLAIN:
        return PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, arguments))
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return structs_of(annotation)
    raise NotImplementedError(f"no values for {annotation}")


def structs_of(struct: type[Struct]) -> st.SearchStrategy[Any]:
    """Values of a Struct with every field given."""
    hints = get_type_hints(struct)
    return st.builds(struct, **{name: values_of(hints[name]) for name in struct.__struct_fields__})


EVENTS = st.one_of(*map(structs_of, TYPES.values()))
HEADERS = structs_of(Header).filter(lambda header: header.tag not in TYPES)


def header(tag: str = "step-started", version: int = 1) -> Header:
    """A header for an event of this tag."""
    return Header(
        ledger="1", stream="run-1", position=1, tag=tag, version=version, time="", actor=Actor("", "", ""),
        command="c", index=0, correlation="", message="", policy="", basis=0, previous="",
    )  # fmt: skip


@pytest.mark.parametrize("tag", TYPES)
def test_every_event_comes_back_as_it_was(tag: str) -> None:
    @given(structs_of(TYPES[tag]))
    @settings(max_examples=40, deadline=None)
    def comes_back(event: Event) -> None:
        stored = encode(event)
        assert stored[:2] == TAGS[TYPES[tag]]
        assert decode(*stored) == event

    comes_back()


@given(EVENTS)
def test_the_payload_is_plain_json_of_the_fields_alone(event: Event) -> None:
    _, _, payload = encode(event)
    defaults = {
        one.name: one.default if one.default_factory is msgspec.NODEFAULT else one.default_factory()
        for one in msgspec.structs.fields(type(event))
        if type(event).__struct_config__.omit_defaults
    }
    held = {name: getattr(event, name) for name in event.__struct_fields__}
    there = {name: value for name, value in held.items() if value is not msgspec.UNSET}
    # A number with a fraction that equals its default is left out only where it is the very same object.
    either = {name for name, value in there.items() if isinstance(value, float) and value == defaults.get(name)}
    told = list(json.loads(payload))
    assert told == [name for name in there if name in told]
    assert [name for name in told if name not in either] == [
        name for name, value in there.items() if value != defaults.get(name, msgspec.NODEFAULT)
    ]


@given(HEADERS)
def test_a_header_comes_back_as_it_was(one: Header) -> None:
    again, event = decode_stored(encode_header(one), b"{}")
    assert again == one
    assert isinstance(event, Unknown)


def test_the_order_in_which_a_mapping_was_filled_does_not_change_the_bytes() -> None:
    counts = {"passed": 1, "failed": 2, "error": 3}
    backwards = dict(reversed(counts.items()))
    one, other = (attempt(counts=value) for value in (counts, backwards))
    assert encode(one) == encode(other)


def attempt(**changes: Any) -> AttemptRecorded:
    """A record of an attempt that measured nothing."""
    values: dict[str, Any] = {
        "shard": "shard-1", "side": "candidate", "attempt": 1, "term": 1, "commit": "c" * 40, "complete": False,
        "counted": True, "cause": "x", "detail": "", "exit_code": None, "signal": None, "started_at": "",
        "duration_seconds": 1.0, "peak_memory_bytes": None, "reader": "", "evidence_key": None, "table": None,
        "record": None, "log": None, "targets": 1, "measured_targets": 0, "missing": (), "attention": (),
        "counts": {}, "failures": (),
    }  # fmt: skip
    return AttemptRecorded(**values | changes)


UNREADABLE: dict[str, dict[str, Any]] = {
    "not a number": {"duration_seconds": float("nan")},
    "infinite": {"duration_seconds": float("inf")},
    "a lone surrogate": {"shard": "\ud800"},
    "a number for a text": {"shard": 7},
    "another word": {"side": "left"},
    "a fraction for a count": {"targets": 1.5},
    "a number without end": {"targets": 10**5000},
    "a thing that JSON does not have": {"shard": object()},
    "a text in a mapping": {"counts": {"passed": "many"}},
    "a text for a sequence": {"attention": "tests/a.py"},
    "a row that is too short": {"missing": (("a.py",),)},
}


@pytest.mark.parametrize("changes", UNREADABLE)
def test_an_event_that_could_not_be_read_back_is_refused(changes: str) -> None:
    with pytest.raises(ValueError, match="attempt-recorded could not be read back"):
        encode(attempt(**UNREADABLE[changes]))


def test_what_is_no_registered_event_is_not_encoded() -> None:
    with pytest.raises(KeyError):
        encode(Unknown(tag="new", version=1, payload="{}"))


@pytest.mark.parametrize(("tag", "version"), [("invented-later", 1), ("step-started", 2), ("step-started", 10**30)])
def test_what_only_a_newer_program_knows_is_unknown_and_keeps_its_payload(tag: str, version: int) -> None:
    assert decode(tag, version, b'{"a":[1]}') == Unknown(tag=tag, version=version, payload='{"a":[1]}')


def test_a_field_that_a_newer_program_has_added_is_ignored() -> None:
    assert decode("step-started", 1, b'{"step":"gate","reason":"new"}') == StepStarted(step="gate")


class Planted(Event, frozen=True, kw_only=True):
    """An event in its third version: the first had `seconds`, the second `duration`, both as text."""

    duration_seconds: float
    tags: tuple[str, ...] = ()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that has an event with two older versions."""
    monkeypatch.setitem(TYPES, "planted", Planted)
    monkeypatch.setitem(TAGS, Planted, ("planted", 3))
    monkeypatch.setitem(UPCASTERS, ("planted", 1), lambda fields: {"duration": fields["seconds"]})
    monkeypatch.setitem(UPCASTERS, ("planted", 2), lambda fields: {"duration_seconds": float(fields["duration"])})
    codec._reader.cache_clear()
    yield
    codec._reader.cache_clear()


@pytest.mark.usefixtures("planted")
def test_old_versions_are_brought_up_step_by_step() -> None:
    assert decode("planted", 1, b'{"seconds":"1.5"}') == Planted(duration_seconds=1.5)
    assert decode("planted", 2, b'{"duration":"2.5"}') == Planted(duration_seconds=2.5)
    assert decode("planted", 3, b'{"duration_seconds":3.5,"tags":["a"]}') == Planted(duration_seconds=3.5, tags=("a",))
    assert encode(Planted(duration_seconds=1.5)) == ("planted", 3, b'{"duration_seconds":1.5,"tags":[]}')


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("version", [0, -1, 1, 2, 3])
@pytest.mark.parametrize("payload", [b"{}", b"[]", b"null", b'{"seconds":[],"duration":[],"duration_seconds":[]}'])
def test_old_versions_of_a_wrong_shape_are_damage(version: int, payload: bytes) -> None:
    with pytest.raises(LedgerDamaged, match="planted"):
        decode("planted", version, payload)


def test_every_older_version_of_a_registered_event_has_its_upcaster() -> None:
    older = {(tag, old) for tag, current in TAGS.values() for old in range(1, current)}
    assert older == set(UPCASTERS)


HOSTILE = [
    b"", b"\xff", b"\x00", b"nul", b"{", b"[]", b"null", b"1", b'"x"', b'{"step":null}', b'{"step":"\xff"}',
    b'{"step":"\\ud800"}', b'{"step":1e999}', b"[" * 100_000, b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("payload", HOSTILE, ids=lambda payload: repr(payload[:20]))
def test_hostile_payloads_are_damage(payload: bytes) -> None:
    with pytest.raises(LedgerDamaged, match="step-started"):
        decode("step-started", 1, payload)
    with pytest.raises(LedgerDamaged):
        decode_stored(payload, b"{}")


@given(st.sampled_from(sorted(TYPES)), st.integers(-1, 3), st.binary(max_size=60))
def test_no_bytes_raise_anything_but_damage(tag: str, version: int, payload: bytes) -> None:
    for read in (lambda: decode(tag, version, payload), lambda: decode_stored(payload, payload)):
        with suppress(LedgerDamaged):
            read()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(EVENTS, st.data())
def test_a_payload_with_one_field_of_any_other_value_is_read_or_damage(event: Event, data: st.DataObject) -> None:
    tag, version, payload = encode(event)
    fields = json.loads(payload)
    if fields:
        fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JSON)
    try:
        again = decode(tag, version, msgspec.json.encode(fields))
    except LedgerDamaged:
        return
    assert encode(again)[:2] == (tag, version)


def test_a_damage_of_the_codec_names_no_place_of_its_own() -> None:
    with pytest.raises(LedgerDamaged) as caught:
        decode("ledger-created", 1, b"{}")
    assert (caught.value.stream, caught.value.position, caught.value.sequence) == ("", 0, 0)
