"""The mutes: which tests are muted, by whom and how long, and which mutings were taken back."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from ledger.events import Muted, Unmuted
from ledger.record import RecordedEvent
from ledger.values import TestId
from projections.fold import View


class Muting(Struct):
    """One muting: its event, when it was recorded and at which sequence, and the event that took it back, if any."""

    muted: Muted
    since: str
    sequence: int
    unmuted: Unmuted | None = None


class MutesView(Struct):
    """Every muting that there ever was, by its name, in the order in which they began."""

    mutings: dict[str, Muting] = field(default_factory=dict)

    @property
    def next_name(self) -> str:
        """The name of the next muting."""
        return f"mute-{len(self.mutings) + 1}"

    def standing(self) -> Iterator[Muted]:
        """Those that were not taken back, whether or not they have expired."""
        return (muting.muted for muting in self.mutings.values() if muting.unmuted is None)


def has_expired(muted: Muted, date: str) -> bool:
    """Whether the muting counts for nothing any more on this day; dates in ISO 8601 are ordered as text is."""
    return muted.expires < date


def covers(muted: Muted, test: TestId) -> bool:
    """Whether the muting stands for this test."""
    own = TestId.parse(muted.test)
    return (own.target, own.path) == (test.target, test.path) and own.variant in (None, test.variant)


def holds_in(muted: Muted, environment: Mapping[str, str]) -> bool:
    """Whether every condition of the muting is met. What nobody knows of an environment meets none."""
    return all(_meets(environment.get(name), wanted) for name, wanted in muted.environment.items())


def asks_for(mutings: Iterable[Muted]) -> frozenset[str]:
    """The names of what their conditions ask for."""
    return frozenset(name for muted in mutings for name in muted.environment)


def _meets(value: str | None, wanted: str) -> bool:
    if value is None:
        return False
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted


def _muted(view: MutesView, event: Muted, recorded: RecordedEvent) -> None:
    view.mutings[event.mute] = Muting(event, recorded.header.time, recorded.sequence)


def _unmuted(view: MutesView, event: Unmuted, recorded: RecordedEvent) -> None:
    muting = view.mutings.get(event.mute)
    if muting is not None:
        muting.unmuted = event


MUTES = View(
    "mutes",
    "which tests are muted, by whom, why and until when?",
    MutesView,
    {Muted: _muted, Unmuted: _unmuted},
)
