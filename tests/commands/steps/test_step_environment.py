"""The environment of a step: what every test sees, what the step names, and nothing of the user's own beside it."""

from pathlib import Path

import pytest

from commands.effects.steps.environment import step_environment

PARENT = {
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "HOME": "/homes/somebody",
    "XDG_CONFIG_HOME": "/homes/somebody/.config",
    "PYTHONPATH": "/checkout/src",
    "NPM_REGISTRY": "https://registry.example",
    "NPM_TOKEN": "hush",
    "SSH_AUTH_SOCK": "/run/agent",
    "LEDGER_STORE": "/store/of/the/user",
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """The directories that an environment names; the tree has a `src`."""
    (tmp_path / "tree" / "src").mkdir(parents=True)
    return {
        "tree": tmp_path / "tree",
        "checkout": Path("/checkout"),
        "home": tmp_path / "home",
        "temporary": tmp_path / "tmp",
    }


def test_a_step_sees_little_of_its_own_accord_and_a_private_home(places: dict[str, Path]) -> None:
    seen = step_environment(PARENT, (), **places, told={"LEDGER_RUN_ID": "run-1"})
    assert {name: seen[name] for name in ("PATH", "LANG", "LEDGER_RUN_ID")} == {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "LEDGER_RUN_ID": "run-1",
    }
    assert seen["HOME"] == str(places["home"])
    assert not {"NPM_REGISTRY", "NPM_TOKEN", "SSH_AUTH_SOCK", "LEDGER_STORE"} & set(seen)


def test_a_step_that_names_a_variable_sees_it_as_it_is(places: dict[str, Path]) -> None:
    names = ("HOME", "SSH_AUTH_SOCK", "NPM_TOKEN", "MISSING")
    seen = step_environment(PARENT, names, **places, told={})
    assert (seen["HOME"], seen["SSH_AUTH_SOCK"], seen["NPM_TOKEN"]) == ("/homes/somebody", "/run/agent", "hush")
    assert "MISSING" not in seen
    assert seen["XDG_CONFIG_HOME"].startswith(str(places["home"]))


def test_a_prefix_lets_no_credential_through(places: dict[str, Path]) -> None:
    seen = step_environment(PARENT, ("NPM_*",), **places, told={})
    assert "NPM_REGISTRY" in seen
    assert "NPM_TOKEN" not in seen


def test_what_a_step_imports_is_of_its_own_tree_even_when_it_names_the_path(places: dict[str, Path]) -> None:
    seen = step_environment(PARENT, ("PYTHONPATH",), **places, told={})
    assert seen["PYTHONPATH"] == str(places["tree"] / "src")


def test_what_it_is_told_wins_over_what_it_names(places: dict[str, Path]) -> None:
    seen = step_environment(PARENT, ("LEDGER_STORE",), **places, told={"LEDGER_STORE": "/store/of/the/run"})
    assert seen["LEDGER_STORE"] == "/store/of/the/run"
