"""Events about what of earlier measurements is used again; they live in the stream of the run that uses it."""

from ledger.events.base import Event, stored_as
from ledger.values import Commit, EvidenceDigest


@stored_as("recheck-planned")
class RecheckPlanned(Event, frozen=True, kw_only=True):
    """Only part of this gate is measured again; the rest is taken from an earlier one of the same release.

    `gate` is the earlier run, `commit` its candidate, `classes` the evidence of its judgements. `targets` are measured
    again: those that have `changed` since, and those that it left `unsettled`. `key` is the evidence of under what it
    was collected: where that is not so any more, all is measured.
    """

    gate: str
    commit: Commit
    classes: EvidenceDigest
    targets: tuple[str, ...]
    changed: tuple[str, ...]
    unsettled: tuple[str, ...]
    key: EvidenceDigest | None = None


@stored_as("carried")
class Carried(Event, frozen=True, kw_only=True):
    """So many judgements of so many targets of an earlier gate count for this one, too."""

    gate: str
    commit: Commit
    classes: EvidenceDigest
    targets: int
    cases: int
