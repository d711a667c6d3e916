"""Why a gate of a release did not pass, as its views have it: what is still owed, and the reason codes of that.

The cause follows from the verdict and the codes. What explains the others comes first:

| found                                                             | cause           |
|---|---|
| the verdict is `failed`                                           | true-regression |
| a code of a machine that takes nothing                            | host-down       |
| a code that is in none of the other rows, or no verdict at all    | environment     |
| a code of a process that did not come to its end                  | shard-death     |
| a code of a limit of time                                         | timeout         |
| only codes of tests that disturb each other                       | interference    |
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from ledger.events import RERUN, AttemptRecorded, GatePolicy, PlannedRerun
from ledger.values import Verdict
from projections.gate.ladder import next_part, rung
from projections.gate.shards import NOT_REACHED, GateView, ShardSide
from projections.run.owed import Owed, owed

Cause = Literal["true-regression", "host-down", "environment", "shard-death", "timeout", "interference"]

CODES: dict[Cause, tuple[str, ...]] = {
    "host-down": ("no-room",),
    "shard-death": (
        "signalled", "worker-crashed", "driver-died", "lost", "memory-limit", "session-ended-early", "interrupted",
        "exit-code-unexpected", "record-missing", "record-truncated", "report-missing",
    ),
    "timeout": ("time-limit", "idle-limit"),
    "interference": ("interference", "unresolved", "tree-changed", "rerun-not-read", "rerun-hidden"),
}  # fmt: skip
"""The causes of codes; every other code is one of the environment."""

PRECEDENCE: tuple[Cause, ...] = ("host-down", "environment", "shard-death", "timeout", "interference")
_CAUSE_OF = {code: cause for cause, codes in CODES.items() for code in codes}
_UNSURE = frozenset({"interference", "unresolved"})


class OwedSide(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A side of a shard that is owed. `what` names it for good, also where its shard is numbered anew each time;
    `targets` is None for all of the shard. `codes` are the reason codes of its newest record, sorted; `seconds` what
    that attempt took."""

    shard: str
    what: str
    targets: tuple[str, ...] | None = None
    codes: tuple[str, ...] = ()
    seconds: float = 0.0


class Trouble(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with a gate. `verdict` is None where it came to none; `code` is then why.

    `unsure` are the tests that were measured and that nobody can judge, with the codes of why. `halves`: the gate still
    has a group of targets to tell apart, `alone`: one to try by itself, had it not used up its tries. `more_memory`:
    what a limit of memory has ended would have a higher one. `members` are those of the pool.
    """

    verdict: Verdict | None
    code: str = ""
    owed: tuple[OwedSide, ...] = ()
    unsure: tuple[tuple[str, str], ...] = ()
    halves: bool = False
    alone: bool = False
    more_memory: bool = False
    members: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Every reason code that there is, sorted; that of the step where the gate tells none."""
        found = {code for side in self.owed for code in side.codes} | {code for _, code in self.unsure}
        return tuple(sorted(found or {self.code} - {""}))

    @property
    def cause(self) -> Cause:
        """What the codes come to, by the table above."""
        if self.verdict == "failed":
            return "true-regression"
        found = {_CAUSE_OF.get(code, "environment") for code in self.codes}
        if self.verdict is None or not found:
            found.add("environment")
        return next(cause for cause in PRECEDENCE if cause in found)

    @property
    def may_differ(self) -> bool:
        """Whether one of the codes may not come again when nothing is changed."""
        return any(rung(code).again != 0 for side in self.owed for code in side.codes)

    @property
    def shards(self) -> tuple[str, ...]:
        """The shards of which something is owed."""
        return tuple(dict.fromkeys(side.shard for side in self.owed))

    @property
    def longest_seconds(self) -> float:
        """What the longest of the newest attempts at what is owed took."""
        return max((side.seconds for side in self.owed), default=0.0)

    def signature(self) -> str:
        """What tells this trouble from others: the cause, what it is about and the codes, as a digest."""
        about = sorted((side.what, list(side.targets or ())) for side in self.owed)
        said = [self.cause, about, sorted(test for test, _ in self.unsure), self.codes]
        return sha256(msgspec.json.encode(said)).hexdigest()


def trouble_of(
    gate: GateView, policy: GatePolicy | None, code: str, members: tuple[str, ...], *, more_memory: bool = False
) -> Trouble:
    """What is wrong with a gate that has ended under this policy, None where it was never started; `code` is the reason
    code that its step has."""
    if policy is None:
        return Trouble(verdict=None, code=code, members=members)
    entries = owed(gate, policy)
    sides = [gate.side(entry.shard, entry.side) for entry in entries]
    parts = [_left_over(side, entry, policy) for side, entry in zip(sides, entries, strict=True)]
    judged = gate.verdict.unmeasured if gate.verdict else ()
    return Trouble(
        verdict=gate.verdict.verdict if gate.verdict else None,
        code=code,
        owed=tuple(_side(gate, side, entry) for side, entry in zip(sides, entries, strict=True)),
        unsure=tuple((case.test, case.line) for case in judged if case.case_class in _UNSURE),
        halves=any(len(part) > 1 for part in parts),
        alone=any(len(part) == 1 for part in parts),
        more_memory=more_memory,
        members=members,
    )


def _side(gate: GateView, side: ShardSide, entry: Owed) -> OwedSide:
    last = side.last
    return OwedSide(
        shard=entry.shard,
        what=f"{_name(gate.reruns.get(entry.shard), entry.shard)}/{entry.side}",
        targets=None if entry.targets is None else tuple(sorted(entry.targets)),
        codes=tuple(sorted(set(_codes(side, last, entry.targets or side.missing or ())))),
        seconds=last.duration_seconds if last else 0.0,
    )


def _name(rerun: PlannedRerun | None, shard: str) -> str:
    return shard if rerun is None else f"{rerun.kind} {rerun.test or rerun.of}"


def _codes(side: ShardSide, last: AttemptRecorded | None, targets: Iterable[str]) -> Iterator[str]:
    if last is not None and last.cause:
        yield last.cause
    missing = side.missing or {}
    yield from (missing[target] for target in targets if missing.get(target, NOT_REACHED) != NOT_REACHED)


def _left_over(side: ShardSide, entry: Owed, policy: GatePolicy) -> tuple[str, ...]:
    """What the retry ladder would try next by itself, were it not at its end of tries."""
    last = side.last_trouble
    ladder = policy.halves and policy.rounds > 1 and not side.shard.startswith(RERUN)
    if last is None or not ladder or not rung(last.cause).isolated:
        return ()
    return next_part(tuple(entry.targets or side.missing or ()), side.blames(), side.since_resume)
