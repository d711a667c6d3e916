"""What people may mute: every rule, in its order, and what comes of it when none says no."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from msgspec import structs

from commands.causes import REFUSALS
from commands.messages import MuteTest, UnmuteTest
from ledger.events import STREAM, Event, Muted, Unmuted
from ledger.values import TestId
from projections.people.mutes import covers
from tests.support.given import given
from tests.support.makers import muted

DAY = "2030-01-15"
BROKEN_LINES = ["", "  ", "a\nb", "a\x1b[31mb", "x" * 501, "\u202ereversed"]


def mute(test: str = "a.py::test_a", **changes: Any) -> MuteTest:
    """A request that no rule is against."""
    values: dict[str, Any] = {
        "stream": STREAM, "owner": "someone", "reason": "it depends on the weather", "expires": "2030-01-31",
        "date": DAY, "count_max": 50, "days_max": 30, "known": 1,
    }  # fmt: skip
    return MuteTest(test=test, **values | changes)


def unmute(what: str = "a.py::test_a", **changes: Any) -> UnmuteTest:
    values: dict[str, Any] = {"stream": STREAM, "by": "somebody", "reason": "repaired", "date": DAY}
    return UnmuteTest(what=what, **values | changes)


def unmuted(name: str = "mute-1") -> Unmuted:
    return Unmuted(mute=name, by="somebody", reason="repaired")


def test_a_test_is_muted_with_everything_that_was_asked_for_and_gathered() -> None:
    asked = mute("a.py::C::t[1-x]", environment={"CI": "1"}, lines=("assert 1 == 2", "KeyError"))
    expected = muted("a.py::C::t[1-x]", environment={"CI": "1"}, lines=("assert 1 == 2", "KeyError"))
    given().when(asked).then(expected)


def test_the_next_muting_has_the_next_name_whatever_became_of_the_others() -> None:
    past = [muted("b.py::t"), muted("c.py::t", mute="mute-2", expires="2030-01-02"), unmuted()]
    given(*past).when(mute()).then(muted(mute="mute-3"))


def test_muting_twice_is_refused() -> None:
    given(muted()).when(mute()).refused("already-muted")
    given(muted()).when(mute(expires="2030-02-03", reason="another")).refused("already-muted")


@pytest.mark.parametrize(
    "test",
    ["", "a.py", "a.py[1]", "a.py::", "::", "::t", "a.py::::t", "a.py::t[", "a.py::t]", "a.py::t[1]x", "[1]", "a::b\n"],
)
def test_only_one_test_can_be_muted(test: str) -> None:
    given().when(mute(test)).refused("mute-test-invalid")


@pytest.mark.parametrize("text", BROKEN_LINES)
def test_owner_reason_and_conditions_are_lines_of_text(text: str) -> None:
    for asked in (mute(owner=text), mute(reason=text), mute(environment={text: "1"}), mute(environment={"CI": text})):
        given().when(asked).refused("mute-incomplete")
    given(muted()).when(unmute(reason=text)).refused("mute-incomplete")


@pytest.mark.parametrize(
    ("expires", "code"),
    [
        ("2030-01-15", None),
        ("2030-01-14", "mute-expired"),
        ("1999-12-31", "mute-expired"),
        ("2030-02-14", None),
        ("2030-02-15", "mute-too-long"),
        ("9999-12-31", "mute-too-long"),
        ("", "mute-date-invalid"),
        ("soon", "mute-date-invalid"),
        ("20300120", "mute-date-invalid"),
        ("2030-W04-1", "mute-date-invalid"),
        ("2030-02-30", "mute-date-invalid"),
        ("2030-01-20T00:00:00", "mute-date-invalid"),
    ],
)
def test_the_last_day_is_one_of_the_next_thirty(expires: str, code: str | None) -> None:
    when = given().when(mute(expires=expires))
    if code is None:
        when.then(muted(expires=expires))
    else:
        when.refused(code)


@over(days=st.integers(-400, 400), days_max=st.integers(1, 30))
def test_a_day_is_allowed_exactly_when_it_is_within_the_limit(days: int, days_max: int) -> None:
    last = str(date.fromisoformat(DAY) + timedelta(days=days))
    decided, refusal = given().decide(mute(expires=last, days_max=days_max))
    assert bool(decided.events) == (0 <= days <= days_max)
    assert (refusal is None) == bool(decided.events)


def test_a_test_that_nobody_has_seen_is_refused_with_how_names_are_written() -> None:
    assert "tests/test_a.py::test_name" in given().when(mute(known=0)).refused("mute-test-unknown").hint


CONDITIONS = ({}, {"CI": "1"}, {"CI": "1", "platform": "linux"}, {"CI": "2"})
TESTS = ("a.py::t", "a.py::t[1]", "a.py::t[2]", "b.py::t")


@pytest.mark.parametrize("there", CONDITIONS)
@pytest.mark.parametrize("asked", CONDITIONS)
def test_what_would_excuse_nothing_more_is_refused(there: dict[str, str], asked: dict[str, str]) -> None:
    for old in TESTS:
        for new in TESTS:
            past = muted(old, environment=there)
            excused = covers(past, TestId.parse(new)) and all(asked.get(name) == there[name] for name in there)
            when = given(past).when(mute(new, environment=asked))
            if excused:
                when.refused("already-muted")
            else:
                when.then(muted(new, mute="mute-2", environment=asked))


@pytest.mark.parametrize("end", [[muted(expires="2030-01-14")], [muted(), unmuted()]], ids=["expired", "taken back"])
def test_what_has_ended_keeps_nobody_from_muting_anew(end: list[Event]) -> None:
    given(*end).when(mute()).then(muted(mute="mute-2"))


@pytest.mark.parametrize("count_max", [0, 1, 3])
def test_there_are_never_more_valid_mutings_than_allowed(count_max: int) -> None:
    full = [muted(f"a.py::t{number}", mute=f"mute-{number}") for number in range(1, count_max + 1)]
    given(*full).when(mute("b.py::t", count_max=count_max)).refused("mutes-full")
    if count_max:
        room = [structs.replace(full[0], expires="2030-01-14"), *full[1:]]
        given(*room).when(mute("b.py::t", count_max=count_max)).then(muted("b.py::t", mute=f"mute-{count_max + 1}"))


def test_the_first_rule_that_says_no_is_the_one_that_is_told() -> None:
    """Each request breaks one rule more than the one before it."""
    wrong: dict[str, Any] = {}
    past = [muted(), muted("b.py::t", mute="mute-2")]
    for change, code in [
        ({"count_max": 2}, "mutes-full"), ({"test": "a.py::test_a"}, "already-muted"),
        ({"known": 0}, "mute-test-unknown"), ({"expires": "2031-01-01"}, "mute-too-long"),
        ({"owner": ""}, "mute-incomplete"), ({"test": "a.py"}, "mute-test-invalid"),
    ]:  # fmt: skip
        wrong |= change
        given(*past).when(mute(**{"test": "c.py::t"} | wrong)).refused(code)


@pytest.mark.parametrize("what", ["mute-1", "a.py::test_a"])
def test_a_muting_is_taken_back_by_its_name_or_by_its_test_and_only_once(what: str) -> None:
    given(muted()).when(unmute(what)).then(unmuted())
    given(muted(), unmuted()).when(unmute(what)).refused("not-muted")


@pytest.mark.parametrize("what", ["", "mute-2", "a.py", "a.py::test_a[1]", "a.py::other"])
def test_what_is_not_muted_cannot_be_unmuted(what: str) -> None:
    given(muted()).when(unmute(what)).refused("not-muted")
    given(muted(expires="2030-01-14")).when(unmute()).refused("not-muted")


def test_a_test_that_is_muted_under_several_conditions_needs_the_name_of_one() -> None:
    both = [muted(environment={"CI": "1"}), muted(mute="mute-2", environment={"CI": "2"})]
    refusal = given(*both).when(unmute()).refused("mute-ambiguous")
    assert "mute-1, mute-2" in refusal.message
    given(*both).when(unmute("mute-2")).then(unmuted("mute-2"))


texts = st.text(max_size=30)


@over(test=texts, owner=texts, reason=texts, expires=texts, conditions=st.dictionaries(texts, texts, max_size=2))
def test_whatever_is_asked_for_is_muted_as_it_stands_or_refused_under_a_code_that_is_explained(
    test: str, owner: str, reason: str, expires: str, conditions: dict[str, str]
) -> None:
    asked = mute(test, owner=owner, reason=reason, expires=expires, environment=conditions)
    decided, refusal = given().decide(asked)
    if refusal is None:
        (event,) = decided.events
        assert isinstance(event, Muted)
        assert (event.test, event.owner, event.reason, event.expires) == (test, owner, reason, expires)
    else:
        assert refusal.code in REFUSALS
        assert decided.events == ()
