"""Decisions of people about mutings.

Muting a test is refused, in this order, when
- what is to be muted is not one test (a target or text that names none);
- the owner, the reason or a condition is not a line of text;
- the last day is not a date, is over, or is further away than a muting may last;
- no run has ever seen such a test;
- it is muted already wherever it would be;
- there are as many valid mutings as there may be.

A muting is taken back once, while it is valid; one that is meant by its test must be the only one of it.
"""

from contextlib import suppress
from datetime import date, timedelta

from commands.decide.base import Decided, Documents
from commands.messages import MuteTest, Refusal, UnmuteTest
from commands.render.words import count
from ledger.events import Muted, Unmuted
from ledger.values import TestId
from projections.people.mutes import MutesView, covers, has_expired
from projections.registry import RunViews

TEXT_MAX = 500
"""The characters of an owner, a reason, or a condition's name or value."""


def mute_test(message: MuteTest, views: RunViews, documents: Documents) -> Decided:
    """A new muting, under the next name."""
    test = _single_test(message.test)
    _refuse_incomplete(message)
    _refuse_time(message)
    if message.known < 1:
        raise Refusal(
            "mute-test-unknown",
            f"no run has ever seen a test {message.test!r}",
            "write it as `ledger status` and `ledger query inventory` do, such as tests/test_a.py::test_name",
        )
    valid = [one for one in views.mutes.standing() if not has_expired(one, message.date)]
    for one in valid:
        if covers(one, test) and one.environment.items() <= message.environment.items():
            raise Refusal(
                "already-muted",
                f"{message.test} is muted already, by {one.mute} until {one.expires}",
                f"to change that, take it back first: ledger unmute {one.mute} --reason TEXT",
            )
    if len(valid) >= message.count_max:
        raise Refusal(
            "mutes-full",
            f"{count(len(valid), 'muting')} in force, and there may be at most {message.count_max}",
            "repair one of them and take its muting back; `ledger mutes` proposes some",
        )
    return Decided(
        (
            Muted(
                mute=views.mutes.next_name,
                test=message.test,
                owner=message.owner,
                reason=message.reason,
                expires=message.expires,
                environment=message.environment,
                lines=message.lines,
            ),
        )
    )


def unmute_test(message: UnmuteTest, views: RunViews, documents: Documents) -> Decided:
    """The end of a muting."""
    if not _is_line(message.reason):
        raise _incomplete("the reason")
    meant = _meant(message, views.mutes)
    if not meant:
        raise Refusal(
            "not-muted", f"nothing that is called {message.what!r} is muted", "`ledger mutes` lists what is muted"
        )
    if len(meant) > 1:
        names = ", ".join(one.mute for one in meant)
        raise Refusal("mute-ambiguous", f"{message.what} is muted more than once: {names}", "name one of these")
    return Decided((Unmuted(mute=meant[0].mute, by=message.by, reason=message.reason),))


def _meant(message: UnmuteTest, mutes: MutesView) -> list[Muted]:
    valid = [one for one in mutes.standing() if not has_expired(one, message.date)]
    named = [one for one in valid if message.what in (one.mute, one.test)]
    return named or [one for one in valid if TestId.parse(one.test).plain() == message.what]


def _single_test(text: str) -> TestId:
    try:
        test = TestId.parse(text)
    except ValueError:
        test = TestId("")
    if not (test.target and test.path and all(test.path)):
        raise Refusal(
            "mute-test-invalid",
            f"{text[:TEXT_MAX]!r} is not the name of one test",
            "name a test such as tests/test_a.py::test_name, or one variant of it; whole files are never muted",
        )
    return test


def _refuse_incomplete(message: MuteTest) -> None:
    for name, text in (("the owner", message.owner), ("the reason", message.reason)):
        if not _is_line(text):
            raise _incomplete(name)
    if not all(map(_is_line, (*message.environment, *message.environment.values()))):
        raise _incomplete("each condition")


def _incomplete(what: str) -> Refusal:
    hint = f"it is one line of printable text of at most {TEXT_MAX} characters, and not empty"
    return Refusal("mute-incomplete", f"{what} of a muting is missing or cannot be printed", hint)


def _is_line(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= TEXT_MAX


def _refuse_time(message: MuteTest) -> None:
    today = date.fromisoformat(message.date)
    last = None
    with suppress(ValueError):
        last = date.fromisoformat(message.expires)
    if last is None or last.isoformat() != message.expires:
        raise Refusal("mute-date-invalid", f"{message.expires!r} is not a date", "give a date such as 2030-01-31")
    if last < today:
        raise Refusal("mute-expired", f"{last} is over, so that muting would mean nothing", "name a later day")
    if last - today > timedelta(days=message.days_max):
        raise Refusal(
            "mute-too-long",
            f"{last} is {(last - today).days} days away, and a muting lasts at most {message.days_max}",
            f"name {today + timedelta(days=message.days_max)} or an earlier day, and repair the test until then",
        )
