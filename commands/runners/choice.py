"""Which runner the settings name."""

from commands.config.settings import CommandSettings, RunnerSettings
from commands.runners.api import Runner
from commands.runners.command import CommandRunner
from commands.runners.pytest_runner import PytestRunner


def runner_of(settings: RunnerSettings) -> Runner:
    """The runner that the settings name."""
    return CommandRunner(settings) if isinstance(settings, CommandSettings) else PytestRunner(settings)
