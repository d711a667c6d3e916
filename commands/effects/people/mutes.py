"""What a verdict has to know of mutings: those that stand, the day, and where the candidate was tested."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from commands.messages import Judge
from commands.runners.api import EvidenceKey
from ledger.events import COLLECTION, STREAM
from ledger.evidence import EvidenceStore
from ledger.tables import decode_document
from projections.people.mutes import asks_for, has_expired
from projections.registry import RunViews


def with_mutes(message: Judge, views: Callable[[str], RunViews], evidence: EvidenceStore, date: str) -> Judge:
    """The message with the mutings that stand on this day; `views` gives those of a stream.

    Raises EvidenceDamaged, and what `views` raises.
    """
    ledger = views(STREAM)
    mutes = tuple(one for one in ledger.mutes.standing() if not has_expired(one, date))
    if not mutes:
        return message
    wanted = sorted(asks_for(mutes))
    known = _environment(views(message.stream), evidence) if wanted else {}
    environment = {name: known[name] for name in wanted if name in known}
    return replace(message, mutes=mutes, date=date, environment=environment, basis=ledger.run.sequence)


def _environment(run: RunViews, evidence: EvidenceStore) -> dict[str, str]:
    """What is the same in all attempts on the candidate, by name: system, interpreter, and variables of the tests."""
    sides = (side for side in run.gate.sides.values() if side.side == "candidate" and side.shard != COLLECTION)
    records = (attempt.recorded for side in sides for attempt in side.attempts)
    digests = {record.evidence_key for record in records if record is not None and record.evidence_key is not None}
    return _agreed(_facts(decode_document(evidence.get(digest), EvidenceKey)) for digest in sorted(digests))


def _facts(key: EvidenceKey) -> dict[str, str]:
    system = {"platform": key.platform, "architecture": key.architecture, "python": key.python}
    return key.environment | system


def _agreed(facts: Iterable[dict[str, str]]) -> dict[str, str]:
    agreed: set[tuple[str, str]] | None = None
    for found in facts:
        agreed = set(found.items()) if agreed is None else agreed & found.items()
    return dict(agreed or ())
