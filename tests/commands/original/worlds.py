"""Random scenarios: what the tests of both sides do, and how the processes that run them end."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from ledger.values import SIDES, Side
from tests.commands.original.replies import Process, Reply, Scenario

FILES = ("t/a.test.ts", "t/b.test.ts", "t/c.test.ts")
NAMES = ("t", "u")
BUDGET_GIB = 8
ENDS = ("sound", "sound", "sound", "killed", "cut", "silent", "lying", "raised")
"""How a process ends: with a sound report; killed after it; with half of it; with none; with an exit code that belies
it; or its call raised."""

Outcomes = Mapping[str, Mapping[str, str]]
"""The outcome of each test by name, for each file."""


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Up to three files, each in a shard of its own or all in one, so that everybody cuts the same shards."""
    files = FILES[: draw(st.integers(1, len(FILES)))]
    together = draw(st.booleans())
    replies: dict[Process, Sequence[Reply]] = {}
    for side in SIDES:
        usual = draw(outcomes(files))
        runs = draw(st.sampled_from([(usual,), (usual,), (usual, draw(changed(usual)))]))
        for process in {frozenset([file]) for file in files} | {frozenset(files)}:
            replies[side, process] = draw(answers(runs, process, measured=side == "candidate"))
    return Scenario(
        files=files,
        count=1 if together else len(files),
        budget_gib=BUDGET_GIB,
        replies=replies,
        worktree=draw(st.sampled_from([True] * 9 + [False])),
    )


OUTCOMES = st.sampled_from(["passed", "passed", "passed", "passed", "failed", "failed", "skipped"])


def outcomes(files: tuple[str, ...]) -> st.SearchStrategy[Outcomes]:
    """What the tests of each file do; most pass."""
    tests = st.dictionaries(st.sampled_from(NAMES), OUTCOMES, min_size=1, max_size=len(NAMES))
    return st.fixed_dictionaries(dict.fromkeys(files, tests))


def changed(usual: Outcomes) -> st.SearchStrategy[Outcomes]:
    """The same tests, which may do something else."""
    return st.fixed_dictionaries(
        {file: st.fixed_dictionaries(dict.fromkeys(tests, OUTCOMES)) for file, tests in usual.items()}
    )


@st.composite
def answers(draw: st.DrawFn, runs: Sequence[Outcomes], files: frozenset[str], *, measured: bool) -> list[Reply]:
    """Three replies; only the run alone of a file is measured. What the tests do may change after the first run."""
    memory = draw(st.sampled_from([500] * 7 + [3000, 5000, 9000]) if len(files) == 1 else st.none())
    ends = ["sound"] if measured and len(files) == 1 and draw(st.integers(0, 9)) else []
    ends += draw(st.lists(st.sampled_from(ENDS), min_size=3, max_size=3))
    return [
        reply(runs[min(number, len(runs) - 1)], sorted(files), end, memory_mb=memory) for number, end in enumerate(ends)
    ]


def reply(told: Outcomes, files: Sequence[str], end: str, memory_mb: int | None = None, seconds: float = 1.0) -> Reply:
    """The reply of a process that ran these files and ended so."""
    report = "".join(suite(file, told[file]) for file in files)
    failed = any("failed" in told[file].values() for file in files)
    exit_code: int | None = int(failed != (end == "lying"))
    junit: str | None = f"<testsuites>{report}</testsuites>"
    if end == "raised":
        exit_code = junit = None
    elif end == "cut":
        junit = f"<testsuites>{report}"
    elif end == "silent":
        junit = None
    return Reply(exit_code, "SIGKILL" if end == "killed" else None, junit, memory_mb, seconds)


def suite(file: str, tests: Mapping[str, str]) -> str:
    """The part of a report that is about one file."""
    inside = {"passed": "", "failed": '<failure message="boom"/>', "skipped": "<skipped/>"}
    cases = "".join(f'<testcase name="{name}">{inside[outcome]}</testcase>' for name, outcome in tests.items())
    return f'<testsuite file="{file}" tests="{len(tests)}">{cases}</testsuite>'


def scripted(ends: Mapping[Side, Sequence[tuple[str, str]]], file: str = FILES[0]) -> Scenario:
    """One file with one test, measured alone beforehand; for each side what the test does and how the process ends."""
    told = {"candidate": [("passed", "sound"), *ends["candidate"]], "baseline": ends["baseline"]}
    replies = {
        (side, frozenset([file])): [reply({file: {"t": outcome}}, [file], end, 500) for outcome, end in told[side]]
        for side in SIDES
    }
    return Scenario(files=(file,), count=1, budget_gib=BUDGET_GIB, replies=replies)


def beside(*scenarios: Scenario) -> Scenario:
    """The files of all of these, each in a shard of its own."""
    files = tuple(file for scenario in scenarios for file in scenario.files)
    replies = {process: answers for scenario in scenarios for process, answers in scenario.replies.items()}
    return Scenario(files=files, count=len(files), budget_gib=BUDGET_GIB, replies=replies)


def shared_out_badly() -> Scenario:
    """Three files that the greedy planner puts into two shards of 3 and 1 s, where 2 and 2 s are possible. Only the
    processes of its own shards are answered."""
    told = {file: {"t": "passed"} for file in FILES}
    alone = {FILES[0]: (3000, 1.0), FILES[1]: (2000, 1.0), FILES[2]: (1000, 2.0)}
    replies: dict[Process, Sequence[Reply]] = {
        ("candidate", frozenset([file])): [reply(told, [file], "sound", memory, seconds)]
        for file, (memory, seconds) in alone.items()
    }
    replies["baseline", frozenset(FILES[:1])] = [reply(told, FILES[:1], "sound")]
    for side in SIDES:
        replies[side, frozenset(FILES[1:])] = [reply(told, FILES[1:], "sound")]
    return Scenario(files=FILES, count=2, budget_gib=BUDGET_GIB, replies=replies)
