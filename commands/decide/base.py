"""What a decision takes and gives."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import Struct

from commands.messages import Message
from ledger.events import Event
from ledger.tables import encode_document
from ledger.values import Digest
from projections.registry import RunViews

Document = TypeVar("Document", bound=Struct)
Needs = Mapping[Digest, type[Struct]]


class Documents:
    """The evidence that a decision asked for, decoded; looked up by digest."""

    def __init__(self, loaded: Mapping[Digest, Struct]) -> None:
        self._loaded = loaded

    def get(self, digest: Digest, document_type: type[Document]) -> Document:
        """The document of this digest. Asking for one that was not declared is a bug of the decision."""
        found = self._loaded[digest]
        if not isinstance(found, document_type):
            raise TypeError(f"{digest} is not a {document_type.__name__}")
        return found


class Decided(Struct, frozen=True):
    """What was decided: events to append, and the documents that they name, to be stored before."""

    events: tuple[Event, ...] = ()
    documents: tuple[bytes, ...] = ()


NOTHING = Decided()
"""It is already so."""


def stored(document: Struct) -> tuple[Digest, bytes]:
    """A new document with the digest that will name it."""
    data = encode_document(document)
    return sha256(data).hexdigest(), data


def needs_nothing(message: Message, views: RunViews) -> Needs:
    """For decisions that need no evidence."""
    return {}


class Decision(Struct, frozen=True):
    """How a message type is decided: `needs` names the evidence to load, `decide` decides."""

    decide: Callable[[Any, RunViews, Documents], Decided]
    needs: Callable[[Any, RunViews], Needs] = needs_nothing
