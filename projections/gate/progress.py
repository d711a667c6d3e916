"""Progress in one shape for every executor: how much is done, what runs where, and for how long.

The field names of the JSON form (`elapsedMs`, ...) are a promise to the tools that read it; see `ProgressGroup`.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from ledger.events import COLLECTION
from ledger.values import SIDES, Side
from projections.gate.shards import GateView, ShardSide
from projections.run.owed import owed
from projections.run.state import RunView

GroupState = Literal["pending", "running", "done", "failed", "timeout", "unmeasured"]

_ENDED = frozenset({"done", "failed", "timeout", "unmeasured"})
_FAILED = frozenset({"failed", "timeout"})
_BLANK = (
    " \t\n\v\f\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


class Group(Struct, frozen=True, kw_only=True):
    """One group of work: times are milliseconds of any one clock, None when not known."""

    id: str
    state: str
    host: str | None = None
    started_ms: float | None = None
    ended_ms: float | None = None


class ProgressGroup(Struct, frozen=True, rename="camel"):
    """One group as shown: `elapsed_ms` is None when it cannot be computed."""

    id: str
    state: str
    host: str | None
    elapsed_ms: float | None


class Progress(Struct, frozen=True):
    """All groups; `host` names every host, `completed` counts the groups that ended, however they ended."""

    executor: str
    host: str | None
    completed: int
    total: int
    failed: int
    groups: tuple[ProgressGroup, ...]


def summarize(executor: str, now_ms: float, groups: Sequence[Group]) -> Progress:
    """The progress of these groups at this moment."""
    shown = tuple(ProgressGroup(g.id, g.state, _host(g.host), _elapsed(g, now_ms)) for g in groups)
    hosts = sorted({group.host for group in shown if group.host})
    return Progress(
        executor=executor,
        host=",".join(hosts) or None,
        completed=sum(group.state in _ENDED for group in groups),
        total=len(groups),
        failed=sum(group.state in _FAILED for group in groups),
        groups=shown,
    )


def gate_progress(run: RunView, gate: GateView, now: datetime) -> Progress:
    """The progress of a gate: a group for each collection and, once planned, for each side of each shard and re-run."""
    sides = [(COLLECTION, side) for side in SIDES]
    for planned in gate.plan.shards if gate.plan else ():
        work: dict[Side, int] = {"candidate": planned.candidate_targets, "baseline": planned.baseline_targets}
        sides += [(planned.shard, side) for side in SIDES if work[side]]
    if run.policy.baseline == "on-failure":
        # A baseline that the policy leaves out is no work, and must not keep the gate from being shown as done.
        wanted = {entry.label for entry in owed(gate, run.policy)}
        sides = [
            (shard, side)
            for shard, side in sides
            if side == "candidate" or gate.side(shard, side).attempts or f"{shard}/{side}" in wanted
        ]
    for rerun in gate.reruns.values():
        sides += [(rerun.shard, side) for side in SIDES if side == "candidate" or rerun.baseline]
    groups = [_group(gate.side(shard, side), run, side) for shard, side in sides]
    return summarize("local", now.timestamp() * 1000, groups)


def _group(state: ShardSide, run: RunView, side: Side) -> Group:
    attempt = state.attempts[-1] if state.attempts else None
    record = attempt.recorded if attempt else None
    return Group(
        id=f"{state.shard}/{side}",
        state=_state(state, run),
        host=attempt.started.member if attempt else None,
        started_ms=_milliseconds(attempt.started_at) if attempt else None,
        ended_ms=_milliseconds(attempt.recorded_at) if attempt and record else None,
    )


def _state(state: ShardSide, run: RunView) -> GroupState:
    status = state.status(run.policy)
    if status == "running":
        return "running"
    if status == "measured":
        records = (attempt.recorded for attempt in state.attempts)
        return "failed" if any(r and r.measured_targets and r.failures for r in records) else "done"
    if status == "unmeasured":
        return "timeout" if state.last and state.last.cause == "time-limit" else "unmeasured"
    return "pending"


def _milliseconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() * 1000


def _host(host: str | None) -> str | None:
    return (host or "").strip(_BLANK) or None


def _elapsed(group: Group, now_ms: float) -> float | None:
    end_ms = now_ms if group.ended_ms is None else group.ended_ms
    if group.started_ms is None or not math.isfinite(group.started_ms) or not math.isfinite(end_ms):
        return None
    return max(0, end_ms - group.started_ms)
