"""Mutation testing, as `mutants.toml` says: which files are changed, which tests have to notice, and which changes are
known to change nothing.

mutmut makes the changes and runs the tests, from an environment of its own and on a copy of the tree, both below the
user's cache directory. Exit code 1 means that a change survived that is not known, or that a known one is out of date.
"""

import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_cache_path

ROOT = Path(__file__).parents[1]
NOTICED = frozenset({1, 3, 24, 36, 152, 255, -24})
"""What mutmut writes down for a change that made a test fail, or that made it run without end."""
SELECTED = "not real and not hypothesis"
"""Tests of real processes take long; so do properties, each of which looks for its smallest failure."""

_MUTANT = re.compile(r"__mutmut_(?:orig|[0-9]+)")
_TEXT = re.compile(r"""(f?)(["'])((?:\\.|(?!\2).)*)\2""")


def _codes_only(text: re.Match[str]) -> str:
    return "" if text[1] or " " in text[3] else text[0]


class Survivor(NamedTuple):
    """A change that no test noticed: its name for mutmut, the function, and the lines that differ."""

    name: str
    function: str
    old: str
    new: str

    def says_the_same(self) -> bool:
        """Whether it changes nothing but words for people."""
        return _TEXT.sub(_codes_only, self.old) == _TEXT.sub(_codes_only, self.new)

    def text(self) -> str:
        """The change in the form in which a known one is written, after its function."""
        return f"{self.function}: {self.old} -> {self.new}"


def environment(cache: Path, version: str) -> Path:
    """The interpreter of an environment with what is locked and mutmut, made when it is not there."""
    lock, made, python = ROOT / "requirements-dev.lock", cache / "made-of", cache / "environment" / "bin" / "python"
    wanted = f"mutmut {version} {sys.version}\n{lock.read_text('utf-8')}"
    if not made.exists() or made.read_text("utf-8") != wanted:
        made.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", cache / "environment"], check=True)
        for what in (["--require-hashes", "-r", str(lock)], [f"mutmut=={version}"]):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *what], check=True)
        made.write_text(wanted, "utf-8")
    return python


def copied(cache: Path, settings: dict[str, Any], files: tuple[str, ...]) -> Path:
    """A copy of the tree as it is now, with what mutmut has to know."""
    tree = cache / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    lines = {
        "source_paths": ["ledger", "projections", "commands"],
        "only_mutate": list(files),
        "also_copy": ["docs", "scripts", "README.md", "CHANGELOG.md"],
        "pytest_add_cli_args": ["-m", SELECTED, "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": settings["tests"],
    }
    with (tree / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "[tool.mutmut]", *(f"{key} = {json.dumps(value)}" for key, value in lines.items())]))
    return tree


def survivors(tree: Path) -> Iterator[Survivor]:
    """What mutmut saw no test notice."""
    for found in sorted((tree / "mutants").glob("**/*.meta")):
        source = found.with_suffix("").read_text("utf-8")
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
        lines = {node.name: source.splitlines()[node.lineno - 1 : node.end_lineno] for node in nodes}
        for name, code in json.loads(found.read_text("utf-8"))["exit_code_by_key"].items():
            if code not in NOTICED:
                mutant = name.rpartition(".")[2]
                yield _survivor(name, lines[_MUTANT.sub("__mutmut_orig", mutant)], lines[mutant])


def _survivor(name: str, original: list[str], changed: list[str]) -> Survivor:
    before, after = ([_MUTANT.sub("", line).strip() for line in lines] for lines in (original, changed))
    different = list(difflib.ndiff(before, after))
    old, new = (" ".join(line[2:] for line in different if line.startswith(sign)) for sign in ("- ", "+ "))
    function = _MUTANT.sub("", name).replace(".x_", ".").replace(".xǁ", ".").replace("ǁ", ".")
    return Survivor(name, function, old, new)


def noticed_from_the_start(python: Path, tree: Path, tests: list[str], survivor: Survivor) -> bool:
    """Whether a test notices the change in a process of its own: what runs when a module is imported has run before
    mutmut makes its change."""
    argv = [str(python), "-m", "pytest", "-n0", "-x", "-q", "-m", SELECTED, "-p", "no:cacheprovider", *tests]
    variables = {**os.environ, "MUTANT_UNDER_TEST": survivor.name}
    return subprocess.run(argv, cwd=tree / "mutants", env=variables, capture_output=True, check=False).returncode != 0


def main() -> int:
    """Print every change that survived and is not known, and every known one that does not survive."""
    settings = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text("utf-8"))
    files = tuple(sys.argv[1:] or settings["files"])
    cache = user_cache_path("release-ledger-development") / "mutation"
    python, tree = environment(cache, settings["mutmut"]), copied(cache, settings, files)
    mutmut = [str(python.with_name("mutmut")), "run", "--max-children", str(os.cpu_count() or 1)]
    subprocess.run(mutmut, cwd=tree, check=True, stdout=sys.stderr)
    modules = tuple(name.removesuffix("py").replace("/", ".") for name in files)
    known = {change for one in settings["known"] for change in one["changes"]}
    found = {one.text(): one for one in survivors(tree) if not one.says_the_same()}
    new = [
        text
        for text in found.keys() - known
        if not noticed_from_the_start(python, tree, settings["tests"], found[text])
    ]
    gone = {text for text in known - found.keys() if text.startswith(modules)}
    for text in sorted(new):
        print(f"survived: {text}")
    for text in sorted(gone):
        print(f"known, but noticed or not made any more: {text}")
    print(f"{len(found)} changes survived that are more than words; {len(new)} of them are not known")
    return 1 if new or gone else 0


if __name__ == "__main__":
    raise SystemExit(main())
