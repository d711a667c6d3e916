"""The page about runners: its examples are settings that can be loaded, and mean what it says."""

import re
from pathlib import Path

import pytest

from commands.config.load import Loaded, load_settings
from commands.config.settings import CommandSettings
from commands.runners.detect import recognised

PAGE = (Path(__file__).parents[3] / "docs" / "runners.md").read_text("utf-8")
EXAMPLES = dict(
    zip(
        ["generic", "vitest", "bun", "go", "jest", "in-tree"],
        re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL),
        strict=True,
    )
)


def loaded(tmp_path: Path, text: str) -> Loaded:
    """The settings of this text alone."""
    (tmp_path / "ledger.toml").write_text(text, "utf-8")
    return load_settings(tmp_path, {}, environment={}, user_directory=tmp_path / "nowhere")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_configuration(name: str, tmp_path: Path) -> None:
    settings = loaded(tmp_path, EXAMPLES[name]).settings.runner
    assert isinstance(settings, CommandSettings)
    assert settings.command
    assert settings.targets or settings.list


def test_any_runner_takes_five_lines() -> None:
    assert len(EXAMPLES["generic"].strip().splitlines()) == 5


@pytest.mark.parametrize(
    ("example", "files"),
    [
        ("vitest", {"package.json": '{"devDependencies": {"vitest": "3"}}', "package-lock.json": "{}"}),
        ("bun", {"bun.lock": "{}"}),
        ("go", {"go.mod": "module m\n"}),
    ],
)
def test_an_example_is_what_init_writes_but_for_the_globs(example: str, files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = recognised(tmp_path)
    shown = loaded(tmp_path, EXAMPLES[example]).settings.runner
    assert found is not None
    assert isinstance(found.settings, CommandSettings)
    assert isinstance(shown, CommandSettings)
    different = {name for name in shown.__struct_fields__ if getattr(shown, name) != getattr(found.settings, name)}
    assert different <= {"targets", "lock"}
    assert set(shown.targets) <= set(found.settings.targets)


def test_the_page_names_every_key_of_the_command_runner() -> None:
    keys = set(CommandSettings.__struct_fields__) - {"runner", "import_paths", "python", "arguments", "paths"}
    missing = {key for key in keys - {"first_party"} if f"`{key}" not in PAGE and f"{key} = " not in PAGE}
    assert missing == set()


def test_a_report_in_the_tree_lets_one_part_run_at_a_time(tmp_path: Path) -> None:
    assert loaded(tmp_path, EXAMPLES["in-tree"]).settings.gate.parallel == 1
