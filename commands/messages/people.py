"""Messages about what people decide for the whole ledger."""

from msgspec import field

from commands.messages.base import Message


class MuteTest(Message, frozen=True, kw_only=True, tag="mute-test"):
    """Mute a test; `test`, `owner`, `reason`, `expires` and `environment` are those of `muted`.

    Gathered: `date`, the day in UTC; how many mutings there may be at a time, and for how many days; `known`, how many
    tests of that name any run has seen up to the ledger sequence `basis`; `lines`, how they failed last.
    """

    test: str
    owner: str
    reason: str
    expires: str
    environment: dict[str, str] = field(default_factory=dict)
    date: str
    count_max: int
    days_max: int
    known: int
    lines: tuple[str, ...] = ()
    basis: int = 0

    def read_at(self) -> int:
        """Where the history stood."""
        return self.basis


class UnmuteTest(Message, frozen=True, kw_only=True, tag="unmute-test"):
    """Take a muting back: that of this name, or the one of this test. Gathered: `by`, who asks, and the `date`."""

    what: str
    by: str
    reason: str
    date: str
