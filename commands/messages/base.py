"""What every message has, how messages are stored, and what a refusal is."""

from functools import cache
from typing import ClassVar, Union

import msgspec
from msgspec import Struct

from ledger.errors import LedgerError

_encoder = msgspec.json.Encoder(order="deterministic")


class Message(Struct, frozen=True, kw_only=True, tag_field="message"):
    """A request. `stream` is the stream that it is about.

    An `observation` reports what happened outside and is retried until it is recorded; anything else is a decision,
    which is taken again at most three times when the stream has moved on.
    """

    observation: ClassVar[bool] = False

    stream: str

    def command(self) -> str | None:
        """The natural key of what is asked for, under which it can be recorded only once; None when there is none."""
        return None

    def read_at(self) -> int:
        """The ledger sequence at which views over other runs were read for it; 0 when none were."""
        return 0


class Refusal(LedgerError):
    """A rule said no. The code is stable; nothing was written."""

    exit_code = 4

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def encode_message(message: Message) -> bytes:
    """The stored form: deterministic JSON with the message's type."""
    return _encoder.encode(message)


def decode_message(data: bytes) -> Message:
    """Read a stored message back. Raises msgspec.MsgspecError for anything else."""
    return _decoder(tuple(Message.__subclasses__())).decode(data)


@cache
def _decoder(types: tuple[type[Message], ...]) -> "msgspec.json.Decoder[Message]":
    """A decoder takes longer to make than a message takes to read."""
    return msgspec.json.Decoder(Union[types])  # noqa: UP007
