"""Keys of `[runner]` that go together, and those that do not."""

from collections.abc import Iterator, Mapping

from commands.config.settings import CommandSettings, RunnerSettings
from commands.config.sources import ConfigInvalid, Source
from ledger.events import GatePolicy

_OF_PYTEST = frozenset({"python", "arguments", "paths", "first_party"})
_OF_COMMAND = frozenset(CommandSettings.__struct_fields__) - frozenset(RunnerSettings.__struct_fields__)


def foreign_keys(settings: RunnerSettings) -> frozenset[str]:
    """The keys that only the other runner has, such as `runner.python`."""
    names = _OF_PYTEST if isinstance(settings, CommandSettings) else _OF_COMMAND
    return frozenset(f"runner.{name}" for name in names)


def check_together(settings: RunnerSettings, gate: GatePolicy, sources: Mapping[str, Source]) -> None:
    """Raises ConfigInvalid for keys that the chosen runner does not have, that it lacks, or that exclude each other."""
    for key, problem in _problems(settings, gate, sources):
        origin = sources[key].origin(key) if key in sources else "[runner]"
        raise ConfigInvalid(f"{origin}: {problem}")


def _problems(settings: RunnerSettings, gate: GatePolicy, sources: Mapping[str, Source]) -> Iterator[tuple[str, str]]:
    for key in sorted(foreign_keys(settings) & sources.keys()):
        yield key, f'`{key}` is not a key of runner = "{settings.runner}"'
    if isinstance(settings, CommandSettings):
        if not settings.command:
            yield "runner.runner", 'runner = "command" needs `runner.command`'
        if bool(settings.targets) == bool(settings.list):
            yield "runner.list", 'runner = "command" needs either `runner.targets` or `runner.list`'
        if gate.baseline != "always":
            # Which tests the candidate lost, only a run of the baseline tells.
            yield "gate.baseline", '`gate.baseline` has to be "always" with runner = "command"'
        if settings.report_in_tree and "runner.report" in sources:
            yield "runner.report", "`runner.report` and `runner.report_in_tree` exclude each other"
        if settings.report_in_tree and gate.parallel > 1:
            yield (
                "gate.parallel",
                "`gate.parallel` has to be 1 with `runner.report_in_tree`: a tree has one such report",
            )
