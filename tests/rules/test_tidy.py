"""What keeps the code small, plain and explained: lengths, docstrings, no leftovers, no dead files."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.rules.sources import (
    PRODUCT_ROOMS,
    ROOMS,
    ROOT,
    Source,
    Violation,
    imports_of,
    listing,
    python_sources,
    tracked_files,
    within,
)

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
FOLDER_FILES_MAX = 12

# The ratchet: what is longer than it should be, and how long it is. A key is a path, followed by `::function`
# for a function. The numbers only ever go down, and an entry that is no longer needed has to go.
LONGER: dict[str, int] = {}

LEFTOVER = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X)\b")
# What follows a number in a text; for one of it, the text would be wrong.
COUNTED = re.compile(r" (more )?(tests|cases|targets|failures|shards|jobs|attempts|events|lines|commits)\b")
MAY_PRINT = ("commands.cli", "commands.shipped")

EVERYTHING = python_sources(*ROOMS)
PRODUCT = python_sources(*PRODUCT_ROOMS)


def by_path(source: Source) -> str:
    """Name a test's case after the file that it looks at."""
    return source.path


@dataclass(frozen=True)
class Length:
    """How long a file or a function is, and how long it may be."""

    name: str
    line: int
    lines: int
    allowed: int


def lengths(source: Source) -> list[Length]:
    """The length of the file and of each function in it, however deep it sits."""
    found = [Length(source.path, 1, len(source.text.splitlines()), FILE_LINES_MAX)]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            found.append(Length(f"{source.path}::{node.name}", node.lineno, lines, FUNCTION_LINES_MAX))
    return found


def too_long(source: Source, longer: dict[str, int]) -> list[Violation]:
    """The file itself and the functions in it that are longer than the rule or the ratchet allows."""
    violations = []
    for one in lengths(source):
        allowed = longer.get(one.name, one.allowed)
        if one.lines > allowed:
            text = f"`{one.name}` has {one.lines} lines; at most {allowed} are allowed"
            violations.append(Violation(source.path, one.line, text))
    return violations


def without_docstring(source: Source) -> list[Violation]:
    """The module and each public function or class at its top level, where the docstring is missing.

    A package's `__init__.py` may be empty.
    """
    violations = []
    if source.text.strip() and ast.get_docstring(source.tree) is None:
        violations.append(Violation(source.path, 1, "the module has no docstring"))
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            overload = any("overload" in ast.dump(decorator) for decorator in node.decorator_list)
            if not node.name.startswith("_") and not overload and ast.get_docstring(node) is None:
                violations.append(Violation(source.path, node.lineno, f"`{node.name}` has no docstring"))
    return violations


def leftovers(source: Source) -> list[Violation]:
    """Each mark of work that was put off."""
    return [
        Violation(source.path, number, f"leftover mark: {line.strip()}")
        for number, line in enumerate(source.text.splitlines(), start=1)
        if LEFTOVER.search(line)
    ]


def prints(source: Source) -> list[Violation]:
    """Each call of `print` in a module that has no business with a terminal."""
    if within(source.module, MAY_PRINT):
        return []
    return [
        Violation(source.path, node.lineno, "`print` outside the command line")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def written_plurals(source: Source) -> list[Violation]:
    """Each text in which a number stands before a plural: `count` of `commands.render.words` knows both forms."""
    texts = (node.values for node in ast.walk(source.tree) if isinstance(node, ast.JoinedStr))
    return [
        Violation(source.path, after.lineno, f"a number before `{found.group().strip()}`")
        for parts in texts
        for number, after in pairwise(parts)
        if isinstance(number, ast.FormattedValue) and isinstance(after, ast.Constant)
        if not (isinstance(number.value, ast.Name) and number.value.id.isupper())
        if (found := COUNTED.match(str(after.value)))
    ]


def never_used(sources: tuple[Source, ...]) -> list[Violation]:
    """The modules that no other module imports.

    A package's `__init__.py` comes with its modules. What is shipped is started by path: there, its name in
    the text of another file is the use.
    """
    imported = {name for source in sources for found in imports_of(source) for name in (found.module, found.full)}
    violations = []
    for source in sources:
        if source.is_package or source.module in imported:
            continue
        stem = source.module.rpartition(".")[2]
        if within(source.module, ("commands.shipped",)):
            mention = re.compile(rf"\b{stem}(\.py)?\b")
            if any(mention.search(other.text) for other in sources if other is not source):
                continue
        violations.append(Violation(source.path, 1, "nothing imports this module"))
    return violations


def crowded_folders(paths: tuple[str, ...]) -> list[str]:
    """The folders with more Python files than a reader can keep in mind."""
    folders = Counter(
        path.rpartition("/")[0]
        for path in paths
        if path.endswith(".py") and not path.endswith("__init__.py") and path.split("/")[0] in ROOMS
    )
    return [f"{folder}: {count} files" for folder, count in folders.items() if count > FOLDER_FILES_MAX]


@pytest.mark.parametrize("source", EVERYTHING, ids=by_path)
def test_functions_and_files_are_short(source: Source) -> None:
    violations = too_long(source, LONGER)
    assert not violations, listing(violations)


def test_the_ratchet_is_tight() -> None:
    longest: dict[str, int] = {}
    for one in (one for source in EVERYTHING for one in lengths(source)):
        longest[one.name] = max(one.lines if one.lines > one.allowed else 0, longest.get(one.name, 0))
    assert {name: longest.get(name, 0) for name in LONGER} == LONGER


@pytest.mark.parametrize("source", PRODUCT, ids=by_path)
def test_what_is_public_is_explained(source: Source) -> None:
    violations = without_docstring(source)
    assert not violations, listing(violations)


@pytest.mark.parametrize("source", EVERYTHING, ids=by_path)
def test_no_work_is_put_off_in_a_comment(source: Source) -> None:
    violations = leftovers(source)
    assert not violations, listing(violations)


@pytest.mark.parametrize("source", PRODUCT, ids=by_path)
def test_only_the_command_line_prints(source: Source) -> None:
    violations = prints(source)
    assert not violations, listing(violations)


@pytest.mark.parametrize("source", PRODUCT, ids=by_path)
def test_a_number_and_its_noun_agree(source: Source) -> None:
    violations = written_plurals(source)
    assert not violations, listing(violations)


def test_every_module_is_used() -> None:
    violations = never_used(PRODUCT)
    assert not violations, listing(violations)


def test_no_folder_is_crowded() -> None:
    assert crowded_folders(tracked_files()) == []


def test_every_script_is_executable_and_says_what_it_does() -> None:
    for name in tracked_files():
        if name.startswith("scripts/") and "." not in name.removeprefix("scripts/"):
            first, second = (ROOT / name).read_text().splitlines()[:2]
            assert (ROOT / name).stat().st_mode & 0o111, f"{name} is not executable"
            assert first.startswith("#!/usr/bin/env "), f"{name} has no interpreter line"
            assert second.startswith(("# ", '"""')), f"{name} does not say what it does"


def test_a_long_function_and_a_long_file_are_found() -> None:
    function = "def long():\n" + "    step()\n" * FUNCTION_LINES_MAX
    assert [one.line for one in too_long(Source("ledger/a.py", f"import json\n{function}"), {})] == [2]
    assert too_long(Source("ledger/a.py", function), {"ledger/a.py::long": FUNCTION_LINES_MAX + 1}) == []
    assert len(too_long(Source("ledger/a.py", "\n" * (FILE_LINES_MAX + 1)), {})) == 1
    assert too_long(Source("ledger/a.py", "\n" * FILE_LINES_MAX), {}) == []


def test_a_missing_docstring_is_found() -> None:
    text = '"""A module."""\ndef public(): ...\nclass Public: ...\ndef _private(): ...\ndef told():\n    "Told."'
    assert [one.line for one in without_docstring(Source("ledger/a.py", text))] == [2, 3]
    assert [one.line for one in without_docstring(Source("ledger/a.py", "import json"))] == [1]
    assert without_docstring(Source("ledger/a/__init__.py", "")) == []


@pytest.mark.parametrize("mark", ["TO" + "DO", "FIX" + "ME", "X" * 3])
def test_a_leftover_is_found(mark: str) -> None:
    assert [one.line for one in leftovers(Source("ledger/a.py", f"a = 1\nb = 2  # {mark}: later"))] == [2]
    assert leftovers(Source("ledger/a.py", f"name = 'a{mark}b'")) == []


def test_a_print_is_found() -> None:
    text = "import json\ndef show():\n    print('seen')"
    assert [one.line for one in prints(Source("commands/loop.py", text))] == [3]
    assert prints(Source("commands/cli/status.py", text)) == []


def test_a_written_plural_is_found() -> None:
    texts = ('f"{n} failures"', 'f"{len(a)} more tests of"', "f\"{count(n, 'test')} in all\"", 'f"{MOST} lines"')
    found = [bool(written_plurals(Source("commands/loop.py", text))) for text in texts]
    assert found == [True, True, False, False]


def test_a_dead_module_is_found() -> None:
    sources = (
        Source("commands/cli/__init__.py", "def main():\n    from commands import loop"),
        Source("commands/loop.py", "PLUGIN = 'shipped/plugin.py'"),
        Source("commands/shipped/plugin.py", "import json"),
        Source("commands/shipped/forgotten.py", "import json"),
        Source("commands/dead.py", "from commands.loop import PLUGIN"),
    )
    assert [one.path for one in never_used(sources)] == ["commands/shipped/forgotten.py", "commands/dead.py"]


def test_a_crowded_folder_is_found() -> None:
    paths = tuple(f"ledger/events/{number}.py" for number in range(FOLDER_FILES_MAX + 1))
    assert crowded_folders((*paths, "ledger/one.py", "notes/x.py")) == ["ledger/events: 13 files"]
    assert crowded_folders((*paths[1:], "ledger/events/__init__.py")) == []
