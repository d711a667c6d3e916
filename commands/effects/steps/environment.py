"""The environment of a step's command: a list of what is let through, as for tests, and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from commands.config.settings import RunnerSettings
from commands.effects.environment import child_environment

_BOUND_TO_A_TREE = "PYTHONPATH"


def step_environment(
    parent: Mapping[str, str],
    names: Sequence[str],
    *,
    tree: Path,
    checkout: Path,
    home: Path,
    temporary: Path,
    told: Mapping[str, str],
) -> dict[str, str]:
    """What a step sees of `parent`: what every test sees, and the variables `names` (or `PREFIX*`).

    `tree` is the worktree that it runs in, `checkout` the user's own. HOME and the places of caches and temporary files
    are private (`home`, `temporary`, to be made by the caller) unless the step names them, as one that publishes with
    the user's own credentials does. PYTHONPATH stays bound to `tree`. `told` is set last; secrets are no part of it.
    """
    environment = child_environment(
        parent,
        RunnerSettings(pass_environment=tuple(names)),
        tree=tree,
        checkout=checkout,
        home=home,
        temporary=temporary,
        import_paths=(),
        extra={},
    )
    named = {name: parent[name] for name in names if name in parent and name != _BOUND_TO_A_TREE}
    return {**environment, **named, **told}
