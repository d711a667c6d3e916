"""The mutes: which mutings there are, what became of them, and what is listed on a day."""

from ledger.events import Event, LedgerCreated, Unmuted
from projections.fold import fold
from projections.people.listing import MuteList, MuteRow, list_mutes
from projections.people.mutes import MUTES, MutesView, asks_for
from tests.support.makers import SEQUENCE_OF_FIRST, muted, recorded

BEGUN = LedgerCreated(ledger_id="1", project="p", root_commit=None, format_version=1)
HISTORY: list[Event] = [
    BEGUN, muted("a.py::t"), muted("b.py::t", mute="mute-2", expires="2030-01-09"),
    muted("c.py::t", mute="mute-3", environment={"CI": "1"}),
    Unmuted(mute="mute-1", by="somebody", reason="repaired"),
]  # fmt: skip


def view_of(*events: Event) -> MutesView:
    return fold(MUTES, recorded(events))


def listed(day: str, passes: dict[str, int] | None = None) -> MuteList:
    return list_mutes(view_of(*HISTORY), day, passes or {}, 10)


def row(found: MuteList, name: str) -> MuteRow:
    return next(one for one in found.mutes if one.mute == name)


def test_a_muting_stands_until_it_is_taken_back_and_names_are_never_given_twice() -> None:
    assert [one.mute for one in view_of(*HISTORY[:-1]).standing()] == ["mute-1", "mute-2", "mute-3"]
    after = view_of(*HISTORY)
    assert [one.mute for one in after.standing()] == ["mute-2", "mute-3"]
    assert [view_of().next_name, after.next_name] == ["mute-1", "mute-4"]
    assert asks_for(after.standing()) == {"CI"}


def test_a_prefix_shows_the_past_and_folding_twice_is_equal() -> None:
    then = fold(MUTES, recorded(HISTORY), as_of=SEQUENCE_OF_FIRST + 2)
    assert list(then.mutings) == ["mute-1"]
    assert view_of(*HISTORY) == view_of(*HISTORY)


def test_what_is_taken_back_twice_or_was_never_muted_changes_nothing() -> None:
    again = Unmuted(mute="mute-9", by="somebody", reason="a mistake")
    assert view_of(*HISTORY, again) == view_of(*HISTORY)


def test_the_list_says_what_became_of_each_and_has_the_valid_ones_first() -> None:
    found = listed("2030-01-20")
    assert [(one.mute, one.state) for one in found.mutes] == [
        ("mute-3", "valid"), ("mute-2", "expired"), ("mute-1", "unmuted"),
    ]  # fmt: skip
    assert (row(found, "mute-1").ended_by, row(found, "mute-1").ended_reason) == ("somebody", "repaired")
    assert [one.days_left for one in found.mutes] == [11, 0, 0]
    assert row(found, "mute-3").environment == {"CI": "1"}
    assert [(one.mute, one.days_left) for one in listed("2030-01-09").mutes][:2] == [("mute-3", 22), ("mute-2", 0)]


def test_only_a_valid_muting_that_passed_often_enough_is_proposed_to_be_taken_back() -> None:
    for passes, proposed in ((9, False), (10, True), (11, True)):
        found = listed("2030-01-09", {"mute-2": passes, "mute-1": passes})
        assert [one.mute for one in found.mutes if one.proposed] == (["mute-2"] if proposed else [])
        assert (row(found, "mute-2").passes, row(found, "mute-3").passes) == (passes, None)
    assert not any(one.proposed for one in listed("2030-01-10", {"mute-2": 99}).mutes)
