"""The rules that a run was started under; stored with the run, so that it resumes and replays under its own."""

from typing import Literal

from msgspec import Struct

POLICY_VERSION = "1"


class GatePolicy(Struct, frozen=True, kw_only=True):
    """How a gate measures and judges.

    `baseline`: run the baseline of every target, or only where the candidate failed, skipped or lost cases.
    `rounds`: how often a shard side may be tried until it is measured. `shards`: 0 lets the planner choose.
    `parallel`: processes at a time on this machine. Limits of 0 mean no limit. `flaky`: a flaky pass warns or blocks.
    """

    baseline: Literal["always", "on-failure"] = "always"
    rounds: int = 2
    shards: int = 0
    parallel: int = 2
    flaky: Literal["warn", "block"] = "warn"
    time_limit_seconds: float = 3600.0
    idle_limit_seconds: float = 600.0
    memory_limit_bytes: int = 0
