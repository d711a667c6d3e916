"""The `ledger.toml` that `ledger init` writes: every key explained, its default commented out."""

import json
import textwrap
from collections.abc import Sequence

from commands.config.keys import RULES, TABLES
from commands.config.load import Loaded
from commands.config.settings import RunnerSettings, Settings
from commands.config.together import foreign_keys

_WIDTH = 100


def template(runner: RunnerSettings, project: str, reasons: Sequence[str]) -> str:
    """The text of the file. `reasons` tell, a line each, why this runner was taken to be the project's."""
    chosen, defaults = Loaded(Settings(runner=runner), {}), Loaded(Settings(runner=type(runner)()), {})
    left_out = foreign_keys(runner)
    written: dict[str, object] = {"project": _line(project), "runner.runner": runner.runner}
    for name in runner.__struct_fields__:
        if chosen.value(f"runner.{name}") != defaults.value(f"runner.{name}"):
            written[f"runner.{name}"] = chosen.value(f"runner.{name}")
    lines = ["# Settings of the release ledger. What is commented out is the default."]
    for table in ("", *TABLES):
        lines += ["", f"[{table}]"] if table else [""]
        if table == "runner":
            lines += [f"# {_line(reason)}" for reason in reasons]
        for key, rule in RULES.items():
            holder, _, name = key.rpartition(".")
            if holder == table and key not in left_out:
                explained = f"{rule.meaning} Allowed: {rule.allowed}."
                lines += textwrap.wrap(explained, _WIDTH, initial_indent="# ", subsequent_indent="# ")
                lines += [f"{'' if key in written else '# '}{name} = {_toml(written.get(key, defaults.value(key)))}"]
    return "\n".join([*lines, ""])


def _line(text: str) -> str:
    """The text without what would end a comment or a string of TOML."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _toml(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict) and value:
        return f"{{ {', '.join(f'{_toml(name)} = {_toml(inner)}' for name, inner in value.items())} }}"
    # For the other types, the JSON of a value that holds no control characters is also its TOML.
    return json.dumps(value, ensure_ascii=False)
