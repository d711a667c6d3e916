"""From views and evidence to the verdict: which tables are read, and how they become the two sides of every case."""

from collections.abc import Mapping

from commands.decide.base import Documents, Needs
from ledger.events import COLLECTION
from ledger.parts import whole_target
from ledger.tables import CaseTable, Inventory, Plan
from ledger.values import SIDES, Digest, Side
from projections.gate.cases import SideCases, SideEvidence, index, join, not_run_targets
from projections.gate.notes import notes_of
from projections.gate.reruns import observed, shown
from projections.gate.shards import GateView, ShardSide
from projections.gate.verdict import Closer, Judged, judge_cases, judge_nothing
from projections.people.muting import NO_MUTES, ValidMutes
from projections.registry import RunViews


def evidence_needed(gate: GateView) -> Needs:
    """Every document that the verdict reads."""
    if gate.plan is None:
        return {}
    needs: dict[str, type] = {collected.inventory: Inventory for collected in gate.inventories.values()}
    needs[gate.plan.plan] = Plan
    for state in gate.sides.values():
        if state.shard != COLLECTION:
            needs.update((digest, CaseTable) for digest in _tables(state))
    return needs


def judge_gate(views: RunViews, documents: Documents, mutes: ValidMutes = NO_MUTES) -> Judged:
    """The verdict on what was measured."""
    gate, policy = views.gate, views.run.policy
    if gate.plan is None:
        return judge_nothing(
            {f"{side.shard}/{side.side}": _cause(side) for side in gate.collections() if not side.measured},
            reruns=policy.reruns,
        )
    candidate, baseline = both_sides(views, documents)
    closer = None
    if policy.reruns:
        tables = rerun_tables(gate, documents)
        closer = Closer(shown(observed(gate, tables)), notes_of(candidate, baseline))
    cases = join(candidate, baseline)
    return judge_cases(cases, flaky_blocks=policy.flaky == "block", closer=closer, mutes=mutes)


def both_sides(views: RunViews, documents: Documents) -> tuple[SideCases, SideCases]:
    """Candidate and baseline as the planned shards measured them; re-runs are not among it."""
    if views.gate.plan is None:
        raise LookupError("there are no sides to compare before the plan")
    plan = documents.get(views.gate.plan.plan, Plan)
    candidate, baseline = (index(_side_evidence(views, plan, side, documents)) for side in SIDES)
    return candidate, baseline


def rerun_tables(gate: GateView, documents: Documents) -> dict[Digest, CaseTable]:
    """The tables of all attempts of re-runs."""
    states = (gate.side(shard, side) for shard in gate.reruns for side in SIDES)
    return {digest: documents.get(digest, CaseTable) for state in states for digest in _tables(state)}


def _side_evidence(views: RunViews, plan: Plan, side: Side, documents: Documents) -> SideEvidence:
    gate = views.gate
    states = [gate.side(shard.shard, side) for shard in plan.shards]
    tables = tuple(documents.get(digest, CaseTable) for state in states for digest in _tables(state))
    missing: dict[str, str] = {}
    asked: set[str] = set()
    for shard, state in zip(plan.shards, states, strict=True):
        planned = shard.candidate if side == "candidate" else shard.baseline
        compared = side == "baseline" and views.run.policy.baseline == "on-failure"
        wanted = _wanted(gate, shard.shard, planned) if compared else planned
        asked.update(wanted)
        missing.update(_missing(state, wanted, compared=compared))
    return SideEvidence(
        inventory=documents.get(gate.inventories[side].inventory, Inventory),
        tables=tables,
        missing={whole_target(name): cause for name, cause in missing.items()},
        not_run=_not_run(plan, missing, asked) if side == "baseline" else frozenset(),
    )


def _not_run(plan: Plan, missing: Mapping[str, str], asked: set[str]) -> frozenset[str]:
    """The targets of which nothing was run, nor is owed, on the baseline."""
    not_run = map(whole_target, not_run_targets(plan, missing, asked))
    return frozenset(not_run) - set(map(whole_target, asked)) - set(map(whole_target, missing))


def _wanted(gate: GateView, shard: str, planned: tuple[str, ...]) -> tuple[str, ...]:
    attention = gate.side(shard, "candidate").attention
    return tuple(target for target in planned if target in attention)


def _missing(state: ShardSide, wanted: tuple[str, ...], *, compared: bool) -> dict[str, str]:
    """The wanted targets that no attempt measured, with the newest reason code."""
    whole = _cause(state)
    if compared:
        known = state.missing or {}
        return {target: known.get(target, whole) for target in wanted if target not in state.covered}
    if state.missing is None:
        return dict.fromkeys(wanted, whole)
    return state.missing


def _cause(state: ShardSide) -> str:
    return (state.last.cause if state.last else None) or "not-run"


def _tables(state: ShardSide) -> list[str]:
    recorded = (attempt.recorded for attempt in state.attempts)
    return [record.table for record in recorded if record is not None and record.table is not None]
