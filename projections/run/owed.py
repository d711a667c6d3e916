"""What is still owed: the sides of shards that are not measured yet, with the targets that each still misses.

| collections  | plan | candidate of the shard      | baseline of the shard      | owed                        |
|---|---|---|---|---|
| not measured | any  | any                         | any                        | the collections that are not |
| measured     | none | any                         | any                        | nothing yet: the plan comes |
| measured     | yes  | not measured                | no targets                 | candidate                   |
| measured     | yes  | not measured                | not measured, `always`     | candidate, baseline         |
| measured     | yes  | not measured                | `on-failure`               | candidate; baseline waits   |
| measured     | yes  | settled, nothing to compare | `on-failure`               | nothing                     |
| measured     | yes  | settled, some to compare    | `on-failure`, some not run | baseline, for those targets |

A side is settled when it is measured or has used up its rounds. A side that has used up its rounds stays owed: it is
what a resume runs again. So it is with re-runs, which come after the plan's shards: a side of a re-run is owed until it
is measured, always with all of its targets, because it is to be as it was.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from ledger.events import (
    COLLECTION,
    AttemptRecorded,
    AttemptStarted,
    Event,
    GatePolicy,
    Planned,
    PlannedRerun,
    PlannedShard,
    RerunsPlanned,
    ResumeStarted,
)
from ledger.values import SIDES, Side, TestId
from projections.gate.shards import GateView, ShardSide, SideStatus


class Owed(Struct, frozen=True):
    """One side of one shard that is not measured. `targets` None means all of the side's targets, in the plan's order.

    `ready`: it may be started now (it is not running, has tries left, and what it waits for has come). `part` are those
    of the targets that the next attempt takes, None for all. `tests` are the only tests of the targets that are wanted,
    in text form; None for all.
    """

    shard: str
    side: Side
    status: SideStatus
    targets: tuple[str, ...] | None
    ready: bool
    part: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None

    @property
    def next_targets(self) -> tuple[str, ...] | None:
        """What the next attempt takes; None for all of the side's targets."""
        return self.targets if self.part is None else self.part

    @property
    def label(self) -> str:
        """`shard/side`, as it is written in events and shown to people."""
        return f"{self.shard}/{self.side}"


def owed(gate: GateView, policy: GatePolicy) -> list[Owed]:
    """Everything that is owed, in the order in which it would be run."""
    collections = collections_owed(gate, policy)
    if collections or gate.plan is None:
        return collections
    entries: list[Owed] = []
    for shard in _shards(gate):
        for side in SIDES:
            entries.extend(_shard_side(gate, shard, side, policy))
    return entries


def _shards(gate: GateView) -> tuple[PlannedShard | PlannedRerun, ...]:
    """Those of the plan, then the re-runs."""
    return (*gate.plan.shards, *gate.reruns.values()) if gate.plan else ()


def collections_owed(gate: GateView, policy: GatePolicy) -> list[Owed]:
    """The collections that are owed; while there is one, nothing else is."""
    return [_entry(side, policy, None) for side in gate.collections() if not side.measured]


def _shard_side(gate: GateView, shard: PlannedShard | PlannedRerun, side: Side, policy: GatePolicy) -> Iterable[Owed]:
    state = gate.side(shard.shard, side)
    if isinstance(shard, PlannedRerun):
        return _rerun_side(shard, state, policy)
    if side == "candidate":
        return () if state.measured or not shard.candidate_targets else (_entry(state, policy, None),)
    if not shard.baseline_targets:
        return ()
    if policy.baseline == "always":
        return () if state.measured else (_entry(state, policy, None),)
    return _compared_baseline(gate.side(shard.shard, "candidate"), state, policy, shard.absent)


def _rerun_side(rerun: PlannedRerun, state: ShardSide, policy: GatePolicy) -> Iterable[Owed]:
    if state.measured or (state.side == "baseline" and not rerun.baseline):
        return ()
    status = state.status(policy)
    # Whether a target can be collected is told by any run of it: no test of it is named.
    tests = (rerun.test,) if rerun.kind == "alone" and TestId.parse(rerun.test).path else None
    return (Owed(rerun.shard, state.side, status, rerun.targets, status in ("pending", "owed"), tests=tests),)


def _compared_baseline(
    candidate: ShardSide, state: ShardSide, policy: GatePolicy, absent: tuple[str, ...]
) -> Iterable[Owed]:
    """The baseline under `on-failure`: only the targets of the candidate that need a comparison and have none yet."""
    settled = candidate.status(policy) in ("measured", "unmeasured")
    wanted = tuple(sorted(candidate.attention - state.covered - set(absent)))
    if not wanted:
        return ()
    return (_entry(state, policy, wanted, ready=settled),)


def _entry(state: ShardSide, policy: GatePolicy, wanted: tuple[str, ...] | None, *, ready: bool = True) -> Owed:
    targets, step = _order(state, wanted), state.step(policy, wanted)
    status = state.status(policy)
    if status not in ("running", "pending"):
        status = "unmeasured" if step == "stop" else "owed"
    part = None if targets is None else state.part(step, policy, targets)
    return Owed(state.shard, state.side, status, targets, ready and status in ("pending", "owed"), part)


def _order(state: ShardSide, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """What is wanted, or else what is missing; None for everything.

    The targets that an attempt died in come last, the latest death at the very end: whoever kills the next attempt
    again, all the others come to run after finitely many attempts.
    """
    targets = wanted if wanted is not None else state.missing
    return None if targets is None else tuple(sorted(targets, key=lambda target: state.suspects.get(target, 0)))


def collection_owed(entries: Iterable[Owed]) -> bool:
    """Whether a collection is among what is owed."""
    return any(entry.shard == COLLECTION for entry in entries)


class Agenda(Struct):
    """The shards of which a side may be started, kept up to date event by event.

    What it gives is what `owed` calls ready, without looking at every shard of a large plan for each attempt. `shards`
    are those of the plan and the re-runs, `places` maps a shard to its place among them, and `startable` are places, in
    order. `tripped` is what the gate had given up when it was looked at as a whole.
    """

    shards: tuple[PlannedShard | PlannedRerun, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    startable: list[int] = field(default_factory=list)
    tripped: tuple[Side, str] | None = None

    @classmethod
    def of(cls, gate: GateView, policy: GatePolicy) -> "Agenda":
        """The agenda of a gate as it stands."""
        agenda = cls()
        agenda._begin(gate, policy)
        return agenda

    def follow(self, event: Event, gate: GateView, policy: GatePolicy) -> None:
        """Take an event that the gate's view has taken already."""
        if isinstance(event, Planned | RerunsPlanned | ResumeStarted):
            self._begin(gate, policy)
        elif isinstance(event, AttemptStarted | AttemptRecorded) and event.shard in self.places:
            if gate.tripped != self.tripped:
                self._begin(gate, policy)
            else:
                self._look_again(self.places[event.shard], gate, policy)

    def _begin(self, gate: GateView, policy: GatePolicy) -> None:
        self.shards, self.tripped = _shards(gate), gate.tripped
        self.places = {shard.shard: place for place, shard in enumerate(self.shards)}
        self.startable = [place for place, shard in enumerate(self.shards) if _ready(gate, shard, policy)]

    def _look_again(self, place: int, gate: GateView, policy: GatePolicy) -> None:
        index = bisect_left(self.startable, place)
        listed = self.startable[index : index + 1] == [place]
        startable = bool(_ready(gate, self.shards[place], policy))
        if startable and not listed:
            self.startable.insert(index, place)
        elif listed and not startable:
            del self.startable[index]

    def ready(self, gate: GateView, policy: GatePolicy) -> Iterator[Owed]:
        """The entries that `owed` gives as ready, but for collections, in the same order."""
        if not collections_owed(gate, policy):
            for place in self.startable:
                yield from _ready(gate, self.shards[place], policy)


def _ready(gate: GateView, shard: PlannedShard | PlannedRerun, policy: GatePolicy) -> list[Owed]:
    return [entry for side in SIDES for entry in _shard_side(gate, shard, side, policy) if entry.ready]
