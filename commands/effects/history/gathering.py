"""Adds to a message what earlier runs tell and what this machine has, where the message asks for that."""

from collections.abc import Callable

from msgspec.structs import replace

from commands.effects.clock import Clock
from commands.effects.history.known import Known
from commands.effects.people.mutes import with_mutes
from commands.effects.pool.machine import memory_total_bytes
from commands.messages import Judge, MakePlan, Message
from ledger.errors import LedgerError
from ledger.evidence import EvidenceStore
from ledger.tables import encode_document
from projections.registry import RunViews


class Gathering:
    """Gathers for one run. `known` tells what is known of the targets of its candidate, and may raise LedgerError."""

    def __init__(
        self,
        views: Callable[[str], RunViews],
        evidence: EvidenceStore,
        known: Callable[[], Known],
        note: Callable[[str], None],
    ) -> None:
        self._views, self._evidence, self._known, self._note = views, evidence, known, note

    def __call__(self, message: Message) -> Message:
        if isinstance(message, Judge):
            return self._with_mutes(message)
        if not isinstance(message, MakePlan):
            return message
        message = replace(message, machine_bytes=memory_total_bytes())
        try:
            known = self._known()
        except LedgerError as error:
            # A plan without it is worse, but it is a plan.
            self._note(f"what is known of the tests' times is not used for the plan: {error.message}")
            return message
        if not known.table.targets:
            return message
        digest = self._evidence.put_bytes(encode_document(known.table))
        return replace(message, usage=digest, basis=known.basis)

    def _with_mutes(self, message: Judge) -> Judge:
        try:
            return with_mutes(message, self._views, self._evidence, Clock().utc_now()[:10])
        except LedgerError as error:
            # What is muted blocks then, which is the safe side.
            self._note(f"no muting is taken into account: {error.message}")
            return message
