"""From views and evidence to the verdict: which tables are read, and how they become the two sides of every case."""

from collections.abc import Mapping

from msgspec import UNSET

from commands.decide.base import Documents, Needs
from ledger.events import COLLECTION, RecheckPlanned
from ledger.parts import whole_target
from ledger.tables import CaseTable, ClassRow, ClassTable, Inventory, Plan
from ledger.values import SIDES, Digest, Side, TestId
from projections.gate.cases import SideCases, SideEvidence, index, join, not_run_targets
from projections.gate.notes import notes_of
from projections.gate.reruns import observed, shown
from projections.gate.shards import GateView, ShardSide
from projections.gate.verdict import Closer, Judged, judge_cases, judge_nothing
from projections.people.muting import NO_MUTES, ValidMutes
from projections.registry import RunViews
from projections.reuse.circumstances import Circumstances, collection_key
from projections.reuse.partial import carried_rows, measured_again, narrowed


def evidence_needed(gate: GateView) -> Needs:
    """Every document that the verdict reads."""
    if gate.plan is None:
        return {}
    needs: dict[str, type] = {collected.inventory: Inventory for collected in gate.inventories.values()}
    needs[gate.plan.plan] = Plan
    needs |= recheck_needed(gate)
    for state in gate.sides.values():
        if state.shard != COLLECTION:
            needs.update((digest, CaseTable) for digest in _tables(state))
    return needs


def recheck_needed(gate: GateView) -> Needs:
    """What tells which part of a gate is measured, where that is not all of it."""
    if gate.recheck is None:
        return {}
    keys = (key for key in (gate.recheck.key, collection_key(gate)) if key is not None)
    return {gate.recheck.classes: ClassTable, **dict.fromkeys(keys, Circumstances)}


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
    cases = join(candidate, baseline, proven=policy.retry is not UNSET)
    rows = carried(gate, documents)
    return judge_cases(cases, flaky_blocks=policy.flaky == "block", closer=closer, mutes=mutes, carried=rows)


def carried(gate: GateView, documents: Documents) -> tuple[ClassRow, ...]:
    """The judgements of an earlier gate that still count."""
    if gate.recheck is None:
        return ()
    return carried_rows(documents.get(gate.recheck.classes, ClassTable), _again(gate, gate.recheck, documents))


def inventory_of(gate: GateView, side: Side, documents: Documents) -> Inventory:
    """What is measured of a side: all that it collects, or the part that is measured again."""
    inventory = documents.get(gate.inventories[side].inventory, Inventory)
    return inventory if gate.recheck is None else narrowed(inventory, _again(gate, gate.recheck, documents))


def _again(gate: GateView, recheck: RecheckPlanned, documents: Documents) -> frozenset[str]:
    candidate, baseline = (documents.get(gate.inventories[side].inventory, Inventory) for side in SIDES)
    then, now = recheck.key, collection_key(gate)
    alike = then is not None and now is not None
    alike = alike and documents.get(str(then), Circumstances) == documents.get(str(now), Circumstances)
    table = documents.get(recheck.classes, ClassTable)
    return measured_again(recheck, table, candidate, baseline, alike=alike)


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
    again = _collected_again(views) if side == "candidate" else []
    tables = tuple(documents.get(digest, CaseTable) for state in (*states, *again) for digest in _tables(state))
    missing: dict[str, str] = {}
    asked: set[str] = set()
    for shard, state in zip(plan.shards, states, strict=True):
        planned = shard.candidate if side == "candidate" else shard.baseline
        compared = side == "baseline" and views.run.policy.baseline == "on-failure"
        wanted = _wanted(gate, shard.shard, planned) if compared else planned
        asked.update(wanted)
        missing.update(_missing(state, wanted, compared=compared))
    return SideEvidence(
        inventory=inventory_of(gate, side, documents),
        tables=tables,
        missing={whole_target(name): cause for name, cause in missing.items()},
        not_run=_not_run(plan, missing, asked) if side == "baseline" else frozenset(),
    )


def _collected_again(views: RunViews) -> list[ShardSide]:
    """The re-runs alone of targets that only an attempt could not collect: what they report is all that is known of
    the tests of these targets."""
    if not views.run.policy.collections_rerun:
        return []
    reruns = (one for one in views.gate.reruns.values() if one.kind == "alone" and not TestId.parse(one.test).path)
    return [views.gate.side(one.shard, "candidate") for one in reruns]


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
