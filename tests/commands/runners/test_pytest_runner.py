"""The pytest adapter: commands, what belongs to a project, where it is imported from, and what evidence counts for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from commands.config.settings import RunnerSettings
from commands.runners import pytest as adapter
from commands.runners.api import lock_digest
from ledger.tables import encode_document

PYTHON = Path("/an/interpreter")
CACHE = Path("/a/cache")

PROBE = adapter.Probe(
    python="3.11.0",
    implementation="CPython",
    platform="linux",
    architecture="x86_64",
    executable="/an/interpreter",
    prefix="/an",
    path=(),
    distributions=(("pytest", "9.0.0", ""), ("product", "1.0", "/checkout")),
    path_entries=(),
    mappings={},
    local_names={},
    pytest="9.0.0",
    pytest_plugins=(("pytest-xdist", "3.8.0"),),
)


def test_what_the_gate_needs_comes_after_the_projects_arguments_and_the_paths_come_last() -> None:
    settings = RunnerSettings(arguments=("-x", "-m", "not slow"), paths=("tests", "more"))
    command = adapter.run_command(settings, PYTHON, CACHE)
    assert command[:5] == ("/an/interpreter", "-m", "pytest", "-p", "release_ledger_pytest")
    assert command.index("-x") < command.index("--maxfail=0")
    assert command[-2:] == ("tests", "more")
    assert "cache_dir=/a/cache" in command
    assert "--continue-on-collection-errors" in command
    collecting = adapter.collect_command(settings, PYTHON, CACHE)
    assert [argument for argument in collecting if argument not in command] == ["--collect-only", "-q"]


def test_what_is_shipped_is_where_the_adapter_says() -> None:
    assert adapter.PROBE.is_file()
    modules = [path.name for path in adapter.PLUGIN_DIRECTORY.iterdir() if path.name != "__pycache__"]
    assert modules == ["release_ledger_pytest.py"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("pytest.ini", "", "there is pytest.ini"),
        ("pytest.toml", "", "there is pytest.toml"),
        ("pyproject.toml", "[project]\n[tool.pytest.ini_options]\n", "pyproject.toml configures pytest"),
        ("pyproject.toml", "[tool.pytest]\n", "pyproject.toml configures pytest"),
        ("pyproject.toml", 'test = ["pytest>=8"]\n', "pyproject.toml names pytest"),
        ("setup.cfg", "[metadata]\n[tool:pytest]\n", "setup.cfg configures pytest"),
        ("tox.ini", "[pytest]\n", "tox.ini configures pytest"),
        ("conftest.py", "", "there is conftest.py"),
        ("tests/conftest.py", "", "there is tests/conftest.py"),
        ("tests/test_a.py", "", "there is tests/test_a.py"),
        ("test/a_test.py", "", "there is test/a_test.py"),
        ("pyproject.toml", "[tool.other]\n# pytest\n", None),
        ("tox.ini", "[testenv]\n", None),
        ("setup.cfg", "[metadata]\n", None),
        ("tests/helper.py", "", None),
        ("pytest.ini/a_directory", "", None),
    ],
)
def test_a_project_is_recognised_by_its_files(tmp_path: Path, name: str, text: str, reason: str | None) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert adapter.detect(tmp_path) == reason


def test_a_file_that_is_not_text_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.pytest]\xff")
    assert adapter.detect(tmp_path) is None


def test_the_first_party_names_are_the_packages_and_modules_of_the_product() -> None:
    tracked = (
        "README.md", "setup.py", "conftest.py", "noxfile.py", "single.py", "test_single.py", "single_test.py",
        "product/__init__.py", "product/inner/__init__.py", "product/other.py", "odd-name/__init__.py",
        "tests/__init__.py", "tests/test_a.py", "docs/conf.py", "docs/__init__.py", "namespace/module.py",
        "src/engine/__init__.py", "src/engine/core.py", "src/tools/__init__.py", "src/plain.py", "src/README.md",
    )  # fmt: skip
    assert adapter.first_party_names(tracked) == ("engine", "plain", "product", "single", "tools")
    assert adapter.first_party_names(()) == ()


def paths(tracked: tuple[str, ...], checkout: Path, **fields: Any) -> tuple[str, ...]:
    return adapter.import_paths(RunnerSettings(), tracked, replace(PROBE, **fields), checkout)


def test_import_paths_are_those_of_the_settings_first() -> None:
    settings = RunnerSettings(import_paths=("lib",))
    assert adapter.import_paths(settings, ("src/a.py",), PROBE, Path("/checkout")) == ("lib",)


def test_import_paths_follow_what_installations_of_the_checkout_added(tmp_path: Path) -> None:
    tracked = ("one/lib/a/__init__.py", "two/b/__init__.py", "src/c.py")
    entries = [str(tmp_path / place) for place in ("one/lib", "not/tracked", "../outside")]
    mappings = {"b": str(tmp_path / "two" / "b"), "else": "/opt/else"}
    assert paths(tracked, tmp_path, path_entries=tuple(entries), mappings=mappings) == ("one/lib", "two")
    assert paths(tracked, tmp_path, path_entries=(str(tmp_path),)) == (".",)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert paths(tracked, link, path_entries=(str(tmp_path / "one/lib"),)) == ("one/lib",)


def test_import_paths_fall_back_to_a_source_directory_with_code_in_it(tmp_path: Path) -> None:
    assert paths(("src/product/__init__.py",), tmp_path) == ("src",)
    assert paths(("src/main.c", "product/__init__.py"), tmp_path) == ()


def test_lock_files_have_a_digest_by_name_and_content() -> None:
    digests = {
        lock_digest(files)
        for files in ({}, {"a": b"1"}, {"a": b"2"}, {"b": b"1"}, {"a": b"1", "b": b"1"}, {"a": b"", "b": b"1"})
    }
    assert len(digests) == 6
    assert lock_digest({"a": b"1", "b": b"2"}) == lock_digest({"b": b"2", "a": b"1"})
    assert lock_digest({}) == ""


COMMAND = adapter.run_command(RunnerSettings(), PYTHON, CACHE)


def key(**changes: Any) -> bytes:
    """The bytes of a key with some of its inputs changed."""
    inputs: dict[str, Any] = {
        "tree_id": "t" * 40,
        "probe": PROBE,
        "command": COMMAND,
        "lock": "",
        "environment": {"LANG": "C", "TZ": "UTC"},
    }
    return encode_document(adapter.evidence_key(**{**inputs, **changes}))


def test_the_evidence_key_changes_with_everything_that_can_change_a_result() -> None:
    different = [
        key(),
        key(tree_id="u" * 40),
        key(probe=replace(PROBE, python="3.12.0")),
        key(probe=replace(PROBE, implementation="PyPy")),
        key(probe=replace(PROBE, platform="darwin")),
        key(probe=replace(PROBE, architecture="arm64")),
        key(probe=replace(PROBE, pytest="9.1.0")),
        key(probe=replace(PROBE, pytest_plugins=())),
        key(probe=replace(PROBE, distributions=(("product", "1.0", "/another"),))),
        key(command=adapter.run_command(RunnerSettings(arguments=("-m", "fast")), PYTHON, CACHE)),
        key(lock="d" * 64),
        key(environment={"LANG": "C"}),
        key(memory_limit_bytes=1),
    ]
    assert len(set(different)) == len(different)


def test_the_evidence_key_does_not_change_with_places_and_order() -> None:
    elsewhere = adapter.run_command(RunnerSettings(), Path("/another/python"), Path("/another/attempt"))
    assert key(command=elsewhere) == key()
    assert key(environment={"TZ": "UTC", "LANG": "C"}) == key()
    assert key(probe=replace(PROBE, executable="/b", prefix="/c", path=("/d",))) == key()


def test_with_a_lock_the_installed_distributions_do_not_matter() -> None:
    assert key(lock="d" * 64, probe=replace(PROBE, distributions=())) == key(lock="d" * 64)


@pytest.mark.real
def test_the_probe_describes_the_interpreter_that_runs_it() -> None:
    answer = subprocess.run([sys.executable, adapter.PROBE], capture_output=True, timeout=60, check=True)
    probe = msgspec.json.decode(answer.stdout, type=adapter.Probe)
    assert probe.python == ".".join(str(part) for part in sys.version_info[:3])
    assert Path(probe.prefix) == Path(sys.prefix)
    assert probe.pytest == pytest.__version__
    assert "pytest-xdist" in dict(probe.pytest_plugins)
    assert str(adapter.PROBE.parent) not in probe.path
    names = [name for name, _, _ in probe.distributions]
    assert names == sorted(set(names))
    assert "msgspec" in names


@pytest.mark.real
def test_the_probe_reads_installations_without_running_them(tmp_path: Path) -> None:
    """A directory that stands for `site-packages`, with everything that can be wrong in one."""
    packages = tmp_path / "packages"
    for name in ("source", "packages", "checkout"):
        (tmp_path / name).mkdir()
    (packages / "by_path.pth").write_text(
        f"# a comment\n{tmp_path / 'source'}\n/does/not/exist\nimport os\n../source\n"
    )
    (packages / "not_text.pth").write_bytes(b"\xff\xfe")
    finder = "MAPPING: dict[str, str] = {'product': '/checkout/product'}\nraise SystemExit('this was run')\n"
    (packages / "__editable___product_finder.py").write_text(finder)
    (packages / "__editable___other_finder.py").write_text("MAPPING = {'other': '/checkout/other'}\n")
    (packages / "__editable___broken_finder.py").write_text("MAPPING = {'broken': \n")
    (packages / "__editable___clever_finder.py").write_text("MAPPING = dict(clever=1)\nNAMES = MAPPING = f()\n")
    for name, direct in (
        ("Odd_Name.x", {"url": "file:///checkout/with%20space", "dir_info": {"editable": True}}),
        ("remote", {"url": "https://example.org/a.tar.gz"}),
        ("broken", []),
        ("local", {"url": "file:///checkout", "dir_info": {}}),
    ):
        information = packages / f"{name}-1.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (information / "direct_url.json").write_text(json.dumps(direct))
        paths = ("a.py", "b/__init__.py", "b/c.py", "../bin/d.py", "e/f/__init__.py")
        record = "".join(f"{path},,\n" for path in paths)
        (information / "RECORD").write_text(f"{record}{information.name}/METADATA,,\n")
    code = (
        "import runpy, site, sys\n"
        f"site.getsitepackages = lambda: [{str(packages)!r}]\n"
        "site.ENABLE_USER_SITE = False\n"
        f"sys.path[:] = [{str(packages)!r}, *[entry for entry in sys.path if 'site-packages' not in entry]]\n"
        f"runpy.run_path({str(adapter.PROBE)!r}, run_name='__main__')\n"
    )
    answer = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, timeout=60, check=True)
    probe = msgspec.json.decode(answer.stdout, type=adapter.Probe)
    assert probe.path_entries == (str(tmp_path / "source"),)
    assert probe.mappings == {"product": "/checkout/product", "other": "/checkout/other"}
    assert probe.local_names == {"a": "/checkout", "b": "/checkout"}
    assert probe.pytest == ""
    assert probe.distributions == (
        ("broken", "1", "unreadable"),
        ("local", "1", "/checkout"),
        ("odd-name-x", "1", "/checkout/with space"),
        ("remote", "1", "https://example.org/a.tar.gz"),
    )


def test_installed_copies_of_this_project_belong_to_it_unless_made_of_the_side_itself(tmp_path: Path) -> None:
    work = tmp_path / ".git" / "ledger"
    places = {"checkout": tmp_path, "wheel": tmp_path / "dist" / "w.whl", "far": Path("/opt/far")}
    places |= {"mine": work / "run" / "candidate", "other": work / "run" / "baseline"}
    probe = msgspec.structs.replace(PROBE, local_names={name: str(place) for name, place in places.items()})

    def copied(*, by_tree: bool) -> tuple[str, ...]:
        return adapter.copied_names(probe, tmp_path, places["mine"], work, by_tree=by_tree)

    assert copied(by_tree=False) == ("checkout", "other", "wheel")
    assert copied(by_tree=True) == ("checkout", "wheel")
