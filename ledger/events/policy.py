"""The rules that a run was started under; stored with the run, so that it resumes and replays under its own."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, to_builtins

POLICY_VERSION = "1"


class PlanPolicy(Struct, frozen=True, kw_only=True):
    """How targets with known usage are planned into shards.

    `budget_bytes` is the memory that a shard may be planned to need; 0 takes the gate's memory limit or, without one,
    an even part of the machine's. `target_seconds` asks for as few shards as end within that time; 0 for one for each
    that runs at a time. A target that needs more than `heavy_percent` of the budget has a shard to itself. Those of
    `spawn_targets` share `spawn_shards` shards with nothing else. A shard is given up after `deadline_percent` of its
    planned time, or after `deadline_floor_seconds` when that is longer, and in any case after the gate's time limit. A
    target that takes longer than `split_seconds`, and longer than an even share, is split into parts; 0 splits none.
    `durations_file` is a file of the candidate with times of tests, for what no run has measured.
    """

    budget_bytes: int = 0
    target_seconds: float = 0.0
    heavy_percent: int = 100
    spawn_targets: tuple[str, ...] = ()
    spawn_shards: int = 3
    deadline_floor_seconds: float = 1200.0
    deadline_percent: int = 150
    split_seconds: float = 0.0
    durations_file: str = ""


class MachinePolicy(Struct, frozen=True, kw_only=True):
    """This machine as a member of the pool.

    Each part that runs has at least `reservation_bytes` of memory set aside, and otherwise `headroom_percent` of what
    it is planned to need, which is also where it is ended. What finds no room waits, and is given up as unmeasured
    after `start_wait_seconds` in which nothing of the run was running.
    """

    reservation_bytes: int = 256 * 2**20
    headroom_percent: int = 150
    start_wait_seconds: float = 600.0


class QuestionPolicy(Struct, frozen=True, kw_only=True):
    """How often the steps of a run may ask people in each phase, and how long people have for an answer.

    Critical questions are asked however often that was; they count, too. A step may give its question more or less
    time than `deadline_minutes`.
    """

    intake_max: int = 1
    planning_max: int = 2
    execution_max: int = 1
    deadline_minutes: int = 30


class GatePolicy(Struct, frozen=True, kw_only=True):
    """How a gate measures and judges.

    `baseline`: run the baseline of every target, or only where the candidate failed, skipped or lost cases.
    `rounds`: how often a shard side may be tried until it is measured. `shards`: 0 lets the planner choose.
    `parallel`: processes at a time on this machine. Limits of 0 mean no limit. `flaky`: a flaky pass warns or blocks.
    `rerun`: whether new failures are run again before the verdict. `retry`: the version of the rules by which what was
    not measured is tried again; from `ladder/2` on, a target that one attempt alone could not collect is a failure that
    is run again, too. `plan`, `machine`, `rerun` and `retry` are absent from runs of programs that did not know them.
    """

    baseline: Literal["always", "on-failure"] = "always"
    rounds: int = 2
    shards: int = 0
    parallel: int = 2
    flaky: Literal["warn", "block"] = "warn"
    time_limit_seconds: float = 3600.0
    idle_limit_seconds: float = 600.0
    memory_limit_bytes: int = 0
    plan: PlanPolicy | UnsetType = UNSET
    machine: MachinePolicy | UnsetType = UNSET
    rerun: Literal["on", "off"] | UnsetType = UNSET
    retry: Literal["ladder/2"] | UnsetType = UNSET

    @property
    def reruns(self) -> bool:
        """Whether new failures are run again before the verdict."""
        return self.rerun == "on"

    @property
    def ladder(self) -> bool:
        """Whether what is not measured is tried again by the retry ladder; runs of older programs know rounds only."""
        return not isinstance(self.rerun, UnsetType)

    @property
    def halves(self) -> bool:
        """Whether targets that nobody can tell apart are tried in halves."""
        return self.ladder and self.retry == "ladder/2"

    @property
    def collections_rerun(self) -> bool:
        """Whether a target that an attempt could not collect, and its side's collection could, is run again."""
        return self.reruns and self.retry == "ladder/2"

    @property
    def planning(self) -> PlanPolicy:
        """The rules of the planner that are in force."""
        return PlanPolicy() if isinstance(self.plan, UnsetType) else self.plan

    @property
    def placing(self) -> MachinePolicy:
        """The rules of this machine that are in force."""
        return MachinePolicy() if isinstance(self.machine, UnsetType) else self.machine

    def rules(self) -> dict[str, str]:
        """Every rule that was recorded, as text; one of a group has a name such as `plan.heavy_percent`."""
        found: dict[str, str] = {}
        for name, value in to_builtins(self).items():
            inner = {f"{name}.{key}": rule for key, rule in value.items()} if isinstance(value, dict) else {name: value}
            found |= {key: str(rule) for key, rule in inner.items()}
        return found
