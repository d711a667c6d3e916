"""The settings of a repository, as read from `ledger.toml` (or `[tool.ledger]` in `pyproject.toml`)."""

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ledger.events import GatePolicy, MachinePolicy, PlanPolicy


class RunnerSettings(Struct, frozen=True, kw_only=True):
    """How the tests of a side are run; kept as evidence with the run.

    `python` is the project's interpreter; `{tree}` (the side's worktree) and `{cache}` (a directory kept per digest of
    the `lock` files) are replaced in it and in `prepare`, whose commands run once per cache in the worktree.
    `arguments` are added to the pytest command line; `paths` limit the collection; `import_paths` are directories of
    the tree, put on PYTHONPATH first; `first_party` are the top-level packages of the project (found when empty).
    `pass_environment` names variables (or `PREFIX*`) handed through; `set_environment` gives variables.
    """

    runner: Literal["pytest"] = "pytest"
    python: str = ""
    arguments: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    prepare: tuple[tuple[str, ...], ...] = ()
    lock: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    first_party: tuple[str, ...] = ()
    pass_environment: tuple[str, ...] = ()
    set_environment: dict[str, str] = field(default_factory=dict)


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be configured. `project` is the project's name, `store` where the ledger is ("": default)."""

    project: str = ""
    store: str = ""
    work: str = ""
    gate: GatePolicy = GatePolicy()
    plan: PlanPolicy = PlanPolicy()
    machine: MachinePolicy = MachinePolicy()
    runner: RunnerSettings = RunnerSettings()

    @property
    def policy(self) -> GatePolicy:
        """The rules that a run is started under, those of its plan and of this machine included."""
        return replace(self.gate, plan=self.plan, machine=self.machine)
