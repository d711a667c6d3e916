"""Events about re-runs: what failed and did not fail before is run again, before anything is decided about it."""

from typing import Literal

from msgspec import Struct

from ledger.events.base import Event, stored_as
from ledger.values import Commit

RERUN = "rerun-"
"""What the shard name of every re-run begins with, and that of no planned shard."""

RerunKind = Literal["alone", "bundle"]


class PlannedRerun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One re-run. It is a shard of its own, which no plan has.

    `alone`: the one `test` (text form) by itself, on the candidate and, with `baseline`, there too. `bundle`: the
    targets of an attempt that saw tests fail, all of them as they were, on the candidate. `of` and `attempt` name the
    planned shard and its attempt that saw the failure.
    """

    shard: str
    kind: RerunKind
    of: str
    attempt: int
    targets: tuple[str, ...]
    test: str = ""
    baseline: bool = False


@stored_as("reruns-planned")
class RerunsPlanned(Event, frozen=True, kw_only=True, omit_defaults=True):
    """The new failures that are run again next; none when nothing is left that a re-run could tell.

    `stopped` is the reason code of why more of them are not run again although there are some: they stand as they are.
    """

    commit: Commit
    reruns: tuple[PlannedRerun, ...] = ()
    stopped: str = ""
