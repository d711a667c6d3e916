"""Two runs side by side: what they compared and under which rules, what came of it, and what it took."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ledger.events import COLLECTION, GatePolicy
from ledger.tables import ClassRow, ClassTable
from ledger.values import SIDES, TestId
from projections.gate.shards import ShardSide
from projections.registry import RunViews


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that can be said of both runs, as text; "" where it cannot be said of one."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether the runs do not agree."""
        return self.left != self.right


class ClassChange(Struct, frozen=True, kw_only=True):
    """A test that was judged otherwise; a class of "" means that it was not judged there."""

    test: str
    left: str
    right: str
    left_effect: str
    right_effect: str


class Usage(Struct, frozen=True, kw_only=True):
    """What attempts took: monotonic seconds over all of them, and the highest peak; None when no attempt told one."""

    attempts: int
    duration_seconds: float
    peak_memory_bytes: int | None


class UsageChange(Struct, frozen=True, kw_only=True):
    """One side of a shard, `shard/side`, or `total`; None where a run does not have it."""

    what: str
    left: Usage | None
    right: Usage | None


class RunDiff(Struct, frozen=True, kw_only=True):
    """The difference of two runs. All facts are listed, equal ones too; `classes` lists only the tests that changed,
    and is None when one of the runs has no verdict."""

    left: str
    right: str
    commits: tuple[Fact, ...]
    policy: tuple[Fact, ...]
    verdict: tuple[Fact, ...]
    cases: tuple[Fact, ...]
    decisions: tuple[Fact, ...]
    classes: tuple[ClassChange, ...] | None
    usage: tuple[UsageChange, ...]


class ComparedRun(Struct, frozen=True):
    """A run's views, and the class table of its verdict when it has one."""

    views: RunViews
    classes: ClassTable | None


def diff_runs(left: ComparedRun, right: ComparedRun) -> RunDiff:
    """Compare two runs, or one run at two moments."""
    both = left.views, right.views
    return RunDiff(
        left=left.views.run.run,
        right=right.views.run.run,
        commits=_facts(*(_commits(views) for views in both)),
        policy=policy_facts(*(views.run.policy for views in both)),
        verdict=_facts(*(_verdict(views) for views in both)),
        cases=_facts(*(_cases(views) for views in both)),
        decisions=_facts(*(_decisions(views) for views in both)),
        classes=changed_classes(left.classes, right.classes) if left.classes and right.classes else None,
        usage=_usage_changes(*(_usage(views) for views in both)),
    )


def policy_facts(left: GatePolicy, right: GatePolicy) -> tuple[Fact, ...]:
    """Every rule of two policies."""
    return _facts(left.rules(), right.rules())


def changed_classes(left: ClassTable, right: ClassTable) -> tuple[ClassChange, ...]:
    """The tests whose class or effect is not the same in both tables, in byte order."""
    rows_left, rows_right = ({row.test: row for row in table.rows} for table in (left, right))
    tests = sorted(rows_left.keys() | rows_right.keys(), key=TestId.sort_key)
    changes = (_change(test, rows_left.get(test), rows_right.get(test)) for test in tests)
    return tuple(change for change in changes if change is not None)


def _change(test: TestId, left: ClassRow | None, right: ClassRow | None) -> ClassChange | None:
    (left_class, left_effect), (right_class, right_effect) = (
        (row.case_class, row.effect) if row else ("", "") for row in (left, right)
    )
    if (left_class, left_effect) == (right_class, right_effect):
        return None
    return ClassChange(
        test=test.text(), left=left_class, right=right_class, left_effect=left_effect, right_effect=right_effect
    )


def _facts(left: Mapping[str, str], right: Mapping[str, str]) -> tuple[Fact, ...]:
    names = dict.fromkeys([*left, *right])
    return tuple(Fact(name=name, left=left.get(name, ""), right=right.get(name, "")) for name in names)


def _commits(views: RunViews) -> dict[str, str]:
    begun = views.run.begun
    return {
        "candidate": begun.candidate,
        "candidate ref": begun.candidate_ref,
        "baseline": begun.baseline,
        "baseline ref": begun.baseline_ref,
        "baseline reason": begun.baseline_reason,
        "settings": begun.config,
    }


def _verdict(views: RunViews) -> dict[str, str]:
    verdict = views.gate.verdict
    if verdict is None:
        return {"verdict": "none", "reason": "", "table": ""}
    return {"verdict": verdict.verdict, "reason": verdict.reason, "table": verdict.table}


def _cases(views: RunViews) -> dict[str, str]:
    return {name: str(number) for name, number in views.gate.verdict.counts.items()} if views.gate.verdict else {}


def _decisions(views: RunViews) -> dict[str, str]:
    gate = views.gate
    attempts = [attempt for state in gate.sides.values() for attempt in state.attempts]
    facts = {f"{side} inventory": _inventory(views, side) for side in SIDES}
    if gate.plan is not None:
        facts["planner"] = gate.plan.policy
        facts["shards"] = str(len(gate.plan.shards))
        facts["targets"] = str(sum(shard.candidate_targets for shard in gate.plan.shards))
    facts["members"] = ", ".join(sorted(set(gate.placements.values())))
    facts["attempts"] = str(len(attempts))
    facts["incomplete attempts"] = str(sum(not (one.recorded and one.recorded.complete) for one in attempts))
    facts["resumes"] = str(views.run.resumes)
    facts["driver terms"] = str(views.run.term)
    return facts


def _inventory(views: RunViews, side: str) -> str:
    collected = next((one for one in views.gate.inventories.values() if one.side == side), None)
    return f"cases {collected.cases}, targets {collected.targets}" if collected else ""


def _usage(views: RunViews) -> dict[str, Usage]:
    """Per side of a shard in the order of the plan, after the total; a collection is one as well."""
    states = [views.gate.side(shard, side) for shard in (COLLECTION, *views.gate.shards()) for side in SIDES]
    parts = {f"{state.shard}/{state.side}": _side_usage([state]) for state in states if state.attempts}
    return {"total": _side_usage(states), **parts}


def _side_usage(states: Iterable[ShardSide]) -> Usage:
    records = [attempt.recorded for state in states for attempt in state.attempts if attempt.recorded]
    peaks = [record.peak_memory_bytes for record in records if record.peak_memory_bytes is not None]
    return Usage(
        attempts=len(records),
        duration_seconds=sum(record.duration_seconds for record in records),
        peak_memory_bytes=max(peaks, default=None),
    )


def _usage_changes(left: Mapping[str, Usage], right: Mapping[str, Usage]) -> tuple[UsageChange, ...]:
    names = dict.fromkeys([*left, *right])
    return tuple(UsageChange(what=name, left=left.get(name), right=right.get(name)) for name in names)
