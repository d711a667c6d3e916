"""What mutings do to a verdict. They excuse a test that ran and failed, and nothing else.

First match wins:

| the case                                                                           | what a valid muting of it does |
|---|---|
| does not block and is not unmeasured                                               | nothing: it stays what it is |
| is unmeasured, or nobody could read whether it fails again (`unresolved`)          | nothing: it was not measured |
| vanished or is newly skipped: it did not run                                       | nothing: it blocks |
| is a file or a class that could not be collected: the tests in it did not run      | nothing: it blocks |
| failed on the candidate, or failed and then passed where that blocks               | class `muted`, no effect |

A muting is valid through the day on which it expires, and only where its conditions on the environment are met.
"""

from collections.abc import Iterable, Mapping
from typing import Self

from msgspec import UNSET, Struct, structs

from ledger.events import Muted, MuteUsed
from ledger.tables import ClassRow
from projections.gate.cases import JoinedCase
from projections.gate.fingerprint import fingerprint
from projections.people.mutes import covers, has_expired, holds_in

MUTABLE = frozenset({"introduced", "new-test-failing", "flaky", "interference"})
"""The classes of tests that ran and failed; whatever else blocks did not run, or nobody knows what it did."""


class ValidMutes(Struct, frozen=True):
    """The mutings that count for one verdict, in the order in which they began."""

    mutings: tuple[Muted, ...] = ()

    @classmethod
    def of(cls, mutings: Iterable[Muted], date: str, environment: Mapping[str, str]) -> Self:
        """Those of them that are valid on this day in this environment."""
        return cls(tuple(one for one in mutings if not has_expired(one, date) and holds_in(one, environment)))

    def applied(self, row: ClassRow, case: JoinedCase) -> ClassRow:
        """The judgement of a case as it is with these mutings."""
        if row.effect == "none" or row.case_class not in MUTABLE or not (case.ran or case.collected):
            return row
        muted = next((one for one in self.mutings if covers(one, row.test)), None)
        if muted is None:
            return row
        return structs.replace(row, case_class="muted", effect="none", cause="", mute=muted.mute)

    def used(self, rows: Iterable[ClassRow]) -> tuple[MuteUsed, ...]:
        """What each muting kept from blocking, in the order in which they began."""
        by_mute: dict[str, list[ClassRow]] = {}
        for row in rows:
            if row.mute is not UNSET:
                by_mute.setdefault(row.mute, []).append(row)
        return tuple(_used(one, by_mute[one.mute]) for one in self.mutings if one.mute in by_mute)


def _used(muted: Muted, rows: list[ClassRow]) -> MuteUsed:
    others = [row for row in rows if fails_otherwise(muted, row.line)]
    line = (others or rows)[0].line
    return MuteUsed(muted.mute, muted.test, len(rows), len(others), line)


def fails_otherwise(muted: Muted, line: str) -> bool:
    """Whether a test fails in another way than when it was muted; where nobody knows how it failed then, it does not.

    Numbers and addresses do not make another failure.
    """
    if not muted.lines or not line:
        return False
    return fingerprint(line) not in {fingerprint(one) for one in muted.lines}


NO_MUTES = ValidMutes()
"""Nothing is muted."""
