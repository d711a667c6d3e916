"""The environment of the programs that test a side: a list of what is let through, and nothing else."""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from commands.config.settings import RunnerSettings
from commands.runners.api import CREDENTIAL

_PASSED = ("PATH", "LANG", "LC_*", "TZ", "PYTHONPATH", "VIRTUAL_ENV")

# Names of credentials: such a word at the end, with or without what only qualifies it (TOKEN_FILE, KEY_B64).
_CREDENTIAL = re.compile(
    r"(?:(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|COOKIE|PROFILE)"
    r"(?:_?(?:FILE|PATH|ID|NAME|JSON|B64|BASE64))*|CLIENT_?ID|TENANT_?ID)\Z",
    re.IGNORECASE,
)

_NAME = r"\b([A-Za-z_][A-Za-z0-9_]{0,99})\b"
_COMPLAINTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"""(?:KeyError: |environ\[|environ\.get\(|environ\.pop\(|getenv\()['"]{_NAME}['"]""",
        rf"""{_NAME}['"`]? environment variable""",
        rf"""environment variable:? ['"`]?{_NAME}""",
    )
)


def child_environment(
    parent: Mapping[str, str],
    settings: RunnerSettings,
    *,
    tree: Path,
    checkout: Path,
    home: Path,
    temporary: Path,
    import_paths: Sequence[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """What the tests of a side see: what is let through of `parent`, private directories, what is configured.

    `tree` is the side's worktree, `checkout` the user's own; entries of PYTHONPATH in the checkout become
    those of the tree, or are left out when it has none such. `import_paths` (relative to the tree, or
    absolute) come first. `home` and `temporary` have to be made by the caller. `extra` is set last.
    """
    private = {
        "HOME": home,
        "TMPDIR": temporary,
        "TEMP": temporary,
        "TMP": temporary,
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
    }
    environment = _let_through(parent, settings.pass_environment)
    environment |= {name: str(path) for name, path in private.items()}
    environment |= settings.set_environment
    inherited = _in_tree(environment.pop("PYTHONPATH", ""), tree, checkout)
    python_path = [*(str(tree / entry) for entry in import_paths), *inherited]
    if python_path:
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(python_path))
    return {**environment, **extra}


def is_credential(name: str) -> bool:
    """Whether a variable's name has the shape of a credential's."""
    return _CREDENTIAL.search(name) is not None


def recorded_environment(child: Mapping[str, str], **places: Path) -> dict[str, str]:
    """What of a child's environment can change a result, comparable between runs, in the order of names.

    The places that every run has anew are given by name and become `{name}`; this program's own variables are left out;
    of a credential it is only told that it is set.
    """
    by_length = sorted(places.items(), key=lambda place: -len(str(place[1])))
    recorded = {}
    for name, value in sorted(child.items()):
        if name.startswith("LEDGER_"):
            continue
        for place, path in by_length:
            # Only whole paths: preceded by a separator or nothing, followed by a separator, `/` or nothing.
            value = re.sub(rf"(?<![^:=,\s]){re.escape(str(path))}(?![^/:,\s])", f"{{{place}}}", value)
        recorded[name] = CREDENTIAL if is_credential(name) else value
    return recorded


def missing_variable_hint(message: str, parent: Mapping[str, str], child: Mapping[str, str]) -> str | None:
    """What to try when a test's message complains about a variable that is set here but was not let through.

    Only a hint for people: wording never changes an outcome.
    """
    for name in chain.from_iterable(complaint.findall(message) for complaint in _COMPLAINTS):
        if name in parent and name not in child:
            return (
                f"the variable {name} is set here but was not passed to the tests; "
                f'if they need it: pass_environment = ["{name}"] in [runner]'
            )
    return None


def _let_through(parent: Mapping[str, str], patterns: Sequence[str]) -> dict[str, str]:
    exact = {*_PASSED, *patterns}
    prefixes = tuple(pattern.removesuffix("*") for pattern in exact if pattern.endswith("*"))
    return {
        name: value
        for name, value in parent.items()
        if name in exact or (name.startswith(prefixes) and not is_credential(name))
    }


def _in_tree(python_path: str, tree: Path, checkout: Path) -> list[str]:
    """The entries of PYTHONPATH as this side is to see them; relative ones start at the checkout."""
    real_checkout = Path(os.path.realpath(checkout))
    entries = []
    for entry in python_path.split(os.pathsep) if python_path else ():
        place = Path(os.path.realpath(checkout / entry))
        if not place.is_relative_to(real_checkout):
            entries.append(str(checkout / entry))
        elif (moved := tree / place.relative_to(real_checkout)).exists():
            entries.append(str(moved))
    return entries
