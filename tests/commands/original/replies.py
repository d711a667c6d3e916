"""What the test processes of a scenario answer, as the recorded runs of the original have it.

A process is known by its side and the files that it runs. Its replies are used in order, and the last one repeats.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ledger.values import Side

TREES: dict[Side, str] = {"candidate": "/head", "baseline": "/base"}
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Process = tuple[Side, frozenset[str]]


@dataclass(frozen=True)
class Reply:
    """How a process ended: exit code and signal, its JUnit report, its peak memory in MiB and its time in seconds.

    None stands for what is not known. A call that raised is a process of which nothing is known.
    """

    exit_code: int | None = None
    signal: str | None = None
    junit: str | None = None
    memory_mb: object = None
    seconds: object = None


@dataclass(frozen=True)
class Scenario:
    """The files to test, as they were given, and everything that will be answered.

    `count` and `budget_gib` are whatever a user can write. `worktree`: whether the baseline's tree can be made.
    """

    files: tuple[str, ...]
    count: object
    budget_gib: object
    replies: Mapping[Process, Sequence[Reply]]
    worktree: bool = True
    otherwise: Sequence[Reply] = (Reply(),)

    def script(self) -> "Script":
        """The answers, from the first one on."""
        return Script(self)


@dataclass
class Script:
    """Answers calls and remembers them, as side and files in the order in which they were passed."""

    scenario: Scenario
    calls: list[tuple[Side, tuple[str, ...]]] = field(default_factory=list)
    _used: Counter[Process] = field(default_factory=Counter)

    def answer(self, side: Side, files: Iterable[str]) -> Reply:
        """The next reply of this process."""
        passed = tuple(files)
        process = (side, frozenset(passed))
        self.calls.append((side, passed))
        replies = self.scenario.replies.get(process, self.scenario.otherwise)
        self._used[process] += 1
        return replies[min(self._used[process], len(replies)) - 1]


def number(value: object) -> object:
    """A value of a vector; JSON has no words for numbers that are not finite."""
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def scenario_of(given: Mapping[str, Any]) -> Scenario:
    """The scenario of a vector."""
    sides = {tree: side for side, tree in TREES.items()}
    replies: dict[Process, Sequence[Reply]] = {}
    for name, answers in given["replies"]:
        tree, _, files = name.partition("|")
        replies[sides[tree], frozenset(files.split(","))] = tuple(map(_reply, answers))
    return Scenario(
        files=tuple(given["files"]),
        count=number(given["count"]),
        budget_gib=number(given["budgetGiB"]),
        replies=replies,
        worktree=given["worktree"] == "ok",
        otherwise=tuple(map(_reply, given["defaultReplies"])),
    )


def _reply(given: Mapping[str, Any]) -> Reply:
    return Reply(
        exit_code=cast("int | None", given.get("exitCode")),
        signal=given.get("signal"),
        junit=given.get("junit"),
        memory_mb=number(given.get("rssMb")),
        seconds=number(given.get("seconds")),
    )
