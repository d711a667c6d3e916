"""Events about what people decide for the whole ledger; they live in the stream `ledger`."""

from msgspec import Struct, field

from ledger.events.base import Event, stored_as


@stored_as("muted")
class Muted(Event, frozen=True, kw_only=True, omit_defaults=True):
    """A test still runs, but does not block from now on, to the end of the day `expires` (a date, in UTC).

    `mute` names this muting among all that there ever were. `test` is the text form of a test; without a variant it
    stands for every variant of the test. It counts only where each name of `environment` has its value, of which one
    that ends in `*` is the beginning. `lines` are the first lines of how the test failed when it failed last, so that
    another failure can be told from it.
    """

    mute: str
    test: str
    owner: str
    reason: str
    expires: str
    environment: dict[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


@stored_as("unmuted")
class Unmuted(Event, frozen=True, kw_only=True):
    """A muting was taken back, by somebody, before it had expired."""

    mute: str
    by: str
    reason: str


class MuteUsed(Struct, frozen=True, array_like=True):
    """What a muting kept from blocking a verdict: how many cases, and how many of them failed otherwise than before.

    `line` is the first line of the first of those, or else of the first case; `test` is what is muted.
    """

    mute: str
    test: str
    cases: int
    otherwise: int
    line: str
