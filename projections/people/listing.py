"""What is and was muted, as it is listed: what became of each muting, and which of them could be taken back."""

from collections.abc import Mapping
from datetime import date
from typing import Literal

from msgspec import Struct

from projections.people.mutes import MutesView, Muting, has_expired

MuteState = Literal["valid", "expired", "unmuted"]


class MuteRow(Struct, frozen=True, kw_only=True):
    """One muting; `since` (UTC) and `sequence` are those of its event. `days_left` counts the days after today on which
    it is still valid.

    `passes` is in how many runs in a row the test has passed since it was muted, None where that is not counted;
    `proposed` says that this is often enough to take the muting back. `ended_by` and `ended_reason` are those of
    somebody who did that.
    """

    mute: str
    test: str
    owner: str
    reason: str
    expires: str
    environment: dict[str, str]
    since: str
    sequence: int
    state: MuteState
    days_left: int
    passes: int | None
    proposed: bool
    ended_by: str
    ended_reason: str


class MuteList(Struct, frozen=True, kw_only=True):
    """All mutings on one day, those that are valid first, then the newest ones; `passes_needed` is how many passes in a
    row make a proposal."""

    date: str
    passes_needed: int
    mutes: tuple[MuteRow, ...]


def list_mutes(view: MutesView, day: str, passes: Mapping[str, int], needed: int) -> MuteList:
    """The list on this day; `passes` are the passes in a row, by muting, as far as they are counted."""
    rows = [_row(one, day, passes.get(name), needed) for name, one in view.mutings.items()]
    rows.sort(key=lambda row: (row.state != "valid", -row.sequence))
    return MuteList(date=day, passes_needed=needed, mutes=tuple(rows))


def _row(muting: Muting, day: str, passes: int | None, needed: int) -> MuteRow:
    muted, state = muting.muted, _state(muting, day)
    left = (date.fromisoformat(muted.expires) - date.fromisoformat(day)).days
    return MuteRow(
        mute=muted.mute,
        test=muted.test,
        owner=muted.owner,
        reason=muted.reason,
        expires=muted.expires,
        environment=muted.environment,
        since=muting.since,
        sequence=muting.sequence,
        state=state,
        days_left=left if state == "valid" else 0,
        passes=passes,
        proposed=state == "valid" and passes is not None and passes >= needed,
        ended_by=muting.unmuted.by if muting.unmuted else "",
        ended_reason=muting.unmuted.reason if muting.unmuted else "",
    )


def _state(muting: Muting, day: str) -> MuteState:
    if muting.unmuted is not None:
        return "unmuted"
    return "expired" if has_expired(muting.muted, day) else "valid"
