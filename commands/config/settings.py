"""The settings of a repository, as read from `ledger.toml` (or `[tool.ledger]` in `pyproject.toml`)."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from ledger.events import GatePolicy, MachinePolicy, PlanPolicy, QuestionPolicy
from ledger.steps import Step, StepGraph
from ledger.tables import decode_document
from projections.gate.ladder import LADDER_VERSION


class RunnerSettings(Struct, frozen=True, kw_only=True):
    """How pytest runs the tests of a side; kept as evidence with the run.

    `python` is the project's interpreter; `{tree}` (the side's worktree) and `{cache}` (a directory kept per digest of
    the `lock` files) are replaced in it and in `prepare`, whose commands run once per cache in the worktree.
    `arguments` are added to the pytest command line; `paths` limit the collection; `import_paths` are directories of
    the tree, put on PYTHONPATH first; `first_party` are the top-level packages of the project (found when empty).
    `pass_environment` names variables (or `PREFIX*`) handed through; `set_environment` gives variables. `may_change`
    are globs of tracked files that tests may change, left out where there are none.
    """

    runner: Literal["pytest", "command"] = "pytest"
    python: str = ""
    arguments: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    prepare: tuple[tuple[str, ...], ...] = ()
    lock: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    first_party: tuple[str, ...] = ()
    pass_environment: tuple[str, ...] = ()
    set_environment: dict[str, str] = field(default_factory=dict)
    may_change: tuple[str, ...] | UnsetType = UNSET

    @property
    def changeable(self) -> tuple[str, ...]:
        """The globs of the tracked files that tests may change."""
        return () if isinstance(self.may_change, UnsetType) else self.may_change


class CommandSettings(RunnerSettings, frozen=True, kw_only=True):
    """How any program that writes JUnit reports runs the tests of a side; kept as evidence with the run.

    In `command`, the argument with `{targets}` stands for one per target; `{report}` is a path for its report,
    `{directory}` the attempt's directory, and `{tree}` and `{cache}` are as in `prepare`; all but the first are
    replaced in `list`, `version` and the values of `set_environment` too. Targets are the files that match the globs
    `targets`, or the lines that `list` prints. `report` is a glob in the attempt's directory, `report_in_tree` one in
    the tree. `dialect` and `profile` are those of the reader ("": recognised, and the counts as they are).
    `exit_codes` says what the exit codes mean where the dialect does not. What `version` prints is part of what a
    result counts for. `links` are paths of the tree that are made to lead to what `prepare` installed.
    """

    runner: Literal["pytest", "command"] = "command"
    command: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    list: tuple[str, ...] = ()
    report: str = "report*.xml"
    report_in_tree: str = ""
    dialect: str = ""
    profile: str = ""
    exit_codes: dict[str, Literal["passed", "failed"]] = field(default_factory=dict)
    version: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)


class MuteSettings(Struct, frozen=True, kw_only=True):
    """What people may mute: so many tests at a time, each for so many days at most. After so many `passes` in a row it
    is proposed to take a muting back."""

    count_max: int = 50
    days_max: int = 30
    passes: int = 10


class NotifySettings(Struct, frozen=True, kw_only=True):
    """Programs that are run whenever a run waits for a person, each with its arguments."""

    hooks: tuple[tuple[str, ...], ...] = ()


class ReleaseSettings(Struct, frozen=True, kw_only=True):
    """How releases are made: the remote with their branches and its main branch, how often one may be taken up again,
    who may waive and approve (empty: anybody), whether who has waived something may not approve it, and whether a gate
    that did not pass is begun again by the program itself, as far as its table allows."""

    remote: str = "origin"
    main: str = "main"
    attempts_max: int = 5
    may_waive: tuple[str, ...] = ()
    may_approve: tuple[str, ...] = ()
    separate_duties: bool = False
    autoheal: bool = True


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be configured. `project` is the project's name, `store` where the ledger is ("": default)."""

    project: str = ""
    store: str = ""
    work: str = ""
    gate: GatePolicy = GatePolicy(rerun="on")
    plan: PlanPolicy = PlanPolicy()
    machine: MachinePolicy = MachinePolicy()
    mutes: MuteSettings = MuteSettings()
    questions: QuestionPolicy = QuestionPolicy()
    notify: NotifySettings = NotifySettings()
    release: ReleaseSettings = ReleaseSettings()
    step: tuple[Step, ...] = ()
    runner: RunnerSettings = RunnerSettings()

    @property
    def graph(self) -> StepGraph:
        """The steps of a release, with its limits."""
        return StepGraph(
            steps=self.step,
            attempts_max=self.release.attempts_max,
            may_waive=self.release.may_waive,
            may_approve=self.release.may_approve,
            separate_duties=self.release.separate_duties,
            autoheal=self.release.autoheal,
            main=self.release.main,
        )

    @property
    def policy(self) -> GatePolicy:
        """The rules that a run is started under, those of its plan, of this machine and of this program included."""
        return replace(self.gate, plan=self.plan, machine=self.machine, retry=LADDER_VERSION)


RUNNERS: dict[str, type[RunnerSettings]] = {"pytest": RunnerSettings, "command": CommandSettings}


def decode_runner(document: bytes) -> RunnerSettings:
    """The settings of the runner of a run, from their evidence. Raises EvidenceDamaged."""
    settings = decode_document(document, RunnerSettings)
    return decode_document(document, RUNNERS[settings.runner])
