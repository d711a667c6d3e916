"""The default policy on the replies of a scenario: the real decisions of a gate, whose attempts are answered by them.

What the original measures first, each file alone, is here what an earlier run told of the files.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec import structs

from commands.messages import MakePlan, Message, RecordAttempt, Refusal
from ledger.events import COLLECTION, AttemptRecorded, AttemptStarted, GatePolicy
from ledger.tables import CaseRow, KnownTarget, Plan, UsageTable, decode_document
from ledger.values import SIDES, Side, TestId, Verdict
from projections.run.owed import owed
from tests.commands.original.greedy import is_number
from tests.commands.original.policy import is_measurement
from tests.commands.original.replies import Process, Reply, Scenario, Script
from tests.commands.original.reports import Case, proven_cases, read_report
from tests.support.gates import End, PureGate, Suite
from tests.support.makers import case_row, case_table, record_message
from tests.support.sides import File, Files

FileSet = frozenset[str]
MIB = 2**20


@dataclass(frozen=True)
class Answer:
    """How a gate ends: with its verdict, or `refused` before any test is run.

    `shards` are the files of each shard, `owed` of those that would have to be run again, `rounds` the most attempts of
    a side of a shard, `calls` how often each process was started.
    """

    status: Verdict | Literal["refused"]
    shards: frozenset[FileSet] = frozenset()
    owed: frozenset[FileSet] = frozenset()
    rounds: int = 0
    calls: Counter[Process] = field(default_factory=Counter)


def run_default(scenario: Scenario, seed: int) -> Answer:
    """Run the gate of this scenario to its end; `seed` decides the order in which attempts end."""
    try:
        policy = _policy(scenario)
    except msgspec.ValidationError:
        return Answer("refused")
    gate = ScriptedGate(scenario, policy, seed)
    gate.start()
    try:
        gate.drive()
    except Refusal:
        return Answer("refused")
    return gate.answer()


class ScriptedGate(PureGate):
    """A gate that knows from an earlier run what every file needs, and whose attempts end as the replies say."""

    def __init__(self, scenario: Scenario, policy: GatePolicy, seed: int) -> None:
        super().__init__(_suite(scenario), policy, seed)
        self._script = scenario.script()
        self._usage = self._store(_usage_table(scenario, self._script))
        self._told = len(self._script.calls)

    def handle(self, message: Message) -> None:
        """Handle the message; the plan is made from what the earlier run told."""
        if isinstance(message, MakePlan):
            message = structs.replace(message, usage=self._usage)
        super().handle(message)

    def answer(self) -> Answer:
        """How it ended."""
        records = [one for one in self.events if isinstance(one, AttemptRecorded) and one.shard != COLLECTION]
        shards = self._shards()
        return Answer(
            status=self.verdict.verdict,
            shards=frozenset(shards.values()),
            owed=frozenset(
                shards[entry.shard] for entry in owed(self.views.gate, self.policy) if entry.shard in shards
            ),
            rounds=max((record.attempt for record in records), default=0),
            calls=Counter((side, frozenset(files)) for side, files in self._script.calls[self._told :]),
        )

    def _shards(self) -> dict[str, FileSet]:
        planned = self.views.gate.plan
        if planned is None:
            return {}
        plan = decode_document(self.documents[planned.plan], Plan)
        return {shard.shard: frozenset(shard.candidate) for shard in plan.shards}

    def _result(self, started: AttemptStarted, end: End | None) -> RecordAttempt:
        if started.shard == COLLECTION:
            return super()._result(started, end)
        asked = self._asked(started)
        reply = self._script.answer(started.side, asked)
        return self._record(started, asked, reply)

    def _record(self, started: AttemptStarted, asked: tuple[str, ...], reply: Reply) -> RecordAttempt:
        """What a reply is worth: all of the files, or none, and then at most the failures that can be seen."""
        proven, seen = proven_cases(reply, asked), read_report(reply.junit, asked)
        cause = None if proven is not None else _cause(reply, seen)
        if cause is None:
            self.measured[started.side].update(asked)
        table = case_table(started.side, dict.fromkeys(asked, cause), [_row(case) for case in seen or ()])
        return record_message(
            started.shard, started.side, started.attempt, cause=cause, exit_code=reply.exit_code,
            measured=len(asked) if cause is None else 0,
            missing={} if cause is None else dict.fromkeys(asked, cause),
            attention=tuple(sorted({case.file for case in proven or () if case.skipped or case.failure is not None})),
            table=self._store(table),
        )  # fmt: skip


def _policy(scenario: Scenario) -> GatePolicy:
    """The default rules with this number of shards and this memory for each of them."""
    budget = scenario.budget_gib
    budget_bytes = math.floor(budget * 1024 * MIB) if is_number(budget) else budget
    return msgspec.convert({"shards": scenario.count, "plan": {"budget_bytes": budget_bytes}}, GatePolicy)


def _suite(scenario: Scenario) -> Suite:
    """What is collected of a side: every test that any reply of it shows. Without a tree nothing can be collected."""
    ends: dict[str, tuple[End, ...]] = {} if scenario.worktree else {"collection/baseline": ("lost", "lost")}
    candidate, baseline = (_files(scenario, side) for side in SIDES)
    return Suite(candidate, baseline, ends=ends)


def _files(scenario: Scenario, side: Side) -> Files:
    tests: dict[str, dict[str, str | None]] = {file: {} for file in scenario.files}
    for (of, files), replies in scenario.replies.items():
        for reply in replies if of == side else ():
            for case in read_report(reply.junit, files) or ():
                tests[case.file][case.name] = _outcome(case)
    # Without the bytes of the files, a test that is gone from one is not held to have vanished.
    return {file: File(names, blob=None) for file, names in tests.items()}


def _usage_table(scenario: Scenario, script: Script) -> UsageTable:
    """What the first run of each file alone tells, where it tells something."""
    replies = {file: script.answer("candidate", (file,)) for file in sorted(set(scenario.files))}
    return UsageTable(
        session_seconds=0.0,
        session_memory_bytes=0,
        targets=tuple(_known_targets(replies.items())),
    )


def _known_targets(replies: Iterable[tuple[str, Reply]]) -> Iterable[KnownTarget]:
    for file, reply in replies:
        memory, seconds = reply.memory_mb, reply.seconds
        if is_measurement(reply) and is_number(memory) and is_number(seconds) and memory > 0:
            yield KnownTarget(file, float(seconds), math.ceil(memory * MIB), "alone", aged=False)


def _cause(reply: Reply, seen: tuple[Case, ...] | None) -> str:
    """Why a reply proves nothing."""
    if reply.signal is not None:
        return "signalled"
    if reply.exit_code is None:
        return "lost"
    if reply.exit_code not in (0, 1):
        return "exit-code-unexpected"
    return "record-damaged" if seen is None else "exit-contradicts-cases"


def _row(case: Case) -> CaseRow:
    return case_row(TestId(case.file, (case.name,)), _outcome(case))


def _outcome(case: Case) -> str:
    if case.skipped:
        return "skipped"
    return "passed" if case.failure is None else "failed"
