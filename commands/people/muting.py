"""Muting a test, taking that back, and what is muted: the world is asked here, the rules are in `decide/mutes.py`."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from shlex import quote
from typing import TypeVar

from msgspec import structs

from commands.decide.base import Documents
from commands.decide.registry import decide
from commands.messages import MuteTest, Refusal, UnmuteTest
from commands.wiring import Home, OpenLedger, open_desk
from ledger.errors import LedgerError
from ledger.events import STREAM, Muted, Unmuted
from ledger.record import RecordedEvent
from ledger.tables import Inventory
from projections.fold import fold
from projections.history.flaky import last_lines, passes_in_a_row
from projections.people.listing import MuteList, list_mutes
from projections.people.mutes import MUTES, MutesView
from projections.registry import RunViews
from projections.run.moment import event_time, parse_moment

Kind = TypeVar("Kind", Muted, Unmuted)


def today() -> date:
    """The day, in UTC."""
    return datetime.now(UTC).date()


def last_day(text: str) -> str:
    """The last day that is meant: a date as it is, or so many days from now. Anything else the rules refuse."""
    days = text.removesuffix("d")
    if days.isascii() and days.isdecimal() and len(days) <= 4:
        return str(today() + timedelta(days=int(days)))
    return text


def mute(home: Home, test: str, owner: str, reason: str, expires: str, environment: Mapping[str, str]) -> Muted:
    """Mute a test. Raises Refusal when a rule says no, LedgerMissing when there is no ledger yet."""
    limits = home.loaded.settings.mutes
    message = MuteTest(
        stream=STREAM,
        test=test,
        owner=owner,
        reason=reason,
        expires=expires,
        environment=dict(environment),
        date=str(today()),
        count_max=limits.count_max,
        days_max=limits.days_max,
        known=1,
    )
    try:
        # What is wrong with the request itself is refused before anything is looked up for it.
        decide(message, RunViews(), Documents({}))
        with home.open_ledger() as opened:
            with opened.history() as history:
                observed, basis = history.observations(test), history.taken().sequence
            known = len({one.test for one in observed}) or _collected(opened, test)
        message = structs.replace(message, known=known, lines=last_lines(observed), basis=basis)
        with open_desk(home) as desk:
            return _only(desk.loop.handle(message), Muted)
    except Refusal as refusal:
        names = _names_written(home, test) if refusal.code in ("mute-test-invalid", "mute-test-unknown") else []
        if not names:
            raise
        raise Refusal(refusal.code, refusal.message, f"did you mean {' or '.join(map(quote, names))}?") from None


def _names_written(home: Home, text: str) -> list[str]:
    """The names of the known tests that somebody means who wrote this as a runner does, with nothing escaped."""
    try:
        with home.open_ledger() as opened, opened.history() as history:
            return history.names_written(text)
    except LedgerError:
        # A better hint is all that would have come of it.
        return []


def unmute(home: Home, what: str, reason: str) -> Unmuted:
    """Take a muting back, named itself or by its test. Raises Refusal when a rule says no."""
    with open_desk(home) as desk:
        message = UnmuteTest(stream=STREAM, what=what, by=desk.who, reason=reason, date=str(today()))
        return _only(desk.loop.handle(message), Unmuted)


def mutes(home: Home, at: str | None) -> MuteList:
    """What is and was muted, now or at a moment; nothing is recorded. Raises MomentUnknown."""
    needed = home.loaded.settings.mutes.passes
    with home.open_ledger() as opened:
        until = opened.sequence_at(at)
        day = str(today()) if at is None else _day(opened, at, until or 0)
        view = fold(MUTES, opened.known_events(STREAM), as_of=until)
        passes = _passes(opened, view, until)
    return list_mutes(view, day, passes, needed)


def _passes(opened: OpenLedger, view: MutesView, until: int | None) -> dict[str, int]:
    """In how many runs in a row each muted test passed since it was muted. Where a muting has conditions nobody counts,
    because no row of the history says whether they were met."""
    counted = {name: one for name, one in view.mutings.items() if one.unmuted is None and not one.muted.environment}
    if not counted:
        return {}
    with opened.history(until) as history:
        return {
            name: passes_in_a_row(history.observations(one.muted.test), one.sequence) for name, one in counted.items()
        }


def _day(opened: OpenLedger, at: str, until: int) -> str:
    """The day of a moment: its own, or that of the event which it names."""
    moment = parse_moment(at)
    if moment.time is not None:
        return str(moment.time.date())
    recorded = next(opened.events(None, until - 1))
    return str(event_time(recorded.header, recorded.sequence).date())


def _collected(opened: OpenLedger, test: str) -> int:
    """How many tests of this name, or variants of it, the newest run has collected: some never come to an end."""
    views = opened.views(opened.find_run("latest"))
    inventories = (opened.document(one.inventory, Inventory) for one in views.gate.inventories.values())
    names = {case.text() for one in inventories for target in one.targets for case in target.cases}
    return sum(name == test or name.startswith(f"{test}[") for name in names)


def _only(recorded: list[RecordedEvent], kind: type[Kind]) -> Kind:
    (event,) = (one.event for one in recorded if isinstance(one.event, kind))
    return event
