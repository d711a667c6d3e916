"""Random pairs of sides, and what a person who knows both completely would answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hypothesis import strategies as st
from msgspec import structs

from ledger.tables import CaseTable
from ledger.values import Side, TestId
from projections.gate.cases import SideEvidence
from tests.support.sides import File, Files, evidence, table_of

TARGETS = ("a.py", "b.py", "c.py")
NAMES = ("t", "u[1]", "u[2]", "C::m")
PASSES = ("passed", "xpassed", "rerun")
FAILS = ("failed", "error")
HIDES = ("skipped", "xfailed")
REPORTED = (*PASSES, *FAILS, *HIDES)
Mood = Literal["steady", "flaky", "slow", "interfering", "dependent"]
"""What a failing test does when it is run again: fails again; passes; passes when it is given more time; passes alone;
fails alone on both sides and fails again among others."""

MOODS: tuple[Mood, ...] = ("steady", "flaky", "slow", "interfering", "dependent")
TOLD = (*REPORTED, None)


@dataclass(frozen=True)
class World:
    """Both sides, what of them was lost on the way, and what the policy left out of the baseline.

    `moods` are those of tests of the candidate, by their text; empty when nothing is run again.
    """

    candidate: Files
    baseline: Files
    lost: Mapping[Side, frozenset[str]] = field(
        default_factory=lambda: {"candidate": frozenset(), "baseline": frozenset()}
    )
    not_run: frozenset[str] = frozenset()
    moods: Mapping[str, Mood] = field(default_factory=dict)

    def evidence(self, side: Side) -> SideEvidence:
        """What is known of a side, with a table of its own for each target."""
        files = self.candidate if side == "candidate" else self.baseline
        missing = {target: "signalled" for target in self.lost[side] if target in files}
        left_out = self.not_run if side == "baseline" else frozenset()
        tables = tuple(
            table_of(side, {target: file}, missing) for target, file in files.items() if target not in left_out
        )
        return evidence(side, files, missing=missing, not_run=left_out, tables=tables)


def files(*, extra: bool, told: Sequence[str | None] = TOLD, least: int = 0) -> st.SearchStrategy[dict[str, File]]:
    """Some targets; half of the tests pass, so that worlds without any fault are not too rare."""
    results = st.one_of(st.just("passed"), st.sampled_from(told))
    tests = st.dictionaries(st.sampled_from(NAMES), results, max_size=3)
    more = st.dictionaries(st.just("x"), st.sampled_from(REPORTED), max_size=1) if extra else st.just({})
    blobs = st.sampled_from(["same", "same", "other", None])
    # A file without any collected test is one whose tests no collection lists; other tests are about those.
    usual = st.builds(File, tests=tests, extra=more, blob=blobs).map(
        lambda file: file if file.tests else replace(file, extra={})
    )
    broken = st.builds(File, blob=blobs, error=st.just("SyntaxError"))
    others = st.dictionaries(st.sampled_from(NAMES[:-1]), results, max_size=2)
    half_broken = st.builds(File, tests=others, blob=blobs, broken=st.just("C"))
    hidden = st.builds(File, blob=blobs, skipped=st.just("needs a thing"))
    one = st.one_of(usual, usual, usual, broken, half_broken, hidden)
    return st.dictionaries(st.sampled_from(TARGETS), one, min_size=least, max_size=len(TARGETS))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A pair of sides. Only the candidate has tests that no collection knows of."""
    candidate, baseline = draw(files(extra=True)), draw(files(extra=False))
    some = st.frozensets(st.sampled_from(TARGETS), max_size=1)
    lost: dict[Side, frozenset[str]] = {"candidate": draw(some), "baseline": draw(some)}
    not_run = draw(some) - lost["baseline"]
    return World(candidate, baseline, lost, not_run & baseline.keys())


def complaints(world: World, *, flaky_blocks: bool) -> Iterator[tuple[str, str]]:
    """Everything that speaks against this candidate, as `failed` or `unmeasured`, with what it is about."""
    for target, file in world.candidate.items():
        if target in world.lost["candidate"]:
            yield "unmeasured", target
        elif file.error is not None:
            yield from _broken_file(target, world)
        else:
            yield from _complaints_about_tests(target, file, world, flaky_blocks)
            if file.broken:
                yield from _failure(target, file.broken, world)
        if file.skipped is not None:
            for name in world.baseline.get(target, File()).tests:
                yield from _hiding(target, name, world)
    for target, file in world.baseline.items():
        yield from ((("failed", f"{target}::{name} vanished")) for name in _vanished(target, file, world))
        for name in _left_to_skips(target, file, world):
            yield from _hiding(target, name, world)


def _complaints_about_tests(target: str, file: File, world: World, flaky_blocks: bool) -> Iterator[tuple[str, str]]:
    for name, told in {**file.tests, **file.extra}.items():
        if told is None:
            yield "unmeasured", f"{target}::{name}"
        elif told in FAILS:
            mood = world.moods.get(f"{target}::{name}", "steady")
            yield from _run_again(list(_failure(target, name, world)), mood, flaky_blocks)
        elif told in HIDES:
            yield from _hiding(target, name, world)
        elif told == "rerun" and flaky_blocks:
            yield "failed", f"{target}::{name} is flaky"


def _run_again(found: list[tuple[str, str]], mood: Mood, flaky_blocks: bool) -> Iterator[tuple[str, str]]:
    """What is left of a complaint about a failing test when the test was run again; only what is new is run again."""
    for kind, what in found:
        if kind != "failed" or mood in ("steady", "dependent"):
            yield kind, what
        elif mood == "interfering":
            yield "unmeasured", what
        elif flaky_blocks:
            yield "failed", f"{what} is flaky"


def _broken_file(target: str, world: World) -> Iterator[tuple[str, str]]:
    """A file that cannot be collected hides its tests: where the baseline had half of it, each of that half counts."""
    there = world.baseline.get(target, File())
    yield from _failure(target, "", world)
    if there.broken:
        for name in there.tests:
            yield from _failure(target, name, world)


def _failure(target: str, name: str, world: World) -> Iterator[tuple[str, str]]:
    """A failure is forgiven when the baseline shows the same test, or the whole file, to be broken."""
    there = _there(target, name, world)
    if there == "unmeasured":
        yield "unmeasured", f"{target}::{name} cannot be compared"
    elif there not in (*FAILS, "broken file"):
        yield "failed", f"{target}::{name}"


def _hiding(target: str, name: str, world: World) -> Iterator[tuple[str, str]]:
    """Hiding a test is fine unless it hides one that passed."""
    there = _there(target, name, world)
    if there == "unmeasured":
        yield "unmeasured", f"{target}::{name} cannot be compared"
    elif there in PASSES:
        yield "failed", f"{target}::{name} is hidden"


def _there(target: str, name: str, world: World) -> str:
    """What the baseline shows of a test, or, without a name, of the collection of the file."""
    file = world.baseline.get(target)
    if file is None:
        return "no such file"
    if target in world.lost["baseline"] or target in world.not_run:
        return "unmeasured"
    if file.error is not None or (file.broken and name.partition("::")[0] in ("", file.broken)):
        return "broken file"
    if not name:
        return "passed"
    return (file.tests[name] or "unmeasured") if name in file.tests else "no such test"


def _vanished(target: str, file: File, world: World) -> Iterator[str]:
    """The tests that are gone from a file of the same bytes, with all of their variants.

    Which tests a broken class hides is known only after a run.
    """
    here = world.candidate.get(target)
    if here is None or here.error is not None or here.skipped is not None:
        return
    if file.blob is None or file.blob != here.blob:
        return
    if here.broken and target in world.lost["candidate"]:
        return
    reported = {} if target in world.lost["candidate"] else here.extra
    left = {name.partition("[")[0] for name in (*here.tests, *reported)}
    hidden = here.broken or None
    yield from (n for n in file.tests if n.partition("[")[0] not in left and n.partition("::")[0] != hidden)


def _left_to_skips(target: str, file: File, world: World) -> Iterator[str]:
    """The tests that are gone from a file of the same bytes, of which only variants that are skipped are left."""
    here = world.candidate.get(target)
    if here is None or here.error is not None or here.skipped is not None or target in world.lost["candidate"]:
        return
    if file.blob is None or file.blob != here.blob:
        return
    for name in file.tests.keys() - here.tests.keys() - here.extra.keys():
        stem, reports = name.partition("[")[0], {**here.tests, **here.extra}
        left = {told for variant, told in reports.items() if variant.partition("[")[0] == stem}
        if left == {"skipped"}:
            yield name


def with_failures_seen(world: World) -> World:
    """The same world, had every failure been seen of the targets that the candidate lost, and nothing else of them."""
    lost = world.lost["candidate"]
    seen = {target: _failures_of(file) if target in lost else file for target, file in world.candidate.items()}
    still = {target for target in lost if target in seen and not (seen[target].tests or seen[target].extra)}
    return replace(world, candidate=seen, lost={**world.lost, "candidate": frozenset(still)})


def _failures_of(file: File) -> File:
    if file.error is not None or file.skipped is not None:
        return replace(file, tests={}, extra={})
    tests = {name: told if told in FAILS else None for name, told in file.tests.items()}
    return replace(file, tests=tests, extra={name: told for name, told in file.extra.items() if told in FAILS})


def anything_ran(world: World) -> bool:
    """Whether a test of the candidate was run at all; a skip, an expected failure or an error shows nothing."""
    measured = (file for target, file in world.candidate.items() if target not in world.lost["candidate"])
    shown = (*PASSES, "failed")
    return any(told in shown for file in measured for told in (*file.tests.values(), *file.extra.values()))


def right_verdict(world: World, *, flaky_blocks: bool = False) -> str:
    """The verdict that the complaints lead to."""
    kinds = {kind for kind, _ in complaints(world, flaky_blocks=flaky_blocks)}
    if "failed" in kinds:
        return "failed"
    return "passed" if not kinds and anything_ran(world) else "unmeasured"


def poorer(side: SideEvidence) -> Iterator[SideEvidence]:
    """This side with one piece of evidence less: a table, a target's row, a planned case's row, a whole measurement.

    The row of a case that no collection knows of is left: the table's digest stands for it, and nothing else does.
    """
    planned = {test for target in side.inventory.targets for test in target.cases}
    for number, table in enumerate(side.tables):
        yield _with_tables(side, (*side.tables[:number], *side.tables[number + 1 :]))
        for less in _poorer_tables(table, planned):
            yield _with_tables(side, (*side.tables[:number], less, *side.tables[number + 1 :]))
    for target in side.inventory.targets:
        if target.target not in side.not_run:
            yield evidence_with_missing(side, target.target)


def _poorer_tables(table: CaseTable, planned: set[TestId]) -> Iterator[CaseTable]:
    for row in table.targets:
        yield structs.replace(table, targets=tuple(other for other in table.targets if other != row))
        doubted = tuple(structs.replace(r, cause="record-damaged") if r == row else r for r in table.targets)
        yield structs.replace(table, targets=doubted)
    for case in table.cases:
        if case.test in planned:
            yield structs.replace(table, cases=tuple(other for other in table.cases if other != case))


def evidence_with_missing(side: SideEvidence, target: str) -> SideEvidence:
    """The same side, had this target not been measured."""
    return SideEvidence(
        inventory=side.inventory,
        tables=side.tables,
        missing={**side.missing, target: "signalled"},
        not_run=side.not_run,
    )


def _with_tables(side: SideEvidence, tables: tuple[CaseTable, ...]) -> SideEvidence:
    return SideEvidence(inventory=side.inventory, tables=tables, missing=side.missing, not_run=side.not_run)


def without_baseline_run(world: World, target: str) -> World:
    """The same world, had the policy left this target out of the baseline."""
    return replace(world, not_run=world.not_run | {target})
