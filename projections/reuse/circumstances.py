"""Under what tests were run besides their files: an earlier result stands for a later one only under the same."""

from msgspec import Struct

from ledger.events import COLLECTION
from ledger.values import Digest
from projections.gate.shards import GateView


class Circumstances(Struct, frozen=True, kw_only=True):
    """The part of an evidence key that does not depend on the commit, the command or the limits of one attempt; see the
    evidence that `evidence_key` of `attempt-recorded` names."""

    adapter: str
    runner: tuple[str, ...]
    python: str
    platform: str
    architecture: str
    lock: str
    distributions: tuple[str, ...]
    environment: dict[str, str]


def collection_key(gate: GateView) -> Digest | None:
    """The evidence of under what the candidate was collected; None where nobody recorded that."""
    records = (attempt.recorded for attempt in gate.side(COLLECTION, "candidate").attempts)
    keys = [record.evidence_key for record in records if record is not None and record.complete]
    return keys[-1] if keys else None
